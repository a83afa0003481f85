//! Scheme Okamoto–Uchiyama of the owner.

use super::{Noise, OkamotoUchiyama, SecretKey, generate, generate_with, insecure_generate};
use crate::additive::Decrypt;
use crate::error::Result;
use crate::factoring::{FactoringKey, NoiseSource, Precompute};
use crate::scheme::{KeyOptions, SchemeSecretKey, SecretScheme, no_such_noise};
use zeroize::Zeroizing;

impl SecretScheme for OkamotoUchiyama {
    type SecretKey = SecretKey;

    fn generate(bits: u32) -> Result<SecretKey> {
        generate(bits)
    }

    fn generate_with(options: &KeyOptions<'_>) -> Result<SecretKey> {
        let noise = match options.noise.unwrap_or("full") {
            "full" => Noise::Full,
            "short" => Noise::Short,
            other => return Err(no_such_noise("'full' or 'short'", other)),
        };
        let generate = if options.insecure { insecure_generate } else { generate_with };
        generate(options.bits, noise)
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
