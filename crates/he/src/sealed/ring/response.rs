//! Answers of the ring form. U and V enter; 24-bit coefficients leave: V whole, U only where a score stands. Server only, and its inverse at the owner.

use super::{DEGREE, Layout, RESPONSE_BITS, Ring, Sums};
use ciphervec_arith::convert;
use core::ops::Range;
use rayon::prelude::*;

const WIDTH: usize = RESPONSE_BITS as usize / 8;

/// Bytes of the answer of one query over `rows` vectors: per block N coefficients of V, then one of U a vector.
pub fn answer_len(layout: &Layout, rows: usize) -> usize {
    (layout.blocks(rows) * DEGREE + rows) * WIDTH
}

/// Writes some `blocks` of the answer of one query over one segment; `out`, the whole answer, has [`answer_len`] bytes.
pub fn write_answer(
    ring: &Ring,
    layout: &Layout,
    blocks: Range<usize>,
    sums: &Sums,
    out: &mut [u8],
) {
    let vectors = layout.vectors_per_block();
    let per_block = (DEGREE + vectors) * WIDTH;
    let end = out.len().min(blocks.end * per_block);
    let part = &mut out[blocks.start * per_block..end];
    part.par_chunks_mut(per_block).enumerate().for_each(|(block, out)| {
        let (linear, constant) = out.split_at_mut(DEGREE * WIDTH);
        let mut switched = [0u32; DEGREE];
        convert::switch_down(&mut switched, sums.linear(block), ring.modulus());
        pack24(&switched, linear);
        convert::switch_down(&mut switched, sums.constant(block), ring.modulus());
        let mut scores = [0u32; DEGREE];
        let count = constant.len() / WIDTH;
        for (vector, score) in scores[..count].iter_mut().enumerate() {
            *score = switched[layout.position(vector)];
        }
        pack24(&scores[..count], constant);
    });
}

/// Values below 2^24, three bytes each.
fn pack24(values: &[u32], out: &mut [u8]) {
    let ((values, rest), (groups, tail)) = (values.as_chunks::<4>(), out.as_chunks_mut::<12>());
    for (group, &[a, b, c, d]) in groups.iter_mut().zip(values) {
        let low = u64::from(a) | u64::from(b) << 24 | u64::from(c) << 48;
        group[..8].copy_from_slice(&low.to_le_bytes());
        group[8..].copy_from_slice(&(c >> 16 | d << 8).to_le_bytes());
    }
    for (out, value) in tail.chunks_exact_mut(WIDTH).zip(rest) {
        out.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
    }
}

/// The way back.
#[cfg(feature = "client")]
pub(super) fn unpack24(bytes: &[u8], out: &mut [u32]) {
    let ((groups, tail), (values, rest)) = (bytes.as_chunks::<12>(), out.as_chunks_mut::<4>());
    for (group, values) in groups.iter().zip(values) {
        let word = |at: usize| {
            u32::from_le_bytes([group[at], group[at + 1], group[at + 2], group[at + 3]])
        };
        let mask = 0x00ff_ffff;
        *values = [word(0) & mask, word(3) & mask, word(6) & mask, word(8) >> 8];
    }
    for (bytes, value) in tail.chunks_exact(WIDTH).zip(rest) {
        *value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    #[test]
    fn three_byte_words_round_trip() {
        for count in 0..20u32 {
            let values: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
            let mut bytes = vec![0; values.len() * 3];
            pack24(&values, &mut bytes);
            let expected: Vec<u8> =
                values.iter().flat_map(|v| v.to_le_bytes()[..3].to_vec()).collect();
            assert_eq!(bytes, expected);
            let mut back = vec![0; values.len()];
            unpack24(&bytes, &mut back);
            assert_eq!(back, values);
        }
    }
}
