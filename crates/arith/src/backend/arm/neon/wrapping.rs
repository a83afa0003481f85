//! Wrapping sums, sixteen bytes at a time.

use core::arch::aarch64::*;

/// Bytes of a vector.
const WIDTH: usize = 16;
type V = uint8x16_t;

#[inline]
#[target_feature(enable = "neon")]
fn zero() -> V {
    vdupq_n_u8(0)
}

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[u8; WIDTH]) -> V {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { vld1q_u8(from.as_ptr()) }
}

/// Products of bytes, modulo 2^8, on top of sums of such.
#[inline]
#[target_feature(enable = "neon")]
fn add_products(sum: V, a: V, t: V) -> V {
    vmlaq_u8(sum, a, t)
}

/// All bytes of each, modulo 2^8.
#[inline]
#[target_feature(enable = "neon")]
fn totals(sums: [V; 4]) -> [u8; 4] {
    let [a, b, c, d] = sums;
    [vaddvq_u8(a), vaddvq_u8(b), vaddvq_u8(c), vaddvq_u8(d)]
}

crate::backend::shared::wrapping::wrapping_sums!("neon");
