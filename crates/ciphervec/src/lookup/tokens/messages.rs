//! Frames of queries token by token, and the head that answers share with them.
//!
//! `description's id 16 | nonce 16 | memo | batches u32 | ciphertexts by batch, table, entry`; memo and
//! ciphertexts have their length before them as u32.

use super::recipe::Recipe;
use crate::error::Result;
use crate::lookup::serialize::header;
use crate::lookup::serialize::{expect_params, expect_scheme, expect_spec};
use crate::lookup::spec::Spec;
use ciphervec_he::ckks::Ciphertext;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

/// Encrypted indices as a server reads them.
pub struct TokensQuery<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
    /// By batch, table and entry.
    pub ciphertexts: Vec<Ciphertext>,
}

impl<'a> TokensQuery<'a> {
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
        let (_, key, nonce, memo, mut reader, batches) =
            open((Kind::Query, wire::VERSION), spec, bytes)?;
        let each = spec.tables() * recipe.entries();
        let ciphertexts = ciphertexts(&mut reader, recipe, batches.checked_mul(each))?;
        reader.finish()?;
        Ok(TokensQuery { key, nonce, memo, ciphertexts })
    }
}

/// Room for a header, and what queries and answers start with.
pub(super) fn head(spec: &Spec, nonce: SegmentId, memo: &[u8], batches: usize) -> Vec<u8> {
    let mut out = vec![0; wire::HEADER_LEN];
    out.extend_from_slice(&spec.id());
    out.extend_from_slice(&nonce.0);
    put(&mut out, memo);
    out.extend_from_slice(&(batches as u32).to_le_bytes());
    out
}

/// What `head` wrote: version, key, nonce, memo, the rest, and the number of batches.
type Opened<'a> = (u16, KeyId, SegmentId, &'a [u8], Reader<'a>, usize);

/// Reads what `head` wrote, of a frame of some version up to the one that is known.
pub fn open<'a>((kind, newest): (Kind, u16), spec: &Spec, bytes: &'a [u8]) -> Result<Opened<'a>> {
    let (version, header, payload) = wire::open_version(kind, newest, bytes)?;
    let what = if kind == Kind::Query { "a query of a lookup" } else { "an answer of a lookup" };
    let mut reader = Reader::new(what, payload);
    expect_scheme(&header, &reader)?;
    expect_params(what, spec, &header)?;
    expect_spec(if kind == Kind::Query { "query" } else { "decode" }, spec, reader.array()?)?;
    let nonce = SegmentId(reader.array()?);
    let memo = take(&mut reader)?;
    let batches = reader.u32()? as usize;
    Ok((version, header.key, nonce, memo, reader, batches))
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
