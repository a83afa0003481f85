//! Damgård–Jurik: messages modulo `n^s` enter, ciphertexts modulo `n^(s+1)` leave. Both sides.
//!
//! `s` is 1 to 3; Paillier is `s = 1`.
//!
//! `c = (1 + n)^m * u` for an `n^s`-th residue `u` (Damgård, Jurik 2001, section 3; Damgård, Jurik,
//! Nielsen 2010, section 4.2 for short exponents). [`PublicKey`] and [`SecretKey`] serve
//! [`crate::paillier`] too.

mod message;
mod public;
mod scheme;
#[cfg(feature = "client")]
mod secret;

pub(crate) use public::security;
pub use public::{MAX_POWER, Noise, PublicKey};
pub use scheme::DamgardJurik;
#[cfg(feature = "client")]
pub use secret::SecretKey;

#[cfg(feature = "client")]
use crate::error::Result;
pub use crate::factoring::{
    Ciphertexts, DEFAULT_BITS, FactoringKey, MAX_BITS, MIN_BITS, NoisePool, NoiseSource,
};

/// A key with messages modulo `n^s` and noise by short exponents.
///
/// # Errors
/// [`crate::Error::Range`] unless `bits` is a multiple of 64 from [`MIN_BITS`] to [`MAX_BITS`] and
/// `s` is 1 to [`MAX_POWER`] with `bits * (s + 1)` at most 12,288; [`crate::Error::Randomness`].
#[cfg(feature = "client")]
pub fn generate(bits: u32, s: u32) -> Result<SecretKey> {
    SecretKey::generate(bits, s, Noise::ShortExponent, false)
}

/// As [`generate`], and shorter ones: for tests and for remaking the figures of papers.
///
/// # Errors
/// As [`generate`], from 256 bits on.
#[cfg(feature = "client")]
pub fn insecure_generate(bits: u32, s: u32) -> Result<SecretKey> {
    SecretKey::generate(bits, s, Noise::ShortExponent, true)
}
