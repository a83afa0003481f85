//! Packs residues of 50 bits, and sums their products with those of queries, one at a time.

use crate::backend::operands::layout::{GROUP, STRIP, STRIP_BYTES};
use crate::modulus::Modulus;

const MASK: u64 = (1 << 50) - 1;

pub(crate) fn pack50(coeffs: &[u64], out: &mut [u8]) {
    // Four of them are three words and a byte.
    for (four, bytes) in coeffs.as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<25>().0) {
        let [a, b, c, d] = four.map(|x| x & MASK);
        let words = [a | b << 50, b >> 14 | c << 36, c >> 28 | d << 22];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        bytes[24] = (d >> 42) as u8;
    }
}

pub(crate) fn unpack50(bytes: &[u8], out: &mut [u64]) {
    for (packed, c) in bytes.as_chunks::<50>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        for (i, x) in c.iter_mut().enumerate() {
            *x = coefficient(packed, i);
        }
    }
}

/// Coefficient `i` starts at bit `50 i`; its 50 bits and up to 6 before them fit eight bytes, read
/// so as to end inside.
#[inline(always)]
fn coefficient(packed: &[u8; 50], i: usize) -> u64 {
    let start = (50 * i / 8).min(50 - 8);
    let mut word = [0; 8];
    word.copy_from_slice(&packed[start..start + 8]);
    (u64::from_le_bytes(word) >> (50 * i - 8 * start)) & MASK
}

/// All queries over a group of blocks before the next. Products are below `2^100` and there are at
/// most `2^12` of them, so 128 bits hold a sum.
pub(crate) fn scan(
    data: &[u8],
    nodes: usize,
    queries: &[&[u64]],
    m: &Modulus,
    u: &mut [u64],
    v: &mut [u64],
) {
    let strips = data.as_chunks::<STRIP_BYTES>().0;
    let blocks = strips.len() / nodes.max(1);
    for (index, group) in strips.chunks((GROUP * nodes).max(1)).enumerate() {
        let width = group.len() / nodes;
        for (k, query) in queries.iter().enumerate() {
            for block in 0..width {
                let (mut sum_u, mut sum_v) = ([0u128; STRIP], [0u128; STRIP]);
                let mut d = [0u64; STRIP];
                let own = group.iter().skip(block).step_by(width);
                for (strip, q) in own.zip(query.as_chunks::<{ 2 * STRIP }>().0) {
                    unpack50(strip, &mut d);
                    for j in 0..STRIP {
                        sum_u[j] += u128::from(d[j]) * u128::from(q[j]);
                        sum_v[j] += u128::from(d[j]) * u128::from(q[STRIP + j]);
                    }
                }
                let at = (k * blocks + index * GROUP + block) * STRIP;
                for j in 0..STRIP {
                    u[at + j] = m.reduce_u128(sum_u[j]);
                    v[at + j] = m.reduce_u128(sum_v[j]);
                }
            }
        }
    }
}
