//! SIMD128 back-end: kernels on vectors of 128 bits and on doubles.
//!
//! # Kernels
//!
//! ChaCha20 computes four blocks at a time. The Gaussian's 29 comparisons run on eight samples for
//! each threshold, which is hidden from the compiler, as it would rebuild it. Bytes times ternary
//! rows are an AND, an XOR, a subtraction and a sum. Sums modulo q are vectors of signed words, as
//! unsigned ones have no minimum. Key switches sum products as `residue.rs` does. BLAKE3 uses its
//! own SIMD (feature `wasm32_simd`). All else is portable.

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
