//! What of an input's numbers stands in its registers: themselves, counts of them, or their digits. The key holder encodes;
//! both sides know how.

use super::numbers::{Numbers, elements, range, within};
use crate::error::Result;
use zeroize::Zeroizing;

/// Most indices that are told apart.
const MAX_COUNT: usize = 1 << 20;
/// Most bits of a digit.
const MAX_DIGIT_BITS: u32 = 16;
/// Most bits of a number that has digits: doubles have every integer of so many.
const MAX_BITS: u32 = 53;
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
    /// Each number as its digits, the lowest first, each as zeros and ones: of shape (…, digits,
    /// 2^bits). What has digits is how many steps a number is above `low`.
    Digits {
        /// Steps that a step of the input's numbers is.
        finer: u32,
        /// The number whose digits are all 0, in those steps.
        low: i64,
        /// Bits of a digit.
        bits: u32,
        /// How many there are.
        digits: u32,
        /// Whether all values below a digit are ones, in place of its own alone.
        below: bool,
    },
}

impl Reading {
    /// How many numbers stand in the view, of an input of this many.
    pub(super) fn length(self, elements: u64) -> u64 {
        match self {
            Reading::Numbers => elements,
            Reading::Counts { count, terms, .. } => {
                (elements / u64::from(terms.max(1))).saturating_mul(u64::from(count))
            }
            Reading::Digits { bits, digits, .. } => {
                elements.saturating_mul(u64::from(digits) << bits.min(MAX_DIGIT_BITS))
            }
        }
    }

    /// A bound on their absolute value.
    pub(super) fn magnitude(self, numbers: &Numbers) -> f64 {
        match self {
            Reading::Numbers => numbers.magnitude(),
            Reading::Counts { terms, .. } => f64::from(terms),
            Reading::Digits { .. } => 1.0,
        }
    }

    /// The numbers that stand in the view, for those of the input, which are as it was declared.
    pub(super) fn of(self, values: &[f64], numbers: &Numbers) -> Zeroizing<Vec<f64>> {
        let length = self.length(values.len() as u64) as usize;
        match self {
            Reading::Numbers => Zeroizing::new(values.to_vec()),
            Reading::Counts { count, terms, inner } => {
                let (count, terms, inner) = (count as usize, terms as usize, inner as usize);
                let mut found = Zeroizing::new(vec![0.0; length]);
                for (index, &value) in values.iter().enumerate() {
                    let group = index / (terms * inner) * inner + index % inner;
                    found[group * count + value as usize] += 1.0;
                }
                found
            }
            Reading::Digits { finer, low, bits, digits, below } => {
                let mut found = Zeroizing::new(vec![0.0; length]);
                let size = 1usize << bits;
                let places = found.chunks_mut(size * digits as usize);
                for (places, value) in places.zip(values) {
                    let mut rest = (value / numbers.step).round() as i64 * i64::from(finer) - low;
                    for place in places.chunks_mut(size) {
                        let digit = rest as usize % size;
                        let ones = if below { 0..digit } else { digit..digit + 1 };
                        place[ones].fill(1.0);
                        rest >>= bits;
                    }
                }
                found
            }
        }
    }

    /// Refuses counts of numbers that are no integers from 0 to below their number, and of groups
    /// that an input of this shape does not have; and digits of numbers that have none, or more.
    pub(super) fn check(self, shape: &[u32], numbers: &Numbers) -> Result<()> {
        let elements = elements(shape).unwrap_or(0);
        match self {
            Reading::Numbers => {}
            Reading::Counts { count, terms, inner } => {
                check_counts(elements, numbers, [count, terms, inner])?;
            }
            Reading::Digits { finer, low, bits, digits, .. } => {
                check_digits(numbers, (finer, low), bits, digits)?;
            }
        }
        let length = self.length(elements);
        if self != Reading::Numbers && length > MAX_READ {
            let what = "counts or digits";
            return Err(range(what, format!("at most {MAX_READ} of them"), length));
        }
        Ok(())
    }
}

fn check_counts(elements: u64, numbers: &Numbers, [count, terms, inner]: [u32; 3]) -> Result<()> {
    within("the integers that are counted", 1..=MAX_COUNT, count as usize)?;
    let Numbers { step, low, high } = *numbers;
    if step != 1.0 || low < 0.0 || high >= f64::from(count) {
        let expected = format!("integers from 0 to {}", count - 1);
        return Err(range("what is counted", expected, format!("step {step}, {low} to {high}")));
    }
    let group = u64::from(terms) * u64::from(inner);
    if group == 0 || !elements.is_multiple_of(group) {
        let expected = format!("groups that divide {elements} numbers");
        return Err(range("counts", expected, format!("{terms} numbers {inner} apart")));
    }
    Ok(())
}

fn check_digits(numbers: &Numbers, (finer, low): (u32, i64), bits: u32, digits: u32) -> Result<()> {
    within("the bits of a digit", 1..=MAX_DIGIT_BITS as usize, bits as usize)?;
    within("the digits of a number", 1..=(64 / bits) as usize, digits as usize)?;
    let step = numbers.step / f64::from(finer);
    let [first, last] = [numbers.low, numbers.high].map(|end| (end / step).round() - low as f64);
    let places = f64::from((bits * digits).min(MAX_BITS)).exp2();
    let exact = low.unsigned_abs() <= 1 << MAX_BITS && step > 0.0 && step.is_finite();
    if exact && first >= 0.0 && last < places {
        return Ok(());
    }
    let expected = format!("multiples of a step with {digits} digits of {bits} bits");
    let Numbers { step, low: least, high } = *numbers;
    let actual = format!("step {step} / {finer}, {least} to {high} above {low} of them");
    Err(range("what has digits", expected, actual))
}
