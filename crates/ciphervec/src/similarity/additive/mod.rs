//! Similarity on additively homomorphic schemes: encrypted vectors, plain probes, encrypted scores.
//!
//! The owner, or anyone with the public key, rounds rows of floats ([`Vectors`]) and encrypts them
//! ([`EncryptedVectors`]). A server compares them with plain [`Probes`] and returns
//! [`EncryptedScores`]. The key owner opens those as `Scores`, and tells others whether there was a
//! match. Everything here is generic over [`ciphervec_he::additive`]; `grid.rs` derives the bounds, and
//! `docs/additive.md` says which layout is for what.

mod evaluate;
mod grid;
mod layout;
mod precision;
mod quantize;
mod scores;
mod serialize;
#[doc(hidden)]
pub mod slots;
mod spec;
#[doc(hidden)]
pub mod vectors;

pub use evaluate::Rerandomization;
pub use layout::{Layout, Packing};
pub use precision::GridPrecision;
pub use quantize::{Probes, Vectors};
pub use scores::EncryptedScores;
pub use spec::VectorSpec;
pub use vectors::EncryptedVectors;
