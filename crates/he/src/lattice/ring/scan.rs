//! Scan, ring form: packed segments and queries enter, U and V of blocks leave. Server only.
//!
//! Within a thread's share of the blocks, strips of 8 coefficients are the outer loop and blocks
//! the inner one, and data is stored strip-major: a strip of the query (16 KB at 128 nodes) stays
//! in the first-level cache while the database streams past once, however many queries wait.

use super::buffer_pool::Buffer;
use super::{DEGREE, Expanded, Layout, Ring};
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::{self, GROUP, STRIP, STRIP_BYTES};
use core::ops::Range;

/// Words from one block's sums to the next: a line more than N, so that equal coefficients of many
/// blocks, which are written together, do not all fall into one set of the caches.
const STRIDE: usize = DEGREE + 8;

/// U and V of one query over one segment.
pub struct Sums {
    constant: Buffer,
    linear: Buffer,
}

impl Sums {
    fn take(blocks: usize) -> Self {
        Sums { constant: Buffer::take(blocks * STRIDE), linear: Buffer::take(blocks * STRIDE) }
    }

    /// U of one block: Σ b_r c0_r.
    pub(super) fn constant(&self, block: usize) -> &[u64] {
        &self.constant[block * STRIDE..][..DEGREE]
    }

    /// V of one block: Σ b_r c1_r.
    pub(super) fn linear(&self, block: usize) -> &[u64] {
        &self.linear[block * STRIDE..][..DEGREE]
    }
}

/// Multiplies some `blocks` of `rows` packed vectors with every query at once. `data` is what
/// sealing or packing made for `layout`, `queries` are expanded for the same
/// layout; the blocks are one of [`Layout::ranges`], so that sums stay small however large a
/// segment is.
///
/// # Panics
/// If `data` does not have the length of `rows` vectors in `layout`, or a query has another layout.
pub fn scan(
    ring: &Ring,
    layout: &Layout,
    data: &[u8],
    rows: usize,
    blocks: Range<usize>,
    queries: &[&Expanded],
) -> Vec<Sums> {
    let mut sums = products(ring, layout, data, rows, blocks, queries);
    for sums in &mut sums {
        for part in [&mut sums.constant, &mut sums.linear] {
            part.par_chunks_exact_mut(STRIDE)
                .for_each(|poly| ring.ciphertext.inverse(&mut poly[..DEGREE]));
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
    blocks: Range<usize>,
    queries: &[&Expanded],
) -> Vec<Sums> {
    assert_eq!(data.len(), layout.packed_len(rows), "packed segment length");
    assert!(
        queries.iter().all(|query| query.layout() == layout),
        "query expanded for another layout"
    );
    let mut sums: Vec<Sums> = queries.iter().map(|_| Sums::take(blocks.len())).collect();
    // Blocks lie in groups; a share is whole groups.
    let share = blocks.len().div_ceil(current_num_threads()).next_multiple_of(GROUP);
    // A share: per query, its part of U and V.
    let mut shares: Vec<Share<'_>> =
        (0..blocks.len().div_ceil(share)).map(|_| Vec::new()).collect();
    for sums in &mut sums {
        let parts =
            sums.constant.chunks_mut(share * STRIDE).zip(sums.linear.chunks_mut(share * STRIDE));
        shares.iter_mut().zip(parts).for_each(|(share, part)| share.push(part));
    }
    let all = layout.blocks(rows);
    shares.into_par_iter().enumerate().for_each(|(index, mut outputs)| {
        scan_share(ring, layout, data, all, blocks.start + index * share, queries, &mut outputs);
    });
    sums
}

/// Strips whose sums are gathered before they go where their polynomials are: whole runs of lines
/// at a time, or each line would open a memory page of its own.
const BATCH: usize = 8;

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
    let Some(count) = outputs.first().map(|(u, _)| u.len() / STRIDE) else { return };
    let nodes = layout.nodes();
    let block_strip = nodes * STRIP_BYTES;
    let strip_words = queries.len() * count * STRIP;
    // [strip of the batch][query][block][8]
    let mut u = vec![0u64; BATCH * strip_words];
    let mut v = u.clone();
    for first_strip in (0..Layout::STRIPS).step_by(BATCH) {
        let strips = first_strip..(first_strip + BATCH).min(Layout::STRIPS);
        let sums = u.chunks_exact_mut(strip_words).zip(v.chunks_exact_mut(strip_words));
        for (strip, (u, v)) in strips.clone().zip(sums) {
            let data = &data[(strip * blocks + first) * block_strip..][..count * block_strip];
            let strips: Vec<&[u64]> = queries.iter().map(|query| query.strip(strip)).collect();
            ring::ring_scan_strip(data, count, nodes, &strips, ring.modulus(), u, v);
        }
        for (query, (constant, linear)) in outputs.iter_mut().enumerate() {
            for (polys, sums) in [(constant, &u), (linear, &v)] {
                for (block, poly) in polys.chunks_exact_mut(STRIDE).enumerate() {
                    let out = poly[first_strip * STRIP..].as_chunks_mut::<STRIP>().0;
                    for (out, sums) in
                        out.iter_mut().zip(sums.chunks_exact(strip_words)).take(strips.len())
                    {
                        out.copy_from_slice(&sums[(query * count + block) * STRIP..][..STRIP]);
                    }
                }
            }
        }
    }
}
