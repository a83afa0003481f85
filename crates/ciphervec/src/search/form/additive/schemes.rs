//! Keys of an index whichever its scheme: what is chosen and bytes enter, keys leave. Both sides.

use super::gallery::{PublicKey, Under};
#[cfg(feature = "client")]
use super::key_pair::{KeyPair, Pair};
use crate::error::{Error, Result};
use crate::index::form::Additive;
use crate::index::scheme::SchemeVisitor;
#[cfg(feature = "client")]
use ciphervec_he::scheme::SchemeSecretKey;
use ciphervec_he::scheme::{AdditiveScheme, SchemePublicKey};
use ciphervec_he::wire::{Kind, Reader};

/// Reads the public key of an index.
///
/// # Errors
/// Damaged bytes, a key of another scheme or length.
pub fn read_public_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn PublicKey>> {
    visit(chosen, ReadPublicKey { chosen, bytes })
}

/// A fresh key pair for an index.
///
/// # Errors
/// A length that the scheme does not have; no randomness.
#[cfg(feature = "client")]
pub fn generate(chosen: &Additive) -> Result<Box<dyn KeyPair>> {
    visit(chosen, Generate { bits: chosen.bits().unwrap_or(0) })
}

/// Reads the secret key of an index.
///
/// # Errors
/// A key that fails its checks.
#[cfg(feature = "client")]
pub fn read_secret_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn KeyPair>> {
    visit(chosen, ReadSecretKey { bytes })
}

fn visit<T>(chosen: &Additive, visitor: impl SchemeVisitor<Output = Result<T>>) -> Result<T> {
    chosen.scheme().visit(visitor).unwrap_or_else(|| {
        let known = match cfg!(feature = "additive") {
            true => "an additively homomorphic one to have a key pair",
            false => "lattice: this build leaves the others out, use a native client",
        };
        Err(Error::choice("scheme", known, chosen.scheme().as_str()))
    })
}

struct ReadPublicKey<'a> {
    chosen: &'a Additive,
    bytes: &'a [u8],
}

impl SchemeVisitor for ReadPublicKey<'_> {
    type Output = Result<Box<dyn PublicKey>>;

    fn visit<S: AdditiveScheme>(self) -> Self::Output {
        let key = S::PublicKey::read(self.bytes, false)?;
        let same_length = self.chosen.bits().is_none_or(|bits| bits == key.bits());
        // Paillier and Damgård–Jurik read each other's keys.
        if key.scheme() == S::WIRE && same_length {
            return Ok(Box::new(Under::new(key, S::PACKS)));
        }
        let what = Kind::PublicKey.as_str();
        Err(Reader::new(what, self.bytes)
            .error("the key has another scheme or length than the index")
            .into())
    }
}

#[cfg(feature = "client")]
struct Generate {
    bits: u32,
}

#[cfg(feature = "client")]
impl SchemeVisitor for Generate {
    type Output = Result<Box<dyn KeyPair>>;

    fn visit<S: AdditiveScheme>(self) -> Self::Output {
        Ok(Box::new(Pair::new(S::generate(self.bits)?, S::PACKS)))
    }
}

#[cfg(feature = "client")]
struct ReadSecretKey<'a> {
    bytes: &'a [u8],
}

#[cfg(feature = "client")]
impl SchemeVisitor for ReadSecretKey<'_> {
    type Output = Result<Box<dyn KeyPair>>;

    fn visit<S: AdditiveScheme>(self) -> Self::Output {
        Ok(Box::new(Pair::new(S::SecretKey::read(self.bytes, false)?, S::PACKS)))
    }
}
