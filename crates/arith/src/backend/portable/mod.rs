//! Portable back-end: plain Rust, the reference that the others equal bit for bit. Both sides.

pub(crate) mod basis;
pub(crate) mod convert;
pub(crate) mod float_scan;
pub(crate) mod matmul;
pub(crate) mod montgomery;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod switch;
pub(crate) mod wrapping;
