//! Additively homomorphic schemes of an index: one row each, from bytes to keys. Both sides.

use super::gallery::{PublicKey, Under};
#[cfg(feature = "client")]
use super::key_pair::{KeyPair, Pair};
use crate::error::{Error, Result};
use crate::index::form::Additive;
use crate::index::scheme::Scheme;
use ciphervec_he::wire::{Kind, Reader};
#[cfg(feature = "client")]
use ciphervec_he::{additive::Decrypt, paillier};
use ciphervec_he::{damgard_jurik, elgamal, okamoto_uchiyama};

/// Damgård–Jurik's s: messages twice as long as n, in ciphertexts half as long again.
#[cfg(feature = "client")]
const POWER: u32 = 2;

/// A public key, and whether its scheme and length are those that the index chose.
type PublicKeyRead = Result<(Box<dyn PublicKey>, bool)>;

/// What an index needs of a scheme.
struct Row {
    scheme: Scheme,
    /// Reads a public key.
    public: fn(&Additive, &[u8]) -> PublicKeyRead,
    /// Makes a key pair with a modulus of so many bits.
    #[cfg(feature = "client")]
    generate: fn(u32) -> Result<Box<dyn KeyPair>>,
    /// Reads a secret key.
    #[cfg(feature = "client")]
    secret: fn(&[u8]) -> Result<Box<dyn KeyPair>>,
}

const ROWS: [Row; 4] = [
    Row {
        scheme: Scheme::Paillier,
        public: factoring,
        #[cfg(feature = "client")]
        generate: |bits| Ok(factoring_pair(paillier::generate(bits)?)),
        #[cfg(feature = "client")]
        secret: |bytes| Ok(factoring_pair(damgard_jurik::SecretKey::from_bytes(bytes)?)),
    },
    Row {
        scheme: Scheme::DamgardJurik,
        public: factoring,
        #[cfg(feature = "client")]
        generate: |bits| Ok(factoring_pair(damgard_jurik::generate(bits, POWER)?)),
        #[cfg(feature = "client")]
        secret: |bytes| Ok(factoring_pair(damgard_jurik::SecretKey::from_bytes(bytes)?)),
    },
    Row {
        scheme: Scheme::OkamotoUchiyama,
        public: |chosen, bytes| {
            let key = okamoto_uchiyama::PublicKey::from_bytes(bytes)?;
            let fits = Some(key.bits()) == chosen.bits();
            Ok((Box::new(Under::new(key, true)), fits))
        },
        #[cfg(feature = "client")]
        generate: |bits| Ok(okamoto_uchiyama_pair(okamoto_uchiyama::generate(bits)?)),
        #[cfg(feature = "client")]
        secret: |bytes| Ok(okamoto_uchiyama_pair(okamoto_uchiyama::SecretKey::from_bytes(bytes)?)),
    },
    Row {
        scheme: Scheme::ElGamal,
        public: |_, bytes| {
            let key = elgamal::PublicKey::from_bytes(bytes)?;
            Ok((Box::new(Under::new(key, false)), true))
        },
        #[cfg(feature = "client")]
        generate: |_| Ok(elgamal_pair(elgamal::SecretKey::generate()?)),
        #[cfg(feature = "client")]
        secret: |bytes| Ok(elgamal_pair(elgamal::SecretKey::from_bytes(bytes)?)),
    },
];

fn row(chosen: &Additive) -> Result<&'static Row> {
    ROWS.iter().find(|row| row.scheme == chosen.scheme()).ok_or_else(|| {
        let known = "an additively homomorphic one to have a key pair";
        Error::choice("scheme", known, chosen.scheme().as_str())
    })
}

/// Reads the public key of an index.
///
/// # Errors
/// Damaged bytes, a key of another scheme or length.
pub fn read_public_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn PublicKey>> {
    let (key, fits) = (row(chosen)?.public)(chosen, bytes)?;
    if fits {
        return Ok(key);
    }
    let what = Kind::PublicKey.as_str();
    Err(Reader::new(what, bytes)
        .error("the key has another scheme or length than the index")
        .into())
}

/// A fresh key pair for an index.
///
/// # Errors
/// A length that the scheme does not have; no randomness.
#[cfg(feature = "client")]
pub fn generate(chosen: &Additive) -> Result<Box<dyn KeyPair>> {
    (row(chosen)?.generate)(chosen.bits().unwrap_or(0))
}

/// Reads the secret key of an index.
///
/// # Errors
/// A key that fails its checks.
#[cfg(feature = "client")]
pub fn read_secret_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn KeyPair>> {
    (row(chosen)?.secret)(bytes)
}

/// A key of Paillier, which is Damgård–Jurik with s = 1, or of Damgård–Jurik itself.
fn factoring(chosen: &Additive, bytes: &[u8]) -> PublicKeyRead {
    let key = damgard_jurik::PublicKey::from_bytes(bytes)?;
    let same_scheme = Some(key.scheme()) == chosen.scheme().wire();
    let fits = same_scheme && Some(key.bits()) == chosen.bits();
    Ok((Box::new(Under::new(key, true)), fits))
}

#[cfg(feature = "client")]
fn factoring_pair(keys: damgard_jurik::SecretKey) -> Box<dyn KeyPair> {
    let public = keys.public().to_bytes();
    Box::new(Pair::new(keys, public, damgard_jurik::SecretKey::to_bytes, true))
}

#[cfg(feature = "client")]
fn okamoto_uchiyama_pair(keys: okamoto_uchiyama::SecretKey) -> Box<dyn KeyPair> {
    let public = keys.public().to_bytes();
    Box::new(Pair::new(keys, public, okamoto_uchiyama::SecretKey::to_bytes, true))
}

#[cfg(feature = "client")]
fn elgamal_pair(keys: elgamal::SecretKey) -> Box<dyn KeyPair> {
    let public = keys.public().to_bytes();
    Box::new(Pair::new(keys, public, elgamal::SecretKey::to_bytes, false))
}
