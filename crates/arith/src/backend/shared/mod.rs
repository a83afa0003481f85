//! Shapes of vector kernels: what a back-end of any width fills in with its vectors and
//! instructions.

pub(crate) mod basis;
pub(crate) mod convert;
pub(crate) mod double_lanes;
pub(crate) mod float_scan;
pub(crate) mod fma_limbs;
pub(crate) mod matmul;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod prefetch;
pub(crate) mod radix;
pub(crate) mod ring;
pub(crate) mod roots;
pub(crate) mod split;
pub(crate) mod switch;
pub(crate) mod wrapping;
