//! Places of an array's elements in the slots of registers, and the way back. Public numbers only.
//!
//! A *place* is a number of a slot over all registers of a view, `register · slots + slot`. A block
//! is a nest of loops over elements and places at once: with a stride of zero elements are repeated,
//! with a negative one reversed, and a transposed, sliced or broadcast array is one block.

use crate::error::{Error, Result};
use ciphervec_he::ckks::RealEmbedding;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Most elements of a placement, repetitions included.
pub const MAX_PLACES: u64 = 1 << 26;
/// Most loops of a block, and blocks of a placement.
pub(super) const MAX_LOOPS: usize = 32;
pub(super) const MAX_BLOCKS: usize = 1 << 16;

/// One loop of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    /// How often it turns.
    pub count: u32,
    /// How far the element moves.
    pub element: i64,
    /// How far the place moves.
    pub place: i64,
}

/// Elements at regular distances, at places of regular distances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// The first element, in the array's row-major order.
    pub element: u64,
    /// Its place.
    pub place: u64,
    /// The loops, the outermost first.
    pub loops: Vec<Loop>,
}

impl Block {
    /// Calls `visit` with every element and its place.
    fn each(&self, visit: &mut impl FnMut(usize, usize)) {
        fn turn(loops: &[Loop], element: i64, place: i64, visit: &mut impl FnMut(usize, usize)) {
            let Some((first, rest)) = loops.split_first() else {
                return visit(element as usize, place as usize);
            };
            for index in 0..i64::from(first.count) {
                turn(rest, element + index * first.element, place + index * first.place, visit);
            }
        }
        turn(&self.loops, self.element as i64, self.place as i64, visit);
    }

    /// How many pairs it has, if elements are below `elements` and places below `places`.
    fn count(&self, elements: u64, places: u64) -> Option<u64> {
        let (mut count, mut element, mut place) =
            (1u64, [i128::from(self.element); 2], [i128::from(self.place); 2]);
        for one in &self.loops {
            count = count.checked_mul(u64::from(one.count)).filter(|count| *count <= MAX_PLACES)?;
            let turns = i128::from(one.count.checked_sub(1)?);
            for (range, stride) in [(&mut element, one.element), (&mut place, one.place)] {
                let reach = turns * i128::from(stride);
                range[0] += reach.min(0);
                range[1] += reach.max(0);
            }
        }
        let within = |[low, high]: [i128; 2], end: u64| low >= 0 && high < i128::from(end);
        (within(element, elements) && within(place, places)).then_some(count)
    }
}

/// What a place is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Domain {
    /// A slot.
    #[default]
    Slots,
    /// A coefficient of the polynomial whose values are in the slots, that of `X^k + X^-k`. A product
    /// of slots is a product of polynomials, which holds inner products: those with public numbers
    /// take no key. Both go from one to the other at the key holder.
    Coefficients,
}

impl Domain {
    /// The values in as many slots as the polynomial has coefficients, a power of two from 2 to 2^17.
    pub fn slots_of(coefficients: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; coefficients.len()];
        embedding(coefficients.len()).to_slots(coefficients, &mut out);
        out
    }
}

/// Where the elements of an array stand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// Blocks; what stands at one place in two of them is that of the later one.
    pub blocks: Vec<Block>,
    /// What places are.
    pub domain: Domain,
}

impl Placement {
    /// Refuses what reaches beyond an array of `elements` or beyond `places`.
    pub(super) fn check(&self, elements: u64, places: u64, slots: usize) -> Result<()> {
        let range = |expected: String, actual: String| Error::Range {
            what: "a placement",
            expected,
            actual,
        };
        if self.domain == Domain::Coefficients && slots < 2 {
            return Err(range("in slots where there is one".into(), "coefficients".into()));
        }
        if self.blocks.len() > MAX_BLOCKS {
            let expected = format!("of at most {MAX_BLOCKS} blocks");
            return Err(range(expected, self.blocks.len().to_string()));
        }
        let mut total = 0;
        for block in &self.blocks {
            if block.loops.len() > MAX_LOOPS {
                let expected = format!("of blocks of at most {MAX_LOOPS} loops");
                return Err(range(expected, block.loops.len().to_string()));
            }
            total += block.count(elements, places).ok_or_else(|| {
                range(
                    format!("within {elements} elements and {places} places, {MAX_PLACES} in all"),
                    format!("{block:?}"),
                )
            })?;
        }
        if total > MAX_PLACES {
            return Err(range(format!("of at most {MAX_PLACES} places"), total.to_string()));
        }
        Ok(())
    }

    /// The registers that hold `values`, zero elsewhere.
    pub(super) fn scatter(&self, values: &[f64], registers: usize, slots: usize) -> Vec<Vec<f64>> {
        let mut all = vec![0.0; registers * slots];
        for block in &self.blocks {
            block.each(&mut |element, place| all[place] = values[element]);
        }
        let held = |places: &[f64]| match self.domain {
            Domain::Slots => places.to_vec(),
            Domain::Coefficients => Domain::slots_of(places),
        };
        all.chunks(slots).map(held).collect()
    }

    /// A bound on the absolute value in a slot, of `count` numbers up to `largest` in all.
    pub(super) fn magnitude(&self, largest: f64, count: u64) -> f64 {
        match self.domain {
            Domain::Slots => largest,
            // A slot is Σ 2 cos(…) of the coefficients.
            Domain::Coefficients => 2.0 * largest * count as f64,
        }
    }

    /// What the standard deviation of an error in a slot is to that at a place: coefficients are
    /// sums of as many slots, divided by their number.
    pub(super) fn error(&self, slots: usize) -> f64 {
        match self.domain {
            Domain::Slots => 1.0,
            Domain::Coefficients => (2.0 * slots as f64).sqrt().recip(),
        }
    }

    /// The `elements` values that stand in `registers`, zero where none does.
    pub(super) fn gather(&self, registers: &[Vec<f64>], elements: usize, slots: usize) -> Vec<f64> {
        let places = match self.domain {
            Domain::Slots => None,
            Domain::Coefficients => Some(coefficients(registers, slots)),
        };
        let registers = places.as_deref().map_or(registers, |places| places);
        let mut values = vec![0.0; elements];
        for block in &self.blocks {
            block.each(&mut |element, place| {
                values[element] = registers[place / slots][place % slots];
            });
        }
        values
    }
}

/// The coefficients of the polynomials with these values in their slots.
fn coefficients(registers: &[Vec<f64>], slots: usize) -> Zeroizing<Vec<Vec<f64>>> {
    let of = |register: &Vec<f64>| {
        let mut out = vec![0.0; slots];
        embedding(slots).to_coefficients(register, &mut out);
        out
    };
    Zeroizing::new(registers.iter().map(of).collect())
}

/// The embedding of as many coefficients as there are slots, a power of two.
fn embedding(slots: usize) -> &'static RealEmbedding {
    static ALL: [OnceLock<RealEmbedding>; 18] = [const { OnceLock::new() }; 18];
    let log = slots.trailing_zeros();
    ALL[log as usize].get_or_init(|| RealEmbedding::new(log))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(element: u64, place: u64, loops: &[(u32, i64, i64)]) -> Placement {
        let loops =
            loops.iter().map(|&(count, element, place)| Loop { count, element, place }).collect();
        Placement { blocks: vec![Block { element, place, loops }], ..Placement::default() }
    }

    #[test]
    fn a_transposed_and_repeated_array_comes_back() {
        // A 2 x 3 array, columns first, every element twice, over registers of 8 slots.
        let placement = one(0, 0, &[(3, 1, 4), (2, 3, 2), (2, 0, 1)]);
        placement.check(6, 16, 8).unwrap();
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let registers = placement.scatter(&values, 2, 8);
        assert_eq!(registers[0], [1.0, 1.0, 4.0, 4.0, 2.0, 2.0, 5.0, 5.0]);
        assert_eq!(registers[1], [3.0, 3.0, 6.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(placement.gather(&registers, 6, 8), values);
        // Backwards.
        let placement = one(5, 0, &[(6, -1, 1)]);
        placement.check(6, 8, 8).unwrap();
        assert_eq!(placement.scatter(&values, 1, 8)[0][..6], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn products_of_polynomials_hold_inner_products() {
        // x at 1 … 3, and rows of weights from 3 and from 10 on: their products with x are at both.
        let mut x = one(0, 1, &[(3, 1, 1)]);
        x.domain = Domain::Coefficients;
        let mut weights = one(0, 4, &[(2, 3, 7), (3, 1, 1)]);
        weights.domain = Domain::Coefficients;
        let (mine, theirs) = ([3.0, -1.0, 4.0], [1.0, 5.0, -9.0, 2.0, 6.0, 5.0]);
        let slots = [x.scatter(&mine, 1, 32), weights.scatter(&theirs, 1, 32)];
        assert!(slots[0][0].iter().all(|slot| slot.abs() <= x.magnitude(4.0, 3)));
        let product = slots[0][0].iter().zip(&slots[1][0]).map(|(a, b)| a * b).collect();
        let mut found = one(0, 3, &[(2, 1, 7)]);
        found.domain = Domain::Coefficients;
        let sums = found.gather(&[product], 2, 32);
        assert!((sums[0] - (3.0 - 5.0 - 36.0)).abs() < 1e-9, "{sums:?}");
        assert!((sums[1] - (6.0 - 6.0 + 20.0)).abs() < 1e-9, "{sums:?}");
    }

    #[test]
    fn what_reaches_beyond_is_refused() {
        for (placement, elements, places) in [
            (one(0, 0, &[(7, 1, 1)]), 6, 16),
            (one(0, 0, &[(6, 1, 4)]), 6, 16),
            (one(0, 3, &[(2, 1, -4)]), 6, 16),
            (one(2, 0, &[(4, -1, 1)]), 6, 16),
            (one(0, 0, &[(0, 1, 1)]), 6, 16),
            (one(0, 0, &[(u32::MAX, 0, 0), (u32::MAX, 0, 0), (u32::MAX, 0, 0)]), 6, 16),
            (one(u64::MAX, 0, &[]), 6, 16),
            (one(0, 0, &[(2, i64::MAX, 0), (3, i64::MAX, 0)]), 6, 16),
            (one(0, 0, &[(1, 0, 0); 33]), 6, 16),
        ] {
            assert!(placement.check(elements, places, 8).is_err(), "{placement:?}");
        }
    }
}
