//! Samples from words of keystream, four at a time, in constant time where they are secret.

use core::arch::x86_64::*;

use crate::backend::operands::sample::GAUSSIAN_TAIL;
use crate::backend::portable;

pub(crate) use crate::backend::portable::sample::keystream;

/// Masks each word and moves those below `q` to the front, in order; returns how many.
#[target_feature(enable = "avx2")]
pub(crate) fn accept(words: &mut [u64], mask: u64, q: u64) -> usize {
    portable::sample::accept(words, mask, q)
}

/// One sample a word: 29 signed comparisons of 63-bit numbers, whose all-ones results count
/// downwards.
#[target_feature(enable = "avx2")]
pub(crate) fn gaussian(words: &[u64], out: &mut [i32]) {
    let (rows, rest) = words.as_chunks::<4>();
    let (samples, tail) = out.as_chunks_mut::<4>();
    let zero = _mm256_setzero_si256();
    for (row, e) in rows.iter().zip(samples) {
        // SAFETY: the reference covers 32 readable bytes.
        let word = unsafe { _mm256_loadu_si256(row.as_ptr().cast()) };
        let uniform = _mm256_and_si256(word, _mm256_set1_epi64x(i64::MAX));
        let mut count = [zero; 2];
        for (k, &t) in GAUSSIAN_TAIL.iter().enumerate() {
            let below = _mm256_cmpgt_epi64(_mm256_set1_epi64x(t as i64), uniform);
            count[k % 2] = _mm256_add_epi64(count[k % 2], below);
        }
        let negated = _mm256_add_epi64(count[0], count[1]);
        // -m where the sign is set, m = (-m ^ -1) + 1 where not.
        let positive = _mm256_xor_si256(_mm256_cmpgt_epi64(zero, word), _mm256_set1_epi64x(-1));
        let signed = _mm256_sub_epi64(_mm256_xor_si256(negated, positive), positive);
        let low = _mm256_permutevar8x32_epi32(signed, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
        // SAFETY: the reference covers 16 writable bytes.
        unsafe { _mm_storeu_si128(e.as_mut_ptr().cast(), _mm256_castsi256_si128(low)) };
    }
    portable::sample::gaussian(rest, tail);
}
