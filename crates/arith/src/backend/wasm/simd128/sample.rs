//! Gaussian samples from words of keystream, eight at a time, without branches on secrets.

use core::arch::wasm32::*;
use core::hint::black_box;

use crate::backend::operands::sample::GAUSSIAN_TAIL;
use crate::backend::portable;

pub(crate) use super::chacha::keystream;
pub(crate) use crate::backend::portable::sample::accept;

/// Vectors that are compared with a number while it is in a register.
const TOGETHER: usize = 4;

/// One sample a word: 29 signed comparisons of 63-bit numbers, whose all-ones results count
/// downwards.
pub(crate) fn gaussian(words: &[u64], out: &mut [i32]) {
    // As numbers that the compiler knows they would be put together in registers, time and again.
    let tail = black_box(&GAUSSIAN_TAIL);
    let (rows, rest) = words.as_chunks::<{ 2 * TOGETHER }>();
    let (samples, last) = out.as_chunks_mut::<{ 2 * TOGETHER }>();
    let zero = u64x2_splat(0);
    for (row, samples) in rows.iter().zip(samples) {
        let row = row.as_chunks::<2>().0;
        let word: [v128; TOGETHER] = core::array::from_fn(|i| load(&row[i]));
        let uniform = word.map(|word| v128_and(word, i64x2_splat(i64::MAX)));
        let mut negated = [zero; TOGETHER];
        for threshold in tail {
            let threshold = u64x2_splat(*threshold);
            for (count, uniform) in negated.iter_mut().zip(&uniform) {
                *count = i64x2_add(*count, i64x2_gt(threshold, *uniform));
            }
        }
        let samples = samples.as_chunks_mut::<2>().0;
        for ((word, negated), samples) in word.iter().zip(&negated).zip(samples) {
            // -m where the sign is set, m = (-m ^ -1) + 1 where not.
            let positive = v128_not(i64x2_gt(zero, *word));
            let signed = i64x2_sub(v128_xor(*negated, positive), positive);
            *samples = [i32x4_extract_lane::<0>(signed), i32x4_extract_lane::<2>(signed)];
        }
    }
    portable::sample::gaussian(rest, last);
}

#[inline(always)]
fn load(from: &[u64; 2]) -> v128 {
    // SAFETY: the reference covers 16 readable bytes; the load has no alignment.
    unsafe { v128_load(from.as_ptr().cast()) }
}
