//! Basis conversion by 52-bit multiply-adds.

use core::arch::x86_64::*;

use super::ifma_butterflies::{
    Constants, LANES, factor, load_values, mul_root, store_residues, store_values,
};
use crate::backend::operands::basis::{ConversionTable, FRACTION_BITS, Source, Target};
use crate::backend::portable;

/// Vectors of `y_i` and `v` that are kept while the targets read them: 16 KiB, half of the
/// first-level cache.
const KEPT: usize = 256;
/// Vectors whose sums are under way together, so that one hides the other's latency.
const GROUP: usize = 4;

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn convert(c: &ConversionTable, from: &[&[u64]], to: &mut [&mut [u64]]) {
    let vectors = from.first().map_or(0, |p| p.len()) / LANES;
    let count = c.sources.len();
    let mut kept = [[0; LANES]; KEPT];
    // Whole groups, as long as a source leaves room for one.
    let tile = KEPT / (count + 1) / GROUP * GROUP;
    for at in (0..vectors).step_by(tile) {
        let width = tile.min(vectors - at);
        let kept = &mut kept[..(count + 1) * width];
        let (y, v) = kept.split_at_mut(count * width);
        v.fill([(1 << (FRACTION_BITS - 1)) + count as u64; LANES]);
        for ((source, x), y) in c.sources.iter().zip(from).zip(y.chunks_exact_mut(width)) {
            numerators(source, &x.as_chunks::<LANES>().0[at..at + width], y, v);
        }
        for v in v {
            let sum = load_values(v);
            store_values(v, _mm512_srli_epi64::<FRACTION_BITS>(sum));
        }
        for (target, out) in c.targets.iter().zip(to.iter_mut()) {
            let out = &mut out.as_chunks_mut::<LANES>().0[at..at + width];
            // A sum is below p (count / 4 + 1) when it leaves the Montgomery reduction.
            match count {
                0..=3 => sums::<1>(target, kept, out),
                4..=11 => sums::<2>(target, kept, out),
                12..=27 => sums::<3>(target, kept, out),
                _ => sums::<4>(target, kept, out),
            }
        }
    }
    portable::basis::convert_from(vectors * LANES, c, from, to);
}

/// `y = x (Q/q)^-1 mod q`, and `y / q` added to the fractions.
#[target_feature(enable = "avx512f,avx512ifma")]
fn numerators(
    source: &Source,
    x: &[[u64; LANES]],
    y: &mut [[u64; LANES]],
    fractions: &mut [[u64; LANES]],
) {
    let c = Constants::new(source.modulus.value(), 0);
    let w = factor(&source.modulus, &source.inverse);
    let ratio = _mm512_set1_epi64(source.ratio as i64);
    let shift = _mm_cvtsi64_si128(i64::from(source.shift));
    for ((x, y), fraction) in x.iter().zip(y).zip(fractions) {
        store_residues(&c, y, mul_root(&c, load_values(x), w));
        let shifted = _mm512_sll_epi64(load_values(y), shift);
        store_values(fraction, _mm512_madd52hi_epu64(load_values(fraction), shifted, ratio));
    }
}

/// The sums for one target: rows of `out.len()` vectors in `kept`, one for every factor.
#[target_feature(enable = "avx512f,avx512ifma")]
fn sums<const STEPS: usize>(target: &Target, kept: &[[u64; LANES]], out: &mut [[u64; LANES]]) {
    let width = out.len();
    let (groups, rest) = out.as_chunks_mut::<GROUP>();
    for (i, out) in groups.iter_mut().enumerate() {
        sum::<STEPS, GROUP>(target, &kept[i * GROUP..], width, out);
    }
    let whole = groups.len() * GROUP;
    for (i, out) in rest.as_chunks_mut::<1>().0.iter_mut().enumerate() {
        sum::<STEPS, 1>(target, &kept[whole + i..], width, out);
    }
}

/// `sum_i y_i w_i` and one Montgomery reduction. The sum's lower half loses `m p` with
/// `m = low p^-1 mod 2^52`, which makes its 52 bits vanish without a carry; of the upper half the
/// upper half of `m p` is left to subtract.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn sum<const STEPS: usize, const N: usize>(
    target: &Target,
    kept: &[[u64; LANES]],
    width: usize,
    out: &mut [[u64; LANES]; N],
) {
    let zero = _mm512_setzero_si512();
    let (mut low, mut high) = ([zero; N], [zero; N]);
    for (i, &w) in target.scaled.iter().enumerate() {
        let w = _mm512_set1_epi64(w as i64);
        let row = &kept[i * width..i * width + N];
        for ((low, high), y) in low.iter_mut().zip(&mut high).zip(row) {
            let y = load_values(y);
            *low = _mm512_madd52lo_epu64(*low, y, w);
            *high = _mm512_madd52hi_epu64(*high, y, w);
        }
    }
    let p = target.modulus.value();
    let modulus = _mm512_set1_epi64(p as i64);
    let inverse = _mm512_set1_epi64(target.inverse as i64);
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        let m = _mm512_madd52lo_epu64(zero, low, inverse);
        let high = _mm512_add_epi64(high, _mm512_add_epi64(_mm512_srli_epi64::<52>(low), modulus));
        let mut sum = _mm512_sub_epi64(high, _mm512_madd52hi_epu64(zero, m, modulus));
        for step in (0..STEPS).rev() {
            let multiple = _mm512_set1_epi64((p << step) as i64);
            sum = _mm512_min_epu64(sum, _mm512_sub_epi64(sum, multiple));
        }
        store_values(out, sum);
    }
}
