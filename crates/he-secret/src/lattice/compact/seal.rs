//! Encryption, compact form: seals rows under a fresh nonce as the words that a server scans. Owner
//! only.

use super::check::CheckWeights;
use super::masks::Masks;
use super::open::SegmentKey;
use super::witness::{SEED, Witness, noise_stream};
use super::{Compact, serialize};
use crate::error::Result;
use crate::keys::MasterKey;
use crate::lattice::{Plaintext, SegmentId, nonce};
use crate::random::random_bytes;
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::matmul::TILE;
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use std::ops::Range;
use zeroize::{Zeroize, Zeroizing};

/// What sealing gives.
pub struct SealedRows {
    /// The nonce, which names the segment.
    pub id: SegmentId,
    /// Words in tile layout, as [`super::scan`] reads them, behind the plaintext's headroom.
    pub words: AlignedBytes,
    /// What [`Witness::read`] reads: secret, for the segment's sidecar.
    pub witness: Zeroizing<Vec<u8>>,
}

/// Seals every row of `plaintext`, integers at the scale of vectors, under a nonce that is drawn
/// here and never again.
///
/// The seed of the noise comes from the operating system's generator and is independent of the
/// nonce.
///
/// # Errors
/// If the operating system's generator fails.
pub fn seal(
    scheme: &Compact,
    masks: &Masks,
    master: &MasterKey,
    collection: &[u8],
    plaintext: &impl Plaintext,
) -> Result<SealedRows> {
    let id = nonce::draw(master, collection, plaintext)?;
    let key = SegmentKey::derive(scheme, master, collection, id, plaintext.rows());
    let weights = CheckWeights::derive(scheme, master, collection, id, plaintext.rows());
    let (words, witness) = seal_under(scheme, masks, &key, &weights, plaintext)?;
    Ok(SealedRows { id, words, witness })
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
    (key, weights): (&SegmentKey, &CheckWeights),
    plaintext: &impl Plaintext,
) -> Result<AlignedBytes> {
    Ok(seal_under(scheme, masks, key, weights, plaintext)?.0)
}

fn seal_under(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    weights: &CheckWeights,
    plaintext: &impl Plaintext,
) -> Result<(AlignedBytes, Zeroizing<Vec<u8>>)> {
    let (rows, dimension) = (plaintext.rows(), plaintext.dimension());
    let width = scheme.width();
    let headroom = plaintext.headroom();
    let mut stored = AlignedBytes::zeroed(headroom + width.words_len(rows, dimension));
    let mut witness = Zeroizing::new(vec![0; Witness::len(scheme, rows, dimension)]);
    let seed = Zeroizing::new(random_bytes::<SEED>()?);
    witness[..SEED].copy_from_slice(seed.as_slice());
    let block_bytes = width.degree() * dimension * width.word_bytes();
    let sums_bytes = CheckWeights::MOST * dimension * width.word_bytes();
    for (slab, dims) in masks.slabs() {
        let mut residues = masks.polynomials(slab, &dims);
        let residues: Vec<Vec<Vec<u64>>> =
            residues.par_drain(..).map(|poly| scheme.residues(&poly)).collect();
        let words = stored.as_mut_slice()[headroom..].par_chunks_mut(block_bytes);
        let sums = witness[SEED..].par_chunks_mut(sums_bytes);
        words.zip(sums).enumerate().for_each(|(block, (out, sums))| {
            let mut noise = noise_stream(&seed, block, slab, dims.len(), 0);
            let slice = Slice { scheme, residues: &residues, dims: dims.clone(), block };
            let secrets = (key, weights);
            match width.word_bytes() {
                3 => slice.seal::<3>(secrets, &mut noise, plaintext, out, sums),
                4 => slice.seal::<4>(secrets, &mut noise, plaintext, out, sums),
                _ => slice.seal::<8>(secrets, &mut noise, plaintext, out, sums),
            }
        });
    }
    Ok((stored, witness))
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
        (key, weights): (&SegmentKey, &CheckWeights),
        noise: &mut Stream,
        plaintext: &impl Plaintext,
        out: &mut [u8],
        sums: &mut [u8],
    ) {
        let degree = self.scheme.width().degree();
        let dropped = self.scheme.width().dropped_bits();
        let half = (1u64 << dropped) >> 1;
        let dimension = plaintext.dimension();
        let first = self.block * degree;
        let rows = (plaintext.rows() - first).min(degree);
        let mut values = self.transpose(plaintext, first..first + rows, noise);
        let mut product = vec![0u64; degree];
        let mut column = vec![0u64; rows];
        let mut scratch = Vec::new();
        for (at, residues) in self.residues.iter().enumerate() {
            self.scheme.convolve(residues, key.block(self.block), &mut product, &mut scratch);
            for (tile, start) in (0..rows).step_by(TILE).enumerate() {
                let width = TILE.min(rows - start);
                // A tile of w rows holds [dimension][w] words.
                let base = tile * TILE * dimension + (self.dims.start + at) * width;
                let plain = &values[start * self.dims.len() + at * width..][..width];
                let masked = product[start..start + width].iter().zip(&mut column[start..]);
                for (index, (plain, (mask, word))) in plain.iter().zip(masked).enumerate() {
                    *word = mask.wrapping_add(*plain as u64).wrapping_add(half) >> dropped;
                    serialize::store::<WIDTH>(out, base + index, *word);
                }
            }
            for (check, sum) in weights.sums(self.block, &column).into_iter().enumerate() {
                let index = check * dimension + self.dims.start + at;
                serialize::store::<WIDTH>(sums, index, sum);
            }
        }
        values.zeroize();
        product.zeroize();
        scratch.zeroize();
    }

    /// The block's plaintext for these dimensions in tile layout, in units of 2^-drop steps, with
    /// its noise.
    fn transpose(
        &self,
        plaintext: &impl Plaintext,
        rows: Range<usize>,
        noise: &mut Stream,
    ) -> Vec<i64> {
        let dropped = self.scheme.width().dropped_bits();
        let width = self.dims.len();
        let mut values = vec![0i64; rows.len() * width];
        let mut row = vec![0i64; width];
        let mut errors = vec![0i32; TILE * width];
        for (tile, start) in values.chunks_mut(TILE * width).zip(rows.clone().step_by(TILE)) {
            let height = tile.len() / width;
            noise.gaussian(&mut errors[..tile.len()]);
            for (offset, errors) in errors.chunks_exact(width).take(height).enumerate() {
                plaintext.fill(start + offset, self.dims.clone(), &mut row);
                for (dim, (value, error)) in row.iter().zip(errors).enumerate() {
                    tile[dim * height + offset] = (value << dropped) + i64::from(*error);
                }
            }
        }
        row.zeroize();
        errors.zeroize();
        values
    }
}
