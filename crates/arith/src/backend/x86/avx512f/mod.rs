//! AVX-512 F back-end: limbs enter, Montgomery products leave, without IFMA; all other kernels are those of AVX2.

pub(crate) mod montgomery;

pub(crate) use super::avx2::{basis, convert, matmul, ntt, pcmm, poly, ring, sample, switch};

/// Whether this processor has every feature that the kernels are compiled with.
pub(crate) fn is_available() -> bool {
    super::avx2::is_available() && is_x86_feature_detected!("avx512f")
}
