//! Similarity on CKKS, the key owner's half: the [`Client`] encrypts vectors and decrypts results.

mod client;
mod keys;
mod refresh;

pub use ciphervec::similarity::ckks::*;
pub use client::{Client, EncryptOptions, encrypt_for};
