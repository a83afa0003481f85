//! Encryption and packing, ring form: rows enter, packed polynomials leave. Both sides.
//!
//! Polynomials lie strip-major. Encryption is the owner's; packing plain rows, either side's.

use super::{DEGREE, Layout, POLY_BYTES, Ring};
#[cfg(feature = "client")]
use super::{Masks, SegmentKey};
#[cfg(feature = "client")]
use crate::error::Result;
#[cfg(feature = "client")]
use crate::keys::MasterKey;
use crate::lattice::Plaintext;
#[cfg(feature = "client")]
use crate::lattice::{SegmentId, nonce};
#[cfg(feature = "client")]
use crate::random::random_bytes;
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::convert;
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::{self, STRIP_BYTES};
#[cfg(feature = "client")]
use ciphervec_arith::{poly, sample::Stream};
use zeroize::Zeroizing;

/// Blocks that are built at once before they are dealt out to their strips: whole groups, some for
/// every thread.
fn batch() -> usize {
    (2 * current_num_threads()).next_multiple_of(ring::GROUP)
}

/// What one thread needs to build polynomials; wiped on drop.
struct Workspace {
    coefficients: Zeroizing<Vec<i64>>,
    poly: Zeroizing<Vec<u64>>,
    #[cfg(feature = "client")]
    errors: Zeroizing<Vec<i32>>,
    #[cfg(feature = "client")]
    masked: Zeroizing<Vec<u64>>,
}

impl Workspace {
    fn new() -> Self {
        Workspace {
            coefficients: Zeroizing::new(vec![0; DEGREE]),
            poly: Zeroizing::new(vec![0; DEGREE]),
            #[cfg(feature = "client")]
            errors: Zeroizing::new(vec![0; DEGREE]),
            #[cfg(feature = "client")]
            masked: Zeroizing::new(vec![0; DEGREE]),
        }
    }
}

/// Packs every row in the clear: the plain index of `sealed-query`.
pub fn pack(ring: &Ring, layout: &Layout, plaintext: &impl Plaintext) -> AlignedBytes {
    build(layout, plaintext, |_, _, work| {
        convert::lift(&mut work.poly, &work.coefficients, ring.modulus());
        ring.ciphertext.forward(&mut work.poly);
    })
}

/// Seals every row under a nonce that is drawn here and never again, b_r = −a_r s + e + D_r: the
/// nonce, which names the segment, and packed polynomials.
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

/// Seals under a key whose nonce somebody chose: two calls with one key give the difference of
/// their rows away. For the attack tests alone.
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
    Ok(build(layout, plaintext, |block, node, work| {
        let q = ring.modulus();
        Stream::new(&noise_seed, ((block as u64) << 32) | node as u64).gaussian(&mut work.errors);
        convert::lift_noisy(&mut work.poly, &work.coefficients, &work.errors, q);
        ring.ciphertext.forward(&mut work.poly);
        poly::mul(&mut work.masked, masks.node(ring, node), key.block(block), q);
        poly::sub_assign(&mut work.poly, &work.masked, q);
    }))
}

/// The common walk: for every block and node the coefficients of D_r, `finish`ed into a residue
/// polynomial and packed.
fn build(
    layout: &Layout,
    plaintext: &impl Plaintext,
    finish: impl Fn(usize, usize, &mut Workspace) + Sync,
) -> AlignedBytes {
    let (rows, nodes, blocks) = (plaintext.rows(), layout.nodes(), layout.blocks(plaintext.rows()));
    let headroom = plaintext.headroom();
    let mut data = AlignedBytes::zeroed(headroom + layout.packed_len(rows));
    for first in (0..blocks).step_by(batch()) {
        // [node][strip][50 bytes] of some blocks
        let built: Vec<Vec<u8>> = (first..(first + batch()).min(blocks))
            .into_par_iter()
            .map_init(Workspace::new, |work, block| {
                let values = Zeroizing::new(block_values(layout, plaintext, block));
                let mut packed = vec![0u8; nodes * POLY_BYTES];
                let polys = packed.chunks_exact_mut(POLY_BYTES);
                for ((node, (chunk, residue)), out) in layout.node_list().enumerate().zip(polys) {
                    place(layout, &values, chunk, residue, &mut work.coefficients);
                    finish(block, node, work);
                    ring::pack50(&work.poly, out);
                }
                packed
            })
            .collect();
        let strip_bytes = blocks * nodes * STRIP_BYTES;
        let strips = data.as_mut_slice()[headroom..].par_chunks_exact_mut(strip_bytes);
        strips.enumerate().for_each(|(strip, out)| {
            for node in 0..nodes {
                for (offset, packed) in built.iter().enumerate() {
                    let from = node * POLY_BYTES + strip * STRIP_BYTES;
                    let to = ring::strip_offset(blocks, nodes, first + offset, node);
                    out[to..][..STRIP_BYTES].copy_from_slice(&packed[from..][..STRIP_BYTES]);
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
