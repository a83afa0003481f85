//! Scheme ElGamal of the owner.

use super::{ElGamal, SecretKey};
use crate::error::Result;
use crate::factoring::Precompute;
use crate::scheme::{KeyOptions, SchemeSecretKey, SecretScheme};
use zeroize::Zeroizing;

impl SecretScheme for ElGamal {
    type SecretKey = SecretKey;

    fn generate(_: u32) -> Result<SecretKey> {
        SecretKey::generate()
    }

    fn generate_with(_: &KeyOptions<'_>) -> Result<SecretKey> {
        SecretKey::generate()
    }
}

impl SchemeSecretKey for SecretKey {
    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], _: bool) -> Result<Self> {
        Self::from_bytes(bytes)
    }
}

/// Noise is quick to draw.
impl Precompute for SecretKey {}
