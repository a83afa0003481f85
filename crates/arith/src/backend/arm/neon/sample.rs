//! Samplers, eight samples at a time, in constant time where they are secret.

use core::arch::aarch64::*;

use crate::backend::operands::sample::GAUSSIAN_TAIL;
use crate::backend::portable;

// The cipher's own kernel has NEON in every build for ARM.
pub(crate) use crate::backend::portable::sample::{accept, keystream};

/// Vectors of two words that are compared with a number while it is in a register.
const TOGETHER: usize = 4;

/// One sample a word: 29 comparisons, whose all-ones results count downwards.
#[target_feature(enable = "neon")]
pub(crate) fn gaussian(words: &[u64], out: &mut [i32]) {
    let (rows, rest) = words.as_chunks::<{ 2 * TOGETHER }>();
    let (samples, last) = out.as_chunks_mut::<{ 2 * TOGETHER }>();
    for (row, samples) in rows.iter().zip(samples) {
        // SAFETY: each reference covers two readable words.
        let load = |pair: &[u64; 2]| unsafe { vld1q_u64(pair.as_ptr()) };
        let pairs = row.as_chunks::<2>().0;
        let word = [load(&pairs[0]), load(&pairs[1]), load(&pairs[2]), load(&pairs[3])];
        let mut negated = [vdupq_n_s64(0); TOGETHER];
        for &threshold in &GAUSSIAN_TAIL {
            let threshold = vdupq_n_u64(threshold);
            for (count, word) in negated.iter_mut().zip(word) {
                let uniform = vandq_u64(word, vdupq_n_u64(u64::MAX >> 1));
                let below = vreinterpretq_s64_u64(vcgtq_u64(threshold, uniform));
                *count = vaddq_s64(*count, below);
            }
        }
        let pairs = samples.as_chunks_mut::<2>().0;
        for ((out, word), negated) in pairs.iter_mut().zip(word).zip(negated) {
            // -m where the sign is set, m = (-m ^ -1) + 1 where not.
            let positive = vreinterpretq_s64_u64(vcgezq_s64(vreinterpretq_s64_u64(word)));
            let signed = vmovn_s64(vsubq_s64(veorq_s64(negated, positive), positive));
            // SAFETY: the reference covers two writable words.
            unsafe { vst1_s32(out.as_mut_ptr(), signed) };
        }
    }
    portable::sample::gaussian(rest, last);
}
