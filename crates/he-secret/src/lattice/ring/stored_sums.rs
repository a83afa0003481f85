//! Check sums as a sidecar keeps them, ring form. Owner only.
//!
//! A group's sums are rounded by as many bits as no check of theirs suffers from, and each dimension
//! takes as many bits as its largest sum. That is written into a length that follows from layout and
//! scales alone, whatever the rows are: the length of a sidecar is there for all to see
//! (`docs/sealed.md`, section 4.5).
//!
//! `bits rounded off u8 | bits of each dimension u8 × d | the sums of each dimension, from the lowest
//! bit on | zeros`.
//!
//! # How sums are stored
//!
//! Rounding to multiples of 2^b adds |m|² 2^2b/12 to the variance of R_i, at most an eightieth; the owner counts
//! it. A server sees their length and must not learn how rows are distributed, so each group takes as much as rows
//! without direction do, the most: 2.85 bits above the logarithm of a sum's deviation, and 2.5/√d for chance. A
//! group that needs more is rounded more. At d = 512 that is 53, 24 and 23 bytes a row at levels 7, 8 and 9 in
//! `sealed`, 57, 29 and 28 in `sealed-query`; groups of up to 128 rows take 4 d bytes a row.

use super::{AnswerWords, Layout, ScoreNoise, Vectors};
use crate::lattice::Scales;
use ciphervec_arith::sample::GAUSSIAN_SIGMA;
use zeroize::Zeroizing;

/// Checks of a group.
pub(super) const CHECKS: usize = 48;
/// Mean square of a weight: they are uniform among ±1, ±3, ±5 and ±7. Odd ones multiply no
/// difference of two scores to 0 modulo a power of two.
pub(super) const ENERGY: f64 = 21.0;
/// What rounding may add to the variance of a check, over it.
const ROUNDING_SHARE: f64 = 1.0 / 80.0;
/// Bits rounded off at most.
const MOST_ROUNDED: u8 = 31;
/// Bits of a dimension's largest sum of [`CHECKS`] and its sign, over log2 of their deviation: 2.8
/// in the mean, for normal ones, and what their mean over d dimensions may be off by, times √d.
const WIDTH: [f64; 2] = [2.85, 2.5];

/// Bits a sum at least: reading takes no more than four times the memory of what is read.
const LEAST_WIDTH: f64 = 8.0;

/// How the sums of a segment's groups are stored, at who seals it.
#[derive(Clone, Copy)]
pub(super) struct SumSizes {
    dimension: usize,
    noise: ScoreNoise,
    /// Mean square of what a check weighs, of one dimension.
    square: f64,
}

impl SumSizes {
    /// Of unit vectors at this scale, for queries at the other.
    pub fn new(layout: &Layout, vectors: Vectors, scales: Scales) -> Self {
        let dimension = layout.dimension();
        let noise = ScoreNoise::of(layout, vectors, scales, AnswerWords::FIRST, true);
        let own = match vectors {
            Vectors::Sealed => GAUSSIAN_SIGMA * GAUSSIAN_SIGMA,
            Vectors::Plain => 0.0,
        };
        let square = scales.vector * scales.vector / dimension as f64 + own + 1.0 / 12.0;
        SumSizes { dimension, noise, square }
    }

    /// Bits to be rounded off the sums of so many rows, in a block of so many.
    fn rounded(&self, group: usize, block: usize) -> u8 {
        let allowed = ROUNDING_SHARE * ENERGY * group as f64 * self.noise.variance(block);
        let fits = |bits: &u8| self.noise.of_rounding(*bits) <= allowed;
        (0..=MOST_ROUNDED).take_while(fits).last().unwrap_or(0)
    }

    /// Bytes for the sums themselves.
    fn room(&self, group: usize, rounded: u8) -> usize {
        let deviation =
            (ENERGY * group as f64 * self.square).sqrt() * f64::exp2(-f64::from(rounded));
        let ([mean, spread], d) = (WIDTH, self.dimension as f64);
        let width = (deviation.log2() + mean).max(LEAST_WIDTH);
        let bits = d * width + spread * d.sqrt();
        (CHECKS as f64 * bits / 8.0).ceil() as usize
    }

    /// Writes the sums of a group of so many rows in a block of so many, check by check a word a
    /// dimension.
    pub fn append(&self, sums: &[i32], group: usize, block: usize, out: &mut Vec<u8>) {
        let least = self.rounded(group, block);
        let room = self.room(group, least);
        // Where rows of a kind take more than others in their place could, more is rounded off: a
        // check is a little less sharp then, and nobody sees it.
        let packed = (least..=MOST_ROUNDED).find_map(|rounded| {
            let packed = pack(sums, self.dimension, rounded, room);
            (packed.len() <= 1 + self.dimension + room).then_some(packed)
        });
        let mut packed = packed.unwrap_or_else(|| Zeroizing::new(vec![0; 1 + self.dimension]));
        packed.resize(1 + self.dimension + room, 0);
        out.extend_from_slice(&packed);
    }

    /// Bytes that this takes.
    pub fn len(&self, group: usize, block: usize) -> usize {
        1 + self.dimension + self.room(group, self.rounded(group, block))
    }
}

/// `sum` to the nearest multiple of 2^rounded, over it.
fn round(sum: i32, rounded: u8) -> i64 {
    let half = (1i64 << rounded) >> 1;
    (i64::from(sum) + half) >> rounded
}

/// Bits that hold `number` with its sign.
fn width(number: i64) -> u32 {
    if number == 0 { 0 } else { 65 - (number ^ (number >> 63)).leading_zeros() }
}

/// At least as much is allocated as takes `room` behind the widths.
fn pack(sums: &[i32], dimension: usize, rounded: u8, room: usize) -> Zeroizing<Vec<u8>> {
    let of = |dim: usize| sums[dim..].iter().step_by(dimension).map(|sum| round(*sum, rounded));
    let widths = (0..dimension).map(|dim| of(dim).map(width).max().unwrap_or(0));
    let widths: Zeroizing<Vec<u8>> = Zeroizing::new(widths.map(|width| width as u8).collect());
    let bits: usize = widths.iter().map(|width| CHECKS * usize::from(*width)).sum();
    let room = room.max(bits.div_ceil(8)).max(CHECKS * dimension);
    let mut out = Zeroizing::new(Vec::with_capacity(1 + dimension + room));
    out.push(rounded);
    out.extend_from_slice(&widths);
    let (mut held, mut count) = (0u64, 0);
    for (dim, &width) in widths.iter().enumerate() {
        let mask = (1u64 << width) - 1;
        for number in of(dim) {
            held |= (number as u64 & mask) << count;
            count += u32::from(width);
            while count >= 8 {
                out.push(held as u8);
                held >>= 8;
                count -= 8;
            }
        }
    }
    if count > 0 {
        out.push(held as u8);
    }
    let least = 1 + dimension * (1 + CHECKS);
    if out.len() < least {
        out.resize(least, 0);
    }
    out
}

/// The sums of a group and the bits that were rounded off, check by check a word a dimension; `None`
/// where the bytes are none.
pub(super) fn unpack(bytes: &[u8], dimension: usize) -> Option<(Vec<i32>, u8)> {
    let (&rounded, bytes) = bytes.split_first()?;
    let (widths, bytes) = bytes.split_at_checked(dimension)?;
    let bits: usize = widths.iter().map(|width| CHECKS * usize::from(*width)).sum();
    let few = bytes.len() < CHECKS * dimension;
    if few
        || rounded > MOST_ROUNDED
        || widths.iter().any(|width| *width > 33)
        || bits > 8 * bytes.len()
    {
        return None;
    }
    let mut sums = vec![0; CHECKS * dimension];
    let mut bytes = bytes.iter();
    let (mut held, mut count) = (0u64, 0);
    for (dim, &width) in widths.iter().enumerate() {
        let width = u32::from(width);
        let mask = (1u64 << width) - 1;
        for sum in sums[dim..].iter_mut().step_by(dimension) {
            while count < width {
                held |= u64::from(*bytes.next()?) << count;
                count += 8;
            }
            let number = held & mask;
            held >>= width;
            count -= width;
            let sign = if width == 0 { 0 } else { 64 - width };
            *sum = ((((number << sign) as i64) >> sign) << rounded) as i32;
        }
    }
    Some((sums, rounded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_come_back_rounded(
            dimension in 1usize..6,
            rounded in 0..=MOST_ROUNDED,
            seed in prop::collection::vec(any::<i32>(), CHECKS * 5),
            shift in 0u32..32,
        ) {
            let sums: Vec<i32> = seed[..CHECKS * dimension].iter().map(|sum| sum >> shift).collect();
            let packed = pack(&sums, dimension, rounded, 0);
            let (found, off) = unpack(&packed, dimension).unwrap();
            prop_assert_eq!(off, rounded);
            for (found, sum) in found.iter().zip(&sums) {
                let half = (1i64 << rounded) >> 1;
                let error = i64::from(found.wrapping_sub(*sum));
                prop_assert!(error.abs() <= half, "{} {} {}", found, sum, rounded);
            }
            for end in 0..packed.len() {
                prop_assert!(unpack(&packed[..end], dimension).is_none());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for dimension in [1, 3, 8] {
                if let Some((sums, _)) = unpack(&bytes, dimension) {
                    prop_assert_eq!(sums.len(), CHECKS * dimension);
                }
            }
        }
    }
}
