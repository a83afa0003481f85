//! Shapes of vector kernels: what a back-end of any width fills in with its vectors and
//! instructions.

pub(crate) mod convert;
pub(crate) mod float_scan;
pub(crate) mod fma_limbs;
pub(crate) mod matmul;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
pub(crate) mod radix;
pub(crate) mod roots;
pub(crate) mod wrapping;
