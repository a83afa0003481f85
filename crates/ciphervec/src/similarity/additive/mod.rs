//! Vectors on any additively homomorphic scheme: similarity of encrypted vectors with plain probes.
//!
//! The owner, or anyone with the public key, rounds rows of floats ([`Vectors`]) and encrypts them
//! ([`EncryptedVectors`]). A server compares them with plain [`Probes`] and returns [`EncryptedScores`]. The key owner
//! opens those as `Scores`, and tells others whether there was a match. Everything here is generic over
//! [`ciphervec_he::additive`]; `docs/additive.md` derives the bounds and says which layout is for what.

mod bytes;
mod evaluate;
mod grid;
mod layout;
#[cfg(feature = "client")]
mod open;
mod precision;
mod quantise;
#[cfg(feature = "client")]
mod rows;
mod scores;
mod slots;
mod spec;
mod vectors;

pub use evaluate::Finish;
pub use layout::{Layout, Packing};
#[cfg(feature = "client")]
pub use open::Scores;
pub use precision::Precision;
pub use quantise::{Probes, Vectors};
pub use scores::EncryptedScores;
pub use spec::Spec;
pub use vectors::EncryptedVectors;
