//! Scan, ring form: U and V of a segment's blocks for every query. Server only.
//!
//! Within a thread's share of the blocks, strips of 8 coefficients are the outer loop and blocks
//! the inner one, and data is stored strip-major: a strip of the query (16 KB at 128 nodes) stays
//! in the first-level cache while the database streams past once, however many queries wait.

use super::buffer_pool::Buffer;
use super::expand::Nodes;
use super::{DEGREE, Expanded, Layout, Ring};
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::{self, GROUP, STRIP, STRIP_BYTES};
use core::ops::Range;

/// Words from one block's sums to the next: a line more than N, so that equal coefficients of many
/// blocks, which are written together, do not all fall into one set of the caches.
pub(in crate::lattice) const STRIDE: usize = DEGREE + 8;

/// U and V of one query over one segment.
pub struct Sums {
    constant: Buffer,
    linear: Buffer,
}

impl Sums {
    /// Bytes of a block.
    pub(in crate::lattice) const BLOCK: usize = 2 * STRIDE * size_of::<u64>();

    pub(in crate::lattice) fn take(blocks: usize) -> Self {
        Sums { constant: Buffer::take(blocks * STRIDE), linear: Buffer::take(blocks * STRIDE) }
    }

    /// From NTT form.
    pub(in crate::lattice) fn inverse_transform(&mut self, ring: &Ring) {
        for part in [&mut self.constant, &mut self.linear] {
            part.par_chunks_exact_mut(STRIDE)
                .for_each(|poly| ring.ciphertext.inverse(&mut poly[..DEGREE]));
        }
    }

    /// Leaves the first blocks alone.
    pub(in crate::lattice) fn shorten(&mut self, blocks: usize) {
        self.constant.shorten(blocks * STRIDE);
        self.linear.shorten(blocks * STRIDE);
    }

    /// U and V, a polynomial every [`STRIDE`] words.
    pub(in crate::lattice) fn parts_mut(&mut self) -> [&mut [u64]; 2] {
        [&mut self.constant, &mut self.linear]
    }

    /// Takes U and V of block `from` of other sums as those of block `to`.
    pub(in crate::lattice) fn copy_block(&mut self, to: usize, sums: &Sums, from: usize) {
        self.constant[to * STRIDE..][..DEGREE].copy_from_slice(sums.constant(from));
        self.linear[to * STRIDE..][..DEGREE].copy_from_slice(sums.linear(from));
    }

    /// U of one block: Σ b_r c0_r.
    pub(in crate::lattice) fn constant(&self, block: usize) -> &[u64] {
        &self.constant[block * STRIDE..][..DEGREE]
    }

    /// V of one block: Σ b_r c1_r.
    pub(in crate::lattice) fn linear(&self, block: usize) -> &[u64] {
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
    sums.iter_mut().for_each(|sums| sums.inverse_transform(ring));
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
    let grid = Grid { data, blocks: layout.blocks(rows), nodes: layout.nodes() };
    let queries: Vec<Nodes<'_>> = queries.iter().map(|query| query.nodes(0..grid.nodes)).collect();
    grid.products(ring, blocks, &queries)
}

/// The products of one query with several segments of `rows` vectors each, in NTT form: their blocks in order. Within a thread's
/// share segments are the inner loop, so that a strip of the query serves all of them.
///
/// # Panics
/// As [`scan`].
pub(in crate::lattice) fn products_of_all(
    ring: &Ring,
    layout: &Layout,
    segments: &[&[u8]],
    rows: usize,
    query: &Expanded,
) -> Sums {
    assert_eq!(query.layout(), layout, "query expanded for another layout");
    let length = layout.packed_len(rows);
    segments.iter().for_each(|data| assert_eq!(data.len(), length, "packed segment length"));
    let (blocks, nodes) = (layout.blocks(rows), layout.nodes());
    let query = query.nodes(0..nodes);
    let mut sums = Sums::take(segments.len() * blocks);
    let share = segments.len().div_ceil(current_num_threads()).max(1);
    let outs = sums.constant.par_chunks_mut(share * blocks * STRIDE);
    let outs = outs.zip(sums.linear.par_chunks_mut(share * blocks * STRIDE));
    segments.par_chunks(share).zip(outs).for_each(|(segments, (constant, linear))| {
        let strip_words = segments.len() * blocks * STRIP;
        let block_strip = blocks * nodes * STRIP_BYTES;
        let [mut u, mut v] = [(); 2].map(|()| Buffer::take(BATCH * strip_words));
        for first_strip in (0..Layout::STRIPS).step_by(BATCH) {
            let strips = first_strip..(first_strip + BATCH).min(Layout::STRIPS);
            let sums = u.chunks_exact_mut(strip_words).zip(v.chunks_exact_mut(strip_words));
            for (strip, (u, v)) in strips.clone().zip(sums) {
                let nodes_here = [query.strip(strip)];
                let outs =
                    u.chunks_exact_mut(blocks * STRIP).zip(v.chunks_exact_mut(blocks * STRIP));
                for (data, (u, v)) in segments.iter().zip(outs) {
                    let data = &data[strip * block_strip..][..block_strip];
                    ring::ring_scan_strip(data, blocks, nodes, &nodes_here, ring.modulus(), u, v);
                }
            }
            for (polys, sums) in [(&mut *constant, &u), (&mut *linear, &v)] {
                put_strips(polys, sums, strip_words, 0, strips.clone());
            }
        }
    });
    sums
}

/// Puts the sums of some strips of a batch, `strip_words` a strip of which those from `first` on are taken, where their polynomials are.
fn put_strips(
    polys: &mut [u64],
    sums: &[u64],
    strip_words: usize,
    first: usize,
    strips: Range<usize>,
) {
    for (block, poly) in polys.chunks_exact_mut(STRIDE).enumerate() {
        let out = poly[strips.start * STRIP..].as_chunks_mut::<STRIP>().0;
        for (out, sums) in out.iter_mut().zip(sums.chunks_exact(strip_words)).take(strips.len()) {
            out.copy_from_slice(&sums[first + block * STRIP..][..STRIP]);
        }
    }
}

/// Strips whose sums are gathered before they go where their polynomials are: whole runs of lines
/// at a time, or each line would open a memory page of its own.
const BATCH: usize = 8;

type Share<'a> = Vec<(&'a mut [u64], &'a mut [u64])>;

/// Packed polynomials, so many a block, strip-major.
pub(in crate::lattice) struct Grid<'a> {
    pub data: &'a [u8],
    pub blocks: usize,
    pub nodes: usize,
}

impl Grid<'_> {
    /// For some blocks, the sums over their polynomials times each query's nodes, in NTT form.
    pub fn products(&self, ring: &Ring, blocks: Range<usize>, queries: &[Nodes<'_>]) -> Vec<Sums> {
        let mut sums: Vec<Sums> = queries.iter().map(|_| Sums::take(blocks.len())).collect();
        // Blocks lie in groups; a share is whole groups.
        let share = blocks.len().div_ceil(current_num_threads()).next_multiple_of(GROUP);
        // A share: per query, its part of U and V.
        let mut shares: Vec<Share<'_>> =
            (0..blocks.len().div_ceil(share)).map(|_| Vec::new()).collect();
        for sums in &mut sums {
            let parts = sums
                .constant
                .chunks_mut(share * STRIDE)
                .zip(sums.linear.chunks_mut(share * STRIDE));
            shares.iter_mut().zip(parts).for_each(|(share, part)| share.push(part));
        }
        shares.into_par_iter().enumerate().for_each(|(index, mut outputs)| {
            self.scan_share(ring, blocks.start + index * share, queries, &mut outputs);
        });
        sums
    }

    fn scan_share(
        &self,
        ring: &Ring,
        first: usize,
        queries: &[Nodes<'_>],
        outputs: &mut Share<'_>,
    ) {
        let &Grid { data, blocks, nodes } = self;
        let Some(count) = outputs.first().map(|(u, _)| u.len() / STRIDE) else { return };
        let block_strip = nodes * STRIP_BYTES;
        let strip_words = queries.len() * count * STRIP;
        // [strip of the batch][query][block][8]
        let [mut u, mut v] = [(); 2].map(|()| Buffer::take(BATCH * strip_words));
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
                    put_strips(polys, sums, strip_words, query * count * STRIP, strips.clone());
                }
            }
        }
    }
}
