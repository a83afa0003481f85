//! Scheme Damgård–Jurik of the owner.

use super::{DamgardJurik, SecretKey, generate, insecure_generate};
use crate::additive::Decrypt;
use crate::error::Result;
use crate::factoring::{FactoringKey, NoiseSource, Precompute};
use crate::scheme::{KeyOptions, SchemeSecretKey, SecretScheme, no_such_noise};
use zeroize::Zeroizing;

/// `s` of an index's key: messages twice as long as `n`, in ciphertexts half as long again.
const INDEX_POWER: u32 = 2;

impl SecretScheme for DamgardJurik {
    type SecretKey = SecretKey;

    fn generate(bits: u32) -> Result<SecretKey> {
        generate(bits, INDEX_POWER)
    }

    fn generate_with(options: &KeyOptions<'_>) -> Result<SecretKey> {
        if let Some(other) = options.noise.filter(|noise| *noise != "short") {
            return Err(no_such_noise("'short'", other));
        }
        let generate = if options.insecure { insecure_generate } else { generate };
        generate(options.bits, options.s)
    }
}

impl SchemeSecretKey for SecretKey {
    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], insecure: bool) -> Result<Self> {
        if insecure { Self::insecure_from_bytes(bytes) } else { Self::from_bytes(bytes) }
    }
}

impl Precompute for SecretKey {
    fn precomputable(&self) -> Option<(&dyn NoiseSource, &dyn FactoringKey)> {
        Some((self, self.public()))
    }
}
