//! Vectors encrypted with the public key: a table of ciphertexts and its shape.

use super::layout::{Layout, Packing};
use super::quantize::Vectors;
use super::slots;
use super::spec::VectorSpec;
use crate::error::{Error, Result};
use ciphervec_he::additive::{Evaluate, Messages, Table};
use ciphervec_he::wire::KeyId;
use core::ops::Range;

/// Vectors under an additively homomorphic scheme, in the form that is computed on.
///
/// They come in blocks: one vector each, or up to K of layout `lanes`. A gallery of several blocks
/// is a table with a column a block; a single block lies in one row, because that is how the
/// schemes sum a lone column fastest.
#[derive(Clone)]
pub struct EncryptedVectors<T: Table> {
    pub(super) spec: VectorSpec,
    pub(super) packing: Packing,
    pub(super) key: KeyId,
    /// Vectors in each block.
    pub(super) fill: Vec<u16>,
    pub(super) table: T,
}

impl<T: Table> EncryptedVectors<T> {
    /// Encrypts vectors with the public key.
    ///
    /// # Errors
    /// [`Error::Range`] when they were rounded for another description, or the scheme's messages
    /// are too short for the layout; [`ciphervec_he::Error::Randomness`].
    pub fn encrypt<P: Evaluate<Table = T>>(
        spec: &VectorSpec,
        public: &P,
        vectors: &Vectors,
    ) -> Result<Self> {
        Self::encrypt_with(spec, public, vectors, |rows, columns, messages| {
            public.encrypt(rows, columns, messages)
        })
    }

    /// Encrypts vectors by `encrypt`, which is given rows, columns and messages.
    ///
    /// # Errors
    /// Those of [`Self::encrypt`].
    #[doc(hidden)]
    pub fn encrypt_with<P: Evaluate<Table = T>>(
        spec: &VectorSpec,
        public: &P,
        vectors: &Vectors,
        encrypt: impl FnOnce(usize, usize, &Messages) -> ciphervec_he::Result<T>,
    ) -> Result<Self> {
        spec.expect_grid("vectors to be encrypted", vectors.grid())?;
        let packing = spec.packing(public.message_bits())?;
        let messages = pack(&packing, vectors);
        let (rows, blocks) = (packing.rows(), packing.blocks(vectors.len()));
        // A lone block is one row: the order of its messages is the same.
        let table = if blocks == 1 {
            encrypt(1, rows, &messages)?
        } else {
            encrypt(rows, blocks, &messages)?
        };
        let fill = (0..blocks)
            .map(|block| (vectors.len() - block * packing.lanes()).min(packing.lanes()) as u16)
            .collect();
        Ok(EncryptedVectors { spec: *spec, packing, key: public.key_id(), fill, table })
    }

    /// What the vectors are.
    pub fn spec(&self) -> &VectorSpec {
        &self.spec
    }

    /// How they lie in ciphertexts.
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The key they are encrypted under.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// How many vectors.
    pub fn len(&self) -> usize {
        self.fill.iter().map(|&fill| usize::from(fill)).sum()
    }

    /// Whether there are none, which never happens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many vectors each block holds.
    #[doc(hidden)]
    pub fn fill(&self) -> &[u16] {
        &self.fill
    }

    /// How many blocks.
    pub fn blocks(&self) -> usize {
        self.fill.len()
    }

    /// How many ciphertexts.
    pub fn ciphertexts(&self) -> usize {
        self.packing.rows() * self.blocks()
    }

    /// The ciphertexts: a row a ciphertext of a block and a column a block, or all of a lone block
    /// in one row.
    pub fn table(&self) -> &T {
        &self.table
    }

    /// Which vectors block `index` holds.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn vectors_of(&self, index: usize) -> Range<usize> {
        let before = self.fill[..index].iter().map(|&fill| usize::from(fill)).sum();
        before..before + usize::from(self.fill[index])
    }

    /// Galleries of one description and one key as a single one, in this order. Blocks stay as they
    /// are: a block that is not full stays so.
    ///
    /// # Errors
    /// [`Error::Range`] for different descriptions or none at all;
    /// [`ciphervec_he::Error::WrongKey`].
    pub fn append(parts: &[&Self]) -> Result<Self> {
        let Some((first, rest)) = parts.split_first() else {
            return Err(Error::Range {
                what: "the number of galleries to append",
                expected: "at least 1".into(),
                actual: "0".into(),
            });
        };
        for part in rest {
            first.spec.expect_grid("a gallery to append", part.spec.grid())?;
            if part.packing != first.packing {
                return Err(Error::Range {
                    what: "the layout of a gallery to append",
                    expected: first.spec.layout().as_str().into(),
                    actual: part.spec.layout().as_str().into(),
                });
            }
            expect_key("a gallery to append", first.key, part.key)?;
        }
        if rest.is_empty() {
            return Ok((*first).clone());
        }
        let fill = parts.iter().flat_map(|part| part.fill.iter().copied()).collect();
        let columns: Vec<T> = parts.iter().map(|part| part.by_columns()).collect();
        let table = T::beside(&columns.iter().collect::<Vec<_>>())?;
        Ok(first.with_blocks(fill, table))
    }

    /// The blocks named, in this order: single vectors, whole blocks of layout `lanes`.
    ///
    /// # Errors
    /// [`Error::Range`] for a block that is not there, or none at all.
    pub fn select(&self, blocks: &[usize]) -> Result<Self> {
        if blocks.is_empty() || blocks.iter().any(|&block| block >= self.blocks()) {
            return Err(Error::Range {
                what: "the blocks to select",
                expected: format!("one or more of 0 to {}", self.blocks() - 1),
                actual: format!("{blocks:?}"),
            });
        }
        let all = self.by_columns();
        // Neighbours travel together.
        let columns = blocks
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| all.columns_in(run[0]..run[0] + run.len()))
            .collect::<ciphervec_he::Result<Vec<T>>>()?;
        let table = T::beside(&columns.iter().collect::<Vec<_>>())?;
        let table = if blocks.len() == 1 { table.transposed() } else { table };
        let fill = blocks.iter().map(|&block| self.fill[block]).collect();
        Ok(self.with_blocks(fill, table))
    }

    /// Refuses another key.
    #[doc(hidden)]
    pub fn expect_key<P: Evaluate>(&self, public: &P) -> Result<()> {
        expect_key("encrypted vectors", public.key_id(), self.key)
    }

    /// A column a block, even if there is only one.
    fn by_columns(&self) -> T {
        if self.blocks() == 1 { self.table.transposed() } else { self.table.clone() }
    }

    /// Other blocks of the same description and key.
    fn with_blocks(&self, fill: Vec<u16>, table: T) -> Self {
        EncryptedVectors { spec: self.spec, packing: self.packing, key: self.key, fill, table }
    }
}

impl<T: Table> core::fmt::Debug for EncryptedVectors<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EncryptedVectors")
            .field("spec", &self.spec)
            .field("key", &self.key)
            .field("vectors", &self.len())
            .finish_non_exhaustive()
    }
}

pub fn expect_key(what: &'static str, expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        Ok(())
    } else {
        Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
    }
}

/// The messages of a table with a row a ciphertext of a block and a column a block, row after row.
fn pack(packing: &Packing, vectors: &Vectors) -> Messages {
    let (rows, blocks) = (packing.rows(), packing.blocks(vectors.len()));
    let mut messages = Messages::zeros(packing.words(), rows * blocks);
    let bits = packing.slot_bits() as usize;
    for index in 0..vectors.len() {
        let (block, lane) = (index / packing.lanes(), index % packing.lanes());
        for (coordinate, &value) in vectors.row(index).iter().enumerate() {
            let (row, slot) = match packing.layout() {
                Layout::Elements => (coordinate, 0),
                Layout::Lanes => (coordinate, lane),
                Layout::Horizontal => (coordinate / packing.slots(), coordinate % packing.slots()),
            };
            slots::add(messages.row_mut(row * blocks + block), value, slot * bits);
        }
    }
    messages
}
