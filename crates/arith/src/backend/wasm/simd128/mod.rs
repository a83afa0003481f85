//! SIMD128 back-end: kernels on vectors of 128 bits and on doubles.

mod chacha;
pub(crate) mod convert;
pub(crate) mod ntt;
pub(crate) mod poly;
mod residue;
pub(crate) mod sample;
pub(crate) mod switch;
pub(crate) mod wrapping;

// Loops that the compiler makes vectors of by itself, since the whole build has them.
pub(crate) use crate::backend::portable::{basis, float_scan, matmul, montgomery, pcmm, ring};

/// Builds that have it run only where its instructions are.
pub(crate) fn is_available() -> bool {
    true
}
