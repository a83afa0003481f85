//! Products of powers of residues with small signed weights, by buckets: nothing is raised alone.
//! For the server.
//!
//! Weights are written in signed digits of `w` bits. For every digit position the residues whose
//! digit is `v` are multiplied into bucket `v`, those with digit `-v` into another, and
//! `prod_v bucket_v^v` takes two multiplications a bucket by running products. What the negative
//! digits gathered is inverted once, at the end.

use rayon::prelude::*;

use super::group::{LANES, copy_lane};
use super::recode::Recoded;
use super::residues::Residues;
use super::scratch::Scratch;
use super::single_column::{self, product_of_powers};
use crate::backend::operands::montgomery::Row;
use crate::error::ArithError;

/// Digits for columns that lie eight beside each other.
fn recode_beside(weights: &[i64]) -> Recoded {
    Recoded::new(weights, |digits, window| {
        digits * (weights.len() + (4 << (window - 1))) + 2 * digits * window as usize
    })
}

impl Residues {
    /// For every column the product over the rows of element `i` to the power `weights[i]`: one
    /// row. The time depends on the weights and, when some are negative, on the elements.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there is one weight a row; [`ArithError::NotInvertible`] when
    /// a column's negative part has no inverse.
    pub fn multi_exp_vartime(&self, weights: &[i64]) -> Result<Residues, ArithError> {
        if weights.len() != self.rows() {
            return Err(ArithError::Length { expected: self.rows(), actual: weights.len() });
        }
        let (beside, alone) = (recode_beside(weights), single_column::recode(weights));
        let groups: Vec<[Vec<Row>; 2]> = (0..self.groups_a_row())
            .into_par_iter()
            .map(|index| {
                if self.lanes(index) * alone.cost < beside.cost {
                    self.columns_alone(index, &alone)
                } else {
                    self.columns_beside(index, &beside)
                }
            })
            .collect();
        self.quotient(self.columns(), split(groups))
    }

    /// The positive and the negative part of a group's columns, all columns at once.
    fn columns_beside(&self, index: usize, recoded: &Recoded) -> [Vec<Row>; 2] {
        let modulus = self.modulus();
        let mut scratch = Scratch::new(modulus, self.lanes(index));
        let mut sums = [modulus.one.clone(), modulus.one.clone()];
        for digits in recoded.digits.iter().rev() {
            raise(&mut scratch, &mut sums, &modulus.one, recoded.window);
            let mut buckets = Buckets::new(recoded.buckets());
            for (row, &digit) in digits.iter().enumerate() {
                buckets.multiply(&mut scratch, digit, self.group(row, index));
            }
            buckets.collect(&mut scratch, &mut sums);
        }
        sums
    }

    /// The same, one column after the other.
    fn columns_alone(&self, index: usize, recoded: &Recoded) -> [Vec<Row>; 2] {
        let modulus = self.modulus();
        let mut sums = [modulus.one.clone(), modulus.one.clone()];
        for column in 0..self.lanes(index) {
            let parts = product_of_powers(modulus, recoded, |row| (self.group(row, index), column));
            for (sum, part) in sums.iter_mut().zip(parts) {
                copy_lane(modulus.format.width, sum, column, &part, 0);
            }
        }
        sums
    }

    /// For a single row the product over its columns of element `i` to the power `weights[i]`: one
    /// element.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there is one row, and one weight a column;
    /// [`ArithError::NotInvertible`].
    pub fn multi_exp_along_vartime(&self, weights: &[i64]) -> Result<Residues, ArithError> {
        if self.rows() != 1 || weights.len() != self.columns() {
            let expected = if self.rows() == 1 { self.columns() } else { 1 };
            let actual = if self.rows() == 1 { weights.len() } else { self.rows() };
            return Err(ArithError::Length { expected, actual });
        }
        let recoded = single_column::recode(weights);
        let parts = product_of_powers(self.modulus(), &recoded, |index| {
            (self.group(0, index / LANES), index % LANES)
        });
        self.quotient(1, parts)
    }

    /// The row that positive digits gave over the one that negative digits gave.
    fn quotient(&self, columns: usize, parts: [Vec<Row>; 2]) -> Result<Residues, ArithError> {
        let [mut product, negative] =
            parts.map(|part| Residues::from_groups(self.modulus(), 1, columns, part));
        if !negative.is_one() {
            product.mul_assign(&negative.inverse_vartime()?);
        }
        Ok(product)
    }
}

/// Both sums to the power `2^window`, unless they are still one.
fn raise(scratch: &mut Scratch<'_>, sums: &mut [Vec<Row>; 2], one: &[Row], window: u32) {
    for sum in sums.iter_mut().filter(|sum| sum.iter().zip(one).any(|(a, b)| a.0 != b.0)) {
        (0..window).for_each(|_| scratch.square(sum));
    }
}

/// The groups' positive parts, one after the other, and their negative parts.
fn split(groups: Vec<[Vec<Row>; 2]>) -> [Vec<Row>; 2] {
    let (mut positive, mut negative) = (Vec::new(), Vec::new());
    for [p, n] in groups {
        positive.extend(p);
        negative.extend(n);
    }
    [positive, negative]
}

/// Products of the groups that share a digit; positive digits and negative ones.
struct Buckets {
    products: [Vec<Option<Vec<Row>>>; 2],
}

impl Buckets {
    fn new(count: usize) -> Self {
        Buckets { products: [vec![None; count], vec![None; count]] }
    }

    /// Multiplies `group` into the bucket of `digit`; the first in a bucket costs a copy.
    fn multiply(&mut self, scratch: &mut Scratch<'_>, digit: i16, group: &[Row]) {
        let Some(bucket) = usize::from(digit.unsigned_abs()).checked_sub(1) else {
            return;
        };
        match &mut self.products[usize::from(digit < 0)][bucket] {
            Some(product) => scratch.mul(product, group),
            empty => *empty = Some(group.to_vec()),
        }
    }

    /// Multiplies `prod_v bucket_v^v` into the sums.
    fn collect(self, scratch: &mut Scratch<'_>, sums: &mut [Vec<Row>; 2]) {
        for (sum, buckets) in sums.iter_mut().zip(self.products) {
            let mut running: Option<Vec<Row>> = None;
            for bucket in buckets.into_iter().rev() {
                match (&mut running, bucket) {
                    (Some(running), Some(bucket)) => scratch.mul(running, &bucket),
                    (None, bucket) => running = bucket,
                    (Some(_), None) => {}
                }
                if let Some(running) = &running {
                    scratch.mul(sum, running);
                }
            }
        }
    }
}
