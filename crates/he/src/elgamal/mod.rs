//! Exponential ElGamal on ristretto255: adds encrypted short integers.
//!
//! With `G` the base point, `x` the secret and `H = x G`, an encryption of `m` is
//! `(r G, m G + r H)` for a fresh `r`: sums of ciphertexts are encryptions of sums. Decryption
//! leaves `m G`, whose logarithm the owner finds as long as `m` is short, so messages and
//! results are bounded by [`MESSAGE_BITS`].
//!
//! Secure under the decisional Diffie–Hellman assumption in a group of order 2^252 + …, 126 bits of
//! classical security; not against quantum computers. Ciphertexts are small (64 bytes), keys
//! smaller (32 bytes), and everything that depends on a secret takes the same time for all of its
//! values, the search for logarithms aside: see there.
//!
//! # Bytes
//!
//! Scheme 6. Points are canonical encodings in ristretto255 (RFC 9496), 32 bytes; others and the neutral element are refused.
//! The parameter id is that of `elgamal ristretto255`, for a table with shared noise of `elgamal ristretto255 shared noise`. The
//! key id hashes the public key, for that table the owner's seed.
//!
//! |kind|payload|
//! |---|---|
//! |public key (6)|H|
//! |secret key (7)|x, canonical, below the order of the group and not zero|
//! |ciphertexts (8)|rows u32; columns u32, zero only if rows are; per ciphertext, row by row, r G and m G + r H|
//! |ciphertexts (8) of a table with shared noise|rows u32; columns u32; r G of every column; row by row, m G + r xᵢ G, xᵢ being the row's secret|
//!
//! Sums of a table with shared noise are ordinary ciphertexts, under its key id.

mod addition_chain;
mod base_point;
mod ciphertexts;
mod evaluate;
mod keys;
mod multiples;
mod scheme;

/// What secret keys are made of in `ciphervec-he-secret`, and what they encrypt and decrypt with: no part of the
/// interface. Nothing here knows a secret.
#[doc(hidden)]
pub mod inner {
    pub use super::addition_chain::Points;
    pub use super::base_point::{message_point, random_scalar};
    pub use super::ciphertexts::{check_header, point, range, shape};
    pub use super::evaluate::{short, sums};
    pub use super::keys::check_id;
    pub use super::param_id;
}

pub use ciphertexts::Ciphertexts;
pub use keys::PublicKey;
pub(crate) use keys::SECURITY;
pub use scheme::ElGamal;

/// Messages `m` and results have `|m| < 2^(MESSAGE_BITS - 1)`: what a logarithm is found for in a
/// tenth of a second.
pub const MESSAGE_BITS: u32 = 36;

/// What every frame of the scheme names as its parameters.
/// The id of the only parameters.
pub fn param_id() -> crate::params::ParamId {
    crate::params::ParamId::of("elgamal ristretto255")
}
