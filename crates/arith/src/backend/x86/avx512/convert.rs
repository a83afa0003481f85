//! Changes of representation of residues, eight words at a time.

use core::arch::x86_64::*;

use crate::backend::portable;

crate::backend::shared::convert::widened_conversions!("avx512f,avx512dq,avx512bw,avx512vl");

/// The bytes of sixteen packed values among the 64 of a vector.
const PACKED: __mmask64 = (1 << 48) - 1;

/// For every byte of the result, which byte of the source it is.
#[inline]
#[target_feature(enable = "avx512f")]
fn index(byte: impl Fn(usize) -> usize) -> __m512i {
    let table: [u8; 64] = core::array::from_fn(|i| byte(i) as u8);
    // SAFETY: the array is 64 readable bytes.
    unsafe { _mm512_loadu_si512(table.as_ptr().cast()) }
}

/// Sixteen values at a time: one byte permutation closes the gaps, a masked store writes 48 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(crate) fn pack24(out: &mut [u8], values: &[u32]) {
    let close = index(|i| if i < 48 { 4 * (i / 3) + i % 3 } else { 0 });
    let ((whole, rest), (packed, tail)) = (values.as_chunks::<16>(), out.as_chunks_mut::<48>());
    for (packed, values) in packed.iter_mut().zip(whole) {
        // SAFETY: the reference covers sixteen readable words.
        let words = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
        let bytes = _mm512_permutexvar_epi8(close, words);
        // SAFETY: the mask lets only the 48 bytes that the reference covers be written.
        unsafe { _mm512_mask_storeu_epi8(packed.as_mut_ptr().cast(), PACKED, bytes) };
    }
    portable::convert::pack24(tail, rest);
}

/// The way back: a masked load reads 48 bytes, one byte permutation opens the gaps, a mask clears
/// them.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(crate) fn unpack24(out: &mut [u32], bytes: &[u8]) {
    let open = index(|i| 3 * (i / 4) + i % 4);
    let low = _mm512_set1_epi32(0x00ff_ffff);
    let ((whole, rest), (packed, tail)) = (out.as_chunks_mut::<16>(), bytes.as_chunks::<48>());
    for (values, packed) in whole.iter_mut().zip(packed) {
        // SAFETY: the mask lets only the 48 bytes that the reference covers be read.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(PACKED, packed.as_ptr().cast()) };
        let words = _mm512_and_si512(_mm512_permutexvar_epi8(open, bytes), low);
        // SAFETY: the reference covers sixteen writable words.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), words) };
    }
    portable::convert::unpack24(rest, tail);
}
