//! What travels between the halves of a lookup. Objects enter, framed bytes leave, and back. Both sides.
//!
//! In strategy `histogram`:
//!
//! - a query: `description's id 16 | nonce 16 | mask seed 32 | wants the hint u8 | documents u32 | words`;
//! - an answer: `description's id 16 | nonce 16 | has the hint u8 | documents u32 | hint, if any, u32 each | sums, as long as a
//!   word each`.
//!
//! In the others, every part with its length before it as u32:
//!
//! - a query: `description's id 16 | nonce 16 | memo | batches u32 | ciphertexts by batch, table, entry`;
//! - an answer: `description's id 16 | nonce 16 | memo | batches u32 | ciphertexts by batch, column`.

use super::bytes::{expect_params, expect_scheme, expect_spec, flag, header};
use super::recipe::Recipe;
use super::spec::Spec;
use crate::error::Result;
use ciphervec_he::ckks::Ciphertext;
use ciphervec_he::lattice::SegmentId;
#[cfg(feature = "client")]
use ciphervec_he::lattice::histogram::DEGREE;
use ciphervec_he::lattice::histogram::{Hint, Histogram};
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

/// Encrypted documents as a server reads them.
pub(super) struct Query<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub mask_seed: [u8; 32],
    pub wants_hint: bool,
    pub documents: usize,
    pub words: &'a [u8],
}

impl<'a> Query<'a> {
    #[cfg(feature = "client")]
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
        Ok(Query { key: header.key, nonce, mask_seed, wants_hint, documents, words })
    }
}

/// Encrypted sums as a client reads them.
pub(super) struct Answer {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub documents: usize,
    pub hint: Option<Hint>,
    pub sums: Vec<u64>,
}

impl Answer {
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

    #[cfg(feature = "client")]
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
        Ok(Answer { key: header.key, nonce, documents, hint, sums: sums.collect() })
    }
}

/// Encrypted indices as a server reads them.
pub(super) struct TokensQuery<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
    /// By batch, table and entry.
    pub ciphertexts: Vec<Ciphertext>,
}

impl<'a> TokensQuery<'a> {
    #[cfg(feature = "client")]
    pub fn write(
        spec: &Spec,
        (key, nonce): (KeyId, SegmentId),
        memo: &[u8],
        (batches, ciphertexts): (usize, &[Vec<u8>]),
    ) -> Vec<u8> {
        let mut out = head(spec, nonce, memo, batches);
        ciphertexts.iter().for_each(|one| put(&mut out, one));
        header(Kind::Query, spec.params, key).seal(&mut out);
        out
    }

    pub fn from_bytes(spec: &Spec, recipe: &Recipe, bytes: &'a [u8]) -> Result<Self> {
        let (key, nonce, memo, mut reader, batches) = open(Kind::Query, spec, bytes)?;
        let each = spec.tables() * recipe.entries();
        let ciphertexts = ciphertexts(&mut reader, recipe, batches.checked_mul(each))?;
        reader.finish()?;
        Ok(TokensQuery { key, nonce, memo, ciphertexts })
    }
}

/// Looked-up rows as a client reads them.
pub(super) struct TokensAnswer<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
    /// By batch and column.
    pub batches: Vec<Vec<Ciphertext>>,
}

impl<'a> TokensAnswer<'a> {
    pub fn to_bytes(&self, spec: &Spec) -> Vec<u8> {
        let mut out = head(spec, self.nonce, self.memo, self.batches.len());
        self.batches.iter().flatten().for_each(|one| put(&mut out, &one.to_bytes()));
        header(Kind::Response, spec.params, self.key).seal(&mut out);
        out
    }

    #[cfg(feature = "client")]
    pub fn from_bytes(spec: &Spec, recipe: &Recipe, bytes: &'a [u8]) -> Result<Self> {
        let (key, nonce, memo, mut reader, batches) = open(Kind::Response, spec, bytes)?;
        let columns = spec.columns();
        let all = ciphertexts(&mut reader, recipe, batches.checked_mul(columns))?;
        reader.finish()?;
        let batches = all.chunks_exact(columns).map(<[Ciphertext]>::to_vec).collect();
        Ok(TokensAnswer { key, nonce, memo, batches })
    }
}

/// Room for a header, and what queries and answers start with.
fn head(spec: &Spec, nonce: SegmentId, memo: &[u8], batches: usize) -> Vec<u8> {
    let mut out = vec![0; wire::HEADER_LEN];
    out.extend_from_slice(&spec.id());
    out.extend_from_slice(&nonce.0);
    put(&mut out, memo);
    out.extend_from_slice(&(batches as u32).to_le_bytes());
    out
}

/// Reads what [`head`] wrote: key, nonce, memo, the rest, and the number of batches.
fn open<'a>(
    kind: Kind,
    spec: &Spec,
    bytes: &'a [u8],
) -> Result<(KeyId, SegmentId, &'a [u8], Reader<'a>, usize)> {
    let (header, payload) = wire::open(kind, bytes)?;
    let what = if kind == Kind::Query { "a query of a lookup" } else { "an answer of a lookup" };
    let mut reader = Reader::new(what, payload);
    expect_scheme(&header, &reader)?;
    expect_params(what, spec, &header)?;
    expect_spec(if kind == Kind::Query { "query" } else { "decode" }, spec, reader.array()?)?;
    let nonce = SegmentId(reader.array()?);
    let memo = take(&mut reader)?;
    let batches = reader.u32()? as usize;
    Ok((header.key, nonce, memo, reader, batches))
}

/// `count` ciphertexts of one key.
fn ciphertexts(
    reader: &mut Reader<'_>,
    recipe: &Recipe,
    count: Option<usize>,
) -> Result<Vec<Ciphertext>> {
    // Each takes more than its length: a count that the bytes do not cover is refused before it allocates.
    let Some(count) = count.filter(|count| *count <= reader.remaining() / 4) else {
        return Err(reader.error("more ciphertexts are promised than there are bytes").into());
    };
    let mut all: Vec<Ciphertext> = Vec::with_capacity(count);
    for _ in 0..count {
        let one = Ciphertext::from_bytes(recipe.params(), take(reader)?)?;
        if let Some(first) = all.first().filter(|first| first.key_id() != one.key_id()) {
            let (expected, actual) = (first.key_id(), one.key_id());
            let what = "a ciphertext of a lookup";
            return Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into());
        }
        all.push(one);
    }
    Ok(all)
}

fn put(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    out.extend_from_slice(part);
}

fn take<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = reader.u32()? as usize;
    Ok(reader.take(length)?)
}
