//! Witness of a segment, compact form: what takes the noise off its rows and checks answers about
//! them. Owner only.
//!
//! Bytes, little-endian: the seed of the noise, 32, then the check sums h of each block, check by
//! check, a word a dimension. They lie in the segment's encrypted sidecar.
//!
//! The noise of slab k of block b is the Gaussian sampler's stream `b << 16 | k` under the seed, row
//! after row: one row's noise is found without drawing the others'.
//!
//! A block has sixteen check sums, or as many as it has rows, in words as long as the segment's. A slab is dimensions 64 k to 64
//! k + 63, a sample a dimension. Weights are stream b of the key derived as `answer-check`: sixteen times a word a row, of 4
//! bytes (wide: 8).

use super::{Compact, Masks, Width, serialize};
use ciphervec_arith::sample::Stream;
use core::ops::Range;

/// Bytes of the noise's seed.
pub(super) const SEED: usize = 32;
/// Checks of a block. Words wrap, so that a change of some rows by 2^(w-1) passes one check with
/// probability 1/2, and all of them with 2^-16.
pub(super) const CHECKS: usize = 16;

/// A witness as its bytes lie there.
#[derive(Clone, Copy)]
pub struct Witness<'a> {
    seed: &'a [u8; SEED],
    sums: &'a [u8],
}

impl core::fmt::Debug for Witness<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Witness(redacted)")
    }
}

impl<'a> Witness<'a> {
    /// Bytes of the witness of `rows` rows.
    pub fn len(scheme: &Compact, rows: usize, dimension: usize) -> usize {
        let degree = scheme.width().degree();
        let of = |block: usize| (rows - block * degree).min(CHECKS);
        let checks: usize = (0..scheme.blocks(rows)).map(of).sum();
        SEED + checks * dimension * scheme.width().word_bytes()
    }

    /// Reads a witness; `None` if it has not the length that rows and dimension ask for.
    pub fn read(scheme: &Compact, rows: usize, dimension: usize, bytes: &'a [u8]) -> Option<Self> {
        let (seed, sums) = bytes.split_first_chunk()?;
        (bytes.len() == Self::len(scheme, rows, dimension)).then_some(Witness { seed, sums })
    }

    /// The noise of one slab of a block, from its row `first` on: a sample a dimension, row by row.
    pub(super) fn noise(&self, block: usize, slab: usize, width: usize, first: usize) -> Stream {
        noise_stream(self.seed, block, slab, width, first)
    }

    /// Word `index` of the sums of a block.
    pub(super) fn sum(&self, width: Width, dimension: usize, block: usize, index: usize) -> u64 {
        let word = block * CHECKS * dimension + index;
        match width.word_bytes() {
            3 => serialize::load::<3>(self.sums, word),
            4 => serialize::load::<4>(self.sums, word),
            _ => serialize::load::<8>(self.sums, word),
        }
    }
}

pub(super) fn noise_stream(
    seed: &[u8; SEED],
    block: usize,
    slab: usize,
    width: usize,
    first: usize,
) -> Stream {
    let mut stream = Stream::new(seed, ((block as u64) << 16) | slab as u64);
    stream.seek((first * width * 8) as u64);
    stream
}

/// Slabs with their numbers, as the noise is drawn.
pub(super) fn slabs(masks: &Masks) -> Vec<(usize, Range<usize>)> {
    masks.slabs().collect()
}
