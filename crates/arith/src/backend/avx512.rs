//! Slices enter, results leave, by AVX-512 (F, DQ, BW, VL, IFMA, VBMI). Instruction choice: docs/avx512-notes.md.
#![allow(unsafe_code)]

mod lanes;
pub(crate) mod ntt;
