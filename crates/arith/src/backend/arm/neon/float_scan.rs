//! Float scan: two sums in a register.

use core::arch::aarch64::*;
use core::ops::Range;

use crate::backend::portable::{self, float_scan::finish};
use crate::backend::shared::float_scan::{AHEAD, BLOCK, float_products};
use crate::backend::shared::prefetch::prefetch_ahead;

#[inline]
#[target_feature(enable = "neon")]
fn zero() -> float64x2_t {
    vdupq_n_f64(0.0)
}

#[inline]
#[target_feature(enable = "neon")]
fn words(words: &[u8; 32], j: usize) -> float64x2_t {
    let words = &words.as_chunks::<16>().0[j / 2];
    // SAFETY: the reference covers 16 readable bytes, and bytes have no alignment.
    let words = vreinterpretq_f32_u8(unsafe { vld1q_u8(words.as_ptr()) });
    if j.is_multiple_of(2) { vcvt_f64_f32(vget_low_f32(words)) } else { vcvt_high_f64_f32(words) }
}

#[inline]
#[target_feature(enable = "neon")]
fn query(query: &[f64; 8], j: usize) -> float64x2_t {
    let query = &query.as_chunks::<2>().0[j];
    // SAFETY: the reference covers two readable doubles.
    unsafe { vld1q_f64(query.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply_add(x: float64x2_t, y: float64x2_t, sum: float64x2_t) -> float64x2_t {
    vfmaq_f64(sum, x, y)
}

#[inline]
#[target_feature(enable = "neon")]
fn store(sums: &[float64x2_t; 4]) -> [f64; 8] {
    let mut out = [0.0; 8];
    for (out, sum) in out.as_chunks_mut::<2>().0.iter_mut().zip(sums) {
        // SAFETY: the reference covers two writable doubles.
        unsafe { vst1q_f64(out.as_mut_ptr(), *sum) };
    }
    out
}

float_products!(
    "neon", 4 vectors, 2 rows of 2 queries, 2 of one,
    zero, words, query, multiply_add, store
);
