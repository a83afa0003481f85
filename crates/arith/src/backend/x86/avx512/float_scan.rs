//! Inner products of float32 rows with queries in double precision, eight sums at a time.

use core::arch::x86_64::*;
use core::ops::Range;

use crate::backend::portable::{self, float_scan::finish};
use crate::backend::shared::float_scan::{AHEAD, BLOCK, float_products};
use crate::backend::shared::prefetch::prefetch_ahead;

#[inline]
#[target_feature(enable = "avx512f")]
fn words(words: &[u8; 32], _: usize) -> __m512d {
    // SAFETY: the reference covers eight readable words; the load has no alignment.
    _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(words.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn query(query: &[f64; 8], _: usize) -> __m512d {
    // SAFETY: the reference covers eight readable doubles; the load has no alignment.
    unsafe { _mm512_loadu_pd(query.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(sums: &[__m512d; 1]) -> [f64; 8] {
    let mut out = [0.0; 8];
    // SAFETY: the array is eight writable doubles; the store has no alignment.
    unsafe { _mm512_storeu_pd(out.as_mut_ptr(), sums[0]) };
    out
}

float_products!(
    "avx512f", 1 vectors, 4 rows of 4 queries, 1 of one,
    _mm512_setzero_pd, words, query, _mm512_fmadd_pd, store
);
