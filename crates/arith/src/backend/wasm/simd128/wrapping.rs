//! Weighted sums of words or bytes modulo a power of two; bytes sixteen at a time.

use core::arch::wasm32::*;

/// Bytes of a vector.
const WIDTH: usize = 16;
type V = v128;

#[inline(always)]
fn zero() -> V {
    u8x16_splat(0)
}

#[inline(always)]
fn load(from: &[u8; WIDTH]) -> V {
    // SAFETY: the reference covers 16 readable bytes; the load has no alignment.
    unsafe { v128_load(from.as_ptr().cast()) }
}

/// Products of bytes with -1, 0 and 1, on top of sums that wrap: there is no product of bytes, and
/// these are nothing, themselves, or what is left from their complement.
#[inline(always)]
fn add_products(sum: V, a: V, t: V) -> V {
    let negative = i8x16_lt(t, zero());
    let present = v128_or(t, i8x16_neg(t));
    let product = i8x16_sub(v128_xor(v128_and(a, present), negative), negative);
    i8x16_add(sum, product)
}

/// All bytes of each, modulo 2^8.
#[inline(always)]
fn totals(sums: [V; 4]) -> [u8; 4] {
    sums.map(|sum| {
        let fours = u32x4_extadd_pairwise_u16x8(u16x8_extadd_pairwise_u8x16(sum));
        let twos = u32x4_add(fours, u32x4_shuffle::<2, 3, 0, 1>(fours, fours));
        (u32x4_extract_lane::<0>(twos) + u32x4_extract_lane::<1>(twos)) as u8
    })
}

crate::backend::shared::wrapping::wrapping_sums!("simd128");
