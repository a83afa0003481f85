//! Leveled RNS-CKKS: approximate arithmetic on encrypted vectors of real or complex numbers.
//!
//! Numbers enter at the owner, are encoded by the canonical embedding and encrypted; the server adds, multiplies and rotates;
//! numbers leave at the owner, each off by an error that the ciphertext estimates. `docs/ckks.md` derives the formulas that
//! the comments cite.

mod circle;
mod complex;
mod embedding;
mod fft;

pub use complex::Complex;
pub use embedding::{Embedding, RealEmbedding};
