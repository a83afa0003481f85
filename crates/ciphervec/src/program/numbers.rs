//! How fine and how wide the numbers of an array are, checked. Public numbers only.

use crate::error::{Error, Result};

/// What numbers an array may have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Numbers {
    /// All are multiples of it: 1 for integers; 0 for any real number.
    pub step: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Numbers {
    /// The largest absolute value.
    pub fn magnitude(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    pub(super) fn check(&self) -> Result<()> {
        let finite = self.low.is_finite() && self.high.is_finite() && self.low <= self.high;
        if finite && self.step.is_finite() && self.step >= 0.0 {
            return Ok(());
        }
        Err(Error::Range {
            what: "the numbers of an array",
            expected: "a step of 0 or more and a finite interval".into(),
            actual: format!("step {}, {} to {}", self.step, self.low, self.high),
        })
    }
}

/// How many elements an array of a shape has.
pub(super) fn elements(shape: &[u32]) -> Option<u64> {
    shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(u64::from(extent)))
}

pub(super) fn range(what: &'static str, expected: impl ToString, actual: impl ToString) -> Error {
    Error::Range { what, expected: expected.to_string(), actual: actual.to_string() }
}

pub(super) fn within(
    what: &'static str,
    allowed: core::ops::RangeInclusive<usize>,
    actual: usize,
) -> Result<()> {
    if allowed.contains(&actual) {
        return Ok(());
    }
    Err(range(what, format!("{} to {}", allowed.start(), allowed.end()), actual))
}
