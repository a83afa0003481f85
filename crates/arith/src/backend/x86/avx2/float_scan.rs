//! Inner products of float32 rows with queries in double precision, four sums at a time.

use core::arch::x86_64::*;
use core::ops::Range;

use crate::backend::portable::{self, float_scan::finish};
use crate::backend::shared::float_scan::{AHEAD, BLOCK, float_products};
use crate::backend::shared::prefetch::prefetch_ahead;

#[inline]
#[target_feature(enable = "avx2,fma")]
fn words(words: &[u8; 32], j: usize) -> __m256d {
    let words = &words.as_chunks::<16>().0[j];
    // SAFETY: the reference covers four readable words; the load has no alignment.
    _mm256_cvtps_pd(unsafe { _mm_loadu_ps(words.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn query(query: &[f64; 8], j: usize) -> __m256d {
    let query = &query.as_chunks::<4>().0[j];
    // SAFETY: the reference covers four readable doubles; the load has no alignment.
    unsafe { _mm256_loadu_pd(query.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store(sums: &[__m256d; 2]) -> [f64; 8] {
    let mut out = [0.0; 8];
    for (out, sum) in out.as_chunks_mut::<4>().0.iter_mut().zip(sums) {
        // SAFETY: the reference covers four writable doubles; the store has no alignment.
        unsafe { _mm256_storeu_pd(out.as_mut_ptr(), *sum) };
    }
    out
}

float_products!(
    "avx2,fma", 2 vectors, 2 rows of 2 queries, 1 of one,
    _mm256_setzero_pd, words, query, _mm256_fmadd_pd, store
);
