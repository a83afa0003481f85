//! x86-64 back-ends: AVX2, AVX-512 F, and AVX-512 with IFMA and VBMI. Each kernel's module says why
//! it uses which instructions.
#![allow(unsafe_code)]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod avx512f;
