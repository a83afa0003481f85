//! Residues and small signed weights enter, the product of the powers leaves: buckets of equal digits, nothing raised
//! alone.
//!
//! Weights are written in signed digits of `w` bits. For every digit position the residues whose digit is `v` are
//! multiplied into bucket `v`, those with digit `-v` into another, and `prod_v bucket_v^v` takes two multiplications a
//! bucket by running products. What the negative digits gathered is inverted once, at the end.

use rayon::prelude::*;

use super::LANES;
use super::along::{self, product_of_powers};
use super::group::copy_lane;
use super::residues::Residues;
use super::worker::Worker;
use crate::backend::products::Row;
use crate::error::ArithError;

/// Widest digit that is considered.
const MAX_WINDOW: u32 = 12;

/// Signed digits of all weights, least significant first: `digits[j][i]` in `[-2^(w-1), 2^(w-1)]`.
pub(super) struct Recoded {
    pub window: u32,
    pub digits: Vec<Vec<i16>>,
    /// Multiplications of eight lanes that their product is expected to take.
    cost: usize,
}

impl Recoded {
    /// Digits of the width for which `cost` multiplications are fewest, of (digits, window).
    fn new(weights: &[i64], cost: impl Fn(usize, u32) -> usize) -> Recoded {
        let largest = weights.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0);
        let of = |window| (cost(positions(largest, window), window), window);
        let (cost, window) = (1..=MAX_WINDOW).map(of).min().unwrap_or((0, 1));
        let mut digits = vec![vec![0i16; weights.len()]; positions(largest, window)];
        for (index, &weight) in weights.iter().enumerate() {
            let (sign, mut rest) = (weight.signum() as i16, u128::from(weight.unsigned_abs()));
            for digits in &mut digits {
                let digit = signed_digit(&mut rest, window);
                digits[index] = sign * digit;
            }
        }
        Recoded { window, digits, cost }
    }

    /// For columns that lie eight beside each other.
    fn beside(weights: &[i64]) -> Recoded {
        Recoded::new(weights, |digits, window| {
            digits * (weights.len() + (4 << (window - 1))) + 2 * digits * window as usize
        })
    }

    /// For a column whose work is shared among the lanes.
    fn alone(weights: &[i64]) -> Recoded {
        Recoded::new(weights, |digits, window| along::cost(weights.len(), digits, window))
    }

    pub fn buckets(&self) -> usize {
        1 << (self.window - 1)
    }
}

/// Takes the lowest digit off `rest`.
fn signed_digit(rest: &mut u128, window: u32) -> i16 {
    let low = (*rest & ((1 << window) - 1)) as i16;
    let digit = if low > 1 << (window - 1) { low - (1 << window) } else { low };
    *rest = (*rest >> window) + u128::from(digit < 0);
    digit
}

/// Digits that `largest` and anything below it need: `c` digits reach `2^(w-1) (1 + 2^w + ... + 2^(w(c-1)))`.
fn positions(largest: u64, window: u32) -> usize {
    let (mut reach, mut count) = (0u128, 0);
    while reach < u128::from(largest) {
        reach = (reach << window) + (1 << (window - 1));
        count += 1;
    }
    count
}

impl Residues {
    /// For every column the product over the rows of element `i` to the power `weights[i]`: one row. The time depends
    /// on the weights and, when some are negative, on the elements.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there is one weight a row; [`ArithError::NotInvertible`] when a column's negative
    /// part has no inverse.
    pub fn multi_exp_vartime(&self, weights: &[i64]) -> Result<Residues, ArithError> {
        if weights.len() != self.rows() {
            return Err(ArithError::Length { expected: self.rows(), actual: weights.len() });
        }
        let (beside, alone) = (Recoded::beside(weights), Recoded::alone(weights));
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
        let mut worker = Worker::new(modulus, self.lanes(index));
        let mut sums = [modulus.one.clone(), modulus.one.clone()];
        for digits in recoded.digits.iter().rev() {
            raise(&mut worker, &mut sums, &modulus.one, recoded.window);
            let mut buckets = Buckets::new(recoded.buckets());
            for (row, &digit) in digits.iter().enumerate() {
                buckets.multiply(&mut worker, digit, self.group(row, index));
            }
            buckets.collect(&mut worker, &mut sums);
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

    /// For a single row the product over its columns of element `i` to the power `weights[i]`: one element.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there is one row, and one weight a column; [`ArithError::NotInvertible`].
    pub fn multi_exp_along_vartime(&self, weights: &[i64]) -> Result<Residues, ArithError> {
        if self.rows() != 1 || weights.len() != self.columns() {
            let expected = if self.rows() == 1 { self.columns() } else { 1 };
            let actual = if self.rows() == 1 { weights.len() } else { self.rows() };
            return Err(ArithError::Length { expected, actual });
        }
        let recoded = Recoded::alone(weights);
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
fn raise(worker: &mut Worker<'_>, sums: &mut [Vec<Row>; 2], one: &[Row], window: u32) {
    for sum in sums.iter_mut().filter(|sum| sum.iter().zip(one).any(|(a, b)| a.0 != b.0)) {
        (0..window).for_each(|_| worker.square(sum));
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
    fn multiply(&mut self, worker: &mut Worker<'_>, digit: i16, group: &[Row]) {
        let Some(bucket) = usize::from(digit.unsigned_abs()).checked_sub(1) else {
            return;
        };
        match &mut self.products[usize::from(digit < 0)][bucket] {
            Some(product) => worker.mul(product, group),
            empty => *empty = Some(group.to_vec()),
        }
    }

    /// Multiplies `prod_v bucket_v^v` into the sums.
    fn collect(self, worker: &mut Worker<'_>, sums: &mut [Vec<Row>; 2]) {
        for (sum, buckets) in sums.iter_mut().zip(self.products) {
            let mut running: Option<Vec<Row>> = None;
            for bucket in buckets.into_iter().rev() {
                match (&mut running, bucket) {
                    (Some(running), Some(bucket)) => worker.mul(running, &bucket),
                    (None, bucket) => running = bucket,
                    (Some(_), None) => {}
                }
                if let Some(running) = &running {
                    worker.mul(sum, running);
                }
            }
        }
    }
}
