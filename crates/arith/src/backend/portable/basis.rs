//! Basis conversion, one word at a time.

use crate::backend::operands::basis::{ConversionTable, FRACTION_BITS, MAX_SOURCES};

/// Coefficients whose `y_i` are kept while the targets read them: 16 KiB at most.
const TILE: usize = 64;

pub(crate) fn convert(c: &ConversionTable, from: &[&[u64]], to: &mut [&mut [u64]]) {
    convert_from(0, c, from, to);
}

/// [`convert`] from coefficient `start` on.
pub(crate) fn convert_from(
    start: usize,
    c: &ConversionTable,
    from: &[&[u64]],
    to: &mut [&mut [u64]],
) {
    let degree = from.first().map_or(0, |p| p.len());
    let count = c.sources.len();
    let mut y = [[0; TILE]; MAX_SOURCES + 1];
    for at in (start..degree).step_by(TILE) {
        let width = TILE.min(degree - at);
        // Half a unit to round, and half of what the fractions below can be short by.
        let mut sum = [(1u64 << (FRACTION_BITS - 1)) + count as u64; TILE];
        for ((source, x), y) in c.sources.iter().zip(from).zip(&mut y) {
            for ((&x, y), sum) in x[at..at + width].iter().zip(y).zip(&mut sum) {
                *y = source.modulus.mul_shoup(x, &source.inverse);
                *sum += fraction(*y << source.shift, source.ratio);
            }
        }
        for (v, sum) in y[count].iter_mut().zip(sum) {
            *v = sum >> FRACTION_BITS;
        }
        for (target, out) in c.targets.iter().zip(to.iter_mut()) {
            for (i, out) in out[at..at + width].iter_mut().enumerate() {
                // At most 33 products below 2^100.
                let terms = y.iter().zip(&target.factors);
                let sum = terms.map(|(y, &w)| u128::from(y[i]) * u128::from(w)).sum();
                *out = target.modulus.reduce_u128(sum);
            }
        }
    }
}

/// The upper half of a product of 52 bits by 52.
#[inline(always)]
pub(crate) fn fraction(y: u64, ratio: u64) -> u64 {
    ((u128::from(y) * u128::from(ratio)) >> 52) as u64
}
