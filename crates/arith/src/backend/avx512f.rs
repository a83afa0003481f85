//! Limbs enter, Montgomery products leave, by AVX-512 F without IFMA; all other kernels are those of AVX2.
#![allow(unsafe_code)]

pub(crate) mod montgomery;
