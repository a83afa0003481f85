//! Public key: a point, in memory and as bytes.

use std::fmt;
use std::sync::{Arc, OnceLock};

use curve25519_dalek::ristretto::RistrettoPoint;

use super::ciphertexts::{check_header, point};
use super::multiples::Multiplied;
use super::param_id;
use crate::additive::SecurityStatement;
use crate::error::{Error, Result};
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// What every key rests on.
pub(crate) const SECURITY: SecurityStatement = SecurityStatement {
    bits: 126,
    table: "Pollard's rho method in a group of 2^252 elements",
    assumption: "decisional Diffie-Hellman in ristretto255",
    post_quantum: false,
    insecure: false,
    lattice: None,
};

/// The public key `H = x G`: encrypts, computes, re-randomises.
#[derive(Clone)]
pub struct PublicKey {
    pub(super) id: KeyId,
    encoded: [u8; 32],
    point: RistrettoPoint,
    /// Multiples of `H` for encryption, made when first needed.
    multiples: Arc<OnceLock<Multiplied>>,
}

impl PublicKey {
    /// The key of a point. Hidden: its secret makes one.
    #[doc(hidden)]
    pub fn new(point: RistrettoPoint) -> Self {
        let encoded = point.compress().0;
        let digest = blake3::derive_key("ciphervec v1 elgamal key-id", &encoded);
        PublicKey { id: KeyId::of_hash(&digest), encoded, point, multiples: Arc::default() }
    }

    /// The public name of the key.
    pub fn key_id(&self) -> KeyId {
        self.id
    }

    /// The canonical encoding of `H`.
    pub fn encoded(&self) -> &[u8; 32] {
        &self.encoded
    }

    /// What the scheme rests on.
    pub fn security(&self) -> SecurityStatement {
        SECURITY
    }

    pub(super) fn multiples(&self) -> &Multiplied {
        self.multiples.get_or_init(|| Multiplied::new(&self.point))
    }

    /// The head of a frame that belongs to the key.
    #[doc(hidden)]
    pub fn header(&self, kind: Kind) -> Header {
        Header { scheme: Scheme::ElGamal, kind, params: param_id(), key: self.id }
    }

    /// The key, framed: 96 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.header(Kind::PublicKey).frame(&self.encoded)
    }

    /// Reads a key; the neutral element is none.
    ///
    /// # Errors
    /// [`Error::Malformed`] and the other errors of [`wire::open`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::PublicKey, bytes)?;
        let what = Kind::PublicKey.as_str();
        check_header(&header, what, param_id())?;
        let mut reader = Reader::new(what, payload);
        let key = PublicKey::new(point(what, reader.take(32)?)?);
        reader.finish()?;
        check_id(&header, &key, what)?;
        Ok(key)
    }
}

/// Refuses a frame that names another key than the one it holds.
/// Refuses a frame that names another key.
pub fn check_id(header: &Header, key: &PublicKey, what: &'static str) -> Result<()> {
    if header.key == key.id {
        Ok(())
    } else {
        let detail = format!("its key id is {}, the frame names {}", key.id, header.key);
        Err(Error::malformed(what, detail))
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.encoded == other.encoded
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey(ElGamal {})", self.id)
    }
}
