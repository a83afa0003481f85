//! Lattice schemes on encrypted integer vectors.
//!
//! [`compact`] serves encrypted vectors and plain queries, [`ring`] serves encrypted queries,
//! [`histogram`] weighted sums of encrypted counts, [`retrieval`] records by an encrypted index. The pipelines, owner and server apart, are in
//! `ARCHITECTURE.md`; the mathematics is in `docs/sealed.md`.

pub mod compact;
pub mod histogram;
mod plaintext;
pub mod retrieval;
pub mod ring;

pub use plaintext::Plaintext;

use crate::id::write_hex;
use crate::params::TAIL_DEVIATIONS;

/// The nonce ν of one sealing call, which is also the public name of the segment it made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SegmentId(pub [u8; 16]);

impl core::fmt::Display for SegmentId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_hex(f, &self.0)
    }
}

/// The scales a vector and a query are multiplied by before rounding to integers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scales {
    /// Δx, of the indexed vectors.
    pub vector: f64,
    /// Δq, of the queries.
    pub query: f64,
}

/// How far a decrypted score may be from the exact inner product of two unit vectors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorBound {
    /// No error exceeds this, whatever the noise drawn: a bound on norms, and therefore far from
    /// what happens.
    pub worst_case: f64,
    /// Exceeded with probability below 2⁻⁶⁴ per score: the sub-Gaussian tail of `typical`.
    pub tail: f64,
    /// The standard deviation over the noise and over random vectors.
    pub typical: f64,
}

impl ErrorBound {
    fn new(worst_case: f64, typical: f64) -> Self {
        ErrorBound { worst_case, tail: (TAIL_DEVIATIONS * typical).min(worst_case), typical }
    }
}
