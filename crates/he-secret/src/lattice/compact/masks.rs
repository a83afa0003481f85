//! Public masks a_1 … a_d of a collection, expanded from their seed, and their sums weighted by a
//! query's integers.
//!
//! Public in nature; only the owner needs them.

use super::Compact;
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::matmul::{self, TILE};
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// Dimensions per slab: a slab is the unit that is expanded, cached and multiplied at once.
pub(super) const SLAB: usize = 64;
/// Slabs are kept between calls while all of them fit here; beyond that they are expanded again for
/// every call.
const CACHE_BYTES: usize = 128 << 20;

/// Masks, expanded from their seed when first needed.
pub struct Masks {
    seed: [u8; 32],
    dimension: usize,
    degree: usize,
    bits: u32,
    cache: Vec<OnceLock<AlignedBytes>>,
    low: Vec<OnceLock<AlignedBytes>>,
}

impl Masks {
    /// The masks of a collection of `dimension` dimensions.
    pub fn new(scheme: &Compact, seed: [u8; 32], dimension: usize) -> Self {
        let degree = scheme.width().degree();
        let cached = dimension * degree * 8 <= CACHE_BYTES;
        let slabs = if cached { dimension.div_ceil(SLAB) } else { 0 };
        Masks {
            seed,
            dimension,
            degree,
            bits: scheme.width().ciphertext_modulus_bits(),
            cache: (0..slabs).map(|_| OnceLock::new()).collect(),
            low: (0..slabs).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Dimensions masked.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of slabs and the dimensions of one of them.
    pub(super) fn slabs(&self) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let dimension = self.dimension;
        (0..dimension.div_ceil(SLAB))
            .map(move |slab| (slab, slab * SLAB..(slab * SLAB + SLAB).min(dimension)))
    }

    /// The slab in tile layout: coefficient c of dimension i at `[c / TILE][i][c % TILE]`.
    fn slab(&self, slab: usize, dims: &Range<usize>) -> Cow<'_, AlignedBytes> {
        match self.cache.get(slab) {
            Some(cell) => Cow::Borrowed(cell.get_or_init(|| self.expand(dims))),
            None => Cow::Owned(self.expand(dims)),
        }
    }

    /// The low byte of every coefficient of one slab, N for each dimension.
    pub(super) fn low_bytes(&self, slab: usize, dims: &Range<usize>) -> Cow<'_, AlignedBytes> {
        let read = || {
            let mut low = AlignedBytes::zeroed(self.degree * dims.len());
            let polynomials = self.polynomials(slab, dims);
            for (low, coefficient) in
                low.as_mut_slice().iter_mut().zip(polynomials.iter().flatten())
            {
                *low = *coefficient as u8;
            }
            low
        };
        match self.low.get(slab) {
            Some(cell) => Cow::Borrowed(cell.get_or_init(read)),
            None => Cow::Owned(read()),
        }
    }

    fn expand(&self, dims: &Range<usize>) -> AlignedBytes {
        let width = dims.len();
        let mut bytes = AlignedBytes::zeroed(self.degree * width * 8);
        let mut coefficients = vec![0; self.degree];
        for (column, dimension) in dims.clone().enumerate() {
            Stream::new(&self.seed, dimension as u64).uniform_bits(self.bits, &mut coefficients);
            let tiles = bytes.as_mut_slice().chunks_exact_mut(width * TILE * 8);
            for (tile, values) in tiles.zip(coefficients.as_chunks::<TILE>().0) {
                let words = tile[column * TILE * 8..][..TILE * 8].as_chunks_mut::<8>().0;
                words.iter_mut().zip(values).for_each(|(word, value)| *word = value.to_le_bytes());
            }
        }
        bytes
    }

    /// a_i for the dimensions of one slab, coefficient order, one row of N each.
    pub(super) fn polynomials(&self, slab: usize, dims: &Range<usize>) -> Vec<Vec<u64>> {
        let bytes = self.slab(slab, dims);
        let width = dims.len();
        (0..width)
            .into_par_iter()
            .map(|column| {
                let tiles = bytes.as_slice().chunks_exact(width * TILE * 8);
                tiles
                    .flat_map(|tile| tile[column * TILE * 8..][..TILE * 8].as_chunks::<8>().0)
                    .map(|word| u64::from_le_bytes(*word))
                    .collect()
            })
            .collect()
    }

    /// a' = Σ_i q_i a_i mod 2^Q for each of `count` queries, one row of N each.
    pub fn combine(&self, queries: &[i64]) -> Vec<u64> {
        let count = queries.len() / self.dimension;
        let mask = u64::MAX >> (64 - self.bits);
        let mut combined = vec![0u64; count * self.degree];
        let mut partial = vec![0u64; count * self.degree];
        for (slab, dims) in self.slabs() {
            let part: Vec<i64> = queries
                .chunks_exact(self.dimension)
                .flat_map(|query| &query[dims.clone()])
                .copied()
                .collect();
            matmul::scan_u64_batch(
                &self.slab(slab, &dims),
                self.degree,
                dims.len(),
                &part,
                &mut partial,
            );
            combined
                .iter_mut()
                .zip(&partial)
                .for_each(|(sum, value)| *sum = sum.wrapping_add(*value));
        }
        combined.iter_mut().for_each(|sum| *sum &= mask);
        combined
    }
}
