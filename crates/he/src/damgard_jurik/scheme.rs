//! Scheme Damgård–Jurik: what a key is asked to be, or its bytes, enter; keys leave. Both sides.

use super::{Noise, PublicKey, security};
#[cfg(feature = "client")]
use super::{SecretKey, generate, insecure_generate};
#[cfg(feature = "client")]
use crate::additive::Decrypt;
use crate::additive::SecurityStatement;
#[cfg(feature = "client")]
use crate::error::Error;
use crate::error::Result;
#[cfg(feature = "client")]
use crate::factoring::{FactoringKey, NoiseSource, Precompute};
use crate::scheme::{AdditiveScheme, SchemePublicKey};
#[cfg(feature = "client")]
use crate::scheme::{KeyOptions, SchemeSecretKey};
use crate::wire::Scheme;
#[cfg(feature = "client")]
use zeroize::Zeroizing;

/// `s` of an index's key: messages twice as long as `n`, in ciphertexts half as long again.
#[cfg(feature = "client")]
const INDEX_POWER: u32 = 2;

/// The scheme, with `s` above 1.
#[derive(Clone, Copy, Debug)]
pub enum DamgardJurik {}

impl AdditiveScheme for DamgardJurik {
    const WIRE: Scheme = Scheme::DamgardJurik;
    const PACKS: bool = true;
    const FIELD_BITS: Option<u32> = None;

    type PublicKey = PublicKey;
    #[cfg(feature = "client")]
    type SecretKey = SecretKey;

    fn security(bits: u32) -> SecurityStatement {
        security(bits, Noise::ShortExponent)
    }

    #[cfg(feature = "client")]
    fn generate(bits: u32) -> Result<SecretKey> {
        generate(bits, INDEX_POWER)
    }

    #[cfg(feature = "client")]
    fn generate_with(options: &KeyOptions<'_>) -> Result<SecretKey> {
        if let Some(other) = options.noise.filter(|noise| *noise != "short") {
            return Err(Error::noise("'short'", other));
        }
        let generate = if options.insecure { insecure_generate } else { generate };
        generate(options.bits, options.s)
    }
}

impl SchemePublicKey for PublicKey {
    fn scheme(&self) -> Scheme {
        self.scheme()
    }

    fn bits(&self) -> u32 {
        self.bits()
    }

    fn power(&self) -> Option<u32> {
        Some(self.s())
    }

    fn security(&self) -> SecurityStatement {
        self.security()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], insecure: bool) -> Result<Self> {
        if insecure { Self::insecure_from_bytes(bytes) } else { Self::from_bytes(bytes) }
    }
}

#[cfg(feature = "client")]
impl SchemeSecretKey for SecretKey {
    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], insecure: bool) -> Result<Self> {
        if insecure { Self::insecure_from_bytes(bytes) } else { Self::from_bytes(bytes) }
    }
}

#[cfg(feature = "client")]
impl Precompute for SecretKey {
    fn precomputable(&self) -> Option<(&dyn NoiseSource, &dyn FactoringKey)> {
        Some((self, self.public()))
    }
}
