//! Packing and sealing in the ring form. Quantised rows enter; packed polynomials leave, strip-major. Owner (seal), both sides (pack).

use super::{DEGREE, Layout, Ring};
#[cfg(feature = "client")]
use super::{Masks, SegmentKey};
#[cfg(feature = "client")]
use crate::error::Result;
#[cfg(feature = "client")]
use crate::keys::{MasterKey, random_bytes};
use crate::sealed::Plaintext;
#[cfg(feature = "client")]
use crate::sealed::{SegmentId, nonce};
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::convert;
use ciphervec_arith::matmul::{self, STRIP, STRIP_BYTES};
#[cfg(feature = "client")]
use ciphervec_arith::{poly, sample::Stream};
use rayon::prelude::*;
#[cfg(feature = "client")]
use zeroize::Zeroizing;

/// Blocks that are built at once before they are dealt out to their strips.
fn batch() -> usize {
    2 * rayon::current_num_threads()
}

/// Packs every row in the clear: the plain index of `sealed-query`.
pub fn pack(ring: &Ring, layout: &Layout, plaintext: &impl Plaintext) -> AlignedBytes {
    build(ring, layout, plaintext, |_, _, coefficients| {
        let q = ring.modulus();
        let mut poly = vec![0; DEGREE];
        convert::lift(&mut poly, coefficients, q);
        ring.ciphertext.forward(&mut poly);
        poly
    })
}

/// Seals every row under a nonce that is drawn here and never again, b_r = −a_r s + e + D_r: the nonce, which names the
/// segment, and packed polynomials.
///
/// The noise comes from the operating system's generator and is independent of the nonce.
///
/// # Errors
/// If the operating system's generator fails.
#[cfg(feature = "client")]
pub fn seal(
    ring: &Ring,
    masks: &Masks,
    master: &MasterKey,
    collection: &[u8],
    layout: &Layout,
    plaintext: &impl Plaintext,
) -> Result<(SegmentId, AlignedBytes)> {
    let id = nonce::draw(master, collection, plaintext)?;
    let key = SegmentKey::derive(ring, master, collection, id, layout, plaintext.rows());
    Ok((id, seal_under(ring, masks, &key, layout, plaintext)?))
}

/// Seals under a key whose nonce somebody chose: two calls with one key give the difference of their rows away. For the
/// attack tests alone.
///
/// # Errors
/// If the operating system's generator fails.
#[cfg(feature = "hazmat")]
pub fn seal_with_key(
    ring: &Ring,
    masks: &Masks,
    key: &SegmentKey,
    layout: &Layout,
    plaintext: &impl Plaintext,
) -> Result<AlignedBytes> {
    seal_under(ring, masks, key, layout, plaintext)
}

#[cfg(feature = "client")]
fn seal_under(
    ring: &Ring,
    masks: &Masks,
    key: &SegmentKey,
    layout: &Layout,
    plaintext: &impl Plaintext,
) -> Result<AlignedBytes> {
    let noise_seed = Zeroizing::new(random_bytes::<32>()?);
    Ok(build(ring, layout, plaintext, |block, node, coefficients| {
        let q = ring.modulus();
        let mut errors = Zeroizing::new([0i32; DEGREE]);
        Stream::new(&noise_seed, ((block as u64) << 32) | node as u64)
            .gaussian(errors.as_mut_slice());
        let mut poly = vec![0; DEGREE];
        convert::lift_noisy(&mut poly, coefficients, errors.as_slice(), q);
        ring.ciphertext.forward(&mut poly);
        let mut masked = Zeroizing::new(vec![0; DEGREE]);
        poly::mul(&mut masked, masks.node(ring, node), key.block(block), q);
        poly::sub_assign(&mut poly, &masked, q);
        poly
    }))
}

/// The common walk: for every block and node the coefficients of D_r, `finish`ed into a residue polynomial and packed.
fn build(
    ring: &Ring,
    layout: &Layout,
    plaintext: &impl Plaintext,
    finish: impl Fn(usize, usize, &[i64]) -> Vec<u64> + Sync,
) -> AlignedBytes {
    debug_assert!(ring.modulus().value() >> super::PRIME_BITS == 0);
    let (rows, nodes, blocks) = (plaintext.rows(), layout.nodes(), layout.blocks(plaintext.rows()));
    let mut data = AlignedBytes::zeroed(layout.packed_len(rows));
    let block_strip = nodes * STRIP_BYTES;
    for first in (0..blocks).step_by(batch()) {
        let built: Vec<Vec<u8>> = (first..(first + batch()).min(blocks))
            .into_par_iter()
            .map(|block| {
                let values = block_values(layout, plaintext, block);
                let mut packed = vec![0u8; DEGREE / STRIP * block_strip];
                let mut coefficients = vec![0i64; DEGREE];
                for (node, (chunk, residue)) in layout.node_list().enumerate() {
                    place(layout, &values, chunk, residue, &mut coefficients);
                    let poly = finish(block, node, &coefficients);
                    for (strip, residues) in poly.chunks_exact(STRIP).enumerate() {
                        let out =
                            &mut packed[strip * block_strip + node * STRIP_BYTES..][..STRIP_BYTES];
                        matmul::pack50(residues, out);
                    }
                }
                packed
            })
            .collect();
        let strips = data.as_mut_slice().par_chunks_exact_mut(blocks * block_strip);
        strips.enumerate().for_each(|(strip, out)| {
            for (offset, packed) in built.iter().enumerate() {
                let own = packed[strip * block_strip..][..block_strip].as_chunks::<STRIP_BYTES>().0;
                for (node, bytes) in own.iter().enumerate() {
                    let place = matmul::strip_offset(blocks, nodes, first + offset, node);
                    out[place..][..STRIP_BYTES].copy_from_slice(bytes);
                }
            }
        });
    }
    data
}

/// The quantised rows of a block, row-major.
fn block_values(layout: &Layout, plaintext: &impl Plaintext, block: usize) -> Vec<i64> {
    let dimension = layout.dimension();
    let first = block * layout.vectors_per_block();
    let count = layout.rows_in_block(plaintext.rows(), block);
    let mut values = vec![0i64; count * dimension];
    for (vector, row) in values.chunks_exact_mut(dimension).enumerate() {
        plaintext.fill(first + vector, 0..dimension, row);
    }
    values
}

/// The coefficients of D_r: dimension i of vector v at exponent pos(v) + (i − r).
fn place(layout: &Layout, values: &[i64], chunk: usize, residue: usize, coefficients: &mut [i64]) {
    coefficients.fill(0);
    let dims: Vec<(usize, usize)> = layout.node_dims(chunk, residue).collect();
    for (vector, row) in values.chunks_exact(layout.dimension()).enumerate() {
        let position = layout.position(vector);
        for &(dim, exponent) in &dims {
            coefficients[position + exponent] = row[dim];
        }
    }
}
