//! Similarity on additively homomorphic schemes, the key owner's half: vectors are encrypted, rows and scores decrypted.
//!
//! The key owner opens [`EncryptedScores`] as [`Scores`], and tells others whether there was a match. `docs/additive.md`
//! derives the bounds and says which layout is for what.

pub(crate) mod open;
pub(crate) mod rows;

pub use ciphervec::similarity::additive::*;
pub use open::{OwnerScores, Scores};
pub use rows::OwnerVectors;
