//! Scheme Paillier: what a key is asked to be enters; keys, those of Damgård–Jurik, leave. Both
//! sides.

use super::{Noise, PublicKey};
#[cfg(feature = "client")]
use super::{SecretKey, generate, generate_with, insecure_generate};
use crate::additive::SecurityStatement;
use crate::damgard_jurik;
#[cfg(feature = "client")]
use crate::error::{Error, Result};
use crate::scheme::AdditiveScheme;
#[cfg(feature = "client")]
use crate::scheme::KeyOptions;
use crate::wire::Scheme;

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub enum Paillier {}

impl AdditiveScheme for Paillier {
    const WIRE: Scheme = Scheme::Paillier;
    const PACKS: bool = true;
    const FIELD_BITS: Option<u32> = None;

    type PublicKey = PublicKey;
    #[cfg(feature = "client")]
    type SecretKey = SecretKey;

    fn security(bits: u32) -> SecurityStatement {
        damgard_jurik::security(bits, Noise::ShortExponent)
    }

    #[cfg(feature = "client")]
    fn generate(bits: u32) -> Result<SecretKey> {
        generate(bits)
    }

    #[cfg(feature = "client")]
    fn generate_with(options: &KeyOptions<'_>) -> Result<SecretKey> {
        let noise = match options.noise.unwrap_or("short") {
            "short" => Noise::ShortExponent,
            "uniform" => Noise::Uniform,
            "subgroup" => Noise::Subgroup,
            other => return Err(Error::noise("'short', 'uniform' or 'subgroup'", other)),
        };
        let generate = if options.insecure { insecure_generate } else { generate_with };
        generate(options.bits, noise)
    }
}
