//! Tables of elements of `Z/n^k`, read and written as base-`n` digits and held in Montgomery form.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use zeroize::Zeroizing;

use super::digits::{settle, to_limbs, to_words};
use super::group::{LANES, copy_lane, lane, set_lane, spread, wipe};
use super::modulus::PowerModulus;
use super::scratch::Scratch;
use crate::backend::operands::montgomery::Row;
use crate::error::ArithError;

/// Elements of `Z/n^k`, `rows x columns`. Eight columns of a row are worked on at once, so a single
/// row of many columns costs as much as it should and a single column eight times that. Wiped on
/// drop.
#[derive(Clone)]
pub struct Residues {
    modulus: Arc<PowerModulus>,
    rows: usize,
    columns: usize,
    /// Groups of eight columns, row after row; lanes past the last column hold anything.
    data: Vec<Row>,
}

impl core::fmt::Debug for Residues {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Residues({} x {}, {:?})", self.rows, self.columns, self.modulus)
    }
}

impl Drop for Residues {
    fn drop(&mut self) {
        wipe(&mut self.data);
    }
}

impl Residues {
    /// Reads `rows * columns` elements, row after row, each [`PowerModulus::element_words`] words.
    ///
    /// # Errors
    /// [`ArithError::Length`] for another number of words, [`ArithError::NotReduced`] for a digit
    /// of `n` or more.
    pub fn from_digits(
        modulus: &Arc<PowerModulus>,
        rows: usize,
        columns: usize,
        words: &[u64],
    ) -> Result<Residues, ArithError> {
        let size = modulus.element_words();
        let expected = rows.saturating_mul(columns).saturating_mul(size);
        if words.len() != expected {
            return Err(ArithError::Length { expected, actual: words.len() });
        }
        if let Some(index) = words.chunks(size).position(|element| !modulus.is_canonical(element)) {
            return Err(ArithError::NotReduced { index });
        }
        let mut table = Residues::ones(modulus, rows, columns);
        let limbs = modulus.reduction.limbs;
        table.for_each_group(|scratch, row, index, group| {
            let first = row * columns + index * LANES;
            let mut stored = Zeroizing::new(vec![0; group.len()]);
            for (lane, element) in
                words[first * size..].chunks(size).take(scratch.lanes).enumerate()
            {
                for (digit, stored) in element.chunks(modulus.words()).zip(stored.chunks_mut(limbs))
                {
                    to_limbs(&modulus.format, digit, stored);
                }
                set_lane(modulus.format.width, group, lane, stored.iter().copied());
            }
            scratch.mul(group, &modulus.into);
        });
        Ok(table)
    }

    /// The elements, row after row, every digit below `n`.
    pub fn to_digits(&self) -> Vec<u64> {
        let modulus = &self.modulus;
        let size = modulus.element_words();
        let mut out = vec![0; self.rows * self.columns * size];
        if out.is_empty() {
            return out;
        }
        let mut limbs_of_one = vec![(modulus.format.encode)(0); modulus.rows()];
        limbs_of_one[0] = (modulus.format.encode)(1);
        let one = spread(modulus.format.width, &limbs_of_one);
        let per_row = self.columns.div_ceil(LANES);
        out.par_chunks_mut(self.columns * size)
            .zip(self.data.par_chunks(per_row * modulus.rows()))
            .for_each(|(out, row)| {
                out.par_chunks_mut(LANES * size).zip(row.par_chunks(modulus.rows())).for_each_init(
                    || (Scratch::new(modulus, LANES), Digits::new(modulus)),
                    |(scratch, digits), (out, group)| {
                        scratch.lanes = out.len() / size;
                        digits.group.copy_from_slice(group);
                        scratch.mul(&mut digits.group, &one);
                        digits.write(modulus, out);
                    },
                );
            });
        out
    }

    /// A table of ones.
    pub fn ones(modulus: &Arc<PowerModulus>, rows: usize, columns: usize) -> Residues {
        let groups = rows * columns.div_ceil(LANES);
        let mut data = Vec::with_capacity(groups * modulus.rows());
        (0..groups).for_each(|_| data.extend_from_slice(&modulus.one));
        Residues { modulus: Arc::clone(modulus), rows, columns, data }
    }

    /// Whether nothing but ones was ever put in: ones that were computed may be represented
    /// otherwise.
    pub(super) fn is_one(&self) -> bool {
        let groups = self.data.chunks(self.modulus.rows());
        groups.flat_map(|group| group.iter().zip(&self.modulus.one)).all(|(a, b)| a.0 == b.0)
    }

    pub(super) fn from_groups(
        modulus: &Arc<PowerModulus>,
        rows: usize,
        columns: usize,
        data: Vec<Row>,
    ) -> Residues {
        debug_assert_eq!(data.len(), rows * columns.div_ceil(LANES) * modulus.rows());
        Residues { modulus: Arc::clone(modulus), rows, columns, data }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// What the elements are residues of.
    pub fn modulus(&self) -> &Arc<PowerModulus> {
        &self.modulus
    }

    pub(super) fn groups_a_row(&self) -> usize {
        self.columns.div_ceil(LANES)
    }

    /// Lanes in use in group `index` of a row.
    pub(super) fn lanes(&self, index: usize) -> usize {
        (self.columns - index * LANES).min(LANES)
    }

    /// Group `index` of row `row`.
    pub(super) fn group(&self, row: usize, index: usize) -> &[Row] {
        let size = self.modulus.rows();
        let at = (row * self.groups_a_row() + index) * size;
        &self.data[at..at + size]
    }

    pub(super) fn groups_mut(&mut self) -> &mut [Row] {
        &mut self.data
    }

    /// `work` on every group, with its row, its index in the row and kernels for its lanes.
    pub(super) fn for_each_group(
        &mut self,
        work: impl Fn(&mut Scratch<'_>, usize, usize, &mut [Row]) + Sync,
    ) {
        let (per_row, columns) = (self.groups_a_row(), self.columns);
        let modulus = &self.modulus;
        self.data.par_chunks_mut(modulus.rows()).enumerate().for_each_init(
            || Scratch::new(modulus, LANES),
            |scratch, (at, group)| {
                let (row, index) = (at / per_row, at % per_row);
                scratch.lanes = (columns - index * LANES).min(LANES);
                work(scratch, row, index, group);
            },
        );
    }

    /// Multiplies every element by the one in its place in `other`, which has the same shape, or
    /// one row that serves every row, or one element that serves all.
    ///
    /// # Panics
    /// For any other shape, and for another modulus.
    pub fn mul_assign(&mut self, other: &Residues) {
        assert!(self.modulus.same(&other.modulus), "residues of two moduli");
        let (rows, columns) = (other.rows, other.columns);
        if rows == 1 && columns == 1 {
            let single = other.spread(0, 0);
            self.for_each_group(|scratch, _, _, group| scratch.mul(group, &single));
            return;
        }
        let fits = columns == self.columns && (rows == self.rows || rows == 1);
        assert!(fits, "{rows} x {columns} residues do not fit {} x {}", self.rows, self.columns);
        self.for_each_group(|scratch, row, index, group| {
            scratch.mul(group, other.group(if rows == 1 { 0 } else { row }, index));
        });
    }

    /// Squares every element.
    pub fn square_assign(&mut self) {
        self.for_each_group(|scratch, _, _, group| scratch.square(group));
    }

    /// The products of the columns: one row. One where there are no rows.
    pub fn product(&self) -> Residues {
        let mut product = Residues::ones(&self.modulus, 1, self.columns);
        product.for_each_group(|scratch, _, index, group| {
            for row in 0..self.rows {
                if row == 0 {
                    group.copy_from_slice(self.group(0, index));
                } else {
                    scratch.mul(group, self.group(row, index));
                }
            }
        });
        product
    }

    /// Element (`row`, `column`) in all lanes of a group.
    pub(super) fn spread(&self, row: usize, column: usize) -> Vec<Row> {
        let width = self.modulus.format.width;
        let group = self.group(row, column / LANES);
        let limbs: Vec<u64> = lane(width, group, column % LANES).collect();
        spread(width, &limbs)
    }

    /// The table that holds at (`row`, `column`) what `source` says: another table's row and
    /// column.
    pub(super) fn gather<'a>(
        modulus: &Arc<PowerModulus>,
        rows: usize,
        columns: usize,
        source: impl Fn(usize, usize) -> (&'a Residues, usize, usize),
    ) -> Residues {
        let mut table = Residues::ones(modulus, rows, columns);
        let (size, per_row) = (modulus.rows(), columns.div_ceil(LANES));
        for (at, group) in table.data.chunks_mut(size).enumerate() {
            let (row, first) = (at / per_row, at % per_row * LANES);
            for lane in 0..(columns - first).min(LANES) {
                let (from, source_row, source_column) = source(row, first + lane);
                let rows = from.group(source_row, source_column / LANES);
                copy_lane(modulus.format.width, group, lane, rows, source_column % LANES);
            }
        }
        table
    }

    /// The table with rows and columns exchanged.
    pub fn transposed(&self) -> Residues {
        Residues::gather(&self.modulus, self.columns, self.rows, |row, column| (self, column, row))
    }

    /// The same elements, row after row, in another shape.
    ///
    /// # Panics
    /// If the shape holds another number of elements.
    pub fn reshaped(&self, rows: usize, columns: usize) -> Residues {
        assert_eq!(rows * columns, self.rows * self.columns, "elements of {rows} x {columns}");
        Residues::gather(&self.modulus, rows, columns, |row, column| {
            let at = row * columns + column;
            (self, at / self.columns, at % self.columns)
        })
    }

    /// Whether a row leaves lanes empty that elements of other rows could fill.
    pub(super) fn wastes_lanes(rows: usize, columns: usize) -> bool {
        rows > 1 && !columns.is_multiple_of(LANES)
    }

    /// The columns in `range`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn columns_in(&self, range: Range<usize>) -> Residues {
        assert!(range.start <= range.end && range.end <= self.columns, "{range:?} of the columns");
        Residues::gather(&self.modulus, self.rows, range.len(), |row, column| {
            (self, row, range.start + column)
        })
    }

    /// The rows in `range`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn rows_in(&self, range: Range<usize>) -> Residues {
        let size = self.groups_a_row() * self.modulus.rows();
        let data = self.data[range.start * size..range.end * size].to_vec();
        Residues::from_groups(&self.modulus, range.len(), self.columns, data)
    }

    /// Tables of equally many rows, side by side.
    ///
    /// # Panics
    /// If there are none, or they differ in rows or modulus.
    pub fn beside(tables: &[&Residues]) -> Residues {
        let first = tables[0];
        let mut places = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            assert!(table.rows == first.rows && table.modulus.same(&first.modulus));
            places.extend((0..table.columns).map(|column| (index, column)));
        }
        Residues::gather(&first.modulus, first.rows, places.len(), |row, column| {
            let (index, column) = places[column];
            (tables[index], row, column)
        })
    }
}

/// A group that was multiplied by one, and room to bring its digits below `n`. Wiped on drop.
struct Digits {
    group: Vec<Row>,
    limbs: Zeroizing<Vec<u64>>,
    value: Zeroizing<Vec<u64>>,
    spare: Zeroizing<Vec<u64>>,
}

impl Drop for Digits {
    fn drop(&mut self) {
        wipe(&mut self.group);
    }
}

impl Digits {
    fn new(modulus: &PowerModulus) -> Self {
        let words = || Zeroizing::new(vec![0; modulus.words() + 1]);
        Digits {
            group: vec![Row::default(); modulus.rows()],
            limbs: Zeroizing::new(vec![0; modulus.rows()]),
            value: words(),
            spare: words(),
        }
    }

    /// The digits of the first residues, as many as there is room for.
    fn write(&mut self, modulus: &PowerModulus, out: &mut [u64]) {
        let words = modulus.words();
        for (at, element) in out.chunks_mut(modulus.element_words()).enumerate() {
            let stored = lane(modulus.format.width, &self.group, at);
            self.limbs.iter_mut().zip(stored).for_each(|(limb, stored)| *limb = stored);
            let digits = self.limbs.chunks(modulus.reduction.limbs);
            let mut carry = 0i64;
            for (digit, limbs) in element.chunks_mut(words).zip(digits) {
                to_words(&modulus.format, limbs, &mut self.value);
                add_signed(&mut self.value, carry);
                carry = settle(&mut self.value, modulus.modulus(), &mut self.spare);
                digit.copy_from_slice(&self.value[..words]);
            }
        }
    }
}

/// Adds -1, 0 or 1 to a two's complement number.
fn add_signed(value: &mut [u64], small: i64) {
    let (sign, mut carry) = ((small >> 63) as u64, 0);
    for (at, word) in value.iter_mut().enumerate() {
        let addend = if at == 0 { small as u64 } else { sign };
        let sum = u128::from(*word) + u128::from(addend) + u128::from(carry);
        *word = sum as u64;
        carry = (sum >> 64) as u64;
    }
}
