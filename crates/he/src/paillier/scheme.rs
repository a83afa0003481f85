//! Paillier as a type for code that is generic over schemes; its keys are those of Damgård–Jurik.

use super::{Noise, PublicKey};
use crate::additive::SecurityStatement;
use crate::damgard_jurik;
use crate::scheme::AdditiveScheme;
use crate::wire::Scheme;

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub enum Paillier {}

impl AdditiveScheme for Paillier {
    const WIRE: Scheme = Scheme::Paillier;
    const PACKS: bool = true;
    const FIELD_BITS: Option<u32> = None;

    type PublicKey = PublicKey;

    fn security(bits: u32) -> SecurityStatement {
        damgard_jurik::security(bits, Noise::ShortExponent)
    }
}
