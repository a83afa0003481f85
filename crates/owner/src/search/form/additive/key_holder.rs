//! Additive rows and scores under the owner's key pair, which is made once and kept sealed. Owner only.
//!
//! Sealed: `CVKEYPAR` | version u32 | nonce | ciphertext | tag, the plaintext being the framed secret key, bound to the header
//! and to the index.

use super::check::{self, Check};
use super::key_pair::KeyPair;
use super::layout::{precision, similarity};
use super::queries::probes;
use super::secret_schemes::{generate, read_secret_key};
use super::writer::under;
use crate::decode;
use crate::error::{Error, Result};
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use crate::protect::aead::{self, OVERHEAD};
use crate::search::form::contract::{
    AnswerFormat, AnswerPart, EncodedQueries, EncryptedRows, Estimates, Exactness, Expected, Kept,
    KeyHolderHalf, KeyPairSlot, OpenedSegment, Opening, RowEncryptor, StoredRows, expect_key,
};
use crate::search::quantize::{Checked, expect_unit};
use crate::search::root_key::SegmentRootKey;
use crate::similarity::additive::{Layout, Probes};
use ciphervec_he_secret::keys::Secret;
use ciphervec_he_secret::wire::{KeyId, Kind, Reader};
use std::sync::OnceLock;

const MAGIC: &[u8; 8] = b"CVKEYPAR";
const VERSION: u32 = 1;
const WHAT: &str = "the key pair of an index";

pub struct AdditiveKeyHolder {
    spec: IndexSpec,
    chosen: Additive,
    /// Empty until the index's key pair is generated or opened.
    pair: OnceLock<Box<dyn KeyPair>>,
}

impl AdditiveKeyHolder {
    pub fn new(spec: IndexSpec, chosen: Additive) -> Self {
        AdditiveKeyHolder { spec, chosen, pair: OnceLock::new() }
    }

    fn pair(&self) -> Result<&dyn KeyPair> {
        self.pair.get().map(Box::as_ref).ok_or(Error::NoKeyPair)
    }

    fn hold(&self, made: Box<dyn KeyPair>) -> Result<()> {
        self.pair.set(made).map_err(|_| Error::KeyPairHeld)
    }

    fn associated_data(&self, header: &[u8]) -> Vec<u8> {
        aead::associated_data("ciphervec v1 key-pair", &[header, &self.spec.binding()])
    }
}

impl KeyPairSlot for AdditiveKeyHolder {
    fn generate(&self) -> Result<()> {
        self.hold(generate(&self.chosen)?)
    }

    /// What opens was written by the owner, the public key within it included.
    fn open(&self, root: &SegmentRootKey, sealed: &[u8]) -> Result<()> {
        let mut reader = decode::Reader::new(WHAT, sealed);
        reader.header(MAGIC, VERSION).map_err(aead::EnvelopeError::from)?;
        let (header, body) = sealed.split_at(12);
        let secret = root.aead().open(WHAT, &self.associated_data(header), body)?;
        self.hold(read_secret_key(&self.chosen, &secret)?)
    }

    fn seal(&self, root: &SegmentRootKey) -> Result<Vec<u8>> {
        let secret = self.pair()?.secret_key();
        let mut out = Vec::with_capacity(12 + secret.len() + OVERHEAD);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let place = self.associated_data(&out);
        root.aead().seal_into(WHAT, &place, &secret, &mut out)?;
        Ok(out)
    }

    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.pair()?.public_key())
    }
}

impl RowEncryptor for AdditiveKeyHolder {
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        _expected: &Expected,
    ) -> Result<EncryptedRows> {
        let pair = self.pair()?;
        let encrypt = |seed: &Secret| pair.encrypt(&self.spec, rows.as_given(), seed);
        under(pair.key_id(), root, &self.spec, encrypt)
    }
}

impl KeyHolderHalf for AdditiveKeyHolder {
    fn segment_key(&self, _root: &SegmentRootKey) -> Result<KeyId> {
        Ok(self.pair()?.key_id())
    }

    fn response_key(&self, _root: &SegmentRootKey) -> Result<KeyId> {
        Ok(self.pair()?.key_id())
    }

    fn exactness(&self, _witness: &[u8]) -> Exactness {
        Exactness::Exact
    }

    /// A segment is one block here, whatever its layout.
    fn unchecked_blocks(&self, witness: &[u8], _rows: usize, _level: u8) -> Option<usize> {
        Some(usize::from(witness.is_empty()))
    }

    /// Rounding hides nothing here; digits below the error are not worth showing.
    fn rounding(&self) -> f64 {
        precision(&self.spec).scales().step
    }

    fn encode_queries(
        &self,
        _root: &SegmentRootKey,
        rows: &Checked<'_>,
        _top_level: u8,
        _epoch: u32,
        _format: AnswerFormat,
    ) -> Result<EncodedQueries> {
        let probes = probes(&self.spec, rows)?;
        let (body, key) = (probes.to_bytes(), self.pair()?.key_id());
        Ok(EncodedQueries { body, key, kept: Kept::new(probes), words: None })
    }

    fn read_queries(&self, count: u32, key: KeyId, mut body: Reader<'_>) -> Result<Kept> {
        let what = Kind::Query.as_str();
        let read = Probes::from_bytes(body.take(body.remaining())?)?;
        let expected = similarity(&self.spec, Layout::Elements)?;
        if read.len() != count as usize || !read.fit(&expected) {
            let detail = format!("{count} probes as the index describes them expected");
            return Err(body.error(detail).into());
        }
        let signs = self.spec.metric().compares_signs();
        for (index, &scale) in read.scales().iter().enumerate() {
            expect_unit(read.weights(index), scale as f64, signs.then_some(scale))?;
        }
        expect_key(what, self.pair()?.key_id(), key)?;
        Ok(Kept::new(read))
    }

    fn open<'a>(
        &'a self,
        _root: &'a SegmentRootKey,
        queries: &'a Kept,
        _levels: &[u8],
    ) -> Result<Box<dyn Opening + 'a>> {
        let probes: &Probes = queries.get()?;
        Ok(Box::new(AdditiveScores { spec: &self.spec, pair: self.pair()?, probes }))
    }

    fn decrypt_rows(
        &self,
        root: &SegmentRootKey,
        stored: &StoredRows<'_>,
        wanted: Option<&[usize]>,
    ) -> Result<Vec<f32>> {
        let (id, rows) = (stored.head.id, stored.head.rows);
        let seed = check::seed(root, &self.spec, id);
        let check = Check::read(&seed, (&self.spec, id, rows as usize), stored.witness)?;
        let what = (&self.spec, rows);
        let rows = self.pair()?.open_rows(what, stored.words, wanted, check.as_ref())?;
        let rows = rows.ok_or_else(|| Error::Tampered { segments: vec![id] })?;
        Ok(rows.iter().map(|&value| value as f32).collect())
    }

    fn key_pair(&self) -> Option<&dyn KeyPairSlot> {
        Some(self)
    }
}

struct AdditiveScores<'a> {
    spec: &'a IndexSpec,
    pair: &'a dyn KeyPair,
    probes: &'a Probes,
}

impl Opening for AdditiveScores<'_> {
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        part: &AnswerPart<'_>,
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        let (id, rows) = (segment.id, segment.rows);
        let seed = check::seed(segment.root, self.spec, id);
        let check = Check::read(&seed, (self.spec, id, rows), segment.witness)?;
        let what = (self.spec, rows);
        let cosines = self.pair.open_scores(what, self.probes, part.bytes, check.as_ref())?;
        let cosines = cosines.ok_or_else(|| Error::Tampered { segments: vec![id] })?;
        let each = cosines.chunks_exact(segment.rows).enumerate();
        { each }.try_for_each(|(query, cosines)| visit(query, &Estimates::settled(cosines)))
    }
}
