//! Ring scan: packed residues in 256 bits, as two halves of 16 bytes.

use core::arch::x86_64::*;

type Packed = __m256i;

crate::backend::shared::ring::double_scan!("avx2,fma");

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_bytes(low: &[u8; 16], high: &[u8; 16]) -> Packed {
    // SAFETY: both references cover 16 readable bytes.
    unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_words(words: &[u64; LANES]) -> Packed {
    // SAFETY: the reference covers 32 readable bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store_words(out: &mut [u64; LANES], x: Packed) {
    // SAFETY: the reference covers 32 writable bytes.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), x) }
}

/// Each byte from the place in its half that `places` names, or 0.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn move_bytes(x: Packed, places: Packed) -> Packed {
    _mm256_shuffle_epi8(x, places)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn keep_bits(x: Packed, mask: Packed) -> Packed {
    _mm256_and_si256(x, mask)
}

/// Words by 0, 2, 4 and 6 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shift_down(x: Packed) -> Packed {
    _mm256_srlv_epi64(x, _mm256_setr_epi64x(0, 2, 4, 6))
}

/// `2^52` in every lane.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exponent() -> Packed {
    _mm256_set1_epi64x(SHIFT.to_bits() as i64)
}

/// The low halves of all words and the high ones, on top of `2^52`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn below_exponent(x: Packed, exponent: Packed) -> (V, V) {
    let low = _mm256_blend_epi32::<0b1010_1010>(x, exponent);
    let high = _mm256_or_si256(_mm256_srli_epi64::<32>(x), exponent);
    (_mm256_castsi256_pd(low), _mm256_castsi256_pd(high))
}
