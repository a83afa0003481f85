//! Plaintext matrix: weights and rows of residues enter, tiles for a kernel's registers leave, in
//! an order that stays in the caches.

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
