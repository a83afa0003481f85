//! Vector opening: encrypted vectors enter, checked unit rows leave. Key owner only.

use super::layout::Layout;
use super::slots;
use super::vectors::EncryptedVectors;
use crate::error::{Error, Result};
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use zeroize::Zeroizing;

impl<T: Table> EncryptedVectors<T> {
    /// Decrypts the rows, one after another: unit vectors as far as rounding left them, each
    /// coordinate within 1/2X of where it was, zeros for a zero vector, ±1 under `hamming`. Wiped
    /// on drop.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::WrongKey`]; [`ciphervec_he_secret::Error::Bound`], without any value, for a
    /// row that no vector of this description rounds to.
    pub fn open<D>(&self, keys: &D) -> Result<Zeroizing<Vec<f64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        Ok(self.unit(&self.integers(keys)?))
    }

    /// Integers of the grid as unit rows.
    pub(crate) fn unit(&self, integers: &[i64]) -> Zeroizing<Vec<f64>> {
        let grid = self.spec.grid();
        let scale = if grid.signs() { 1.0 } else { grid.scales().vector as f64 };
        Zeroizing::new(integers.iter().map(|&x| x as f64 / scale).collect())
    }

    /// Decrypts the rows as integers of the grid.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(crate) fn integers<D>(&self, keys: &D) -> Result<Zeroizing<Vec<i64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        self.expect_key(keys.public())?;
        let grid = self.spec.grid();
        let messages = keys.decrypt(&self.table, self.message_bits())?;
        let integers = self.unpack(&messages).ok_or(ciphervec_he_secret::Error::Bound)?;
        let fits = |row: &[i64]| {
            let square: u128 = row.iter().map(|x| u128::from(x.unsigned_abs()).pow(2)).sum();
            let signs = !grid.signs() || row.iter().all(|x| x.abs() == 1);
            signs && square <= grid.vector_square()
        };
        if !integers.chunks_exact(grid.dimension()).all(fits) {
            return Err(ciphervec_he_secret::Error::Bound.into());
        }
        Ok(integers)
    }

    /// The same for some rows only, in the order given: the blocks that hold none of them stay
    /// encrypted.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`Error::Range`] for a row that is not there.
    pub fn open_rows<D>(&self, keys: &D, rows: &[usize]) -> Result<Zeroizing<Vec<f64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        Ok(self.unit(&self.integers_of(keys, rows)?))
    }

    /// As [`Self::open_rows`], as integers of the grid.
    ///
    /// # Errors
    /// Those of [`Self::open_rows`].
    pub(crate) fn integers_of<D>(&self, keys: &D, rows: &[usize]) -> Result<Zeroizing<Vec<i64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        let mut blocks = Vec::new();
        let mut place = Vec::with_capacity(rows.len());
        for &row in rows {
            let (block, offset) = self.place(row).ok_or_else(|| Error::Range {
                what: "a row to open",
                expected: format!("below {}", self.len()),
                actual: row.to_string(),
            })?;
            let known = blocks.iter().position(|&known| known == block);
            let at = known.unwrap_or_else(|| {
                blocks.push(block);
                blocks.len() - 1
            });
            place.push((at, offset));
        }
        let dimension = self.spec.dimension();
        let mut found = Zeroizing::new(Vec::with_capacity(rows.len() * dimension));
        if !rows.is_empty() {
            let selected = self.select(&blocks)?;
            let opened = selected.integers(keys)?;
            for (block, offset) in place {
                let at = selected.vectors_of(block).start + offset;
                found.extend_from_slice(&opened[at * dimension..][..dimension]);
            }
        }
        Ok(found)
    }

    /// The block of a row, and its place there.
    fn place(&self, row: usize) -> Option<(usize, usize)> {
        let mut first = 0;
        self.fill.iter().enumerate().find_map(|(block, &fill)| {
            let offset = row.checked_sub(first)?;
            first += usize::from(fill);
            (offset < usize::from(fill)).then_some((block, offset))
        })
    }

    /// Bits of a packed message: no more than the coordinates need, because small ones decrypt
    /// faster.
    fn message_bits(&self) -> u32 {
        match self.packing.layout() {
            Layout::Elements => self.coordinate_bits(),
            Layout::Lanes => self.packing.result_bits(),
            Layout::Horizontal => self.packing.slot_bits() * self.packing.slots() as u32,
        }
    }

    fn coordinate_bits(&self) -> u32 {
        let grid = self.spec.grid();
        let largest = if grid.signs() { 1 } else { grid.scales().vector };
        u64::BITS - largest.leading_zeros() + 1
    }

    /// The integers, row after row; `None` if there are any beyond the slots that are in use or too
    /// large for one.
    fn unpack(&self, messages: &Messages) -> Option<Zeroizing<Vec<i64>>> {
        let (dimension, bits) = (self.spec.dimension(), self.packing.slot_bits());
        let (lanes, slots) = (self.packing.layout() == Layout::Lanes, self.packing.slots());
        let mut integers = Zeroizing::new(vec![0; self.len() * dimension]);
        let mut first = 0;
        for (block, &fill) in self.fill.iter().enumerate() {
            for row in 0..self.packing.rows() {
                let index = row * self.blocks() + block;
                let used = if lanes { fill.into() } else { (dimension - row * slots).min(slots) };
                if !messages.fits(index, bits * used as u32) {
                    return None;
                }
                for slot in 0..used {
                    let value = slots::read(messages.row(index), slot * bits as usize, bits);
                    let (vector, coordinate) =
                        if lanes { (first + slot, row) } else { (first, row * slots + slot) };
                    integers[vector * dimension + coordinate] = i64::try_from(value).ok()?;
                }
            }
            first += usize::from(fill);
        }
        Some(integers)
    }
}
