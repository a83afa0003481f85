//! Similarity on CKKS: encrypted dot products, cosines and distances of two vectors, at least one of them encrypted.
//!
//! A [`Plan`] picks the parameters and the keys for one similarity. A client, in
//! `ciphervec-owner`, encrypts vectors and decrypts results; a [`Server`] computes with what the owner
//! sent it. Vectors lie in slots, in coefficients or one coordinate a ciphertext ([`ArrayLayout`]); `docs/pairs.md` says
//! what each costs, [`Plan`] how far it is off.

#[doc(hidden)]
pub mod array;
#[doc(hidden)]
pub mod keys;
mod layout;
mod normalize;
#[doc(hidden)]
pub mod origin;
mod plain;
mod plan;
mod refresh;
#[doc(hidden)]
pub mod serialize;
#[doc(hidden)]
pub mod server;
mod similarity;

pub use array::{EncryptedArray, PostProcessing};
pub use keys::KeyList;
pub use layout::{ArrayLayout, ArrayPacking, MAX_ROWS, Role, Spread};
pub use normalize::Lengths;
pub use plain::PlainRows;
pub use plan::{Operation, Plan, PlanRequest, params_for_depth};
pub use server::Server;
