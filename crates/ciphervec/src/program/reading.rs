//! Reading: the numbers of an input enter; those that stand in its registers leave, themselves or
//! counts of them. Key holder encodes; both sides know how.

use super::numbers::{Numbers, elements, range, within};
use crate::error::Result;
use zeroize::Zeroizing;

/// Most indices that are told apart.
const MAX_COUNT: usize = 1 << 20;
/// Most numbers of a view.
const MAX_READ: u64 = 1 << 26;

/// What of an input's numbers stands in a view of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// The numbers.
    #[default]
    Numbers,
    /// How often each of 0 … count − 1 is among them, which makes looking up a public table a
    /// product with it. The input, of shape (outer, terms, inner) in row-major order, becomes counts
    /// of shape (outer, inner, count) of `terms` numbers each; of single ones if `terms` is 1.
    Counts {
        /// How many integers there are.
        count: u32,
        /// How many numbers are counted together.
        terms: u32,
        /// How far they are apart.
        inner: u32,
    },
}

impl Reading {
    /// How many numbers stand in the view, of an input of this many.
    pub(super) fn length(self, elements: u64) -> u64 {
        match self {
            Reading::Numbers => elements,
            Reading::Counts { count, terms, .. } => {
                (elements / u64::from(terms)).saturating_mul(u64::from(count))
            }
        }
    }

    /// A bound on their absolute value.
    pub(super) fn magnitude(self, numbers: &Numbers) -> f64 {
        match self {
            Reading::Numbers => numbers.magnitude(),
            Reading::Counts { terms, .. } => f64::from(terms),
        }
    }

    /// The numbers that stand in the view, for those of the input, which are as it was declared.
    pub(super) fn of(self, values: &[f64]) -> Zeroizing<Vec<f64>> {
        let Reading::Counts { count, terms, inner } = self else {
            return Zeroizing::new(values.to_vec());
        };
        let (count, terms, inner) = (count as usize, terms as usize, inner as usize);
        let mut found = Zeroizing::new(vec![0.0; values.len() / terms * count]);
        for (index, &value) in values.iter().enumerate() {
            let group = index / (terms * inner) * inner + index % inner;
            found[group * count + value as usize] += 1.0;
        }
        found
    }

    /// Refuses counts of numbers that are no integers from 0 to below their number, and of groups
    /// that an input of this shape does not have.
    pub(super) fn check(self, shape: &[u32], numbers: &Numbers) -> Result<()> {
        let Reading::Counts { count, terms, inner } = self else { return Ok(()) };
        within("the integers that are counted", 1..=MAX_COUNT, count as usize)?;
        let Numbers { step, low, high } = *numbers;
        if step != 1.0 || low < 0.0 || high >= f64::from(count) {
            let expected = format!("integers from 0 to {}", count - 1);
            return Err(range(
                "what is counted",
                expected,
                format!("step {step}, {low} to {high}"),
            ));
        }
        let elements = elements(shape).unwrap_or(0);
        let group = u64::from(terms) * u64::from(inner);
        if group == 0 || !elements.is_multiple_of(group) {
            let expected = format!("groups that divide {elements} numbers");
            return Err(range("counts", expected, format!("{terms} numbers {inner} apart")));
        }
        let length = self.length(elements);
        if length > MAX_READ {
            return Err(range("counts", format!("at most {MAX_READ} of them"), length));
        }
        Ok(())
    }
}
