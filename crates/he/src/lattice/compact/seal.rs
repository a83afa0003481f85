//! Encryption, compact form: rows and a segment's key enter, stored words leave. Owner only.

use super::masks::Masks;
use super::open::SegmentKey;
use super::{Compact, serialize};
use crate::error::Result;
use crate::keys::MasterKey;
use crate::lattice::{Plaintext, SegmentId, nonce};
use crate::random::random_bytes;
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::matmul::TILE;
use ciphervec_arith::sample::Stream;
use rayon::prelude::*;
use std::ops::Range;
use zeroize::{Zeroize, Zeroizing};

/// Seals every row of `plaintext`, scaled by [`super::Width::plaintext_scale`], under a nonce that
/// is drawn here and never again: the nonce, which names the segment, and words in tile layout, as
/// [`super::scan`] reads them, behind the plaintext's headroom.
///
/// The noise comes from the operating system's generator and is independent of the nonce.
///
/// # Errors
/// If the operating system's generator fails.
pub fn seal(
    scheme: &Compact,
    masks: &Masks,
    master: &MasterKey,
    collection: &[u8],
    plaintext: &impl Plaintext,
) -> Result<(SegmentId, AlignedBytes)> {
    let id = nonce::draw(master, collection, plaintext)?;
    let key = SegmentKey::derive(scheme, master, collection, id, plaintext.rows());
    Ok((id, seal_under(scheme, masks, &key, plaintext)?))
}

/// Seals under a key whose nonce somebody chose: two calls with one key give the difference of
/// their rows away. For the attack tests alone.
///
/// # Errors
/// If the operating system's generator fails.
#[cfg(feature = "hazmat")]
pub fn seal_with_key(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    plaintext: &impl Plaintext,
) -> Result<AlignedBytes> {
    seal_under(scheme, masks, key, plaintext)
}

fn seal_under(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    plaintext: &impl Plaintext,
) -> Result<AlignedBytes> {
    let dimension = plaintext.dimension();
    let width = scheme.width();
    let headroom = plaintext.headroom();
    let length = width.words_len(plaintext.rows(), dimension);
    let mut stored = AlignedBytes::zeroed(headroom + length);
    let noise_seed = Zeroizing::new(random_bytes::<32>()?);
    let block_bytes = width.degree() * dimension * width.word_bytes();
    for (slab, dims) in masks.slabs() {
        let mut residues = masks.polynomials(slab, &dims);
        let residues: Vec<Vec<Vec<u64>>> =
            residues.par_drain(..).map(|poly| scheme.residues(&poly)).collect();
        stored.as_mut_slice()[headroom..].par_chunks_mut(block_bytes).enumerate().for_each(
            |(block, out)| {
                let stream = ((block as u64) << 16) | slab as u64;
                let mut noise = Stream::new(&noise_seed, stream);
                let slice = Slice { scheme, residues: &residues, dims: dims.clone(), block };
                match width.word_bytes() {
                    3 => slice.seal::<3>(key, &mut noise, plaintext, out),
                    4 => slice.seal::<4>(key, &mut noise, plaintext, out),
                    _ => slice.seal::<8>(key, &mut noise, plaintext, out),
                }
            },
        );
    }
    Ok(stored)
}

/// One slab of dimensions of one block.
struct Slice<'a> {
    scheme: &'a Compact,
    residues: &'a [Vec<Vec<u64>>],
    dims: Range<usize>,
    block: usize,
}

impl Slice<'_> {
    fn seal<const WIDTH: usize>(
        &self,
        key: &SegmentKey,
        noise: &mut Stream,
        plaintext: &impl Plaintext,
        out: &mut [u8],
    ) {
        let degree = self.scheme.width().degree();
        let dropped = self.scheme.width().dropped_bits();
        let half = (1u64 << dropped) >> 1;
        let dimension = plaintext.dimension();
        let first = self.block * degree;
        let rows = (plaintext.rows() - first).min(degree);
        let mut values = self.transpose(plaintext, first..first + rows);
        let mut errors = vec![0i32; degree];
        let mut product = vec![0u64; degree];
        let mut scratch = Vec::new();
        for (column, residues) in self.residues.iter().enumerate() {
            noise.gaussian(&mut errors[..rows]);
            self.scheme.convolve(residues, key.block(self.block), &mut product, &mut scratch);
            for (tile, start) in (0..rows).step_by(TILE).enumerate() {
                let width = TILE.min(rows - start);
                // A tile of w rows holds [dimension][w] words.
                let base = tile * TILE * dimension + (self.dims.start + column) * width;
                let plain = &values[start * self.dims.len() + column * width..][..width];
                let masked =
                    product[start..start + width].iter().zip(&errors[start..start + width]);
                for (index, (plain, (mask, error))) in plain.iter().zip(masked).enumerate() {
                    let sum = mask
                        .wrapping_add(*error as i64 as u64)
                        .wrapping_add(*plain as u64)
                        .wrapping_add(half);
                    serialize::store::<WIDTH>(out, base + index, sum >> dropped);
                }
            }
        }
        values.zeroize();
        errors.zeroize();
        product.zeroize();
        scratch.zeroize();
    }

    /// The block's plaintext for these dimensions in tile layout.
    fn transpose(&self, plaintext: &impl Plaintext, rows: Range<usize>) -> Vec<i64> {
        let width = self.dims.len();
        let mut values = vec![0i64; rows.len() * width];
        let mut row = vec![0i64; width];
        for (tile, start) in values.chunks_mut(TILE * width).zip(rows.clone().step_by(TILE)) {
            let height = tile.len() / width;
            for offset in 0..height {
                plaintext.fill(start + offset, self.dims.clone(), &mut row);
                row.iter()
                    .enumerate()
                    .for_each(|(dim, value)| tile[dim * height + offset] = *value);
            }
        }
        row.zeroize();
        values
    }
}
