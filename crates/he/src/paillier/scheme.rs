//! Scheme Paillier: what a key is asked to be enters; keys, those of Damgård–Jurik, leave. Both
//! sides.

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
