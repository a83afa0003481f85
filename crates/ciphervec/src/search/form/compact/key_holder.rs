//! Compact rows and scores: unit rows enter, sealed words leave; masked sums enter, cosines leave. Owner only.

use super::queries::to_words;
use super::scale::{plaintext_scale, scales};
use super::server::from_words;
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{
    EncodedQueries, EncryptedRows, Kept, KeyHolderHalf, OpenedSegment, Opening, RowEncryptor,
    expect_key, expect_no_sums, select_rows,
};
use crate::search::quantize::{Checked, expect_unit, signs_or_units};
use crate::search::root_key::SegmentRootKey;
use crate::search::segment::SegmentHead;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::compact::{self, Compact, Masks, SegmentKey, Width};
use ciphervec_he::wire::{KeyId, Kind, Reader};
use std::cell::OnceCell;
use zeroize::Zeroizing;

pub struct CompactKeyHolder {
    spec: IndexSpec,
    width: Width,
    scheme: Compact,
    masks: Masks,
}

/// Quantized queries, which removing the masks takes again.
type Integers = Zeroizing<Vec<i64>>;

impl CompactKeyHolder {
    pub fn new(spec: IndexSpec, width: Width, mask_seed: [u8; 32]) -> Result<Self> {
        let scheme = Compact::new(width)?;
        let masks = Masks::new(&scheme, mask_seed, spec.dimension());
        Ok(CompactKeyHolder { spec, width, scheme, masks })
    }

    fn segment_secret(&self, root: &SegmentRootKey, id: SegmentId, rows: usize) -> SegmentKey {
        SegmentKey::derive(&self.scheme, root.master(), &self.spec.binding(), id, rows)
    }
}

impl RowEncryptor for CompactKeyHolder {
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        _expected_rows: usize,
    ) -> Result<EncryptedRows> {
        let plaintext = rows.quantize(plaintext_scale(&self.spec, self.width));
        let binding = self.spec.binding();
        let (id, words) =
            compact::seal(&self.scheme, &self.masks, root.master(), &binding, &plaintext)?;
        Ok(EncryptedRows { id, level: 0, key: root.key_id(), words })
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
        match self.width {
            Width::Wide => f64::exp2(-30.0),
            Width::Standard | Width::Small => f64::exp2(-16.0),
        }
    }

    fn encode_queries(
        &self,
        _root: &SegmentRootKey,
        rows: &Checked<'_>,
        _top_level: u8,
        _epoch: u32,
    ) -> Result<EncodedQueries> {
        let scale = scales(&self.spec, self.width).query;
        let integers = Zeroizing::new(rows.quantize(scale).values());
        let body = to_words(self.width, &integers);
        Ok(EncodedQueries { body, key: KeyId::default(), kept: Kept::new(integers) })
    }

    fn read_queries(&self, count: u32, key: KeyId, body: Reader<'_>) -> Result<Kept> {
        let dimension = self.spec.dimension();
        let integers = Zeroizing::new(from_words(self.width, count as usize * dimension, body)?);
        let signs = self.spec.metric().compares_signs();
        let scale = scales(&self.spec, self.width).query;
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
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Result<Box<dyn Opening + 'a>> {
        let integers: &Integers = queries.get()?;
        expect_no_sums(reader)?;
        Ok(Box::new(CompactScores { holder: self, integers, count, combined: OnceCell::new() }))
    }

    fn decrypt_rows(
        &self,
        root: &SegmentRootKey,
        head: &SegmentHead,
        words: &[u8],
        wanted: Option<&[usize]>,
    ) -> Result<Vec<f32>> {
        let rows = head.rows as usize;
        let secret = self.segment_secret(root, head.id, rows);
        let integers = compact::unseal(&self.scheme, &self.masks, &secret, words, rows);
        let scale = scales(&self.spec, self.width).vector;
        let all = signs_or_units(&self.spec, scale, integers.iter().copied());
        select_rows(all, wanted, self.spec.dimension())
    }
}

/// The answers to some queries; `combined` are the public masks times each query, made when the first segment comes.
struct CompactScores<'a> {
    holder: &'a CompactKeyHolder,
    integers: &'a Integers,
    count: usize,
    combined: OnceCell<Vec<u64>>,
}

impl Opening for CompactScores<'_> {
    fn cosines(
        &self,
        segment: &OpenedSegment<'_>,
        answers: &[u8],
        visit: &mut dyn FnMut(usize, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let CompactKeyHolder { spec, width, scheme, masks } = self.holder;
        let (rows, degree) = (segment.rows, width.degree());
        let key = segment.secrets(|| self.holder.segment_secret(segment.root, segment.id, rows))?;
        let combined = self.combined.get_or_init(|| masks.combine(self.integers));
        let scales = scales(spec, *width);
        let inverse = 1.0 / (scales.vector * scales.query);
        let length = rows * width.word_bytes();
        let mut cosines = vec![0.0; rows];
        for query in 0..self.count {
            let (mask, answer) =
                (&combined[query * degree..][..degree], &answers[query * length..][..length]);
            compact::unmask(scheme, key, mask, answer, &mut cosines);
            cosines.iter_mut().for_each(|cosine| *cosine *= inverse);
            visit(query, &cosines)?;
        }
        Ok(())
    }
}
