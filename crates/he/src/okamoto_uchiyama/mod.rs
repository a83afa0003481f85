//! Okamoto–Uchiyama: messages modulo a secret `p` enter, ciphertexts modulo `p^2 q` leave.
//!
//! `c = g^m * h^r` with `h = g^n` (Okamoto, Uchiyama 1998). Lengths are those of `n`: both primes
//! have a third of them, so ciphertexts are as long as `n` and messages a third of that. Whoever
//! learns the decryption of a number of `p` or more learns `p`; hence [`PublicKey`] takes messages
//! 66 bits shorter than `p`, and decryption refuses longer ones.

mod public;
mod scheme;
#[cfg(feature = "client")]
mod secret;

pub(crate) use public::security;
pub use public::{Noise, PublicKey};
pub use scheme::OkamotoUchiyama;
#[cfg(feature = "client")]
pub use secret::SecretKey;

#[cfg(feature = "client")]
use crate::error::Result;
pub use crate::factoring::{
    Ciphertexts, DEFAULT_BITS, FactoringKey, MAX_BITS, MIN_BITS, NoisePool, NoiseSource,
};

/// A key with a modulus `n` of exactly `bits` bits and full exponents, as in the paper.
///
/// # Errors
/// [`crate::Error::Range`] unless `bits` is a multiple of 64 from [`MIN_BITS`] to [`MAX_BITS`];
/// [`crate::Error::Randomness`].
#[cfg(feature = "client")]
pub fn generate(bits: u32) -> Result<SecretKey> {
    SecretKey::generate(bits, Noise::Full, false)
}

/// A key with the noise asked for.
///
/// # Errors
/// As [`generate`].
#[cfg(feature = "client")]
pub fn generate_with(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, noise, false)
}

/// As [`generate_with`], and shorter ones: for tests and for remaking the figures of papers.
///
/// # Errors
/// As [`generate`], from 256 bits on.
#[cfg(feature = "client")]
pub fn insecure_generate(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, noise, true)
}
