//! Scheme Okamoto–Uchiyama: what a key is asked to be, or its bytes, enter; keys leave. Both
//! sides.

use super::{Noise, PublicKey, security};
#[cfg(feature = "client")]
use super::{SecretKey, generate, generate_with, insecure_generate};
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

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub enum OkamotoUchiyama {}

impl AdditiveScheme for OkamotoUchiyama {
    const WIRE: Scheme = Scheme::OkamotoUchiyama;
    const PACKS: bool = true;
    const FIELD_BITS: Option<u32> = None;

    type PublicKey = PublicKey;
    #[cfg(feature = "client")]
    type SecretKey = SecretKey;

    fn security(bits: u32) -> SecurityStatement {
        security(bits, Noise::Full)
    }

    #[cfg(feature = "client")]
    fn generate(bits: u32) -> Result<SecretKey> {
        generate(bits)
    }

    #[cfg(feature = "client")]
    fn generate_with(options: &KeyOptions<'_>) -> Result<SecretKey> {
        let noise = match options.noise.unwrap_or("full") {
            "full" => Noise::Full,
            "short" => Noise::Short,
            other => return Err(Error::noise("'full' or 'short'", other)),
        };
        let generate = if options.insecure { insecure_generate } else { generate_with };
        generate(options.bits, noise)
    }
}

impl SchemePublicKey for PublicKey {
    fn scheme(&self) -> Scheme {
        Scheme::OkamotoUchiyama
    }

    fn bits(&self) -> u32 {
        self.bits()
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
