//! Query of private retrieval: encrypted numbers of each fetch, some fetches a ciphertext. Owner to server.
//! Its length tells how many fetches there are, and nothing of which.
//!
//! # What is in it
//!
//! With Δ = round(q/2^14), the record in node r and column c, and the bits c_j of c, a fetch is these numbers
//! modulo q:
//!
//! - G numbers for the node: Δ at r, 0 elsewhere;
//! - for each of ⌈log2 C⌉ bits, four: c_j 2^22, c_j 2^29, c_j 2^36, c_j 2^43.
//!
//! Up to 1,024 numbers share a ciphertext (docs/sealed.md, section 2.1). They are divided by 2^k modulo q, as the
//! tree's k steps double messages k times. Nodes of the deepest level are then ciphertexts of one number each. G is
//! such that the numbers fill a power of two, 256 at most, as nodes of the tree cost a key switch each: of 1 KB
//! records, 200,000 have 228 nodes and 126 columns, a million 216 and 662. Four such fetches share a ciphertext,
//! and ten take three, 77 KB.
//!
//! Length, header and order of a query depend on the shape and the number of fetches alone.

use super::keys::{header, open};
use super::{SelectorKeys, Shape};
use crate::error::{Error, Result};
use crate::lattice::ring::{Ciphertext, POLY_BYTES, Ring};
use crate::wire::{KeyId, Kind, Reader};

/// Some fetches from a table of one shape.
pub struct RetrievalQuery {
    pub(super) key: KeyId,
    pub(super) epoch: u32,
    pub(super) fetches: usize,
    seed: [u8; 32],
    pub(super) ciphertexts: Vec<Ciphertext>,
}

impl RetrievalQuery {
    /// Most fetches of one query. Ten take up to 300 MB while they are answered.
    pub const MAX_FETCHES: usize = 16;

    /// Of ciphertexts whose c1 are the streams of `seed`. Hidden: a retrieval key encrypts.
    #[doc(hidden)]
    pub fn from_parts(
        (key, epoch): (KeyId, u32),
        fetches: usize,
        seed: [u8; 32],
        ciphertexts: Vec<Ciphertext>,
    ) -> Self {
        RetrievalQuery { key, epoch, fetches, seed, ciphertexts }
    }

    /// Fetches there are.
    pub fn fetches(&self) -> usize {
        self.fetches
    }

    /// The frame: the shape's name, epoch, number of fetches, seed, then c0 of each ciphertext.
    pub fn to_bytes(&self, shape: &Shape) -> Vec<u8> {
        let mut payload = Vec::with_capacity(56 + self.ciphertexts.len() * POLY_BYTES);
        payload.extend_from_slice(&head(shape, self.epoch, self.fetches));
        payload.extend_from_slice(&self.seed);
        self.ciphertexts.iter().for_each(|ciphertext| ciphertext.append(&mut payload));
        header(Kind::RetrievalQuery, self.key).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote about a table of this shape.
    ///
    /// # Errors
    /// Damaged or foreign bytes, another shape, no fetches or more than [`Self::MAX_FETCHES`].
    pub fn from_bytes(ring: &Ring, bytes: &[u8], shape: &Shape) -> Result<Self> {
        let (header, mut reader) = open(Kind::RetrievalQuery, bytes)?;
        let (epoch, fetches) = read_head(&mut reader, shape)?;
        let seed = reader.array()?;
        let count = shape.ciphertexts(fetches);
        let expected = count * POLY_BYTES;
        if reader.remaining() != expected {
            let came = reader.remaining();
            return Err(
                reader.error(format!("{expected} bytes of ciphertexts expected, {came} came"))
            );
        }
        let read = |stream| Ciphertext::read(ring, &mut reader, &seed, stream);
        let ciphertexts = (0..count as u64).map(read).collect::<Result<_>>()?;
        Ok(RetrievalQuery { key: header.key, epoch, fetches, seed, ciphertexts })
    }

    /// The epoch that a query says it is of, whatever table it is about.
    ///
    /// # Errors
    /// Damaged or foreign bytes.
    pub fn epoch_of(bytes: &[u8]) -> Result<u32> {
        let (_, mut reader) = open(Kind::RetrievalQuery, bytes)?;
        reader.take(16)?;
        reader.u32()
    }

    /// Refuses keys of another owner or epoch.
    pub(super) fn check(&self, keys: &SelectorKeys) -> Result<()> {
        let what = Kind::RetrievalQuery.as_str();
        if self.key != keys.key_id() {
            return Err(Error::WrongKey { what, expected: keys.key_id(), actual: self.key });
        }
        if self.epoch != keys.epoch() {
            return Err(Error::Range {
                what: "the epoch of a retrieval query",
                expected: format!("{}, as of the keys; send the keys of the query's", keys.epoch()),
                actual: self.epoch.to_string(),
            });
        }
        Ok(())
    }
}

/// What messages about a table begin with.
pub(super) fn head(shape: &Shape, epoch: u32, fetches: usize) -> [u8; 24] {
    let mut head = [0; 24];
    head[..16].copy_from_slice(&shape.id());
    head[16..20].copy_from_slice(&epoch.to_le_bytes());
    head[20..].copy_from_slice(&(fetches as u32).to_le_bytes());
    head
}

/// Epoch and number of fetches of a message about a table of this shape.
pub(super) fn read_head(reader: &mut Reader<'_>, shape: &Shape) -> Result<(u32, usize)> {
    if reader.array()? != shape.id() {
        return Err(reader.error("it is about another table, or another state of it"));
    }
    let (epoch, fetches) = (reader.u32()?, reader.u32()? as usize);
    let most = RetrievalQuery::MAX_FETCHES;
    if !(1..=most).contains(&fetches) {
        return Err(reader.error(format!("1 to {most} fetches expected, {fetches} came")));
    }
    Ok((epoch, fetches))
}
