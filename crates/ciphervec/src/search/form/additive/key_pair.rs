//! Key pair of an index, whichever its scheme: rows enter encrypted, answers and rows leave decrypted. Owner only.

use super::gallery::read_vectors;
use super::layout;
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::similarity::additive::{EncryptedScores, EncryptedVectors, Probes, Vectors};
use ciphervec_he::additive::Evaluate;
use ciphervec_he::scheme::{SchemePublicKey, SchemeSecretKey};
use ciphervec_he::wire::{KeyId, Kind, Reader};
use zeroize::Zeroizing;

/// A key pair, as an index uses it.
pub trait KeyPair: Send + Sync {
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

/// A key pair of one scheme; `packs` says whether its messages hold several numbers.
pub struct Pair<D> {
    keys: D,
    packs: bool,
}

impl<D> Pair<D> {
    pub fn new(keys: D, packs: bool) -> Self {
        Pair { keys, packs }
    }
}

impl<D: SchemeSecretKey> KeyPair for Pair<D> {
    fn key_id(&self) -> KeyId {
        self.keys.public().key_id()
    }

    fn public_key(&self) -> Vec<u8> {
        self.keys.public().to_bytes()
    }

    fn secret_key(&self) -> Zeroizing<Vec<u8>> {
        self.keys.to_bytes()
    }

    fn encrypt(&self, spec: &IndexSpec, rows: &[f32]) -> Result<Vec<u8>> {
        let (public, count) = (self.keys.public(), rows.len() / spec.dimension());
        let layout = layout::choose(spec, count, public.message_bits(), self.packs)?;
        let vectors = Vectors::quantize(&layout, rows)?;
        EncryptedVectors::encrypt_as_owner(&layout, &self.keys, &vectors)?.to_bytes(public)
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
        let expected = layout::similarity(spec, scores.spec().layout())?;
        if *scores.spec() != expected
            || scores.vectors() != rows
            || scores.scales() != probes.scales()
        {
            let detail =
                format!("the scores of {} probes with {rows} vectors expected", probes.len());
            return Err(Reader::new(Kind::Response.as_str(), bytes).error(detail).into());
        }
        scores.cosines(&self.keys)
    }
}
