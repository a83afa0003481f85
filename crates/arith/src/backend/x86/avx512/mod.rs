//! AVX-512 back-end: kernels for processors with AVX-512 F, DQ, BW, VL, IFMA and VBMI.

pub(crate) mod basis;
mod chacha;
pub(crate) mod convert;
pub(crate) mod float_scan;
mod ifma_butterflies;
mod lanes;
mod lazy_reduction;
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
    super::avx512f::is_available()
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vbmi")
}
