//! Rows and queries of mode `open` as float32 words: nothing is encrypted.

use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{
    AnswerFormat, AnswerPart, EncodedQueries, EncryptedRows, Estimates, Exactness, Expected, Kept,
    KeyHolderHalf, OpenedSegment, Opening, RowEncryptor, StoredRows, not_probed, select_rows,
};
use crate::search::quantize::{Checked, signs_or_units};
use crate::search::root_key::SegmentRootKey;
use crate::search::segment::HEADROOM;
use ciphervec_he_secret::lattice::nonce;
use ciphervec_he_secret::wire::{KeyId, Reader};
use zeroize::Zeroizing;

pub struct PlainKeyHolder {
    spec: IndexSpec,
}

impl PlainKeyHolder {
    pub fn new(spec: IndexSpec) -> Self {
        PlainKeyHolder { spec }
    }
}

impl RowEncryptor for PlainKeyHolder {
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        _expected: &Expected,
    ) -> Result<EncryptedRows> {
        let id = nonce::draw(root.master(), &self.spec.binding(), &rows.quantize(1.0))?;
        let words = rows.unit_words(HEADROOM);
        Ok(EncryptedRows {
            id,
            level: 0,
            key: KeyId::default(),
            words,
            witness: Zeroizing::default(),
        })
    }
}

impl KeyHolderHalf for PlainKeyHolder {
    fn segment_key(&self, _root: &SegmentRootKey) -> Result<KeyId> {
        Ok(KeyId::default())
    }

    fn response_key(&self, _root: &SegmentRootKey) -> Result<KeyId> {
        Ok(KeyId::default())
    }

    fn exactness(&self, _witness: &[u8]) -> Exactness {
        Exactness::Exact
    }

    fn rounding(&self) -> f64 {
        0.0
    }

    fn encode_queries(
        &self,
        _root: &SegmentRootKey,
        rows: &Checked<'_>,
        _top_level: u8,
        _epoch: u32,
        _format: AnswerFormat,
    ) -> Result<EncodedQueries> {
        let body = rows.unit().iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(EncodedQueries { body, key: KeyId::default(), kept: Kept::new(()), words: None })
    }

    fn read_queries(&self, _count: u32, _key: KeyId, _body: Reader<'_>) -> Result<Kept> {
        Err(not_probed(&self.spec))
    }

    fn open<'a>(
        &'a self,
        _root: &'a SegmentRootKey,
        queries: &'a Kept,
        _levels: &[u8],
    ) -> Result<Box<dyn Opening + 'a>> {
        queries.get::<()>()?;
        Ok(Box::new(PlainScores))
    }

    fn decrypt_rows(
        &self,
        _root: &SegmentRootKey,
        stored: &StoredRows<'_>,
        wanted: Option<&[usize]>,
    ) -> Result<Vec<f32>> {
        let rows = signs_or_units(&self.spec, 1.0, floats(stored.words));
        select_rows(rows, wanted, self.spec.dimension())
    }
}

struct PlainScores;

impl Opening for PlainScores {
    fn estimate(
        &self,
        _segment: &OpenedSegment<'_>,
        part: &AnswerPart<'_>,
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        part.queries.clone().try_for_each(|query| {
            let scores: Vec<f64> = floats(part.answer(query)).collect();
            visit(query, &Estimates { first: part.rows.start, ..Estimates::settled(&scores) })
        })
    }
}

fn floats(words: &[u8]) -> impl Iterator<Item = f64> {
    words.as_chunks::<4>().0.iter().map(|word| f64::from(f32::from_le_bytes(*word)))
}
