//! Paillier: secret keys.

pub mod precompute;
mod scheme;

pub use crate::damgard_jurik::SecretKey;
pub use ciphervec_he::paillier::*;

use crate::error::Result;

/// A key with noise by short exponents, the fastest for who has only the public key.
///
/// # Errors
/// [`crate::Error::Range`] unless `bits` is a multiple of 64 from [`MIN_BITS`] to 6,144;
/// [`crate::Error::Randomness`].
pub fn generate(bits: u32) -> Result<SecretKey> {
    generate_with(bits, Noise::ShortExponent)
}

/// A key with the noise asked for: scheme 1 is [`Noise::Uniform`], scheme 3 [`Noise::Subgroup`].
///
/// # Errors
/// As [`generate`].
pub fn generate_with(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, 1, noise, false)
}

/// As [`generate_with`], and shorter ones: for tests and for remaking the figures of papers.
///
/// # Errors
/// As [`generate`], from 256 bits on.
pub fn insecure_generate(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, 1, noise, true)
}
