//! NEON back-end: vectors of 128 bits, in pairs where AVX2 has one of 256. Both sides.

pub(crate) mod basis;
pub(crate) mod float_scan;
mod lanes;
pub(crate) mod matmul;
pub(crate) mod montgomery;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod poly;
pub(crate) mod ring;
pub(crate) mod switch;
pub(crate) mod wrapping;

// Loops that the compiler makes vectors of by itself, since the whole build has them.
pub(crate) use crate::backend::portable::{convert, sample};

/// Whether this processor has every feature that the kernels are compiled with.
pub(crate) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}
