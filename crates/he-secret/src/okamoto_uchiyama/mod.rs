//! Okamoto–Uchiyama: secret keys.

mod scheme;
mod secret;

pub use ciphervec_he::okamoto_uchiyama::*;
pub use secret::SecretKey;

use crate::error::Result;

/// A key with a modulus `n` of exactly `bits` bits and full exponents, as in the paper.
///
/// # Errors
/// [`crate::Error::Range`] unless `bits` is a multiple of 64 from [`MIN_BITS`] to [`MAX_BITS`];
/// [`crate::Error::Randomness`].
pub fn generate(bits: u32) -> Result<SecretKey> {
    SecretKey::generate(bits, Noise::Full, false)
}

/// A key with the noise asked for.
///
/// # Errors
/// As [`generate`].
pub fn generate_with(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, noise, false)
}

/// As [`generate_with`], and shorter ones: for tests and for remaking the figures of papers.
///
/// # Errors
/// As [`generate`], from 256 bits on.
pub fn insecure_generate(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, noise, true)
}
