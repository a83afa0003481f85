//! AVX-512 F back-end: Montgomery products in 512 bits without IFMA; the rest is AVX2's. Both
//! sides.

pub(crate) mod montgomery;

pub(crate) use super::avx2::{
    basis, convert, float_scan, matmul, ntt, pcmm, poly, ring, sample, switch, wrapping,
};

/// Whether this processor has every feature that the kernels are compiled with.
pub(crate) fn is_available() -> bool {
    super::avx2::is_available() && is_x86_feature_detected!("avx512f")
}
