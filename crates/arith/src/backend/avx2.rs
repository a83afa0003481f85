//! Slices enter, results leave, by AVX2 and FMA.
#![allow(unsafe_code)]

mod lanes;
pub(crate) mod ntt;
