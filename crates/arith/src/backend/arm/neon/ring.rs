//! Ring scan: packed residues in two registers of 16 bytes.

use core::arch::aarch64::*;

use core::arch::aarch64::uint8x16x2_t as Packed;

crate::backend::shared::ring::double_scan!("neon");

#[inline]
#[target_feature(enable = "neon")]
fn load_bytes(low: &[u8; 16], high: &[u8; 16]) -> Packed {
    // SAFETY: both references cover 16 readable bytes.
    unsafe { Packed(vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_words(words: &[u64; LANES]) -> Packed {
    let bytes = bytemuck::cast_ref::<_, [[u8; 16]; 2]>(words);
    load_bytes(&bytes[0], &bytes[1])
}

#[inline]
#[target_feature(enable = "neon")]
fn store_words(out: &mut [u64; LANES], x: Packed) {
    let [low, high] = bytemuck::cast_mut::<_, [[u8; 16]; 2]>(out);
    // SAFETY: both references cover 16 writable bytes.
    unsafe {
        vst1q_u8(low.as_mut_ptr(), x.0);
        vst1q_u8(high.as_mut_ptr(), x.1);
    }
}

/// Each byte from the place in its half that `places` names, or 0.
#[inline]
#[target_feature(enable = "neon")]
fn move_bytes(x: Packed, places: Packed) -> Packed {
    Packed(vqtbl1q_u8(x.0, places.0), vqtbl1q_u8(x.1, places.1))
}

#[inline]
#[target_feature(enable = "neon")]
fn keep_bits(x: Packed, mask: Packed) -> Packed {
    Packed(vandq_u8(x.0, mask.0), vandq_u8(x.1, mask.1))
}

/// Words by 0, 2, 4 and 6 bits.
#[inline]
#[target_feature(enable = "neon")]
fn shift_down(x: Packed) -> Packed {
    let by = |x, first, second| {
        let shifts = vcombine_s64(vcreate_s64(first), vcreate_s64(second));
        vreinterpretq_u8_u64(vshlq_u64(vreinterpretq_u64_u8(x), vnegq_s64(shifts)))
    };
    Packed(by(x.0, 0, 2), by(x.1, 4, 6))
}

/// The upper half of `2^52` in every half of a lane.
#[inline]
#[target_feature(enable = "neon")]
fn exponent() -> Packed {
    let upper = vreinterpretq_u8_u32(vdupq_n_u32((SHIFT.to_bits() >> 32) as u32));
    Packed(upper, upper)
}

/// The low halves of all words and the high ones, on top of `2^52`.
#[inline]
#[target_feature(enable = "neon")]
fn below_exponent(x: Packed, exponent: Packed) -> (V, V) {
    let halves = |x, exponent| {
        let (x, exponent) = (vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(exponent));
        (
            vreinterpretq_f64_u32(vtrn1q_u32(x, exponent)),
            vreinterpretq_f64_u32(vtrn2q_u32(x, exponent)),
        )
    };
    let ((low0, high0), (low1, high1)) = (halves(x.0, exponent.0), halves(x.1, exponent.1));
    (V(low0, low1), V(high0, high1))
}
