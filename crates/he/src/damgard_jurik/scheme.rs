//! Damgård–Jurik as a type for code that is generic over schemes.

use super::{Noise, PublicKey, security};
use crate::additive::SecurityStatement;
use crate::error::Result;
use crate::scheme::{AdditiveScheme, SchemePublicKey};
use crate::wire::Scheme;

/// The scheme, with `s` above 1.
#[derive(Clone, Copy, Debug)]
pub enum DamgardJurik {}

impl AdditiveScheme for DamgardJurik {
    const WIRE: Scheme = Scheme::DamgardJurik;
    const PACKS: bool = true;
    const FIELD_BITS: Option<u32> = None;

    type PublicKey = PublicKey;

    fn security(bits: u32) -> SecurityStatement {
        security(bits, Noise::ShortExponent)
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
