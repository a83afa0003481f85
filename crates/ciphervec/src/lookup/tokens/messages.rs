//! Token messages: ciphertexts enter, framed bytes leave, and back. Both sides.
//!
//! Every part has its length before it as u32:
//!
//! - a query: `description's id 16 | nonce 16 | memo | batches u32 | ciphertexts by batch, table,
//!   entry`;
//! - an answer: `description's id 16 | nonce 16 | memo | batches u32 | ciphertexts by batch,
//!   column`.

use super::recipe::Recipe;
use crate::error::Result;
use crate::lookup::serialize::{expect_params, expect_scheme, expect_spec, header};
use crate::lookup::spec::Spec;
use ciphervec_he::ckks::Ciphertext;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

/// Encrypted indices as a server reads them.
pub(in crate::lookup) struct TokensQuery<'a> {
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
pub(in crate::lookup) struct TokensAnswer<'a> {
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
    // Each takes more than its length: a count that the bytes do not cover is refused before it
    // allocates.
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
