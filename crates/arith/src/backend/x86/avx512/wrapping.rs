//! Weighted sums of words or bytes modulo a power of two, sixteen words at a time.

use core::arch::x86_64::*;

/// Bytes of a vector.
const WIDTH: usize = 64;
type V = __m512i;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn zero() -> V {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn load(from: &[u8; WIDTH]) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Products of unsigned bytes with signed ones, two by two, on top of 16-bit sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn add_products(sum: V, a: V, t: V) -> V {
    _mm512_add_epi16(sum, _mm512_maddubs_epi16(a, t))
}

/// All 16-bit lanes of each, modulo 2^8.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn totals(sums: [V; 4]) -> [u8; 4] {
    let ones = _mm512_set1_epi16(1);
    sums.map(|sum| _mm512_reduce_add_epi32(_mm512_madd_epi16(sum, ones)) as u8)
}

crate::backend::shared::wrapping::wrapping_sums!("avx512f,avx512bw,avx512dq");
