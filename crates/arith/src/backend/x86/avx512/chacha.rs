//! ChaCha20 keystream, sixteen blocks at a time.

use core::arch::x86_64::*;

use crate::backend::operands::sample::WIDE;

/// Words of one quarter round, written out so that the sixteen state words stay in registers.
macro_rules! quarter {
    ($x:ident, $a:literal, $b:literal, $c:literal, $d:literal) => {
        $x[$a] = _mm512_add_epi32($x[$a], $x[$b]);
        $x[$d] = _mm512_rol_epi32::<16>(_mm512_xor_si512($x[$d], $x[$a]));
        $x[$c] = _mm512_add_epi32($x[$c], $x[$d]);
        $x[$b] = _mm512_rol_epi32::<12>(_mm512_xor_si512($x[$b], $x[$c]));
        $x[$a] = _mm512_add_epi32($x[$a], $x[$b]);
        $x[$d] = _mm512_rol_epi32::<8>(_mm512_xor_si512($x[$d], $x[$a]));
        $x[$c] = _mm512_add_epi32($x[$c], $x[$d]);
        $x[$b] = _mm512_rol_epi32::<7>(_mm512_xor_si512($x[$b], $x[$c]));
    };
}

/// Fills `out` with the keystream from block `counter` on; the caller sees to it that the counter
/// does not wrap.
#[target_feature(enable = "avx512f")]
pub(crate) fn keystream(
    key: &[u8; 32],
    nonce: &[u8; 12],
    counter: u32,
    out: &mut [[u8; WIDE]],
) -> bool {
    let mut words = [0u32; 16];
    words[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    for (word, bytes) in words[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    for (word, bytes) in words[13..].iter_mut().zip(nonce.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let mut state = [_mm512_setzero_si512(); 16];
    for (lanes, &word) in state.iter_mut().zip(&words) {
        *lanes = _mm512_set1_epi32(word as i32);
    }
    let lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    state[12] = _mm512_add_epi32(_mm512_set1_epi32(counter as i32), lane);
    for out in out {
        let mut x = state;
        for _ in 0..10 {
            quarter!(x, 0, 4, 8, 12);
            quarter!(x, 1, 5, 9, 13);
            quarter!(x, 2, 6, 10, 14);
            quarter!(x, 3, 7, 11, 15);
            quarter!(x, 0, 5, 10, 15);
            quarter!(x, 1, 6, 11, 12);
            quarter!(x, 2, 7, 8, 13);
            quarter!(x, 3, 4, 9, 14);
        }
        for (x, start) in x.iter_mut().zip(&state) {
            *x = _mm512_add_epi32(*x, *start);
        }
        store_blocks(&x, out);
        state[12] = _mm512_add_epi32(state[12], _mm512_set1_epi32(16));
    }
    true
}

/// Word `w` of block `l` is lane `l` of vector `w`: transposed by fours of words, then by fours of
/// 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_blocks(x: &[__m512i; 16], out: &mut [u8; WIDE]) {
    // Vector [g][j]: words 4g .. 4g + 4 of the blocks j, j + 4, j + 8, j + 12.
    let mut fours = [[_mm512_setzero_si512(); 4]; 4];
    for (four, [a, b, c, d]) in fours.iter_mut().zip(x.as_chunks::<4>().0) {
        let (low, low_next) = (_mm512_unpacklo_epi32(*a, *b), _mm512_unpacklo_epi32(*c, *d));
        let (high, high_next) = (_mm512_unpackhi_epi32(*a, *b), _mm512_unpackhi_epi32(*c, *d));
        *four = [
            _mm512_unpacklo_epi64(low, low_next),
            _mm512_unpackhi_epi64(low, low_next),
            _mm512_unpacklo_epi64(high, high_next),
            _mm512_unpackhi_epi64(high, high_next),
        ];
    }
    let blocks = out.as_chunks_mut::<64>().0;
    for j in 0..4 {
        let [a, b, c, d] = [fours[0][j], fours[1][j], fours[2][j], fours[3][j]];
        let (ab, cd) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d));
        let (ab_top, cd_top) =
            (_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c, d));
        store(&mut blocks[j], _mm512_shuffle_i32x4::<0x88>(ab, cd));
        store(&mut blocks[4 + j], _mm512_shuffle_i32x4::<0xdd>(ab, cd));
        store(&mut blocks[8 + j], _mm512_shuffle_i32x4::<0x88>(ab_top, cd_top));
        store(&mut blocks[12 + j], _mm512_shuffle_i32x4::<0xdd>(ab_top, cd_top));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(to: &mut [u8; 64], x: __m512i) {
    // SAFETY: the reference covers 64 writable bytes; the store has no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
}
