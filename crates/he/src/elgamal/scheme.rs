//! ElGamal as a type for code that is generic over schemes.

use super::{PublicKey, SECURITY};
use crate::additive::SecurityStatement;
use crate::error::Result;
use crate::scheme::{AdditiveScheme, SchemePublicKey};
use crate::wire::Scheme;

/// The length of ristretto255's field.
const FIELD_BITS: u32 = 255;

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub enum ElGamal {}

impl AdditiveScheme for ElGamal {
    const WIRE: Scheme = Scheme::ElGamal;
    const PACKS: bool = false;
    const FIELD_BITS: Option<u32> = Some(FIELD_BITS);

    type PublicKey = PublicKey;

    fn security(_: u32) -> SecurityStatement {
        SECURITY
    }
}

impl SchemePublicKey for PublicKey {
    fn scheme(&self) -> Scheme {
        Scheme::ElGamal
    }

    fn bits(&self) -> u32 {
        FIELD_BITS
    }

    fn security(&self) -> SecurityStatement {
        self.security()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn read(bytes: &[u8], _: bool) -> Result<Self> {
        Self::from_bytes(bytes)
    }
}
