//! Frames of queries and answers of strategy `histogram`.
//!
//! - a query: `description's id 16 | nonce 16 | mask seed 32 | wants the hint u8 | documents u32 |
//!   words`;
//! - an answer: `description's id 16 | nonce 16 | has the hint u8 | documents u32 | hint, if any,
//!   u32 each | sums, as long as a word each`.
//!
//! A word has 4 to 6 bytes; those of a query stand 64 documents a tile, count by count, sums of an answer by output. A hint has
//! 2,048 numbers an output.

use crate::error::Result;
use crate::lookup::serialize::{expect_params, expect_scheme, expect_spec, flag, header};
use crate::lookup::spec::Spec;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::histogram::DEGREE;
use ciphervec_he::lattice::histogram::{Hint, Histogram};
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

/// Encrypted documents as a server reads them.
pub struct HistogramQuery<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub mask_seed: [u8; 32],
    pub wants_hint: bool,
    pub documents: usize,
    pub words: &'a [u8],
}

impl<'a> HistogramQuery<'a> {
    pub fn to_bytes(&self, spec: &Spec) -> Vec<u8> {
        let mut out = Vec::with_capacity(wire::HEADER_LEN + 69 + self.words.len());
        out.resize(wire::HEADER_LEN, 0);
        out.extend_from_slice(&spec.id());
        out.extend_from_slice(&self.nonce.0);
        out.extend_from_slice(&self.mask_seed);
        out.push(u8::from(self.wants_hint));
        out.extend_from_slice(&(self.documents as u32).to_le_bytes());
        out.extend_from_slice(self.words);
        header(Kind::Query, spec.params, self.key).seal(&mut out);
        out
    }

    pub fn from_bytes(spec: &Spec, scheme: &Histogram, bytes: &'a [u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Query, bytes)?;
        let mut reader = Reader::new("a query of a lookup", payload);
        expect_scheme(&header, &reader)?;
        expect_params("a query", spec, &header)?;
        expect_spec("query", spec, reader.array()?)?;
        let (nonce, mask_seed) = (SegmentId(reader.array()?), reader.array()?);
        let wants_hint = flag(&mut reader)?;
        let documents = reader.u32()? as usize;
        let length = documents.checked_mul(scheme.words_len(1, spec.dimension()));
        if documents == 0 || length != Some(reader.remaining()) {
            let left = reader.remaining();
            return Err(reader
                .error(format!("{documents} documents expected in {left} bytes"))
                .into());
        }
        let words = reader.take(reader.remaining())?;
        Ok(HistogramQuery { key: header.key, nonce, mask_seed, wants_hint, documents, words })
    }
}

/// Encrypted sums as a client reads them.
pub struct HistogramAnswer {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub documents: usize,
    pub hint: Option<Hint>,
    pub sums: Vec<u64>,
}

impl HistogramAnswer {
    pub fn to_bytes(&self, spec: &Spec, scheme: &Histogram) -> Vec<u8> {
        let hint = self.hint.as_ref().map_or(&[][..], Hint::values);
        let word = scheme.word_bytes();
        let length = wire::HEADER_LEN + 37 + 4 * hint.len() + word * self.sums.len();
        let mut out = Vec::with_capacity(length);
        out.resize(wire::HEADER_LEN, 0);
        out.extend_from_slice(&spec.id());
        out.extend_from_slice(&self.nonce.0);
        out.push(u8::from(self.hint.is_some()));
        out.extend_from_slice(&(self.documents as u32).to_le_bytes());
        hint.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        self.sums.iter().for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()[..word]));
        header(Kind::Response, spec.params, self.key).seal(&mut out);
        out
    }

    pub fn from_bytes(spec: &Spec, scheme: &Histogram, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Response, bytes)?;
        let mut reader = Reader::new("an answer of a lookup", payload);
        expect_scheme(&header, &reader)?;
        expect_params("an answer", spec, &header)?;
        expect_spec("decode", spec, reader.array()?)?;
        let nonce = SegmentId(reader.array()?);
        let has_hint = flag(&mut reader)?;
        let documents = reader.u32()? as usize;
        let (outputs, word) = (spec.columns(), scheme.word_bytes());
        let hint_bytes = if has_hint { 4 * DEGREE * outputs } else { 0 };
        let sums = documents.checked_mul(outputs * word);
        let expected = sums.and_then(|sums| sums.checked_add(hint_bytes));
        if documents == 0 || expected != Some(reader.remaining()) {
            let left = reader.remaining();
            let detail =
                format!("{documents} documents of {outputs} numbers expected in {left} bytes");
            return Err(reader.error(detail).into());
        }
        let values = reader.take(hint_bytes)?.as_chunks::<4>().0;
        let values = values.iter().map(|value| u32::from_le_bytes(*value)).collect();
        let hint = if has_hint { Hint::from_values(values, outputs) } else { None };
        let sums = reader.take(reader.remaining())?.chunks_exact(word).map(|bytes| {
            let mut wide = [0; 8];
            wide[..word].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        });
        Ok(HistogramAnswer { key: header.key, nonce, documents, hint, sums: sums.collect() })
    }
}
