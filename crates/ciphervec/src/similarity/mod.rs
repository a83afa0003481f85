//! Similarity outside an index, with encrypted scores. On the additively homomorphic schemes one
//! side is encrypted and the other plain, on CKKS both may be encrypted.

pub mod additive;
pub mod ckks;
