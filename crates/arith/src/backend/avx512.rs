//! Slices enter, results leave, by AVX-512 (F, DQ, BW, VL, IFMA, VBMI). Instruction choice: docs/avx512-notes.md.
#![allow(unsafe_code)]

pub(crate) mod basis;
pub(crate) mod chacha;
pub(crate) mod convert;
mod harvey;
mod lanes;
mod late;
pub(crate) mod matmul;
pub(crate) mod montgomery;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod switch;
