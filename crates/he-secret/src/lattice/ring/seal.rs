//! Encryption and packing, ring form. Owner only: rows become packed polynomials, strip-major, and
//! the sums that answers about them are checked with.

use super::check::BlockSums;
use super::inner::deal_strips;
use super::stored_sums::SumSizes;
use super::{CheckWeights, DEGREE, Layout, Masks, POLY_BYTES, Ring, RowSigns, SegmentKey, Vectors};
use crate::error::Result;
use crate::keys::MasterKey;
use crate::lattice::{Plaintext, Scales, SegmentId, nonce};
use crate::random::random_bytes;
use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring;
use ciphervec_arith::{convert, poly, sample::Stream};
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
    errors: Zeroizing<Vec<i32>>,
    masked: Zeroizing<Vec<u64>>,
}

impl Workspace {
    fn new() -> Self {
        Workspace {
            coefficients: Zeroizing::new(vec![0; DEGREE]),
            poly: Zeroizing::new(vec![0; DEGREE]),
            errors: Zeroizing::new(vec![0; DEGREE]),
            masked: Zeroizing::new(vec![0; DEGREE]),
        }
    }
}

/// Rows of one segment as they are stored.
pub struct Packed {
    /// The nonce they were packed under, and the segment's name.
    pub id: SegmentId,
    /// Packed polynomials, behind the plaintext's headroom.
    pub words: AlignedBytes,
    /// What answers about them are checked with ([`super::AnswerCheck`]).
    pub sums: Zeroizing<Vec<u8>>,
}

/// Packs rows in the clear: the plain index of `sealed-query`.
///
/// # Errors
/// If the operating system's generator fails.
pub fn pack(
    ring: &Ring,
    master: &MasterKey,
    collection: &[u8],
    layout: &Layout,
    plaintext: &impl Plaintext,
    scales: Scales,
) -> Result<Packed> {
    let id = nonce::draw(master, collection, plaintext)?;
    let weights = CheckWeights::derive(master, collection, id, layout);
    let sizes = SumSizes::new(layout, Vectors::Plain, scales);
    let builder = Builder::new(layout, plaintext, id, (&weights, sizes));
    Ok(builder.build(|_, _, work| {
        convert::lift(&mut work.poly, &work.coefficients, ring.modulus());
        ring.tables()[0].forward(&mut work.poly);
    }))
}

/// Seals rows under a nonce that is drawn here and never again, b_r = −a_r s + e + D_r.
///
/// The noise comes from the operating system's generator and is independent of the nonce.
///
/// # Errors
/// If the operating system's generator fails.
pub fn seal(
    ring: &Ring,
    masks: &Masks,
    master: &MasterKey,
    collection: &[u8],
    layout: &Layout,
    plaintext: &impl Plaintext,
    scales: Scales,
) -> Result<Packed> {
    let id = nonce::draw(master, collection, plaintext)?;
    let key = SegmentKey::derive(ring, master, collection, id, layout, plaintext.rows());
    let weights = CheckWeights::derive(master, collection, id, layout);
    let sizes = SumSizes::new(layout, Vectors::Sealed, scales);
    seal_under(ring, masks, &key, &Builder::new(layout, plaintext, id, (&weights, sizes)))
}

/// Seals under a key and a nonce that somebody chose: two calls with both give the difference of
/// their rows away. For the attack tests alone.
///
/// # Errors
/// If the operating system's generator fails.
#[cfg(feature = "hazmat")]
pub fn seal_with_key(
    ring: &Ring,
    masks: &Masks,
    (key, id): (&SegmentKey, SegmentId),
    layout: &Layout,
    plaintext: &impl Plaintext,
) -> Result<AlignedBytes> {
    let weights = CheckWeights::derive(&MasterKey::from_bytes([0; 32]), b"", id, layout);
    let sizes = SumSizes::new(layout, Vectors::Sealed, ring.scales(1.0, layout.level()));
    let builder = Builder::new(layout, plaintext, id, (&weights, sizes));
    Ok(seal_under(ring, masks, key, &builder)?.words)
}

fn seal_under<P: Plaintext>(
    ring: &Ring,
    masks: &Masks,
    key: &SegmentKey,
    builder: &Builder<'_, P>,
) -> Result<Packed> {
    let noise_seed = Zeroizing::new(random_bytes::<32>()?);
    Ok(builder.build(|block, node, work| {
        let q = ring.modulus();
        Stream::new(&noise_seed, ((block as u64) << 32) | node as u64).gaussian(&mut work.errors);
        convert::lift_noisy(&mut work.poly, &work.coefficients, &work.errors, q);
        ring.tables()[0].forward(&mut work.poly);
        poly::mul(&mut work.masked, masks.node(ring, node), key.block(block), q);
        poly::sub_assign(&mut work.poly, &work.masked, q);
    }))
}

/// One segment that is being built.
struct Builder<'a, P> {
    layout: &'a Layout,
    plaintext: &'a P,
    id: SegmentId,
    signs: RowSigns,
    weights: &'a CheckWeights,
    sizes: SumSizes,
}

impl<'a, P: Plaintext> Builder<'a, P> {
    fn new(
        layout: &'a Layout,
        plaintext: &'a P,
        id: SegmentId,
        (weights, sizes): (&'a CheckWeights, SumSizes),
    ) -> Self {
        let signs = RowSigns::of(id, plaintext.rows());
        Builder { layout, plaintext, id, signs, weights, sizes }
    }

    /// For every block and node the coefficients of D_r, `finish`ed into a residue polynomial and
    /// packed; what it adds to them is in the workspace's errors.
    fn build(&self, finish: impl Fn(usize, usize, &mut Workspace) + Sync) -> Packed {
        let (layout, plaintext) = (self.layout, self.plaintext);
        let (rows, nodes) = (plaintext.rows(), layout.nodes());
        let blocks = layout.blocks(rows);
        let headroom = plaintext.headroom();
        let mut data = AlignedBytes::zeroed(headroom + layout.packed_len(rows));
        let stored = (0..blocks).map(|block| layout.rows_in_block(rows, block));
        let stored = stored.map(|rows| BlockSums::stored_len(layout, &self.sizes, rows));
        // At once: what grows leaves copies behind.
        let mut sums = Zeroizing::new(Vec::with_capacity(stored.sum()));
        for first in (0..blocks).step_by(batch()) {
            // [node][strip][50 bytes] of some blocks
            let built: Vec<(Vec<u8>, Zeroizing<Vec<u8>>)> = (first..(first + batch()).min(blocks))
                .into_par_iter()
                .map_init(Workspace::new, |work, block| self.block(block, work, &finish))
                .collect();
            let (packed, built): (Vec<_>, Vec<_>) = built.into_iter().unzip();
            let out = &mut data.as_mut_slice()[headroom..];
            deal_strips(out, (blocks, nodes), first, &packed);
            built.iter().for_each(|block| sums.extend_from_slice(block));
        }
        Packed { id: self.id, words: data, sums }
    }

    fn block(
        &self,
        block: usize,
        work: &mut Workspace,
        finish: &impl Fn(usize, usize, &mut Workspace),
    ) -> (Vec<u8>, Zeroizing<Vec<u8>>) {
        let layout = self.layout;
        let (dimension, rows) =
            (layout.dimension(), layout.rows_in_block(self.plaintext.rows(), block));
        let values = Zeroizing::new(self.block_values(block));
        let mut sums = BlockSums::new(self.weights, layout, rows);
        let mut column = Zeroizing::new(vec![0u32; rows]);
        let mut packed = vec![0u8; layout.nodes() * POLY_BYTES];
        let polys = packed.chunks_exact_mut(POLY_BYTES);
        for ((node, (chunk, residue)), out) in layout.node_list().enumerate().zip(polys) {
            place(layout, &values, chunk, residue, &mut work.coefficients);
            finish(block, node, work);
            ring::pack50(&work.poly, out);
            for (dim, exponent) in layout.node_dims(chunk, residue) {
                for (row, out) in column.iter_mut().enumerate() {
                    let at = layout.position(row) + exponent;
                    *out = (work.coefficients[at] + i64::from(work.errors[at])) as u32;
                }
                sums.column(dim, &column, |row| values[row * dimension + dim]);
            }
        }
        let length = BlockSums::stored_len(layout, &self.sizes, rows);
        let mut stored = Zeroizing::new(Vec::with_capacity(length));
        sums.append(&packed, &self.sizes, &mut stored);
        debug_assert_eq!(stored.len(), length);
        (packed, stored)
    }

    /// The quantised rows of a block with their signs, row-major.
    fn block_values(&self, block: usize) -> Vec<i64> {
        let (layout, dimension) = (self.layout, self.layout.dimension());
        let first = block * layout.vectors_per_block();
        let count = layout.rows_in_block(self.plaintext.rows(), block);
        let mut values = vec![0i64; count * dimension];
        for (vector, row) in values.chunks_exact_mut(dimension).enumerate() {
            self.plaintext.fill(first + vector, 0..dimension, row);
            if self.signs.negates(first + vector) {
                row.iter_mut().for_each(|value| *value = -*value);
            }
        }
        values
    }
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
