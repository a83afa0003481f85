//! x86-64 back-ends: AVX2, AVX-512 F, and AVX-512 with IFMA and VBMI; why which instructions, says
//! docs/kernels.md.
#![allow(unsafe_code)]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod avx512f;
