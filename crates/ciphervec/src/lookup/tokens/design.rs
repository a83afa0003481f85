//! The design of a lookup: digits of an index, their functions and the levels that they take.
//! Public numbers only.
//!
//! # Products of digits, and the last prime
//!
//! **Products of digits.** With u and v the functions of the two digits, out_k = Σ_{a,b} C_{kab}
//! u_a v_b. For few columns it is folded, Σ_a u_a (Σ_b C_{kab} v_b): 4p multiply-adds a column and
//! slot, one relinearisation a column. For many it is expanded, all u_a v_b once: 2p multiply-adds
//! a column, p key switches. One or two columns with p ≥ 64 take three digits.
//!
//! **The last prime.** Sums with weights come last, at level 0, where one prime of 50 bits holds
//! scale, weights and result. The prime of level 1 is 2s − t bits wide, so the last rescale lands
//! on 2^t, t ≈ 28, and weights have some 17 bits. A higher precision takes the sums at level 1;
//! `levels` for more work, one level above.

use super::basis::ive::Parts;
use super::basis::sink::ceil_log2;
use super::basis::{Basis, Kind};
use crate::error::{Error, Result};
use crate::lookup::strategy::Strategy;
use crate::lookup::transport::Transport;

/// Most bits of precision.
const MAX_PRECISION: u32 = 24;
/// Columns up to which products of digits are folded into the table: above, all of them are
/// expanded once for all columns.
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
    /// Levels that results have left for more work; 0 for results that are decrypted next, or
    /// rotated and summed.
    pub levels: usize,
}

/// What decides on parameters.
pub struct Design<'a> {
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

    /// The degree in s of results: products that are not relinearised have 2.
    pub fn degree(&self) -> usize {
        if self.relinearises() || !self.multiplies() { 1 } else { 2 }
    }

    /// Whether powers are conjugated after their sums with weights: where there are fewer columns.
    pub fn parts(&self) -> Parts {
        match self.bases {
            [only] if only.kind() == Kind::Powers && self.shape.columns <= only.size() / 2 => {
                Parts::Deferred
            }
            _ => Parts::Apart,
        }
    }

    pub fn conjugates(&self) -> bool {
        self.bases.iter().any(|basis| basis.kind() == Kind::Powers)
    }
}

pub(super) fn design(
    strategy: Strategy,
    transport: Transport,
    shape: &Shape,
) -> Result<(Vec<Basis>, bool)> {
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
            // Of a root of unity its powers are at hand, and of a cosine Chebyshev polynomials.
            let kind = match transport {
                Transport::Standard => Kind::Chebyshev,
                Transport::Compact => Kind::Powers,
            };
            digits(shape).into_iter().map(|size| Basis::new(kind, size)).collect()
        }
        Strategy::Histogram => {
            let expected = "one that looks up index by index";
            return Err(Error::choice("strategy", expected, strategy.as_str()));
        }
    };
    let folded = bases.len() == 3 || (bases.len() == 2 && shape.columns <= FOLD_COLUMNS);
    Ok((bases, folded))
}

/// The sizes of digits, the most significant first, that take the fewest key switches: two as close
/// as can be, or three where so few columns are asked for that a sum around their forms costs less
/// than it saves.
fn digits(shape: &Shape) -> Vec<usize> {
    let low = (shape.rows as f64).sqrt().ceil() as usize;
    let high = shape.rows.div_ceil(low);
    if shape.columns > NEST_COLUMNS || shape.rows < NEST_ROWS {
        return vec![high, low];
    }
    let depth = |size: usize| ceil_log2(size - 1);
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
