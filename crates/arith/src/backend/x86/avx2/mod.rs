//! AVX2 back-end: kernels for processors with AVX2 and FMA.

pub(crate) mod basis;
pub(crate) mod convert;
pub(crate) mod float_scan;
mod lanes;
pub(crate) mod matmul;
pub(crate) mod montgomery;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod switch;
pub(crate) mod wrapping;

/// Whether this processor has every feature that the kernels are compiled with.
pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}
