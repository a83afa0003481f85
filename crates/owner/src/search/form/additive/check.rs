//! Secret sums of a segment's integers, by which the owner refuses scores and rows of the additive form that were altered.
//! Writers make them, the owner alone compares.
//!
//! Rows x_v, queries w and scores s_v are integers that nothing wraps, whatever the scheme. With secret weights of the field of
//! 2^127 − 1 elements, uniform and drawn for the segment, one a row and one a coordinate,
//!
//! ```text
//! sum_v rho_v s_v = sum_i w_i h_i ,   h_i = sum_v rho_v x_v,i      for every query
//! sum_i sigma_i x_v,i = t_v                                        for every row that is decrypted
//! ```
//!
//! A wrong score is off by less than 2^127, so that it passes with probability 2^-127. Layout `horizontal` may move a score
//! by one (`docs/additive.md`): its rows are summed four at a time, and each of the 81 ways in which four scores may have moved
//! passes.
//!
//! Bytes, little-endian, in the segment's encrypted sidecar: rows that are summed together u32 | zeros u32 | h of each of these
//! groups, 16 bytes a coordinate | t, 16 bytes a row.
//!
//! Sums are numbers below 2^127 − 1. Rows that are summed together are all of them, or four in layout `horizontal`. Weights are
//! the lowest 127 bits of 16 bytes a row from stream 0, and a dimension from stream 1, of the key derived as `answer-check` with
//! `additive`. Segments of release 0.1 have none.

use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::root_key::SegmentRootKey;
use crate::similarity::additive::{Layout, Vectors};
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::keys::{Purpose, Secret};
use ciphervec_he_secret::lattice::SegmentId;
use zeroize::Zeroizing;

/// Bytes of a number of the field.
const NUMBER: usize = 16;
/// Bytes before the sums.
const HEAD: usize = 8;
/// Rows that are summed together where scores may have moved.
const FEW: usize = 4;
/// Streams of weights.
const OF_ROWS: u64 = 0;
const OF_COORDINATES: u64 = 1;

/// Framed vectors and their witness.
pub type EncryptedBytes = (Vec<u8>, Zeroizing<Vec<u8>>);

/// The secret that a segment's weights are drawn from.
pub fn seed(root: &SegmentRootKey, spec: &IndexSpec, id: SegmentId) -> Secret {
    root.master().derive(Purpose::AnswerCheck, &[&spec.binding(), b"additive", &id.0])
}

/// The witness of these rows.
pub fn witness(seed: &Secret, vectors: &Vectors, layout: Layout) -> Zeroizing<Vec<u8>> {
    let rows = vectors.len();
    let dimension = vectors.row(0).len();
    let together = if layout == Layout::Horizontal { FEW.min(rows) } else { rows };
    let (of_rows, of_coordinates) =
        (weights(seed, OF_ROWS, rows), weights(seed, OF_COORDINATES, dimension));
    let mut sums = Zeroizing::new(vec![0u128; rows.div_ceil(together) * dimension]);
    let mut tags = Zeroizing::new(vec![0u128; rows]);
    for (row, tag) in tags.iter_mut().enumerate() {
        let (values, weight) = (vectors.row(row), of_rows[row]);
        let sums = &mut sums[row / together * dimension..][..dimension];
        for (sum, &value) in sums.iter_mut().zip(values) {
            *sum = add(*sum, multiply(weight, residue(value.into())));
        }
        *tag = product(&of_coordinates, values);
    }
    let mut out = Zeroizing::new(Vec::with_capacity(HEAD + (sums.len() + rows) * NUMBER));
    out.extend_from_slice(&(together as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    sums.iter().chain(tags.iter()).for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()));
    out
}

/// What scores and rows of one segment have to agree with. Wiped on drop.
pub struct Check {
    of_rows: Zeroizing<Vec<u128>>,
    of_coordinates: Zeroizing<Vec<u128>>,
    together: usize,
    sums: Zeroizing<Vec<u128>>,
    tags: Zeroizing<Vec<u128>>,
}

impl Check {
    /// Reads the witness of a segment of `rows` rows; `None` for segments from before there were any.
    ///
    /// # Errors
    /// A witness of another length than rows and dimension ask for.
    pub fn read(
        seed: &Secret,
        (spec, id, rows): (&IndexSpec, SegmentId, usize),
        bytes: &[u8],
    ) -> Result<Option<Self>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let dimension = spec.dimension();
        let damaged = || {
            let detail = format!("its check sums are not those of {rows} rows");
            Error::Directory { segment: id.to_string(), detail }
        };
        let (head, numbers) = bytes.split_first_chunk::<HEAD>().ok_or_else(damaged)?;
        let [a, b, c, d, rest @ ..] = *head;
        let together = u32::from_le_bytes([a, b, c, d]) as usize;
        // Rows are summed all together, or a few at a time.
        if rest != [0; 4] || together == 0 || together != rows && together != FEW.min(rows) {
            return Err(damaged());
        }
        let sums = rows.div_ceil(together) * dimension;
        if numbers.len() != (sums + rows) * NUMBER {
            return Err(damaged());
        }
        let numbers =
            numbers.as_chunks::<NUMBER>().0.iter().map(|bytes| u128::from_le_bytes(*bytes));
        let mut numbers = Zeroizing::new(numbers.collect::<Vec<u128>>());
        let tags = Zeroizing::new(numbers.split_off(sums));
        let of_coordinates = weights(seed, OF_COORDINATES, dimension);
        let of_rows = weights(seed, OF_ROWS, rows);
        Ok(Some(Check { of_rows, of_coordinates, together, sums: numbers, tags }))
    }

    /// Whether these are the scores of all rows with the query of these weights; `moved`: where each may be off by one.
    pub fn holds(&self, weights: &[i64], scores: &[i128], moved: bool) -> bool {
        let groups = self.sums.chunks_exact(weights.len());
        let each = groups.zip(self.of_rows.chunks(self.together)).zip(scores.chunks(self.together));
        each.fold(true, |held, ((sums, of_rows), scores)| {
            let found = of_rows
                .iter()
                .zip(scores)
                .fold(0, |sum, (weight, score)| add(sum, multiply(*weight, residue(*score))));
            let off = add(found, negative(product(sums, weights)));
            held & (off == 0
                || moved && of_rows.len() <= FEW && differences(of_rows).any(|sum| sum == off))
        })
    }

    /// Whether these are the integers of a row.
    pub fn is_row(&self, row: usize, values: &[i64]) -> bool {
        self.tags.get(row).is_some_and(|tag| *tag == product(&self.of_coordinates, values))
    }
}

/// Every sum of these weights, each taken −1, 0 or 1 times.
fn differences(weights: &[u128]) -> impl Iterator<Item = u128> {
    (0..3usize.pow(weights.len() as u32)).map(|choice| {
        let mut rest = choice;
        weights.iter().fold(0, |sum, &weight| {
            let taken = match rest % 3 {
                0 => 0,
                1 => weight,
                _ => negative(weight),
            };
            rest /= 3;
            add(sum, taken)
        })
    })
}

const MODULUS: u128 = (1 << 127) - 1;

/// Uniform numbers, but for 2^-127.
fn weights(seed: &Secret, stream: u64, count: usize) -> Zeroizing<Vec<u128>> {
    let mut bytes = Zeroizing::new(vec![0u8; count * NUMBER]);
    Stream::new(seed.expose(), stream).fill(&mut bytes);
    let numbers = bytes.as_chunks::<NUMBER>().0.iter();
    Zeroizing::new(numbers.map(|bytes| reduce(u128::from_le_bytes(*bytes) & MODULUS)).collect())
}

/// Σ a_i b_i.
fn product(numbers: &[u128], values: &[i64]) -> u128 {
    let terms = numbers.iter().zip(values);
    terms.fold(0, |sum, (number, value)| add(sum, multiply(*number, residue((*value).into()))))
}

/// A signed integer below 2^127 in absolute value.
fn residue(value: i128) -> u128 {
    let size = reduce(value.unsigned_abs());
    if value < 0 { negative(size) } else { size }
}

fn negative(a: u128) -> u128 {
    reduce(MODULUS - a)
}

fn add(a: u128, b: u128) -> u128 {
    reduce(a + b)
}

/// Any 128 bits below twice the modulus and two.
fn reduce(a: u128) -> u128 {
    let folded = (a & MODULUS) + (a >> 127);
    if folded >= MODULUS { folded - MODULUS } else { folded }
}

/// With 2^127 = 1, of the halves' products 2^128 counts twice and 2^64 turns by 64 bits.
fn multiply(a: u128, b: u128) -> u128 {
    const HALF: u128 = u64::MAX as u128;
    let ((a1, a0), (b1, b0)) = ((a >> 64, a & HALF), (b >> 64, b & HALF));
    let middle = a0 * b1 + a1 * b0;
    let turned = ((middle << 64) & MODULUS) + (middle >> 63);
    add(add(reduce(a0 * b0), reduce(2 * (a1 * b1))), reduce(turned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By doubling and adding.
    fn slow(a: u128, b: u128) -> u128 {
        (0..127).rev().fold(0, |sum, bit| {
            let twice = add(sum, sum);
            if b >> bit & 1 == 1 { add(twice, a) } else { twice }
        })
    }

    proptest! {
        #[test]
        fn products_are_those_of_the_field(a in 0..MODULUS, b in 0..MODULUS) {
            prop_assert_eq!(multiply(a, b), slow(a, b));
            prop_assert_eq!(multiply(a, negative(b)), negative(multiply(a, b)));
            prop_assert_eq!(add(a, negative(a)), 0);
        }

        #[test]
        fn signed_integers_keep_their_sums(a in any::<i64>(), b in -(1i128 << 95)..(1 << 95)) {
            let of = |value| residue(value);
            prop_assert_eq!(add(of(a.into()), of(b)), of(i128::from(a) + b));
            prop_assert_eq!(multiply(of(a.into()), of(b >> 40)), of(i128::from(a >> 40 << 40) * (b >> 40) + i128::from(a - (a >> 40 << 40)) * (b >> 40)));
        }
    }

    #[test]
    fn the_edges_of_the_field() {
        for (a, b) in [
            (MODULUS - 1, MODULUS - 1),
            (1 << 126, 2),
            (1 << 64, 1 << 63),
            (0, 5),
            (u64::MAX.into(), u64::MAX.into()),
        ] {
            assert_eq!(multiply(a, b), slow(a, b), "{a} {b}");
        }
        assert_eq!((reduce(MODULUS), reduce(MODULUS + 1), negative(0)), (0, 1, 0));
    }
}
