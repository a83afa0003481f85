//! Cuts weights and rows of residues into tiles for a kernel's registers, in an order that stays in
//! the caches.
//!
//! # Instructions and tiles
//!
//! out_k = Σ w_ki x_i mod q over rows of residues, |w| below 2^31, x below 2^50. A product has
//! about 70 bits, so two instructions are the minimum:
//!
//! - **IFMA** (AVX-512): low and high halves, weights as residues of any width; `LazyReduction`
//!   once in 4095 terms.
//! - **Doubles** (AVX2): residues in two pieces of 25 bits, exact, as are sums of 2^(28 − b)
//!   products with weights of b bits. From b = 23 on three pieces of 17 bits.
//!
//! A tile is 4 vectors × 3 outputs. Residues are copied once into tiles `[tile][input]` of half the
//! second-level cache.

use bytemuck::Pod;

use crate::backend::buffer::AlignedBytes;
use crate::backend::operands::pcmm::Weights;

/// Bytes of packed residues that all blocks of weights pass over before the next ones are packed:
/// half of a usual second-level cache.
const SLAB: usize = 512 << 10;
/// Tiles in a slab when inputs are few: more would not use a block of weights better.
const TILES: usize = 32;
/// The most coefficients in a tile.
const COEFFICIENTS: usize = 32;

/// What a kernel takes at a time.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Coefficients of every input.
    pub coefficients: usize,
    /// Packed words that one input needs for them.
    pub words: usize,
    /// Outputs.
    pub block: usize,
}

/// Runs `tile(x, w, out)` over all tiles and blocks. `x` is `[input][words]` as `pack` makes them
/// from `coefficients` residues, `w` is `[input][outputs of the block]` as `weight` makes them,
/// `out` is `[output][coefficients]`.
///
/// A block of weights stays in the first-level cache for the tiles of a slab, a slab in the
/// second-level cache for all blocks. Words are of eight bytes, and `words` of them end on a cache
/// line if that many can.
pub(crate) fn walk<T: Pod>(
    shape: Shape,
    weights: &Weights,
    inputs: &[&[u64]],
    outputs: &mut [&mut [u64]],
    weight: impl Fn(i32) -> T,
    pack: impl Fn(&[u64], &mut [T]),
    tile: impl Fn(&[T], &[T], &mut [u64]),
) {
    let Shape { coefficients, words, block } = shape;
    let length = outputs.first().map_or(0, |row| row.len());
    let tile_words = words * weights.columns();
    let tiles = (SLAB / (8 * tile_words).max(1)).clamp(1, TILES);
    let packed = pack_weights(weights, block, weight);
    let mut slab = AlignedBytes::zeroed(8 * tile_words * tiles.min(length.div_ceil(coefficients)));
    let slab: &mut [T] = bytemuck::cast_slice_mut(&mut slab);
    let mut result = vec![0; block * coefficients];
    for start in (0..length).step_by(tiles * coefficients) {
        let end = (start + tiles * coefficients).min(length);
        for (i, input) in inputs.iter().enumerate() {
            for (t, part) in input[start..end].chunks(coefficients).enumerate() {
                let to = &mut slab[t * tile_words + i * words..][..words];
                match part.len() == coefficients {
                    true => pack(part, to),
                    false => {
                        let mut padded = [0; COEFFICIENTS];
                        padded[..part.len()].copy_from_slice(part);
                        pack(&padded[..coefficients], to);
                    }
                }
            }
        }
        for (b, outputs) in outputs.chunks_mut(block).enumerate() {
            let w = &packed[b * block * weights.columns()..][..outputs.len() * weights.columns()];
            for (t, at) in (start..end).step_by(coefficients).enumerate() {
                let result = &mut result[..outputs.len() * coefficients];
                tile(&slab[t * tile_words..][..tile_words], w, result);
                let count = coefficients.min(end - at);
                for (row, result) in outputs.iter_mut().zip(result.chunks_exact(coefficients)) {
                    row[at..at + count].copy_from_slice(&result[..count]);
                }
            }
        }
    }
}

/// Blocks of up to `block` outputs, each `[input][outputs of the block]`.
fn pack_weights<T>(weights: &Weights, block: usize, weight: impl Fn(i32) -> T) -> Vec<T> {
    let mut packed = Vec::with_capacity(weights.rows() * weights.columns());
    for first in (0..weights.rows()).step_by(block) {
        let rows: Vec<&[i32]> =
            (first..weights.rows().min(first + block)).map(|k| weights.row(k)).collect();
        for i in 0..weights.columns() {
            packed.extend(rows.iter().map(|row| weight(row[i])));
        }
    }
    packed
}

/// Products by exact multiply-adds of doubles, four at a time.
macro_rules! double_pieces {
    ($features:literal) => {
        use super::lanes::*;
        use crate::backend::operands::pcmm::Weights;
        use crate::backend::portable;
        use crate::backend::shared::pcmm::{Shape, walk};
        use crate::modulus::KERNEL_BITS;
        use crate::modulus::Modulus;

        /// 4 vectors × 3 outputs are 12 accumulators; the other four registers hold one vector and
        /// three weights.
        const OUTPUTS: usize = 3;
        /// The widest weights for which residues go in two pieces of 25 bits; wider ones take three
        /// of 17.
        const TWO_PIECES: u32 = 22;

        /// How residues are cut, and how many products may be added before the sums pass the `2^53`
        /// that doubles hold exactly.
        struct Cut {
            terms: usize,
            /// `2^bits` and `2^(2 bits)` modulo `q`, centred, and what `mul_root` needs beside
            /// them.
            radices: [(V, V); 2],
        }

        impl Cut {
            #[target_feature(enable = $features)]
            fn new(bits: u32, weights: &Weights, m: &Modulus) -> Self {
                let radix = |exponent: u32| {
                    let (root, ratio) = root_and_ratio(m, m.reduce(1 << exponent));
                    spread(root, ratio)
                };
                Cut {
                    terms: 1 << (53 - bits - weights.bits()),
                    radices: [radix(bits), radix(2 * bits)],
                }
            }
        }

        /// One tile, `P` pieces of `N` vectors each, against `K` outputs.
        #[target_feature(enable = $features)]
        fn tile<const P: usize, const N: usize, const K: usize>(
            c: &Constants,
            cut: &Cut,
            x: &[[[[f64; LANES]; N]; P]],
            w: &[[f64; K]],
            out: &mut [u64],
        ) {
            let zero = zero();
            let mut total = [[zero; N]; K];
            for (x, w) in x.chunks(cut.terms).zip(w.chunks(cut.terms)) {
                let mut sums = [[[zero; N]; P]; K];
                for (x, w) in x.iter().zip(w) {
                    let weights = w.map(|w| spread(w, w).0);
                    for p in 0..P {
                        for j in 0..N {
                            let x = load_doubles(&x[p][j]);
                            for k in 0..K {
                                sums[k][p][j] = fused(x, weights[k], sums[k][p][j]);
                            }
                        }
                    }
                }
                // A sum is at most 2^53: reduced it is below 2q, times a radix below 1.6 q, and two
                // or three of them and the total before stay below 8q.
                for (total, sums) in total.iter_mut().zip(&sums) {
                    for (j, total) in total.iter_mut().enumerate() {
                        let mut sum = add(*total, reduce(c, sums[0][j]));
                        for (piece, &radix) in sums[1..].iter().zip(&cut.radices) {
                            sum = add(sum, mul_root(c, piece[j], radix));
                        }
                        *total = reduce(c, sum);
                    }
                }
            }
            for (out, &x) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(total.as_flattened()) {
                store_residues(c, out, x);
            }
        }

        /// Piece after piece, each for all coefficients.
        fn pack<const P: usize>(part: &[u64], to: &mut [f64], bits: u32) {
            for (p, to) in to.chunks_exact_mut(part.len()).take(P).enumerate() {
                for (to, &x) in to.iter_mut().zip(part) {
                    *to = ((x >> (p as u32 * bits)) & ((1 << bits) - 1)) as i64 as f64;
                }
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn multiply(
            weights: &Weights,
            inputs: &[&[u64]],
            outputs: &mut [&mut [u64]],
            m: &Modulus,
        ) {
            if m.value() >> KERNEL_BITS != 0 {
                return portable::pcmm::multiply(weights, inputs, outputs, m);
            }
            if weights.bits() <= TWO_PIECES {
                pieces::<2, 2>(25, weights, inputs, outputs, m);
            } else {
                pieces::<3, 1>(17, weights, inputs, outputs, m);
            }
        }

        #[target_feature(enable = $features)]
        fn pieces<const P: usize, const N: usize>(
            bits: u32,
            weights: &Weights,
            inputs: &[&[u64]],
            outputs: &mut [&mut [u64]],
            m: &Modulus,
        ) {
            let (c, cut) = (Constants::of(m), Cut::new(bits, weights, m));
            let coefficients = N * LANES;
            walk(
                Shape { coefficients, words: P * coefficients, block: OUTPUTS },
                weights,
                inputs,
                outputs,
                f64::from,
                |part, to| pack::<P>(part, to, bits),
                |x, w, out| {
                    let x = bytemuck::cast_slice::<f64, [f64; LANES]>(x);
                    let x = x.as_chunks::<N>().0.as_chunks::<P>().0;
                    match out.len() / coefficients {
                        1 => tile::<P, N, 1>(&c, &cut, x, w.as_chunks().0, out),
                        2 => tile::<P, N, 2>(&c, &cut, x, w.as_chunks().0, out),
                        _ => tile::<P, N, OUTPUTS>(&c, &cut, x, w.as_chunks().0, out),
                    }
                },
            );
        }
    };
}
pub(crate) use double_pieces;
