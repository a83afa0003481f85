//! Similarity outside an index, the key owner's half: vectors are encrypted, scores and rows decrypted.

pub mod additive;
pub mod ckks;
