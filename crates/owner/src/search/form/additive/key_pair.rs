//! The key pair of an index, whichever its scheme: it encrypts rows, decrypts rows and opens scores. Owner only.

use super::check::{self, Check, EncryptedBytes};
use super::layout;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::similarity::additive::{
    EncryptedScores, EncryptedVectors, OwnerVectors, Probes, Vectors, open, rows,
};
use ciphervec::search::form::additive::gallery::read_vectors;
use ciphervec_he_secret::additive::Evaluate;
use ciphervec_he_secret::keys::Secret;
use ciphervec_he_secret::scheme::{SchemePublicKey, SchemeSecretKey};
use ciphervec_he_secret::wire::{KeyId, Kind, Reader};
use zeroize::Zeroizing;

/// A key pair, as an index uses it.
pub trait KeyPair: Send + Sync {
    /// The public name of the key.
    fn key_id(&self) -> KeyId;

    /// The public key, framed: what the server needs.
    fn public_key(&self) -> Vec<u8>;

    /// The secret key, framed and not encrypted.
    fn secret_key(&self) -> Zeroizing<Vec<u8>>;

    /// Encrypts rows, row-major, in the layout that suits their number; beside them their witness.
    fn encrypt(&self, spec: &IndexSpec, rows: &[f32], seed: &Secret) -> Result<EncryptedBytes>;

    /// Of the `rows` rows that [`Self::encrypt`] was given those `wanted`, or all of them, at unit length; `None` if they are
    /// none that pass the check.
    fn open_rows(
        &self,
        segment: (&IndexSpec, u32),
        bytes: &[u8],
        wanted: Option<&[usize]>,
        check: Option<&Check>,
    ) -> Result<Option<Zeroizing<Vec<f64>>>>;

    /// Cosines of `probes` with the `rows` rows of a segment, probe after probe, not rounded; `None` if they are none that pass
    /// the check.
    fn open_scores(
        &self,
        segment: (&IndexSpec, usize),
        probes: &Probes,
        bytes: &[u8],
        check: Option<&Check>,
    ) -> Result<Option<Vec<f64>>>;
}

/// What decrypts to nothing that was encrypted fails its check, where there is one.
fn or_fails<T>(opened: Result<T>, check: Option<&Check>) -> Result<Option<T>> {
    match opened {
        Err(Error::Scheme(ciphervec_he_secret::Error::Bound)) if check.is_some() => Ok(None),
        opened => opened.map(Some),
    }
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

    fn encrypt(&self, spec: &IndexSpec, rows: &[f32], seed: &Secret) -> Result<EncryptedBytes> {
        let (public, count) = (self.keys.public(), rows.len() / spec.dimension());
        let layout = layout::choose(spec, count, public.message_bits(), self.packs)?;
        let vectors = Vectors::quantize(&layout, rows)?;
        let encrypted = EncryptedVectors::encrypt_as_owner(&layout, &self.keys, &vectors)?;
        Ok((encrypted.to_bytes(public)?, check::witness(seed, &vectors, layout.layout())))
    }

    fn open_rows(
        &self,
        (spec, rows): (&IndexSpec, u32),
        bytes: &[u8],
        wanted: Option<&[usize]>,
        check: Option<&Check>,
    ) -> Result<Option<Zeroizing<Vec<f64>>>> {
        let vectors = read_vectors(self.keys.public(), spec, rows, bytes)?;
        let integers = match wanted {
            Some(wanted) => rows::integers_of(&vectors, &self.keys, wanted),
            None => rows::integers(&vectors, &self.keys),
        };
        let Some(integers) = or_fails(integers, check)? else { return Ok(None) };
        let place = |index: usize| wanted.map_or(index, |wanted| wanted[index]);
        let sealed = check.is_none_or(|check| {
            let each = integers.chunks_exact(spec.dimension()).enumerate();
            { each }.all(|(index, values)| check.is_row(place(index), values))
        });
        Ok(sealed.then(|| rows::unit(&vectors, &integers)))
    }

    fn open_scores(
        &self,
        (spec, rows): (&IndexSpec, usize),
        probes: &Probes,
        bytes: &[u8],
        check: Option<&Check>,
    ) -> Result<Option<Vec<f64>>> {
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
        let Some(integers) = or_fails(open::integers(&scores, &self.keys), check)? else {
            return Ok(None);
        };
        let moved = open::may_have_moved(&scores);
        let holds = check.is_none_or(|check| {
            let each = integers.chunks_exact(rows).enumerate();
            { each }.all(|(probe, found)| check.holds(probes.weights(probe), found, moved))
        });
        Ok(holds.then(|| open::cosines(&scores, &integers)))
    }
}
