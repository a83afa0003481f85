//! Products of powers of residues with public exponents of many words, interleaved: all of them
//! share one chain of squarings.
//!
//! Exponents are written in signed digits of `w` bits, least significant first, where a digit
//! starts at the first bit that is set in some lane: runs of zeros, and of the ones that a sign
//! drags along, cost nothing. Every base has a table of small powers and, where a digit is
//! negative, one of its inverse's.

use rayon::prelude::*;

use super::digits::window;
use super::group::{LANES, copy_lane};
use super::residues::Residues;
use super::scratch::Scratch;
use crate::backend::operands::montgomery::Row;
use crate::error::ArithError;

/// Widest digit that is considered.
const MAX_WINDOW: u32 = 8;
/// Bases whose tables are in memory at once; every batch has squarings of its own.
const BATCH: usize = 64;

/// The power of a row that is multiplied in at a bit of the exponent, lane by lane.
struct Step {
    position: usize,
    row: usize,
    digits: [i16; LANES],
}

/// What is multiplied in when, from the highest bit down.
struct Schedule {
    window: u32,
    steps: Vec<Step>,
    /// Whether any digit is negative.
    signed: bool,
}

/// Exponents of equally many words and their signs.
#[derive(Clone, Copy)]
struct Exponents<'a> {
    words: &'a [u64],
    width: usize,
    negative: &'a [bool],
}

impl<'a> Exponents<'a> {
    fn new(
        words: &'a [u64],
        negative: &'a [bool],
        expected: usize,
    ) -> Result<Exponents<'a>, ArithError> {
        if negative.len() != expected {
            return Err(ArithError::Length { expected, actual: negative.len() });
        }
        let width = words.len().checked_div(expected).unwrap_or(0);
        if words.len() != width * expected {
            return Err(ArithError::Length { expected: width * expected, actual: words.len() });
        }
        Ok(Exponents { words, width, negative })
    }

    /// An exponent, least significant word first, and whether it is negative.
    fn get(&self, index: usize) -> (&'a [u64], bool) {
        (&self.words[index * self.width..(index + 1) * self.width], self.negative[index])
    }
}

impl Schedule {
    /// The schedule that takes fewest multiplications, for rows that have one exponent or one a
    /// lane.
    fn new(rows: &[Vec<(&[u64], bool)>]) -> Schedule {
        let schedule = |window: u32| {
            let mut steps = Vec::new();
            for (row, exponents) in rows.iter().enumerate() {
                recode(exponents, row, window, &mut steps);
            }
            let signed = steps.iter().any(|step| step.digits.iter().any(|&digit| digit < 0));
            Schedule { window, steps, signed }
        };
        let tables = |window: u32| rows.len() << window;
        let mut schedule = (2..=MAX_WINDOW)
            .map(schedule)
            .min_by_key(|schedule| schedule.steps.len() + tables(schedule.window))
            .unwrap_or(Schedule { window: 2, steps: Vec::new(), signed: false });
        schedule.steps.sort_by_key(|step| core::cmp::Reverse(step.position));
        schedule
    }

    /// The product over the rows of `bases`, from `first` on, lane by lane.
    fn run(
        &self,
        scratch: &mut Scratch<'_>,
        bases: &Residues,
        inverses: Option<&Residues>,
        (first, index): (usize, usize),
    ) -> Vec<Row> {
        let modulus = bases.modulus();
        let (size, width) = (modulus.rows(), modulus.format.width);
        // Powers 0 … 2^(w − 1) of every base, then the same of its inverse.
        let entries = (1 << (self.window - 1)) + 1;
        let rows = self.steps.iter().map(|step| step.row + 1).max().unwrap_or(0);
        let mut tables = Vec::with_capacity(rows * 2 * entries * size);
        for row in first..first + rows {
            for base in [Some(bases), inverses].into_iter().flatten() {
                let base = base.group(row, index);
                tables.extend_from_slice(&modulus.one);
                let mut power = base.to_vec();
                for _ in 2..entries {
                    tables.extend_from_slice(&power);
                    scratch.mul(&mut power, base);
                }
                tables.extend_from_slice(&power);
            }
        }
        let signs = 1 + usize::from(inverses.is_some());
        let entry = |row: usize, digit: i16| {
            let at = row * signs + usize::from(digit < 0);
            let at = (at * entries + usize::from(digit.unsigned_abs())) * size;
            &tables[at..at + size]
        };
        let mut factor = modulus.one.clone();
        let mut product: Option<Vec<Row>> = None;
        let mut reached = 0;
        for Step { position, row, digits } in &self.steps {
            let factor = if digits.iter().all(|digit| *digit == digits[0]) {
                entry(*row, digits[0])
            } else {
                for (lane, &digit) in digits.iter().enumerate() {
                    copy_lane(width, &mut factor, lane, entry(*row, digit), lane);
                }
                &factor
            };
            match &mut product {
                Some(product) => {
                    (*position..reached).for_each(|_| scratch.square(product));
                    scratch.mul(product, factor);
                }
                None => product = Some(factor.to_vec()),
            }
            reached = *position;
        }
        let mut product = product.unwrap_or_else(|| modulus.one.clone());
        (0..reached).for_each(|_| scratch.square(&mut product));
        product
    }
}

/// The digits of a row's exponents, one for all lanes or one each, at places that they share.
fn recode(exponents: &[(&[u64], bool)], row: usize, bits: u32, steps: &mut Vec<Step>) {
    let end = exponents.iter().map(|(exponent, _)| 64 * exponent.len()).max().unwrap_or(0);
    let mut carries = [0u64; LANES];
    let mut position = 0;
    while position < end || carries.contains(&1) {
        let lanes = || exponents.iter().zip(&carries);
        if lanes().all(|((exponent, _), carry)| window(exponent, position, 1) == *carry) {
            position += 1;
            continue;
        }
        let mut digits = [0i16; LANES];
        for (lane, (exponent, negative)) in exponents.iter().enumerate() {
            let low = (window(exponent, position, bits) + carries[lane]) as i16;
            carries[lane] = u64::from(low > 1 << (bits - 1));
            let digit = low - ((carries[lane] as i16) << bits);
            digits[lane] = if *negative { -digit } else { digit };
        }
        if exponents.len() == 1 {
            digits = [digits[0]; LANES];
        }
        steps.push(Step { position, row, digits });
        position += bits as usize;
    }
}

impl Residues {
    /// For every column the product over the rows of element `i` to the power of exponent `i`: one
    /// row. `exponents` holds the absolute values, equally many words each, least significant
    /// first. The time depends on the exponents and, when some digit of theirs is negative, on the
    /// elements.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there are one exponent and one sign a row;
    /// [`ArithError::NotInvertible`] when an inverse is wanted and an element has none, even if its
    /// own exponent is positive.
    pub fn multi_pow_vartime(
        &self,
        exponents: &[u64],
        negative: &[bool],
    ) -> Result<Residues, ArithError> {
        let exponents = Exponents::new(exponents, negative, self.rows())?;
        let rows: Vec<_> = (0..self.rows()).map(|row| vec![exponents.get(row)]).collect();
        self.scheduled(&rows)
    }

    /// For a single row the product over its columns of element `i` to the power of exponent `i`:
    /// one element. Exponents as in [`Self::multi_pow_vartime`].
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there is one row, and one exponent and one sign a column;
    /// [`ArithError::NotInvertible`].
    pub fn multi_pow_along_vartime(
        &self,
        exponents: &[u64],
        negative: &[bool],
    ) -> Result<Residues, ArithError> {
        if self.rows() != 1 {
            return Err(ArithError::Length { expected: 1, actual: self.rows() });
        }
        let exponents = Exponents::new(exponents, negative, self.columns())?;
        // As few lanes as cost no less than fewer: the squarings are the same for any number of
        // bases in a lane.
        let (modulus, lanes) = (self.modulus(), self.modulus().format.width);
        let rows = self.columns().div_ceil(lanes);
        let none = Residues::ones(modulus, 1, 1);
        let folded = Residues::gather(modulus, rows, lanes, |row, lane| {
            let column = row * lanes + lane;
            if column < self.columns() { (self, 0, column) } else { (&none, 0, 0) }
        });
        let zero: (&[u64], bool) = (&[], false);
        let rows: Vec<Vec<_>> = (0..rows)
            .map(|row| {
                let column = |lane| row * lanes + lane;
                (0..lanes)
                    .map(|lane| {
                        if column(lane) < self.columns() {
                            exponents.get(column(lane))
                        } else {
                            zero
                        }
                    })
                    .collect()
            })
            .collect();
        Ok(folded.scheduled(&rows)?.transposed().product())
    }

    /// The product over the rows of every element to the power of its row's exponent, or of its
    /// lane's.
    fn scheduled(&self, exponents: &[Vec<(&[u64], bool)>]) -> Result<Residues, ArithError> {
        let schedules: Vec<Schedule> = exponents.par_chunks(BATCH).map(Schedule::new).collect();
        let inverses = if schedules.iter().any(|schedule| schedule.signed) {
            Some(self.inverse_vartime()?)
        } else {
            None
        };
        let mut out = Residues::ones(self.modulus(), 1, self.columns());
        out.for_each_group(|scratch, _, index, group| {
            for (at, schedule) in schedules.iter().enumerate() {
                let first = at * BATCH;
                let product = schedule.run(scratch, self, inverses.as_ref(), (first, index));
                scratch.mul(group, &product);
            }
        });
        Ok(out)
    }
}
