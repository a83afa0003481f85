//! Key switch: digits and keys enter, its two sums leave; permutations of values; four at a time.

use core::arch::x86_64::*;

use super::lanes::{
    Constants, LANES, add, load_residues, multiply, reduce, store_residues, store_values,
};
use super::poly::TERMS;
use crate::backend::portable;
use crate::modulus::KERNEL_BITS;
use crate::modulus::Modulus;

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

#[target_feature(enable = "avx2,fma")]
pub(crate) fn dot_pair(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    m: &Modulus,
) {
    pairs::<false>((out0, out1), digits, (keys0, keys1), &[], m);
}

#[target_feature(enable = "avx2,fma")]
pub(crate) fn dot_pair_permuted(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    perm: &[u32],
    m: &Modulus,
) {
    pairs::<true>((out0, out1), digits, (keys0, keys1), perm, m);
}

/// Both sums, the products as doubles, reduced once in eight terms; the digits are read where
/// `perm` says if `PERMUTED`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn pairs<const PERMUTED: bool>(
    (out0, out1): (&mut [u64], &mut [u64]),
    digits: &[&[u64]],
    (keys0, keys1): (&[&[u64]], &[&[u64]]),
    perm: &[u32],
    m: &Modulus,
) {
    let place = |i: usize| if PERMUTED { perm[i] as usize } else { i };
    if m.value() >> KERNEL_BITS != 0 {
        return portable::switch::dot_pair_from(0, (out0, out1), digits, (keys0, keys1), place, m);
    }
    let q = m.value() as f64;
    let c = Constants::new(q, 1.0 / q);
    let (whole0, rest0) = out0.as_chunks_mut::<LANES>();
    let (whole1, rest1) = out1.as_chunks_mut::<LANES>();
    let start = whole0.len() * LANES;
    for (i, (out0, out1)) in whole0.iter_mut().zip(whole1).enumerate() {
        let (mut sum0, mut sum1) = (load_residues(&[0; LANES]), load_residues(&[0; LANES]));
        for ((d, k0), k1) in digits.chunks(TERMS).zip(keys0.chunks(TERMS)).zip(keys1.chunks(TERMS))
        {
            for ((d, k0), k1) in d.iter().zip(k0).zip(k1) {
                let x = if PERMUTED {
                    load_residues(&[0, 1, 2, 3].map(|lane| d[place(i * LANES + lane)]))
                } else {
                    load_residues(&d.as_chunks::<LANES>().0[i])
                };
                let y0 = load_residues(&k0.as_chunks::<LANES>().0[i]);
                let y1 = load_residues(&k1.as_chunks::<LANES>().0[i]);
                sum0 = add(sum0, multiply(&c, x, y0));
                sum1 = add(sum1, multiply(&c, x, y1));
            }
            (sum0, sum1) = (reduce(&c, sum0), reduce(&c, sum1));
        }
        store_residues(&c, out0, sum0);
        store_residues(&c, out1, sum1);
    }
    let place = |i| place(start + i);
    portable::switch::dot_pair_from(start, (rest0, rest1), digits, (keys0, keys1), place, m);
}
