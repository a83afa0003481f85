//! The owner's half: rows enter encrypted, answers and rows leave decrypted; the key pair itself leaves sealed. Owner only.
//!
//! Sealed: `CVKEYPAR` | version u32 | nonce | ciphertext | tag, the plaintext being the framed secret key, bound to the
//! header and to the index.

use super::evaluator::read_vectors;
use crate::decode::Reader;
use crate::error::{Error, Result};
use crate::protect::aead::{self, AeadKey, OVERHEAD};
use crate::similarity::additive::{
    EncryptedScores, EncryptedVectors, Layout, Probes, VectorSpec, Vectors,
};
use crate::{IndexSpec, Scheme};
use ciphervec_he::additive::{Decrypt, Evaluate};
use ciphervec_he::wire::{KeyId, Kind, Reader as FrameReader};
use ciphervec_he::{damgard_jurik, elgamal, okamoto_uchiyama, paillier};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CVKEYPAR";
const VERSION: u32 = 1;
const WHAT: &str = "the key pair of an index";
/// Damgård–Jurik's s: messages twice as long as n, in ciphertexts half as long again.
const POWER: u32 = 2;
/// A few rows are laid out each by itself, in ciphertexts of their own, where that takes this many times fewer of them:
/// an added row is then small and quick to write, though the server spends about four times as long on it as on a block of
/// lanes.
const FEWER: usize = 8;

/// A key pair, as an index uses it.
pub(crate) trait KeyPair: Send + Sync {
    /// The public name of the key.
    fn key_id(&self) -> KeyId;

    /// The public key, framed: what the server needs.
    fn public_key(&self) -> Vec<u8>;

    /// The secret key, framed and not encrypted.
    fn secret_key(&self) -> Zeroizing<Vec<u8>>;

    /// Encrypts rows, row-major, in the layout that suits their number.
    fn encrypt(&self, spec: &IndexSpec, rows: &[f32]) -> Result<Vec<u8>>;

    /// Of the `rows` rows that [`Self::encrypt`] was given those `wanted`, or all of them, at unit length.
    fn open_rows(
        &self,
        spec: &IndexSpec,
        rows: u32,
        bytes: &[u8],
        wanted: Option<&[usize]>,
    ) -> Result<Zeroizing<Vec<f64>>>;

    /// Cosines of `probes` with the `rows` rows of a segment, probe after probe, not rounded.
    fn open_scores(
        &self,
        spec: &IndexSpec,
        rows: usize,
        probes: &Probes,
        bytes: &[u8],
    ) -> Result<Vec<f64>>;
}

/// A fresh key pair for `spec`.
///
/// # Errors
/// A length that the scheme does not have; no randomness.
pub(crate) fn generate(spec: &IndexSpec) -> Result<Box<dyn KeyPair>> {
    let bits = spec.bits().unwrap_or(0);
    Ok(match spec.scheme() {
        Scheme::Sealed => return Err(no_pair()),
        Scheme::Paillier => factoring(paillier::generate(bits)?),
        Scheme::DamgardJurik => factoring(damgard_jurik::generate(bits, POWER)?),
        Scheme::OkamotoUchiyama => okamoto_uchiyama(okamoto_uchiyama::generate(bits)?),
        Scheme::ElGamal => elgamal(elgamal::SecretKey::generate()?),
    })
}

/// Encrypts a pair under `aead`, bound to the index.
///
/// # Errors
/// No randomness.
pub(crate) fn seal(aead: &AeadKey, spec: &IndexSpec, pair: &dyn KeyPair) -> Result<Vec<u8>> {
    let secret = pair.secret_key();
    let mut out = Vec::with_capacity(12 + secret.len() + OVERHEAD);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let place = associated_data(&out, spec);
    aead.seal_into(WHAT, &place, &secret, &mut out)?;
    Ok(out)
}

/// Opens [`seal`]'s bytes. What opens was written by the owner, the public key within it included.
///
/// # Errors
/// [`Error::Envelope`] for bytes of another kind, key or index; a key that fails its checks.
pub(crate) fn open(aead: &AeadKey, spec: &IndexSpec, sealed: &[u8]) -> Result<Box<dyn KeyPair>> {
    let mut reader = Reader::new(WHAT, sealed);
    reader.header(MAGIC, VERSION).map_err(aead::EnvelopeError::from)?;
    let (header, body) = sealed.split_at(12);
    let secret = aead.open(WHAT, &associated_data(header, spec), body)?;
    Ok(match spec.scheme() {
        Scheme::Sealed => return Err(no_pair()),
        Scheme::Paillier | Scheme::DamgardJurik => {
            factoring(damgard_jurik::SecretKey::from_bytes(&secret)?)
        }
        Scheme::OkamotoUchiyama => {
            okamoto_uchiyama(okamoto_uchiyama::SecretKey::from_bytes(&secret)?)
        }
        Scheme::ElGamal => elgamal(elgamal::SecretKey::from_bytes(&secret)?),
    })
}

fn associated_data(header: &[u8], spec: &IndexSpec) -> Vec<u8> {
    aead::associated_data("ciphervec v1 key-pair", &[header, &spec.binding()])
}

pub(super) fn no_pair() -> Error {
    Error::choice("scheme", "an additively homomorphic one to have a key pair", "sealed")
}

fn factoring(keys: damgard_jurik::SecretKey) -> Box<dyn KeyPair> {
    let public = keys.public().to_bytes();
    Box::new(Pair { keys, public, secret: damgard_jurik::SecretKey::to_bytes })
}

fn okamoto_uchiyama(keys: okamoto_uchiyama::SecretKey) -> Box<dyn KeyPair> {
    let public = keys.public().to_bytes();
    Box::new(Pair { keys, public, secret: okamoto_uchiyama::SecretKey::to_bytes })
}

fn elgamal(keys: elgamal::SecretKey) -> Box<dyn KeyPair> {
    let public = keys.public().to_bytes();
    Box::new(Pair { keys, public, secret: elgamal::SecretKey::to_bytes })
}

struct Pair<D> {
    keys: D,
    public: Vec<u8>,
    secret: fn(&D) -> Zeroizing<Vec<u8>>,
}

impl<D: Decrypt> KeyPair for Pair<D> {
    fn key_id(&self) -> KeyId {
        self.keys.public().key_id()
    }

    fn public_key(&self) -> Vec<u8> {
        self.public.clone()
    }

    fn secret_key(&self) -> Zeroizing<Vec<u8>> {
        (self.secret)(&self.keys)
    }

    fn encrypt(&self, spec: &IndexSpec, rows: &[f32]) -> Result<Vec<u8>> {
        let count = rows.len() / spec.dimension();
        let spec = layout(spec, count, self.keys.public().message_bits())?;
        let vectors = Vectors::quantize(&spec, rows)?;
        EncryptedVectors::encrypt_as_owner(&spec, &self.keys, &vectors)?
            .to_bytes(self.keys.public())
    }

    fn open_rows(
        &self,
        spec: &IndexSpec,
        rows: u32,
        bytes: &[u8],
        wanted: Option<&[usize]>,
    ) -> Result<Zeroizing<Vec<f64>>> {
        let vectors = read_vectors(self.keys.public(), spec, rows, bytes)?;
        match wanted {
            Some(wanted) => vectors.open_rows(&self.keys, wanted),
            None => vectors.open(&self.keys),
        }
    }

    fn open_scores(
        &self,
        spec: &IndexSpec,
        rows: usize,
        probes: &Probes,
        bytes: &[u8],
    ) -> Result<Vec<f64>> {
        let scores = EncryptedScores::from_bytes(self.keys.public(), bytes)?;
        let expected = spec.similarity(scores.spec().layout())?;
        if *scores.spec() != expected
            || scores.vectors() != rows
            || scores.scales() != probes.scales()
        {
            let detail =
                format!("the scores of {} probes with {rows} vectors expected", probes.len());
            return Err(FrameReader::new(Kind::Response.as_str(), bytes).error(detail).into());
        }
        scores.cosines(&self.keys)
    }
}

/// Lanes for galleries, horizontal for a few rows, elements where a message holds one number only.
pub(super) fn layout(spec: &IndexSpec, rows: usize, message_bits: u32) -> Result<VectorSpec> {
    if spec.scheme() == Scheme::ElGamal {
        return spec.similarity(Layout::Elements);
    }
    let ciphertexts = |layout| -> Result<(VectorSpec, usize)> {
        let spec = spec.similarity(layout)?;
        let packing = spec.packing(message_bits)?;
        Ok((spec, packing.rows() * packing.blocks(rows)))
    };
    let (lanes, many) = ciphertexts(Layout::Lanes)?;
    let (horizontal, few) = ciphertexts(Layout::Horizontal)?;
    Ok(if few * FEWER <= many { horizontal } else { lanes })
}
