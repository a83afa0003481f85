//! Okamoto–Uchiyama as a type for code that is generic over schemes.

use super::{Noise, PublicKey, security};
use crate::additive::SecurityStatement;
use crate::error::Result;
use crate::scheme::{AdditiveScheme, SchemePublicKey};
use crate::wire::Scheme;

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub enum OkamotoUchiyama {}

impl AdditiveScheme for OkamotoUchiyama {
    const WIRE: Scheme = Scheme::OkamotoUchiyama;
    const PACKS: bool = true;
    const FIELD_BITS: Option<u32> = None;

    type PublicKey = PublicKey;

    fn security(bits: u32) -> SecurityStatement {
        security(bits, Noise::Full)
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
