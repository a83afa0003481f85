//! Vectors of a key owner: encrypted when they are rounded, and checked when they are opened as unit rows. Key owner only.

use super::{EncryptedVectors, Layout, VectorSpec, Vectors, slots};
use crate::error::{Error, Result};
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages, Table};
use zeroize::Zeroizing;

/// What the key owner does with encrypted vectors.
pub trait OwnerVectors<T: Table>: Sized {
    /// Encrypts vectors as [`EncryptedVectors::encrypt`] does, faster where the secret helps.
    ///
    /// # Errors
    /// Those of [`EncryptedVectors::encrypt`].
    fn encrypt_as_owner<D>(spec: &VectorSpec, keys: &D, vectors: &Vectors) -> Result<Self>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>;

    /// Decrypts the rows, one after another: unit vectors as far as rounding left them, each
    /// coordinate within 1/2X of where it was, zeros for a zero vector, ±1 under `hamming`. Wiped
    /// on drop.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::WrongKey`]; [`ciphervec_he_secret::Error::Bound`], without any value, for a
    /// row that no vector of this description rounds to.
    fn open<D>(&self, keys: &D) -> Result<Zeroizing<Vec<f64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>;

    /// The same for some rows only, in the order given: the blocks that hold none of them stay
    /// encrypted.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`Error::Range`] for a row that is not there.
    fn open_rows<D>(&self, keys: &D, rows: &[usize]) -> Result<Zeroizing<Vec<f64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>;
}

impl<T: Table> OwnerVectors<T> for EncryptedVectors<T> {
    fn encrypt_as_owner<D>(spec: &VectorSpec, keys: &D, vectors: &Vectors) -> Result<Self>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        Self::encrypt_with(spec, keys.public(), vectors, |rows, columns, messages| {
            keys.encrypt(rows, columns, messages)
        })
    }

    fn open<D>(&self, keys: &D) -> Result<Zeroizing<Vec<f64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        Ok(unit(self, &integers(self, keys)?))
    }

    fn open_rows<D>(&self, keys: &D, rows: &[usize]) -> Result<Zeroizing<Vec<f64>>>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        Ok(unit(self, &integers_of(self, keys, rows)?))
    }
}

/// Integers of the grid as unit rows.
pub(crate) fn unit<T: Table>(
    vectors: &EncryptedVectors<T>,
    integers: &[i64],
) -> Zeroizing<Vec<f64>> {
    let grid = vectors.spec().grid();
    let scale = if grid.signs() { 1.0 } else { grid.scales().vector as f64 };
    Zeroizing::new(integers.iter().map(|&x| x as f64 / scale).collect())
}

/// Decrypts the rows as integers of the grid.
///
/// # Errors
/// Those of [`OwnerVectors::open`].
pub(crate) fn integers<T, D>(vectors: &EncryptedVectors<T>, keys: &D) -> Result<Zeroizing<Vec<i64>>>
where
    T: Table,
    D: Decrypt,
    D::Public: Evaluate<Table = T>,
{
    vectors.expect_key(keys.public())?;
    let grid = vectors.spec().grid();
    let messages = keys.decrypt(vectors.table(), message_bits(vectors))?;
    let integers = unpack(vectors, &messages).ok_or(ciphervec_he_secret::Error::Bound)?;
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

/// As [`OwnerVectors::open_rows`], as integers of the grid.
///
/// # Errors
/// Those of [`OwnerVectors::open_rows`].
pub(crate) fn integers_of<T, D>(
    vectors: &EncryptedVectors<T>,
    keys: &D,
    rows: &[usize],
) -> Result<Zeroizing<Vec<i64>>>
where
    T: Table,
    D: Decrypt,
    D::Public: Evaluate<Table = T>,
{
    let mut blocks = Vec::new();
    let mut place = Vec::with_capacity(rows.len());
    for &row in rows {
        let (block, offset) = place_of(vectors, row).ok_or_else(|| Error::Range {
            what: "a row to open",
            expected: format!("below {}", vectors.len()),
            actual: row.to_string(),
        })?;
        let known = blocks.iter().position(|&known| known == block);
        let at = known.unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        place.push((at, offset));
    }
    let dimension = vectors.spec().dimension();
    let mut found = Zeroizing::new(Vec::with_capacity(rows.len() * dimension));
    if !rows.is_empty() {
        let selected = vectors.select(&blocks)?;
        let opened = integers(&selected, keys)?;
        for (block, offset) in place {
            let at = selected.vectors_of(block).start + offset;
            found.extend_from_slice(&opened[at * dimension..][..dimension]);
        }
    }
    Ok(found)
}

/// The block of a row, and its place there.
fn place_of<T: Table>(vectors: &EncryptedVectors<T>, row: usize) -> Option<(usize, usize)> {
    let mut first = 0;
    vectors.fill().iter().enumerate().find_map(|(block, &fill)| {
        let offset = row.checked_sub(first)?;
        first += usize::from(fill);
        (offset < usize::from(fill)).then_some((block, offset))
    })
}

/// Bits of a packed message: no more than the coordinates need, because small ones decrypt
/// faster.
fn message_bits<T: Table>(vectors: &EncryptedVectors<T>) -> u32 {
    match vectors.packing().layout() {
        Layout::Elements => coordinate_bits(vectors),
        Layout::Lanes => vectors.packing().result_bits(),
        Layout::Horizontal => vectors.packing().slot_bits() * vectors.packing().slots() as u32,
    }
}

fn coordinate_bits<T: Table>(vectors: &EncryptedVectors<T>) -> u32 {
    let grid = vectors.spec().grid();
    let largest = if grid.signs() { 1 } else { grid.scales().vector };
    u64::BITS - largest.leading_zeros() + 1
}

/// The integers, row after row; `None` if there are any beyond the slots that are in use or too
/// large for one.
fn unpack<T: Table>(
    vectors: &EncryptedVectors<T>,
    messages: &Messages,
) -> Option<Zeroizing<Vec<i64>>> {
    let (dimension, bits) = (vectors.spec().dimension(), vectors.packing().slot_bits());
    let (lanes, slots) = (vectors.packing().layout() == Layout::Lanes, vectors.packing().slots());
    let mut integers = Zeroizing::new(vec![0; vectors.len() * dimension]);
    let mut first = 0;
    for (block, &fill) in vectors.fill().iter().enumerate() {
        for row in 0..vectors.packing().rows() {
            let index = row * vectors.blocks() + block;
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
