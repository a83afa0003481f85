//! The scan. Packed segments and expanded queries enter; U and V of every block leave, in coefficients. Server only.
//!
//! Within a thread's share of the blocks, strips of 8 coefficients are the outer loop and blocks the inner one, and data is
//! stored strip-major: a strip of the query (16 KB at 128 nodes) stays in the first-level cache while the database streams
//! past once, however many queries wait.

use super::pool::Buffer;
use super::{DEGREE, Expanded, Layout, Ring};
use ciphervec_arith::matmul::{self, GROUP, STRIP, STRIP_BYTES};
use rayon::prelude::*;

/// U and V of one query over one segment: block after block, N words each.
pub struct Sums {
    /// U: Σ b_r c0_r.
    pub(super) constant: Buffer,
    /// V: Σ b_r c1_r.
    pub(super) linear: Buffer,
}

/// Multiplies `rows` packed vectors with every query at once. `data` is what [`super::pack`] or [`super::seal`] made for
/// `layout`, `queries` are expanded for the same layout.
///
/// # Panics
/// If `data` does not have the length of `rows` vectors in `layout`, or a query has another layout.
pub fn scan(
    ring: &Ring,
    layout: &Layout,
    data: &[u8],
    rows: usize,
    queries: &[&Expanded],
) -> Vec<Sums> {
    let mut sums = products(ring, layout, data, rows, queries);
    for sums in &mut sums {
        for part in [&mut sums.constant, &mut sums.linear] {
            part.par_chunks_exact_mut(DEGREE).for_each(|poly| ring.ciphertext.inverse(poly));
        }
    }
    sums
}

/// The products in NTT form.
pub(super) fn products(
    ring: &Ring,
    layout: &Layout,
    data: &[u8],
    rows: usize,
    queries: &[&Expanded],
) -> Vec<Sums> {
    assert_eq!(data.len(), layout.packed_len(rows), "packed segment length");
    assert!(
        queries.iter().all(|query| query.layout() == layout),
        "query expanded for another layout"
    );
    let blocks = layout.blocks(rows);
    let mut sums: Vec<Sums> = queries
        .iter()
        .map(|_| Sums {
            constant: Buffer::take(blocks * DEGREE),
            linear: Buffer::take(blocks * DEGREE),
        })
        .collect();
    // Blocks lie in groups; a share is whole groups.
    let share = blocks.div_ceil(rayon::current_num_threads()).next_multiple_of(GROUP);
    // A share: its first block and, per query, its part of U and V.
    let mut shares: Vec<Share<'_>> = (0..blocks.div_ceil(share)).map(|_| Vec::new()).collect();
    for sums in &mut sums {
        let parts =
            sums.constant.chunks_mut(share * DEGREE).zip(sums.linear.chunks_mut(share * DEGREE));
        shares.iter_mut().zip(parts).for_each(|(share, part)| share.push(part));
    }
    shares.into_par_iter().enumerate().for_each(|(index, mut outputs)| {
        scan_share(ring, layout, data, blocks, index * share, queries, &mut outputs);
    });
    sums
}

type Share<'a> = Vec<(&'a mut [u64], &'a mut [u64])>;

fn scan_share(
    ring: &Ring,
    layout: &Layout,
    data: &[u8],
    blocks: usize,
    first: usize,
    queries: &[&Expanded],
    outputs: &mut Share<'_>,
) {
    let Some(count) = outputs.first().map(|(u, _)| u.len() / DEGREE) else { return };
    let nodes = layout.nodes();
    let block_strip = nodes * STRIP_BYTES;
    // [query][block][8]: stays in the first-level cache, then goes where its polynomial is.
    let mut u = vec![0u64; queries.len() * count * STRIP];
    let mut v = u.clone();
    for strip in 0..Layout::STRIPS {
        let strips: Vec<&[u64]> = queries.iter().map(|query| query.strip(strip)).collect();
        let data = &data[(strip * blocks + first) * block_strip..][..count * block_strip];
        matmul::ring_scan_strip(data, count, nodes, &strips, ring.modulus(), &mut u, &mut v);
        for (query, (constant, linear)) in outputs.iter_mut().enumerate() {
            for (polys, sums) in [(constant, &u), (linear, &v)] {
                let sums = sums[query * count * STRIP..].as_chunks::<STRIP>().0;
                for (poly, sums) in polys.chunks_exact_mut(DEGREE).zip(sums) {
                    poly[strip * STRIP..][..STRIP].copy_from_slice(sums);
                }
            }
        }
    }
}
