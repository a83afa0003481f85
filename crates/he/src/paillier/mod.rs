//! Paillier: messages modulo `n` enter, ciphertexts modulo `n^2` leave. Both sides.
//!
//! With the noise of schemes 1 and 3 and with short exponents.
//!
//! `c = (1 + n)^m * u` for an `n`-th residue `u` (Paillier 1999, sections 4 and 6, for
//! `g = 1 + n`). The keys are those of [`crate::damgard_jurik`] with `s = 1`.

#[cfg(feature = "client")]
pub use crate::damgard_jurik::SecretKey;
#[cfg(feature = "client")]
pub mod precompute;
mod scheme;

pub use crate::damgard_jurik::{
    Ciphertexts, DEFAULT_BITS, FactoringKey, MAX_BITS, MIN_BITS, Noise, NoisePool, NoiseSource,
    PublicKey,
};
#[cfg(feature = "client")]
use crate::error::Result;
pub use scheme::Paillier;

/// A key with noise by short exponents, the fastest for who has only the public key.
///
/// # Errors
/// [`crate::Error::Range`] unless `bits` is a multiple of 64 from [`MIN_BITS`] to 6,144;
/// [`crate::Error::Randomness`].
#[cfg(feature = "client")]
pub fn generate(bits: u32) -> Result<SecretKey> {
    generate_with(bits, Noise::ShortExponent)
}

/// A key with the noise asked for: scheme 1 is [`Noise::Uniform`], scheme 3 [`Noise::Subgroup`].
///
/// # Errors
/// As [`generate`].
#[cfg(feature = "client")]
pub fn generate_with(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, 1, noise, false)
}

/// As [`generate_with`], and shorter ones: for tests and for remaking the figures of papers.
///
/// # Errors
/// As [`generate`], from 256 bits on.
#[cfg(feature = "client")]
pub fn insecure_generate(bits: u32, noise: Noise) -> Result<SecretKey> {
    SecretKey::generate(bits, 1, noise, true)
}
