//! Bytes of the operating system's generator.
//!
//! A server re-randomises, and so needs them as well.

use crate::error::{Error, Result};

/// Fills `bytes` from the operating system's generator.
///
/// # Errors
/// [`Error::Randomness`] if the generator fails; `bytes` then hold nothing to rely on.
pub fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| Error::Randomness(error.to_string()))
}

/// `L` bytes from the operating system's generator.
///
/// # Errors
/// As [`fill`].
pub fn random_bytes<const L: usize>() -> Result<[u8; L]> {
    let mut bytes = [0; L];
    fill(&mut bytes)?;
    Ok(bytes)
}
