//! Homomorphic schemes: integers and reals enter, ciphertexts leave. Both sides.
//!
//! The `client` feature holds everything secret.
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
