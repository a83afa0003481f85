//! ChaCha20 keystream, four blocks at a time, a block a lane.

use core::arch::wasm32::*;

use crate::backend::operands::sample::WIDE;

/// Blocks that a vector has a word of each of.
const LANES: u32 = 4;

#[inline(always)]
fn rotate(x: v128, by: u32) -> v128 {
    v128_or(u32x4_shl(x, by), u32x4_shr(x, 32 - by))
}

/// Halves of words exchanged.
#[inline(always)]
fn rotate_by_16(x: v128) -> v128 {
    i16x8_shuffle::<1, 0, 3, 2, 5, 4, 7, 6>(x, x)
}

/// Words of one quarter round, written out so that the sixteen state words are sixteen values.
macro_rules! quarter {
    ($x:ident, $a:literal, $b:literal, $c:literal, $d:literal) => {
        $x[$a] = u32x4_add($x[$a], $x[$b]);
        $x[$d] = rotate_by_16(v128_xor($x[$d], $x[$a]));
        $x[$c] = u32x4_add($x[$c], $x[$d]);
        $x[$b] = rotate(v128_xor($x[$b], $x[$c]), 12);
        $x[$a] = u32x4_add($x[$a], $x[$b]);
        $x[$d] = rotate(v128_xor($x[$d], $x[$a]), 8);
        $x[$c] = u32x4_add($x[$c], $x[$d]);
        $x[$b] = rotate(v128_xor($x[$b], $x[$c]), 7);
    };
}

/// Fills `out` with the keystream from block `counter` on; the caller sees to it that the counter
/// does not wrap.
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
    words[12] = counter;
    for (word, bytes) in words[13..].iter_mut().zip(nonce.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let mut state = words.map(|word| u32x4_splat(word));
    state[12] = u32x4_add(state[12], u32x4(0, 1, 2, 3));
    for out in out.as_flattened_mut().as_chunks_mut::<{ 64 * LANES as usize }>().0 {
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
            *x = u32x4_add(*x, *start);
        }
        store_blocks(&x, out);
        state[12] = u32x4_add(state[12], u32x4_splat(LANES));
    }
    true
}

/// Word `w` of block `l` is lane `l` of vector `w`: transposed by fours of words.
#[inline(always)]
fn store_blocks(x: &[v128; 16], out: &mut [u8; 256]) {
    let pieces = out.as_chunks_mut::<16>().0;
    for (four, [a, b, c, d]) in x.as_chunks::<4>().0.iter().enumerate() {
        let (low, low_next) =
            (u32x4_shuffle::<0, 4, 1, 5>(*a, *b), u32x4_shuffle::<0, 4, 1, 5>(*c, *d));
        let (high, high_next) =
            (u32x4_shuffle::<2, 6, 3, 7>(*a, *b), u32x4_shuffle::<2, 6, 3, 7>(*c, *d));
        store(&mut pieces[four], u64x2_shuffle::<0, 2>(low, low_next));
        store(&mut pieces[4 + four], u64x2_shuffle::<1, 3>(low, low_next));
        store(&mut pieces[8 + four], u64x2_shuffle::<0, 2>(high, high_next));
        store(&mut pieces[12 + four], u64x2_shuffle::<1, 3>(high, high_next));
    }
}

#[inline(always)]
fn store(to: &mut [u8; 16], x: v128) {
    // SAFETY: the reference covers 16 writable bytes; the store has no alignment.
    unsafe { v128_store(to.as_mut_ptr().cast(), x) }
}
