//! Packed residues of 50 bits, and the server's scan of them: two sums for every block and query.

use crate::backend::dispatch;
use crate::modulus::Modulus;

pub use crate::backend::operands::layout::{GROUP, STRIP, STRIP_BYTES};

/// Queries that share one pass over the data: at 128 nodes their strips take half of the
/// second-level cache.
const PASS: usize = 32;

/// Where the strip of `node` of `block` starts among the bytes of one strip of coefficients:
/// `[group of 4 blocks][node] [block of the group][50 bytes]`, the last group being as narrow as
/// the blocks that are left.
pub fn strip_offset(blocks: usize, nodes: usize, block: usize, node: usize) -> usize {
    let first = block - block % GROUP;
    let width = GROUP.min(blocks - first);
    (first * nodes + node * width + block - first) * STRIP_BYTES
}

/// Packs residues below `2^50`, eight to 50 bytes, little-endian bit order; higher bits are
/// dropped.
///
/// # Panics
/// When the number of coefficients is not a multiple of 8, or `out` has not 50 bytes for each 8.
pub fn pack50(coeffs: &[u64], out: &mut [u8]) {
    assert_eq!(coeffs.len() % 8, 0, "expected a multiple of 8 coefficients");
    assert_eq!(out.len(), coeffs.len() / 8 * 50, "packed bytes");
    dispatch::ring::pack50(coeffs, out);
}

/// The inverse of [`pack50`].
///
/// # Panics
/// When the number of coefficients is not a multiple of 8, or `bytes` has not 50 bytes for each 8.
pub fn unpack50(bytes: &[u8], out: &mut [u64]) {
    assert_eq!(out.len() % 8, 0, "expected a multiple of 8 coefficients");
    assert_eq!(bytes.len(), out.len() / 8 * 50, "packed bytes");
    dispatch::ring::unpack50(bytes, out);
}

/// For one strip of coefficients, every query and every block, the sums over nodes of `D b'` and
/// `D a'` modulo `q`.
///
/// `data` is laid out by [`strip_offset`]; a query is `nodes` times 16 words in `[0, q)`: 8 of
/// `b'`, then 8 of `a'`. `out_u` (for `b'`) and `out_v` (for `a'`) are `[query][block][8]` and come
/// out in `[0, q)`. Serial: strips are the caller's unit of parallel work.
///
/// # Panics
/// When `q >= 2^50`, there are more than 4096 nodes, or a length does not fit.
pub fn ring_scan_strip(
    data: &[u8],
    blocks: usize,
    nodes: usize,
    queries: &[&[u64]],
    m: &Modulus,
    out_u: &mut [u64],
    out_v: &mut [u64],
) {
    assert!(m.value() >> 50 == 0, "expected a modulus below 2^50, got {}", m.value());
    assert!(nodes <= 4096, "expected at most 4096 nodes, got {nodes}");
    assert_eq!(data.len(), blocks * nodes * STRIP_BYTES, "packed bytes");
    queries.iter().for_each(|q| assert_eq!(q.len(), nodes * 2 * STRIP, "query words"));
    assert_eq!(out_u.len(), queries.len() * blocks * STRIP, "words of U");
    assert_eq!(out_v.len(), queries.len() * blocks * STRIP, "words of V");
    if nodes == 0 {
        // Empty sums: there is no block to find in no data.
        out_u.fill(0);
        out_v.fill(0);
        return;
    }
    for (group, (u, v)) in queries.chunks(PASS).zip(
        out_u
            .chunks_mut((PASS * blocks * STRIP).max(1))
            .zip(out_v.chunks_mut((PASS * blocks * STRIP).max(1))),
    ) {
        dispatch::ring::scan(data, nodes, group, m, u, v);
    }
}
