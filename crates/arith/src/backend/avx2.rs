//! Slices enter, results leave, by AVX2 and FMA.
#![allow(unsafe_code)]

pub(crate) mod basis;
pub(crate) mod convert;
mod lanes;
pub(crate) mod matmul;
pub(crate) mod montgomery;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod switch;
