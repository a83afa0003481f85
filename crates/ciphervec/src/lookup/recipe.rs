//! A strategy made concrete for a table's shape. A shape enters; parameters, keys, and how an index is written leave. Both
//! sides, public numbers only.

use super::basis::{Basis, Kind};
use super::parameters;
use super::strategy::Strategy;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Complex, KeyPlan, Params};
use std::sync::Arc;

/// Most bits of precision.
const MAX_PRECISION: u32 = 24;
/// Columns up to which products of digits are folded into the table: above, all of them are expanded once for all columns.
const FOLD_COLUMNS: usize = 128;
/// Columns up to which, and rows from which on, an index has three digits.
const NEST_COLUMNS: usize = 2;
const NEST_ROWS: usize = 64;

/// What is looked up, and how well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// p: indices, one reserved for padding and unknown tokens included.
    pub rows: usize,
    /// d: numbers of a row.
    pub columns: usize,
    /// b: the root-mean-square error of what is looked up is 2^-b of its root mean square.
    pub precision_bits: u32,
    /// Levels that results have left for more work; 0 for results that are decrypted next, or rotated and summed.
    pub levels: usize,
}

/// A strategy, made concrete for a shape.
#[derive(Clone, Debug)]
pub struct Recipe {
    strategy: Strategy,
    shape: Shape,
    bases: Vec<Basis>,
    folded: bool,
    wide: bool,
    params: Arc<Params>,
}

impl Recipe {
    /// The recipe with the smallest secure ring that reaches the precision.
    ///
    /// # Errors
    /// [`Error::Range`] for sizes out of bounds or a precision that no ring reaches; [`Error::Choice`] for
    /// [`Strategy::Histogram`], which does not look up index by index.
    pub fn new(strategy: Strategy, shape: Shape) -> Result<Self> {
        let (bases, folded) = design(strategy, &shape)?;
        let design = |wide| Design { shape, bases: &bases, folded, wide };
        // One prime for the sums where its room is enough, two where precision asks for them.
        let (params, wide) = match parameters::choose(&design(false)) {
            Ok(params) => (params, false),
            Err(_) => (parameters::choose(&design(true))?, true),
        };
        Ok(Recipe { strategy, shape, bases, folded, wide, params })
    }

    /// The recipe over a small ring that nothing vouches for, for tests.
    ///
    /// # Errors
    /// As [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_new(strategy: Strategy, shape: Shape, log_degree: u32) -> Result<Self> {
        let (bases, folded) = design(strategy, &shape)?;
        let design = Design { shape, bases: &bases, folded, wide: false };
        let params = parameters::insecure(&design, log_degree)?;
        Ok(Recipe { strategy, shape, bases, folded, wide: false, params })
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// What it was made for.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The parameters: the ring, and all the levels that the server needs.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The keys that [`super::embed`] uses.
    pub fn key_plan(&self) -> KeyPlan {
        let design = self.design();
        let mut plan = KeyPlan::new();
        if design.relinearises() {
            plan = plan.relinearise();
        }
        if design.conjugates() {
            plan = plan.conjugate();
        }
        plan
    }

    /// Ciphertexts that a batch of indices takes: numbers that an index is written as.
    pub fn entries(&self) -> usize {
        self.bases.iter().map(Basis::entries).sum()
    }

    /// Writes an index: a slot of each of the ciphertexts.
    ///
    /// # Errors
    /// [`Error::Range`] for an index that is not below the number of rows, or another number of entries.
    pub fn write(&self, index: usize, out: &mut [Complex]) -> Result<()> {
        let range = |what, expected, actual: usize| Error::Range {
            what,
            expected,
            actual: actual.to_string(),
        };
        if index >= self.shape.rows {
            return Err(range("an index", format!("below {}", self.shape.rows), index));
        }
        if out.len() != self.entries() {
            let expected = self.entries().to_string();
            return Err(range("the entries of an index", expected, out.len()));
        }
        let mut rest = out;
        for (basis, digit) in self.bases.iter().zip(self.digits(index)) {
            let (entries, after) = rest.split_at_mut(basis.entries());
            basis.write(digit, entries);
            rest = after;
        }
        Ok(())
    }

    /// Slots of a ciphertext: indices that are looked up at once.
    pub fn batch(&self) -> usize {
        self.params.max_slots()
    }

    /// Levels between a fresh query and its result.
    pub fn depth(&self) -> usize {
        self.params.max_level() - self.shape.levels
    }

    /// Whether the digits' functions meet the table before each other.
    pub fn folded(&self) -> bool {
        self.folded
    }

    pub(super) fn bases(&self) -> &[Basis] {
        &self.bases
    }

    pub(super) fn design(&self) -> Design<'_> {
        let Recipe { shape, bases, folded, wide, .. } = self;
        Design { shape: *shape, bases, folded: *folded, wide: *wide }
    }

    /// The digits of an index, the most significant first.
    pub(super) fn digits(&self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut digits: Vec<usize> = Vec::with_capacity(self.bases.len());
        for basis in self.bases.iter().rev() {
            digits.push(rest % basis.size());
            rest /= basis.size();
        }
        digits.reverse();
        digits
    }
}

/// What decides on parameters.
pub(super) struct Design<'a> {
    pub shape: Shape,
    pub bases: &'a [Basis],
    pub folded: bool,
    pub wide: bool,
}

impl Design<'_> {
    /// Whether functions of digits are multiplied.
    pub fn multiplies(&self) -> bool {
        self.bases.len() > 1
    }

    /// The level of sums with weights. At 0 they are the last thing that is done.
    pub fn sum_level(&self) -> usize {
        match self.shape.levels {
            0 => usize::from(self.wide),
            levels => levels + 1,
        }
    }

    /// The levels of each digit's functions: those of the last two are multiplied first.
    pub fn levels(&self) -> Vec<usize> {
        let sums = self.sum_level();
        match self.bases.len() {
            1 => vec![sums],
            2 => vec![sums + 1; 2],
            _ => vec![sums + 1, sums + 2, sums + 2],
        }
    }

    /// The level of a fresh query.
    pub fn top_level(&self) -> usize {
        let tops = self.bases.iter().zip(self.levels()).map(|(basis, level)| level + basis.depth());
        tops.max().unwrap_or(0)
    }

    /// Levels and numbers of key switches, for one table.
    pub fn switches(&self) -> Vec<(usize, usize)> {
        let top = self.top_level();
        let levels = self.levels();
        let each = self.bases.iter().zip(&levels);
        let mut switches: Vec<(usize, usize)> =
            each.flat_map(|(basis, level)| basis.switches(top, *level)).collect();
        match (self.bases, levels.as_slice()) {
            ([high, low], [level, _]) if !self.folded => {
                switches.push((*level, high.len() * low.len()));
            }
            ([outer, ..], [_, level, _]) => {
                switches.push((*level, (outer.len() + 1) * self.shape.columns));
            }
            _ => {}
        }
        switches
    }

    pub fn relinearises(&self) -> bool {
        let given = self.bases.iter().all(|basis| basis.kind() == Kind::Given);
        !given || (self.multiplies() && !(self.folded && self.shape.levels == 0))
    }

    pub fn conjugates(&self) -> bool {
        self.bases.iter().any(|basis| basis.kind() == Kind::Powers)
    }
}

fn design(strategy: Strategy, shape: &Shape) -> Result<(Vec<Basis>, bool)> {
    let within = |what, range: core::ops::RangeInclusive<usize>, value: usize| {
        if range.contains(&value) {
            return Ok(());
        }
        let expected = format!("{} to {}", range.start(), range.end());
        Err(Error::Range { what, expected, actual: value.to_string() })
    };
    within("the rows of a table", 1..=1 << 16, shape.rows)?;
    within("the columns of a table", 1..=1 << 16, shape.columns)?;
    within("the bits of precision", 1..=MAX_PRECISION as usize, shape.precision_bits as usize)?;
    within("the levels left", 0..=32, shape.levels)?;
    // Digits of the size that leaves the fewest unused pairs; the low digit is the larger one.
    let low = (shape.rows as f64).sqrt().ceil() as usize;
    let high = shape.rows.div_ceil(low);
    let pair = |kind| vec![Basis::new(kind, high), Basis::new(kind, low)];
    let bases = match strategy {
        Strategy::OneHot => vec![Basis::new(Kind::Given, shape.rows)],
        Strategy::OneHotDigits => pair(Kind::Given),
        Strategy::Indicator => vec![Basis::new(Kind::Indicator, shape.rows)],
        Strategy::Ive => vec![Basis::new(Kind::Powers, shape.rows)],
        Strategy::IveDigits => {
            let sizes = digits(shape);
            sizes.into_iter().map(|size| Basis::new(Kind::Chebyshev, size)).collect()
        }
        Strategy::Histogram => {
            let expected = "one that looks up index by index";
            return Err(Error::choice("strategy", expected, strategy.as_str()));
        }
    };
    let folded = bases.len() == 3 || (bases.len() == 2 && shape.columns <= FOLD_COLUMNS);
    Ok((bases, folded))
}

/// The sizes of digits, the most significant first, that take the fewest key switches: two as close as can be, or three where so
/// few columns are asked for that a sum around their forms costs less than it saves.
fn digits(shape: &Shape) -> Vec<usize> {
    let low = (shape.rows as f64).sqrt().ceil() as usize;
    let high = shape.rows.div_ceil(low);
    if shape.columns > NEST_COLUMNS || shape.rows < NEST_ROWS {
        return vec![high, low];
    }
    let depth = |size: usize| super::basis::ceil_log2(size - 1);
    let most = depth(low);
    let mut best = (high + low, vec![high, low]);
    for low in 3..=low {
        for high in 3..=low {
            let outer = shape.rows.div_ceil(high * low).max(2);
            // Two levels for the products of the last two digits, one for those of the first.
            if outer <= high && depth(low) < most && depth(outer) <= most {
                let switches = outer * (1 + shape.columns) + high + low - 2;
                if switches < best.0 {
                    best = (switches, vec![outer, high, low]);
                }
            }
        }
    }
    best.1
}
