//! Similarity on CKKS: two vectors enter, at least one of them encrypted, their dot product, cosine
//! or distance leaves encrypted. Both sides.
//!
//! A [`Plan`] picks the parameters and the keys for one similarity. The [`Client`] encrypts vectors
//! and decrypts results; a [`Server`] computes with what the owner sent it. Vectors lie in slots,
//! in coefficients or one coordinate a ciphertext ([`ArrayLayout`]); `docs/ckks-similarity.md` says
//! what each costs and derives the errors.

mod array;
#[cfg(feature = "client")]
mod client;
mod keys;
mod layout;
mod normalize;
mod origin;
mod plain;
mod plan;
mod refresh;
mod serialize;
mod server;
mod similarity;

pub use array::{EncryptedArray, PostProcessing};
#[cfg(feature = "client")]
pub use client::{Client, EncryptOptions, encrypt_for};
pub use keys::KeyList;
pub use layout::{ArrayLayout, ArrayPacking, MAX_ROWS, Role, Spread};
pub use normalize::Lengths;
pub use plain::PlainRows;
pub use plan::{Operation, Plan, PlanRequest, params_for_depth};
pub use server::Server;
