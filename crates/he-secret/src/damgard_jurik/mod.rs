//! Damgård–Jurik: secret keys.

mod scheme;
mod secret;

pub use ciphervec_he::damgard_jurik::*;
pub use secret::SecretKey;

use crate::error::Result;

/// A key with messages modulo `n^s` and noise by short exponents.
///
/// # Errors
/// [`crate::Error::Range`] unless `bits` is a multiple of 64 from [`MIN_BITS`] to [`MAX_BITS`] and
/// `s` is 1 to [`MAX_POWER`] with `bits * (s + 1)` at most 12,288; [`crate::Error::Randomness`].
pub fn generate(bits: u32, s: u32) -> Result<SecretKey> {
    SecretKey::generate(bits, s, Noise::ShortExponent, false)
}

/// As [`generate`], and shorter ones: for tests and for remaking the figures of papers.
///
/// # Errors
/// As [`generate`], from 256 bits on.
pub fn insecure_generate(bits: u32, s: u32) -> Result<SecretKey> {
    SecretKey::generate(bits, s, Noise::ShortExponent, true)
}
