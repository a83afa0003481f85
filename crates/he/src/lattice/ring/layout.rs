//! Layout: which polynomial and exponent hold a coordinate, by dimension and level.
//!
//! # Why rows do not mix
//!
//! With pos(v) = (v mod 2^k) + 2^k g ⌊v / 2^k⌋, g = ⌈d/2^k⌉:
//!
//! A block holds 2^k ⌊N/(2^k g)⌋ vectors in min(2^k, d) polynomials D_r. In Σ_r D_r · node r, the coefficient at
//! pos(v) is
//!
//! ```text
//! Σ_r Σ_u x_{2^k u + r} · 2^k q_{2^k u + r}  =  2^k Σ_i q_i x_i .
//! ```
//!
//! Vector v meets itself exactly where u = u', as node r has exponents −2^k u' only. It meets no other vector v':
//! then v ≡ v' (mod 2^k), and their windows of 2^k g exponents would overlap. (A test enumerates this.)

use super::{DEGREE, MAX_LEVEL, POLY_BYTES};
use crate::error::{Error, Result};
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::{GROUP, STRIP, STRIP_BYTES, strip_offset};
use core::ops::Range;

/// The packing of vectors of one dimension at one level of the query tree.
///
/// A vector longer than N is cut into equal chunks, each with a tree of its own. Within a chunk,
/// dimension i = 2^k u + r of vector v sits in polynomial r at exponent pos(v) + 2^k u, and the
/// score of v comes out at pos(v) = (v mod 2^k) + 2^k g ⌊v / 2^k⌋, g = ⌈chunk / 2^k⌉. No padding of
/// the dimension to a power of two is needed: windows of 2^k g exponents of two vectors with equal
/// v mod 2^k never meet modulo N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    dimension: usize,
    level: u8,
    /// 2^k g: exponents from one vector of a class v mod 2^k to the next.
    stride: usize,
}

impl Layout {
    /// The layout of `dimension`-dimensional vectors at `level`.
    ///
    /// # Errors
    /// [`Error::Range`] for dimension 0 or a level beyond [`Self::top_level`].
    pub fn new(dimension: usize, level: u8) -> Result<Self> {
        if dimension == 0 {
            return Err(Error::Range {
                what: "dimension",
                expected: "at least 1".into(),
                actual: "0".into(),
            });
        }
        let top = Self::top_level(dimension);
        if level > top {
            return Err(Error::Range {
                what: "level",
                expected: format!("at most {top} at dimension {dimension}"),
                actual: level.to_string(),
            });
        }
        let chunk_len = dimension.div_ceil(dimension.div_ceil(DEGREE));
        Ok(Layout { dimension, level, stride: chunk_len.next_multiple_of(1 << level) })
    }

    /// The deepest useful level: one dimension a polynomial, and at most 4096 nodes over all
    /// pieces, which is what the scan's 64-bit sums hold without a reduction.
    pub fn top_level(dimension: usize) -> u8 {
        let chunks = dimension.div_ceil(DEGREE).max(1);
        let chunk = dimension.div_ceil(chunks);
        let cap = MAX_LEVEL - chunks.next_power_of_two().trailing_zeros() as u8;
        (chunk.next_power_of_two().trailing_zeros() as u8).min(cap)
    }

    /// Coordinates a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Level k.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Pieces that a vector is cut into.
    pub fn chunks(&self) -> usize {
        self.dimension.div_ceil(DEGREE)
    }

    /// Coordinates of one piece; the last one may hold fewer.
    pub fn chunk_len(&self) -> usize {
        self.dimension.div_ceil(self.chunks())
    }

    /// Coordinates that piece `chunk` really holds.
    pub fn chunk_size(&self, chunk: usize) -> usize {
        self.chunk_len().min(self.dimension - chunk * self.chunk_len())
    }

    /// Nodes of piece `chunk`; those that would hold no dimension are left out.
    pub fn chunk_nodes(&self, chunk: usize) -> usize {
        self.chunk_size(chunk).min(1 << self.level)
    }

    /// Nodes in all: polynomials a block.
    pub fn nodes(&self) -> usize {
        (0..self.chunks()).map(|chunk| self.chunk_nodes(chunk)).sum()
    }

    /// Vectors a block.
    pub fn vectors_per_block(&self) -> usize {
        (DEGREE / self.stride) << self.level
    }

    /// Blocks that `rows` vectors need.
    pub fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(self.vectors_per_block())
    }

    /// The blocks of `rows` vectors in runs, each a multiple of the scan's group, that are answered
    /// one after the other for `queries` at once. A scan prepares every query anew, so runs are as
    /// long as the memory for their sums lets them be.
    pub fn ranges(
        &self,
        rows: usize,
        queries: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let blocks = self.blocks(rows);
        let run = (Self::IN_FLIGHT / queries.max(1)).min(Self::RUN).next_multiple_of(GROUP);
        (0..blocks).step_by(run).map(move |first| first..blocks.min(first + run))
    }

    /// Blocks of a run, with 16 MB of sums a query, and of all queries at once: 64 MB.
    const RUN: usize = 256;
    const IN_FLIGHT: usize = 1024;

    /// Vectors in block `block` of a segment of `rows`.
    pub fn rows_in_block(&self, rows: usize, block: usize) -> usize {
        (rows - block * self.vectors_per_block()).min(self.vectors_per_block())
    }

    /// Bytes of `rows` packed vectors.
    pub fn packed_len(&self, rows: usize) -> usize {
        self.blocks(rows) * self.nodes() * POLY_BYTES
    }

    /// pos(v): the exponent at which the score of the v-th vector of a block comes out.
    pub fn position(&self, vector: usize) -> usize {
        let low = vector & ((1 << self.level) - 1);
        low + (vector >> self.level) * self.stride
    }

    /// Every node as (piece, r).
    pub fn node_list(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let layout = *self;
        (0..self.chunks())
            .flat_map(move |chunk| (0..layout.chunk_nodes(chunk)).map(move |node| (chunk, node)))
    }

    /// The dimensions of node (piece, r) with their exponents relative to pos(v).
    #[doc(hidden)]
    pub fn node_dims(
        &self,
        chunk: usize,
        node: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (first, step) = (chunk * self.chunk_len(), 1usize << self.level);
        (node..self.chunk_size(chunk)).step_by(step).map(move |dim| (first + dim, dim - node))
    }

    /// Strips of a polynomial.
    pub(super) const STRIPS: usize = DEGREE / STRIP;
}

/// Deals packed polynomials of blocks from `first` on, each `[node][packed]`, out to their strips.
pub fn deal_strips(
    out: &mut [u8],
    (blocks, nodes): (usize, usize),
    first: usize,
    built: &[impl AsRef<[u8]> + Sync],
) {
    let strips = out.par_chunks_exact_mut(blocks * nodes * STRIP_BYTES);
    strips.enumerate().for_each(|(strip, out)| {
        for node in 0..nodes {
            for (offset, packed) in built.iter().enumerate() {
                let from = node * POLY_BYTES + strip * STRIP_BYTES;
                let to = strip_offset(blocks, nodes, first + offset, node);
                let packed = &packed.as_ref()[from..][..STRIP_BYTES];
                out[to..][..STRIP_BYTES].copy_from_slice(packed);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Positions and windows against a direct enumeration: no two coordinates of a block share a
    /// place, and no foreign coordinate lands on a score position modulo X^N + 1.
    #[test]
    fn windows_never_meet() {
        for dimension in [1, 2, 3, 7, 100, 300, 512, 768, 1000, 2500, 4095, 4096] {
            for level in 0..=Layout::top_level(dimension) {
                let layout = Layout::new(dimension, level).unwrap();
                let step = 1usize << level;
                let vectors = layout.vectors_per_block();
                assert!(vectors >= 1);
                let mut places = HashSet::new();
                for vector in (0..vectors).step_by(vectors.div_ceil(64)) {
                    for (chunk, node) in layout.node_list() {
                        for (_, exponent) in layout.node_dims(chunk, node) {
                            let place = layout.position(vector) + exponent;
                            assert!(place < DEGREE);
                            assert!(
                                places.insert((node, place)),
                                "d={dimension} k={level} v={vector}"
                            );
                        }
                    }
                }
                // Same class v mod 2^k: |pos(v') − pos(v)| and window offsets never coincide modulo
                // N.
                let class: Vec<usize> =
                    (0..vectors).step_by(step).map(|v| layout.position(v)).collect();
                let reach = (layout.chunk_len().div_ceil(step) - 1) * step;
                for (index, low) in class.iter().enumerate() {
                    for high in &class[index + 1..] {
                        assert!(high - low > reach && DEGREE - (high - low) > reach);
                    }
                }
            }
        }
    }

    #[test]
    fn runs_are_whole_groups_and_bounded() {
        let layout = Layout::new(512, 7).unwrap();
        for queries in 0..12 {
            for blocks in [0, 1, 4, 129, 256, 257, 1000] {
                let runs: Vec<_> = layout.ranges(blocks * 1024, queries).collect();
                let all: Vec<usize> = runs.iter().cloned().flatten().collect();
                assert_eq!(all, (0..blocks).collect::<Vec<_>>());
                for run in runs {
                    assert!(run.start.is_multiple_of(GROUP) && run.len() <= Layout::RUN);
                    assert!(run.len() * queries <= Layout::IN_FLIGHT + queries * GROUP);
                }
            }
        }
    }

    #[test]
    fn sizes_are_the_expected_ones() {
        let layout = Layout::new(512, 7).unwrap();
        assert_eq!(
            (layout.nodes(), layout.vectors_per_block(), layout.blocks(200_000)),
            (128, 1024, 196)
        );
        let layout = Layout::new(300, 7).unwrap();
        assert_eq!((layout.nodes(), layout.vectors_per_block()), (128, 1280));
        let layout = Layout::new(512, 0).unwrap();
        assert_eq!((layout.nodes(), layout.vectors_per_block()), (1, 8));
        let layout = Layout::new(16384, 9).unwrap();
        assert_eq!((layout.chunks(), layout.nodes(), layout.vectors_per_block()), (4, 2048, 512));
        assert!(Layout::new(512, 10).is_err() && Layout::new(0, 0).is_err());
    }
}
