//! Random bytes, and what needs no secrecy.

use crate::error::{Error, Result};

/// Random bytes.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::Ended("this system gives no random bytes.".to_owned()))?;
    Ok(bytes)
}

/// Between 0 and 1; no secret.
pub fn uniform() -> f64 {
    getrandom::u32().map_or(0.5, |drawn| f64::from(drawn) / 2f64.powi(32))
}
