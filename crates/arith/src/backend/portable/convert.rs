//! Changes of representation of residues, one word at a time, without branches.
//!
//! All functions are inlined into the vector back-ends, where the compiler widens them by itself.

use crate::backend::operands::convert::SignedDigit;

/// 2^52 as bits and as a number: OR-ing an integer below 2^52 into the bits adds it to the number.
const EXPONENT_52: u64 = 0x4330_0000_0000_0000;
const TWO_52: f64 = 4_503_599_627_370_496.0;
/// 1.5 · 2^52: adding it rounds a double below 2^51 to the nearest integer, which then stands in
/// its low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

#[inline(always)]
fn above(value: u64, limit: u64) -> u64 {
    ((limit.wrapping_sub(value)) as i64 >> 63) as u64
}

#[inline(always)]
pub(crate) fn recentre(poly: &mut [u64], from: u64, to: u64) {
    for value in poly {
        // |centred| <= (from - 1) / 2 < to, so one correction lands in [0, to).
        *value = value.wrapping_add(to.wrapping_sub(from) & above(*value, from / 2));
    }
}

#[inline(always)]
pub(crate) fn centre(poly: &mut [u64], modulus: u64) {
    for value in poly {
        *value = value.wrapping_sub(modulus & above(*value, modulus / 2));
    }
}

#[inline(always)]
pub(crate) fn lift(out: &mut [u64], values: &[i64], modulus: u64) {
    for (out, &value) in out.iter_mut().zip(values) {
        *out = (value as u64).wrapping_add(modulus & (value >> 63) as u64);
    }
}

#[inline(always)]
pub(crate) fn lift_ternary(out: &mut [u64], values: &[i8], modulus: u64) {
    for (out, &value) in out.iter_mut().zip(values) {
        let value = i64::from(value);
        *out = (value as u64).wrapping_add(modulus & (value >> 63) as u64);
    }
}

#[inline(always)]
pub(crate) fn lift_noisy(out: &mut [u64], values: &[i64], noise: &[i32], modulus: u64) {
    for ((out, &value), &noise) in out.iter_mut().zip(values).zip(noise) {
        let value = value + i64::from(noise);
        *out = (value as u64).wrapping_add(modulus & (value >> 63) as u64);
    }
}

#[inline(always)]
pub(crate) fn signed_digit(out: &mut [u64], poly: &[u64], modulus: u64, digit: &SignedDigit) {
    let &SignedDigit { offset, shift, mask, half } = digit;
    for (out, &value) in out.iter_mut().zip(poly) {
        let centred = value.wrapping_sub(modulus & above(value, modulus / 2));
        let digit = (centred.wrapping_add(offset) >> shift & mask).wrapping_sub(half);
        *out = digit.wrapping_add(modulus & ((digit as i64) >> 63) as u64);
    }
}

#[inline(always)]
pub(crate) fn switch_down(out: &mut [u32], poly: &[u64], modulus: u64) {
    // Both factors are exact, so the product is off by 2^-28 of a step at most, on every machine
    // alike.
    let scale = f64::from(1u32 << 24) / modulus as f64;
    for (out, &value) in out.iter_mut().zip(poly) {
        let exact = f64::from_bits(value | EXPONENT_52) - TWO_52;
        *out = (exact * scale + ROUND).to_bits() as u32 & 0x00ff_ffff;
    }
}

#[inline(always)]
pub(crate) fn switch_up(out: &mut [u64], values: &[u32], modulus: u64) {
    // modulus = high 2^24 + low: both partial products stay below 2^50.
    let (high, low) = (modulus >> 24, modulus & 0x00ff_ffff);
    for (out, &value) in out.iter_mut().zip(values) {
        let value = u64::from(value);
        let rounded = value * high + ((value * low + (1 << 23)) >> 24);
        *out = rounded.wrapping_sub(modulus & above(rounded, modulus - 1));
    }
}

#[inline(always)]
pub(crate) fn pack24(out: &mut [u8], values: &[u32]) {
    let ((values, rest), (groups, tail)) = (values.as_chunks::<4>(), out.as_chunks_mut::<12>());
    for (group, &[a, b, c, d]) in groups.iter_mut().zip(values) {
        let low = u64::from(a) | u64::from(b) << 24 | u64::from(c) << 48;
        group[..8].copy_from_slice(&low.to_le_bytes());
        group[8..].copy_from_slice(&(c >> 16 | d << 8).to_le_bytes());
    }
    for (out, value) in tail.chunks_exact_mut(3).zip(rest) {
        out.copy_from_slice(&value.to_le_bytes()[..3]);
    }
}

#[inline(always)]
pub(crate) fn unpack24(out: &mut [u32], bytes: &[u8]) {
    for (value, &[a, b, c]) in out.iter_mut().zip(bytes.as_chunks::<3>().0) {
        *value = u32::from_le_bytes([a, b, c, 0]);
    }
}
