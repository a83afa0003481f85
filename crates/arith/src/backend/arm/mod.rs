//! ARM back-ends: one, with NEON, which every 64-bit ARM processor has; why which instructions, says
//! docs/kernels.md.
#![allow(unsafe_code)]

pub(crate) mod neon;
