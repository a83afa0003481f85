//! Similarity outside an index: vectors enter, encrypted on one side or both, encrypted scores
//! leave. On the additively homomorphic schemes the other side is plain, on CKKS it may be
//! encrypted too.

pub mod additive;
pub mod ckks;
