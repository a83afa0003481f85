//! Weighted sums of words or bytes modulo a power of two, eight words at a time.

use core::arch::x86_64::*;

/// Bytes of a vector.
const WIDTH: usize = 32;
type V = __m256i;

#[inline]
#[target_feature(enable = "avx2")]
fn zero() -> V {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[u8; WIDTH]) -> V {
    // SAFETY: the reference covers 32 readable bytes; the load has no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Products of unsigned bytes with signed ones, two by two, on top of 16-bit sums.
#[inline]
#[target_feature(enable = "avx2")]
fn add_products(sum: V, a: V, t: V) -> V {
    _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, t))
}

/// All 16-bit lanes of each, modulo 2^8.
#[inline]
#[target_feature(enable = "avx2")]
fn totals(sums: [V; 4]) -> [u8; 4] {
    let ones = _mm256_set1_epi16(1);
    let [a, b, c, d] = sums.map(|sum| _mm256_madd_epi16(sum, ones));
    // Either half has a lane for each of the four.
    let halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let (low, high) = (_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    let all = _mm_add_epi32(low, high);
    [
        _mm_extract_epi32(all, 0) as u8,
        _mm_extract_epi32(all, 1) as u8,
        _mm_extract_epi32(all, 2) as u8,
        _mm_extract_epi32(all, 3) as u8,
    ]
}

crate::backend::shared::wrapping::wrapping_sums!("avx2");
