//! Similarity of two encrypted vectors on CKKS: dot products, cosines, distances of vectors that are both encrypted, or of
//! encrypted ones and plain ones.
//!
//! A [`Plan`] picks the parameters and the keys for one similarity. The [`Owner`] encrypts vectors and decrypts results; a
//! [`Server`] computes with what the owner sent it. Vectors lie in slots, in coefficients or one coordinate a ciphertext
//! ([`Layout`]); `docs/ckks-similarity.md` says what each costs and derives the errors.

mod array;
mod bytes;
mod keys;
mod layout;
mod normalise;
#[cfg(feature = "client")]
mod owner;
mod plain;
mod plan;
mod server;
mod similarity;

pub use array::{EncryptedArray, Finish};
pub use keys::KeyList;
pub use layout::{Layout, MAX_ROWS, Packing, Role, Spread};
pub use normalise::Lengths;
#[cfg(feature = "client")]
pub use owner::{Options, Owner, encrypt_for};
pub use plain::Rows;
pub use plan::{Operation, Plan, Request};
pub use server::Server;
