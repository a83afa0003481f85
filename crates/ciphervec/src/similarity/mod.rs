//! Similarity of vectors outside an index: encrypted with plain ones on the additively homomorphic schemes, encrypted with
//! encrypted ones on CKKS.

pub mod additive;
pub mod ckks;
