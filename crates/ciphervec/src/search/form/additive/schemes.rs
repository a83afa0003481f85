//! Reads the public key of an index, whichever its additively homomorphic scheme.

use super::gallery::{PublicKey, Under};
use crate::error::{Error, Result};
use crate::index::form::Additive;
use crate::index::scheme::SchemeVisitor;
use ciphervec_he::scheme::{AdditiveScheme, SchemePublicKey};
use ciphervec_he::wire::{Kind, Reader};

/// Reads the public key of an index.
///
/// # Errors
/// Damaged bytes, a key of another scheme or length.
pub fn read_public_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn PublicKey>> {
    let read = ReadPublicKey { chosen, bytes };
    chosen.scheme().visit(read).unwrap_or_else(|| Err(none(chosen)))
}

/// That the scheme has no key pairs in this build.
pub fn none(chosen: &Additive) -> Error {
    let known = match cfg!(feature = "additive") {
        true => "an additively homomorphic one to have a key pair",
        false => "lattice: this build leaves the others out, use a native client",
    };
    Error::choice("scheme", known, chosen.scheme().as_str())
}

struct ReadPublicKey<'a> {
    chosen: &'a Additive,
    bytes: &'a [u8],
}

impl SchemeVisitor for ReadPublicKey<'_> {
    type Output = Result<Box<dyn PublicKey>>;

    fn visit<S: AdditiveScheme>(self) -> Self::Output {
        Ok(Box::new(Under::new(read_key_of::<S>(self.chosen, self.bytes)?)))
    }
}

/// Reads the public key of an index whose scheme is known.
///
/// # Errors
/// As [`read_public_key`].
pub fn read_key_of<S: AdditiveScheme>(chosen: &Additive, bytes: &[u8]) -> Result<S::PublicKey> {
    let key = S::PublicKey::read(bytes, false)?;
    let same_length = chosen.bits().is_none_or(|bits| bits == key.bits());
    // Paillier and Damgård–Jurik read each other's keys.
    if key.scheme() == S::WIRE && same_length {
        return Ok(key);
    }
    let what = Kind::PublicKey.as_str();
    Err(Reader::new(what, bytes)
        .error("the key has another scheme or length than the index")
        .into())
}
