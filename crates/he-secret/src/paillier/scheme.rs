//! Scheme Paillier of the owner.

use super::{Noise, Paillier, SecretKey, generate, generate_with, insecure_generate};
use crate::error::Result;
use crate::scheme::{KeyOptions, SecretScheme, no_such_noise};

impl SecretScheme for Paillier {
    type SecretKey = SecretKey;

    fn generate(bits: u32) -> Result<SecretKey> {
        generate(bits)
    }

    fn generate_with(options: &KeyOptions<'_>) -> Result<SecretKey> {
        let noise = match options.noise.unwrap_or("short") {
            "short" => Noise::ShortExponent,
            "uniform" => Noise::Uniform,
            "subgroup" => Noise::Subgroup,
            other => return Err(no_such_noise("'short', 'uniform' or 'subgroup'", other)),
        };
        let generate = if options.insecure { insecure_generate } else { generate_with };
        generate(options.bits, noise)
    }
}
