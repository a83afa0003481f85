//! Homomorphic schemes on integers and reals, without a secret key: encryption under public keys,
//! computing on ciphertexts, and their bytes. Secret keys are in `ciphervec-he-secret`.
//!
//! The crate knows schemes, not search: what a vector, a metric or a collection is lives one level
//! up. `docs/sealed.md` derives the formulas that the comments here cite.
#![forbid(unsafe_code)]

pub mod additive;
#[doc(hidden)]
pub mod biguint;
pub mod ckks;
pub mod damgard_jurik;
pub mod elgamal;
pub mod error;
mod estimates;
pub mod factoring;
mod id;
pub mod lattice;
pub mod okamoto_uchiyama;
pub mod paillier;
pub mod params;
#[doc(hidden)]
pub mod primes;
pub mod process;
pub mod random;
pub mod scheme;
pub mod wire;

pub use error::{Error, Result};
pub use id::KeyId;
