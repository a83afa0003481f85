//! Key switch, and permutations of values, four at a time.

use core::arch::x86_64::*;

use super::lanes::store_values;

crate::backend::shared::switch::double_pairs!("avx2,fma");

/// Places that are looked at together: an automorphism moves the values in bit-reversed order in
/// aligned blocks of eight, so that what comes to eight places comes out of two vectors.
const BLOCK: usize = 8;

#[target_feature(enable = "avx2,fma")]
pub(crate) fn permute(out: &mut [u64], a: &[u64], perm: &[u32]) {
    let ((whole, rest), (perm, last)) = (out.as_chunks_mut::<BLOCK>(), perm.as_chunks::<BLOCK>());
    let blocks = a.as_chunks::<BLOCK>().0;
    for (out, perm) in whole.iter_mut().zip(perm) {
        // SAFETY: the reference covers eight readable words of four bytes.
        let places = unsafe { _mm256_loadu_si256(perm.as_ptr().cast()) };
        let block = perm[0] as usize / BLOCK;
        let distance = _mm256_xor_si256(places, _mm256_set1_epi32((block * BLOCK) as i32));
        let near = _mm256_testz_si256(distance, _mm256_set1_epi32(!(BLOCK as i32 - 1))) == 1;
        match blocks.get(block) {
            Some(block) if near => shuffle(out, block, distance),
            _ => portable::switch::permute(out, a, perm),
        }
    }
    portable::switch::permute(rest, a, last);
}

/// Each of eight words from the place in its block that it names.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shuffle(out: &mut [u64; BLOCK], block: &[u64; BLOCK], places: __m256i) {
    // SAFETY: the reference covers 64 readable bytes.
    let [low, high] = unsafe {
        let start = block.as_ptr().cast::<__m256i>();
        [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))]
    };
    let halves = [_mm256_castsi256_si128(places), _mm256_extracti128_si256::<1>(places)];
    for (out, places) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(halves) {
        // A word is two of 32 bits, at 2i and 2i + 1.
        let place = _mm256_cvtepu32_epi64(places);
        let twice = _mm256_slli_epi64::<1>(place);
        let pair = _mm256_or_si256(twice, _mm256_slli_epi64::<32>(twice));
        let pair = _mm256_or_si256(pair, _mm256_set1_epi64x(1 << 32));
        let from_low = _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(low, pair));
        let from_high = _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(high, pair));
        // The shuffle looks at three bits of 2i, which leaves out the third of i: that chooses the
        // half of the block, as a sign.
        let second = _mm256_castsi256_pd(_mm256_slli_epi64::<61>(place));
        store_values(out, _mm256_blendv_pd(from_low, from_high, second));
    }
}
