//! Seals rows as words of the compact form, makes its queries and decrypts its rows. Owner only.

use super::context::{Context, Integers, SegmentSecrets};
use super::open::CompactScores;
use super::queries::to_words;
use super::scale::scales;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{
    AnswerFormat, EncodedQueries, EncryptedRows, Exactness, Expected, Kept, KeyHolderHalf, Opening,
    RowEncryptor, StoredRows, expect_key, select_rows,
};
use crate::search::quantize::{Checked, expect_unit, signs_or_units};
use crate::search::root_key::SegmentRootKey;
use ciphervec::search::form::compact::server::from_words;
use ciphervec_he_secret::lattice::compact::{self, SealedRows, Width};
use ciphervec_he_secret::wire::{KeyId, Kind, Reader};
use zeroize::Zeroizing;

pub struct CompactKeyHolder(Context);

impl CompactKeyHolder {
    pub fn new(spec: IndexSpec, width: Width, mask_seed: [u8; 32]) -> Result<Self> {
        Ok(CompactKeyHolder(Context::new(spec, width, mask_seed)?))
    }
}

impl RowEncryptor for CompactKeyHolder {
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        _expected: &Expected,
    ) -> Result<EncryptedRows> {
        let plaintext = rows.quantize(scales(&self.0.spec, self.0.width).vector);
        let binding = self.0.spec.binding();
        let SealedRows { id, words, witness } =
            compact::seal(&self.0.scheme, &self.0.masks, root.master(), &binding, &plaintext)?;
        Ok(EncryptedRows { id, level: 0, key: root.key_id(), words, witness })
    }
}

impl KeyHolderHalf for CompactKeyHolder {
    fn segment_key(&self, root: &SegmentRootKey) -> Result<KeyId> {
        Ok(root.key_id())
    }

    fn response_key(&self, _root: &SegmentRootKey) -> Result<KeyId> {
        Ok(KeyId::default())
    }

    fn rounding(&self) -> f64 {
        match self.0.width {
            Width::Wide => f64::exp2(-30.0),
            Width::Standard | Width::Small => f64::exp2(-16.0),
        }
    }

    fn exactness(&self, witness: &[u8]) -> Exactness {
        if witness.is_empty() { Exactness::Outdated } else { Exactness::Exact }
    }

    fn unchecked_blocks(&self, witness: &[u8], rows: usize, _level: u8) -> Option<usize> {
        Some(if witness.is_empty() { self.0.scheme.blocks(rows) } else { 0 })
    }

    fn encode_queries(
        &self,
        _root: &SegmentRootKey,
        rows: &Checked<'_>,
        _top_level: u8,
        _epoch: u32,
        _format: AnswerFormat,
    ) -> Result<EncodedQueries> {
        let scale = scales(&self.0.spec, self.0.width).query;
        let integers = Zeroizing::new(rows.quantize(scale).values());
        let body = to_words(self.0.width, &integers);
        Ok(EncodedQueries { body, key: KeyId::default(), kept: Kept::new(integers), words: None })
    }

    fn read_queries(&self, count: u32, key: KeyId, body: Reader<'_>) -> Result<Kept> {
        let dimension = self.0.spec.dimension();
        let integers = Zeroizing::new(from_words(self.0.width, count as usize * dimension, body)?);
        let signs = self.0.spec.metric().compares_signs();
        let scale = scales(&self.0.spec, self.0.width).query;
        for row in integers.chunks_exact(dimension) {
            expect_unit(row, scale, signs.then_some(1))?;
        }
        expect_key(Kind::Query.as_str(), KeyId::default(), key)?;
        Ok(Kept::new(integers))
    }

    fn open<'a>(
        &'a self,
        _root: &'a SegmentRootKey,
        queries: &'a Kept,
        _levels: &[u8],
    ) -> Result<Box<dyn Opening + 'a>> {
        let integers: &Integers = queries.get()?;
        Ok(Box::new(CompactScores::new(&self.0, integers)))
    }

    fn decrypt_rows(
        &self,
        root: &SegmentRootKey,
        stored: &StoredRows<'_>,
        wanted: Option<&[usize]>,
    ) -> Result<Vec<f32>> {
        let (id, rows) = (stored.head.id, stored.head.rows as usize);
        let (scheme, masks) = (&self.0.scheme, &self.0.masks);
        let SegmentSecrets { key, check } = self.0.secrets(root, id, rows, stored.witness)?;
        let scale = scales(&self.0.spec, self.0.width).vector;
        let all = match (self.0.witness(id, rows, stored.witness)?, &check) {
            (Some(witness), Some(check)) => {
                let secrets = (&key, check);
                let words = stored.words;
                let integers = compact::unseal_exact(scheme, masks, secrets, &witness, words, rows);
                let tampered = || Error::Tampered { segments: vec![id] };
                let integers = Zeroizing::new(integers.ok_or_else(tampered)?);
                signs_or_units(&self.0.spec, scale, integers.iter().map(|value| *value as f64))
            }
            _ => {
                let noisy =
                    Zeroizing::new(compact::unseal(scheme, masks, &key, stored.words, rows));
                // Sealed again, rows become exact outputs. What they keep of their old noise is cut off first: to whole
                // steps, or where nothing was dropped to more than the noise spans.
                let step = if self.0.width.dropped_bits() == 0 { 128.0 } else { 1.0 };
                let whole = noisy.iter().map(|value| (value / step).round() * step);
                signs_or_units(&self.0.spec, scale, whole)
            }
        };
        select_rows(all, wanted, self.0.spec.dimension())
    }
}
