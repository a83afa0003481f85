//! Vectors of one length encrypted under one key, and their places in the ciphertexts.

use super::layout::{ArrayLayout, ArrayPacking, Role};
use super::origin::{Condition, Origin};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Ciphertext, Params};
use ciphervec_he::wire::KeyId;
use std::sync::Arc;

/// The two ways a vector enters a product in layout `coefficients`; other layouts have `Left`
/// alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// `Σ x_i X^i`.
    Left,
    /// `Σ x_i X^-i`.
    Right,
}

/// What the key owner does with decrypted numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum PostProcessing {
    /// Nothing.
    #[default]
    Plain = 0,
    /// Takes the square root: squared distances become distances.
    Root = 1,
}

impl PostProcessing {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [PostProcessing::Plain, PostProcessing::Root].into_iter().find(|one| *one as u8 == byte)
    }
}

/// Vectors of one length under one key, all in one layout; scores are vectors of length 1.
/// Immutable.
#[derive(Clone)]
pub struct EncryptedArray {
    pub(super) packing: ArrayPacking,
    pub(super) left: Vec<Ciphertext>,
    /// Empty but in layout `coefficients`.
    pub(super) right: Vec<Ciphertext>,
    /// Whether every vector has length 1.
    pub(super) unit: bool,
    pub(super) post_processing: PostProcessing,
    /// Of fresh ciphertexts, left side first: with it they take half the bytes.
    pub(super) seeds: Vec<[u8; 32]>,
    pub(super) origin: Origin,
}

impl EncryptedArray {
    /// Fresh ciphertexts with the seeds of both sides' masks, left side first.
    #[doc(hidden)]
    pub fn from_parts(
        packing: ArrayPacking,
        [left, right]: [Vec<Ciphertext>; 2],
        seeds: Vec<[u8; 32]>,
    ) -> Self {
        EncryptedArray { seeds, ..EncryptedArray::new(packing, left, right, &[]) }
    }

    /// What was computed from `sources`, if from any.
    pub(super) fn new(
        packing: ArrayPacking,
        left: Vec<Ciphertext>,
        right: Vec<Ciphertext>,
        sources: &[&EncryptedArray],
    ) -> Self {
        let (unit, post_processing, seeds) = (false, PostProcessing::Plain, Vec::new());
        let origin = Origin::of(sources.iter().map(|source| &source.origin));
        EncryptedArray { packing, left, right, unit, post_processing, seeds, origin }
    }

    /// The same array, whose figures hold under one more condition.
    pub(super) fn under(mut self, condition: Condition) -> Self {
        self.origin.conditions.push(Arc::new(condition));
        self
    }

    /// The same ciphertexts, said to hold vectors of length 1.
    #[doc(hidden)]
    pub fn of_unit_length(self, unit: bool) -> Self {
        EncryptedArray { unit, ..self }
    }

    /// Vectors.
    pub fn rows(&self) -> usize {
        self.packing.rows
    }

    /// Coordinates of each.
    pub fn dimension(&self) -> usize {
        self.packing.dimension
    }

    /// Where they lie.
    pub fn packing(&self) -> &ArrayPacking {
        &self.packing
    }

    /// The ciphertexts of the left side.
    #[doc(hidden)]
    pub fn left(&self) -> &[Ciphertext] {
        &self.left
    }

    /// The ciphertexts of the right side.
    #[doc(hidden)]
    pub fn right(&self) -> &[Ciphertext] {
        &self.right
    }

    /// Where its figures come from.
    #[doc(hidden)]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Which sides of a product they can stand on.
    pub fn role(&self) -> Role {
        match (self.left.is_empty(), self.right.is_empty()) {
            (true, _) => Role::Right,
            (_, true) if self.packing.layout == ArrayLayout::Coefficients => Role::Left,
            _ => Role::Both,
        }
    }

    /// Whether the vectors were scaled to length 1 when they were encrypted.
    pub fn is_unit(&self) -> bool {
        self.unit
    }

    /// What the owner does with the decrypted numbers.
    pub fn post_processing(&self) -> PostProcessing {
        self.post_processing
    }

    /// Whether its noise and magnitude rest on bytes that were read, and not on what was computed
    /// here from the start.
    pub fn is_claimed(&self) -> bool {
        self.origin.claimed
    }

    /// Refuses numbers that may be beyond what the modulus of their level holds: they would come back as
    /// others, with an error that says nothing of it. In layout `coefficients` what is known is a bound on values at roots
    /// of unity, many times what a coefficient is: where `planned` parameters hold every score of the vectors that are
    /// encrypted under them, that is gone by.
    #[doc(hidden)]
    pub fn expect_room(&self, operation: &'static str, planned: bool) -> Result<()> {
        if planned && self.packing.layout == ArrayLayout::Coefficients {
            return Ok(());
        }
        let mut all = self.left.iter().chain(&self.right);
        let Some(beyond) = all.find(|cipher| cipher.magnitude() > cipher.room()) else {
            return Ok(());
        };
        let (magnitude, room, level) = (beyond.magnitude(), beyond.room(), beyond.level());
        Err(Error::CkksSimilarity {
            operation,
            detail: format!(
                "numbers up to {magnitude:.6} may stand in the array, and at level {level} it has room for ±{room:.0}: \
                beyond that they would come back as others. If they are known to be less, say so (bounded). Else take a \
                context one level deeper, or smaller numbers"
            ),
        })
    }

    /// How many there are, both sides together.
    pub fn ciphertexts(&self) -> usize {
        self.left.len() + self.right.len()
    }

    /// Rescalings left.
    pub fn level(&self) -> usize {
        self.first().map_or(0, Ciphertext::level)
    }

    /// The parameters.
    pub fn params(&self) -> Option<&Arc<Params>> {
        self.first().map(Ciphertext::params)
    }

    /// The public name of the key they are encrypted under.
    pub fn key_id(&self) -> KeyId {
        self.first().map_or(KeyId::default(), Ciphertext::key_id)
    }

    /// Standard deviation of the error of a number, from the noise estimates that travel with the
    /// ciphertexts.
    pub fn error_estimate(&self) -> f64 {
        let one = |cipher: &Ciphertext| match self.packing.layout {
            ArrayLayout::Coefficients => cipher.noise().std / cipher.scale(),
            _ => cipher.error_bits().exp2(),
        };
        self.all().map(one).fold(0.0, f64::max)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Ciphertext> {
        self.left.iter().chain(&self.right)
    }

    fn first(&self) -> Option<&Ciphertext> {
        self.all().next()
    }

    /// Refuses what the owner has still to take a root of.
    pub(super) fn expect_plain(&self, operation: &'static str) -> Result<()> {
        match self.post_processing {
            PostProcessing::Plain => Ok(()),
            PostProcessing::Root => Err(Error::CkksSimilarity {
                operation,
                detail: "distances are squared until the key owner decrypts them, and can't be computed on; \
                         compute on squared_distance instead"
                    .to_owned(),
            }),
        }
    }
}

impl core::fmt::Debug for EncryptedArray {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EncryptedArray")
            .field("packing", &self.packing)
            .field("ciphertexts", &self.ciphertexts())
            .field("level", &self.level())
            .finish_non_exhaustive()
    }
}

/// The slots, or the coefficients, of ciphertext `index` of one side.
pub(super) fn arrange(
    packing: &ArrayPacking,
    side: Side,
    (index, degree): (usize, usize),
    value: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let ArrayPacking { layout, rows, dimension, capacity, .. } = *packing;
    let mut out =
        vec![0.0; if layout == ArrayLayout::Coefficients { degree } else { packing.slots() }];
    let (block, only) = match layout {
        ArrayLayout::Single => (index / dimension, Some(index % dimension)),
        _ => (index, None),
    };
    let start = block * capacity;
    for k in 0..capacity.min(rows - start) {
        let place = packing.place(k);
        for i in only.map_or(0..dimension, |coordinate| coordinate..coordinate + 1) {
            let number = value(start + k, i);
            match (layout, side) {
                (ArrayLayout::Single, _) => out[place] = number,
                (ArrayLayout::Coefficients, Side::Right) if i > place => {
                    out[degree + place - i] = -number;
                }
                (ArrayLayout::Coefficients, Side::Right) => out[place - i] = number,
                _ => out[place + i] = number,
            }
        }
    }
    out
}

/// Undoes `arrange`: `found[index]` are the slots or coefficients of ciphertext `index`; returns
/// row after row.
pub fn collect(packing: &ArrayPacking, side: Side, found: &[Vec<f64>], degree: usize) -> Vec<f64> {
    let ArrayPacking { layout, rows, dimension, capacity, .. } = *packing;
    let mut out = Vec::with_capacity(rows * dimension);
    for row in 0..rows {
        let (block, place) = (row / capacity, packing.place(row % capacity));
        for i in 0..dimension {
            out.push(match (layout, side) {
                (ArrayLayout::Single, _) => found[block * dimension + i][place],
                (ArrayLayout::Coefficients, Side::Right) if i > place => {
                    -found[block][degree + place - i]
                }
                (ArrayLayout::Coefficients, Side::Right) => found[block][place - i],
                _ => found[block][place + i],
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::layout::Spread;
    use super::*;

    #[test]
    fn collecting_undoes_arranging() {
        let value = |row: usize, i: usize| (100 * row + i) as f64 + 1.0;
        for (layout, spread) in [
            (ArrayLayout::Slots, Spread::Pairs),
            (ArrayLayout::Coefficients, Spread::Pairs),
            (ArrayLayout::Coefficients, Spread::Gallery),
            (ArrayLayout::Single, Spread::Pairs),
        ] {
            for (rows, dimension) in [(1, 1), (1, 7), (5, 3), (9, 8)] {
                let packing =
                    ArrayPacking::new(layout, spread, (rows, dimension), (64, 32)).unwrap();
                for side in [Side::Left, Side::Right] {
                    let all: Vec<Vec<f64>> = (0..packing.ciphertexts())
                        .map(|index| arrange(&packing, side, (index, 64), value))
                        .collect();
                    let expected: Vec<f64> = (0..rows)
                        .flat_map(|row| (0..dimension).map(move |i| value(row, i)))
                        .collect();
                    assert_eq!(collect(&packing, side, &all, 64), expected, "{layout:?} {side:?}");
                }
            }
        }
    }
}
