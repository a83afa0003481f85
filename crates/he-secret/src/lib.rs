//! What `ciphervec-he` can do with a secret: keys, encryption under them, decryption.
//!
//! Every module stands where its public half does, and passes that on: whoever holds a key depends on this
//! crate alone. A server depends on `ciphervec-he` and never on this one.
#![forbid(unsafe_code)]

pub mod additive;
mod biguint;
pub mod ckks;
pub mod damgard_jurik;
pub mod elgamal;
pub mod factoring;
pub mod gaussian;
pub mod keys;
pub mod lattice;
pub mod okamoto_uchiyama;
pub mod paillier;
mod primes;
pub mod scheme;

pub use ciphervec_he::{Error, KeyId, Result, error, params, process, random, wire};
