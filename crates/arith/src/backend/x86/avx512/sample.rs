//! Samples from words of keystream, eight at a time, in constant time where they are secret.
//!
//! # Rules, on every back-end
//!
//! - **Gaussian.** An inversion over 63 bits: |e| is the number of k with u < T_k, T_k = round(2^63
//!   P(|X| ≥ k)), k = 1 … 29; the 64th bit is the sign. All 29 comparisons always run: no look-up,
//!   no branch. The statistical distance from the discrete Gaussian is 2^-60.8: half the sum of
//!   |P'(x) − P(x)| over x. Zero counts once: P(0) = 1 − T_1/2^63.
//! - **Uniform residues.** Mask to ceil(log2 q) bits, `vpcompressq` those below q, draw as many
//!   words as are missing. No sampler reads a byte more than its rule says, so streams are the same
//!   on every platform.
//! - **ChaCha20** for long requests computes sixteen blocks at a time, a block a lane; the
//!   `chacha20` crate serves short requests, ends and other processors. `tests/suite/sample.rs`
//!   compares both with RFC 8439.

use core::arch::x86_64::*;

use crate::backend::operands::sample::GAUSSIAN_TAIL;
use crate::backend::portable;

pub(crate) use super::chacha::keystream;

/// Masks each word and moves those below `q` to the front, in order; returns how many.
#[target_feature(enable = "avx512f")]
pub(crate) fn accept(words: &mut [u64], mask: u64, q: u64) -> usize {
    let (mask8, q8) = (_mm512_set1_epi64(mask as i64), _mm512_set1_epi64(q as i64));
    let whole = words.len() / 8 * 8;
    let mut kept = 0;
    for start in (0..whole).step_by(8) {
        let from = &words[start..start + 8];
        // SAFETY: the slice is eight readable words.
        let x = _mm512_and_si512(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }, mask8);
        let below = _mm512_cmplt_epu64_mask(x, q8);
        // At most as many words were kept as were read, so the whole vector may be stored: what
        // lies behind is read.
        let to = &mut words[kept..kept + 8];
        let packed = _mm512_maskz_compress_epi64(below, x);
        // SAFETY: the slice is eight writable words.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), packed) };
        kept += below.count_ones() as usize;
    }
    for i in whole..words.len() {
        let x = words[i] & mask;
        words[kept] = x;
        kept += usize::from(x < q);
    }
    kept
}

/// One sample a word: 29 comparisons, each counted with a masked subtraction of minus one.
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
pub(crate) fn gaussian(words: &[u64], out: &mut [i32]) {
    let (rows, rest) = words.as_chunks::<8>();
    let (samples, tail) = out.as_chunks_mut::<8>();
    let one = _mm512_set1_epi64(1);
    let zero = _mm512_setzero_si512();
    for (row, e) in rows.iter().zip(samples) {
        // SAFETY: the reference covers 64 readable bytes.
        let word = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
        let uniform = _mm512_and_si512(word, _mm512_set1_epi64(i64::MAX));
        // Two counters halve the chain of dependent additions.
        let mut count = [zero; 2];
        for (k, &t) in GAUSSIAN_TAIL.iter().enumerate() {
            let below = _mm512_cmplt_epu64_mask(uniform, _mm512_set1_epi64(t as i64));
            count[k % 2] = _mm512_mask_add_epi64(count[k % 2], below, count[k % 2], one);
        }
        let magnitude = _mm512_add_epi64(count[0], count[1]);
        let signed = _mm512_mask_sub_epi64(magnitude, _mm512_movepi64_mask(word), zero, magnitude);
        // SAFETY: the reference covers 32 writable bytes.
        unsafe { _mm256_storeu_si256(e.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(signed)) };
    }
    portable::sample::gaussian(rest, tail);
}
