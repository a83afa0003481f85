//! Scheme ElGamal: nothing, or bytes, enter; keys leave. Both sides.

#[cfg(feature = "client")]
use super::SecretKey;
use super::{PublicKey, SECURITY};
use crate::additive::SecurityStatement;
use crate::error::Result;
#[cfg(feature = "client")]
use crate::factoring::Precompute;
use crate::scheme::{AdditiveScheme, SchemePublicKey};
#[cfg(feature = "client")]
use crate::scheme::{KeyOptions, SchemeSecretKey};
use crate::wire::Scheme;
#[cfg(feature = "client")]
use zeroize::Zeroizing;

/// The length of ristretto255's field.
const FIELD_BITS: u32 = 255;

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub enum ElGamal {}

impl AdditiveScheme for ElGamal {
    const WIRE: Scheme = Scheme::ElGamal;
    const PACKS: bool = false;
    const FIELD_BITS: Option<u32> = Some(FIELD_BITS);

    type PublicKey = PublicKey;
    #[cfg(feature = "client")]
    type SecretKey = SecretKey;

    fn security(_: u32) -> SecurityStatement {
        SECURITY
    }

    #[cfg(feature = "client")]
    fn generate(_: u32) -> Result<SecretKey> {
        SecretKey::generate()
    }

    #[cfg(feature = "client")]
    fn generate_with(_: &KeyOptions<'_>) -> Result<SecretKey> {
        SecretKey::generate()
    }
}

impl SchemePublicKey for PublicKey {
    fn scheme(&self) -> Scheme {
        Scheme::ElGamal
    }

    fn bits(&self) -> u32 {
        FIELD_BITS
    }

    fn security(&self) -> SecurityStatement {
        self.security()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], _: bool) -> Result<Self> {
        Self::from_bytes(bytes)
    }
}

#[cfg(feature = "client")]
impl SchemeSecretKey for SecretKey {
    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], _: bool) -> Result<Self> {
        Self::from_bytes(bytes)
    }
}

/// Noise is quick to draw.
#[cfg(feature = "client")]
impl Precompute for SecretKey {}
