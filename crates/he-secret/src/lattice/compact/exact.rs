//! Takes the noise off unmasked sums, compact form: the integers that remain depend on rows and
//! queries alone. Owner only.
//!
//! A stored word is b_i[v] = D_i + (m_i - r_i) / 2^drop, with D_i the row's integer, m_i = (a_i s +
//! e_i)[v] and r_i = m_i modulo 2^drop, centred. So a sum whose masks are removed is
//!
//! ```text
//! 2^drop sum_i q_i D_i + sum_i q_i (e_i - r_i)
//! ```
//!
//! and e_i - r_i is a matter of the noise's seed and of one coefficient of a_i s modulo 2^drop, for
//! which the masks' low bytes do (`docs/sealed.md`, section 1.2).

use super::check::AnswerCheck;
use super::masks::{Masks, SLAB};
use super::open::SegmentKey;
use super::witness::{Witness, slabs};
use super::{Compact, Width, serialize};
use ciphervec_arith::matmul::TILE;
use ciphervec_arith::parallel::*;
use ciphervec_arith::wrapping::{self, NegacyclicRows};
use zeroize::{Zeroize, Zeroizing};

/// Rows of one block from which on the transform of the whole block costs less.
const WHOLE_BLOCK: usize = 1024;
/// Rows whose noise is held at a time.
const AT_ONCE: usize = 1024;
/// Rows that are multiplied with what is in the cache of the masks.
const TOGETHER: usize = 16;

/// One sum of the server's, its masks removed, to be freed from its noise.
#[derive(Clone, Copy, Debug)]
pub struct MaskedSum {
    /// Which of the queries.
    pub query: usize,
    /// Which row of the segment.
    pub row: u32,
    /// What [`super::unmask`] left.
    pub sum: i64,
}

/// Σ_i q_i D_i for each of `sums`; `queries` are integers, row by row. What is left without noise is a
/// multiple of 2^drop whoever made the answer, and whatever it is: that is for the check.
pub fn settle(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    witness: &Witness<'_>,
    queries: &[i64],
    sums: &[MaskedSum],
) -> Vec<i64> {
    let width = scheme.width();
    let (degree, dimension) = (width.degree(), masks.dimension());
    let mut order: Vec<usize> = (0..sums.len()).collect();
    order.sort_unstable_by_key(|&index| sums[index].row);
    let mut rows: Vec<u32> = order.iter().map(|&index| sums[index].row).collect();
    rows.dedup();
    let mut settled = vec![0; sums.len()];
    let mut order = order.as_slice();
    let mut rest = rows.as_slice();
    while let Some(&first) = rest.first() {
        let block = first as usize / degree;
        let of_block = rest.partition_point(|&row| row as usize / degree == block);
        let mut noise;
        let taken;
        if of_block >= WHOLE_BLOCK && width.dropped_bits() > 0 {
            taken = &rest[..of_block];
            noise = Zeroizing::new(vec![0i16; taken.len() * dimension]);
            noise_of_block(scheme, masks, key, witness, block, taken, &mut noise);
        } else {
            // Up to the next block that is worth a transform.
            let few = rest.chunk_by(|a, b| *a as usize / degree == *b as usize / degree);
            let few = few.take_while(|rows| rows.len() < WHOLE_BLOCK || width.dropped_bits() == 0);
            taken = &rest[..few.map(<[u32]>::len).sum::<usize>().min(AT_ONCE)];
            noise = Zeroizing::new(vec![0i16; taken.len() * dimension]);
            noise_of_rows(scheme, masks, key, witness, taken, &mut noise);
        }
        let of_these = order
            .partition_point(|&index| taken.last().is_some_and(|last| sums[index].row <= *last));
        let (now, later) = order.split_at(of_these);
        for &index in now {
            let MaskedSum { query, row, sum } = sums[index];
            let place = taken.binary_search(&row).unwrap_or_default();
            let noise = &noise[place * dimension..][..dimension];
            let query = &queries[query * dimension..][..dimension];
            settled[index] = exact(width, sum, query, noise);
        }
        order = later;
        rest = &rest[taken.len()..];
    }
    settled
}

/// (sum − Σ q (e − r)) / 2^drop, modulo 2^Q and centred.
fn exact(width: Width, sum: i64, query: &[i64], noise: &[i16]) -> i64 {
    let pairs = query.iter().zip(noise);
    let off = pairs.fold(0i64, |off, (weight, noise)| {
        off.wrapping_add(weight.wrapping_mul(i64::from(*noise)))
    });
    let shift = 64 - width.ciphertext_modulus_bits();
    let clean = (sum.wrapping_sub(off) << shift) >> shift;
    debug_assert_eq!(clean & ((1 << width.dropped_bits()) - 1), 0);
    clean >> width.dropped_bits()
}

/// e − r, with `mask` = a·s modulo 2^drop or anything above it.
#[inline]
fn remove_rounding(width: Width, error: i32, mask: u64) -> i16 {
    let size = 1i64 << width.dropped_bits();
    let half = size >> 1;
    let sum = (mask as i64).wrapping_add(i64::from(error)).wrapping_add(half);
    (i64::from(error) + half - (sum & (size - 1))) as i16
}

/// e − r of single rows, from the masks' low bytes.
fn noise_of_rows(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    witness: &Witness<'_>,
    rows: &[u32],
    noise: &mut [i16],
) {
    let width = scheme.width();
    let (degree, dimension) = (width.degree(), masks.dimension());
    let of_blocks = rows.chunk_by(|a, b| *a as usize / degree == *b as usize / degree);
    let blocks: Vec<usize> = of_blocks.map(|rows| rows[0] as usize / degree).collect();
    let secrets: Vec<NegacyclicRows> = if width.dropped_bits() == 0 {
        Vec::new()
    } else {
        blocks.iter().map(|block| NegacyclicRows::new(key.ternary(*block))).collect()
    };
    let secret = |row: u32| {
        let block = blocks.binary_search(&(row as usize / degree)).unwrap_or_default();
        secrets[block].row(row as usize % degree)
    };
    for (slab, dims) in slabs(masks) {
        let low = if secrets.is_empty() { None } else { Some(masks.low_bytes(slab, &dims)) };
        let groups = noise.par_chunks_mut(dimension * TOGETHER).zip(rows.par_chunks(TOGETHER));
        groups.for_each(|(noise, rows)| {
            let mut products = Zeroizing::new([0u8; TOGETHER * SLAB]);
            let mut errors = Zeroizing::new([0i32; SLAB]);
            let (products, errors) =
                (&mut products[..rows.len() * dims.len()], &mut errors[..dims.len()]);
            if let Some(low) = &low {
                let secrets: Vec<&[i8]> = rows.iter().map(|row| secret(*row)).collect();
                wrapping::ternary_products(low, &secrets, products);
            }
            let each = noise.chunks_exact_mut(dimension).zip(products.chunks_exact(dims.len()));
            for ((noise, products), row) in each.zip(rows) {
                let (block, place) = (*row as usize / degree, *row as usize % degree);
                witness.noise(block, slab, dims.len(), place).gaussian(errors);
                let each = errors.iter().zip(products);
                for (noise, (error, product)) in noise[dims.clone()].iter_mut().zip(each) {
                    *noise = remove_rounding(width, *error, u64::from(*product));
                }
            }
        });
    }
}

/// e − r of many rows of one block, by the transforms that sealed it.
fn noise_of_block(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    witness: &Witness<'_>,
    block: usize,
    rows: &[u32],
    noise: &mut [i16],
) {
    let width = scheme.width();
    let (degree, dimension) = (width.degree(), masks.dimension());
    for (slab, dims) in slabs(masks) {
        let polys = masks.polynomials(slab, &dims);
        let columns: Vec<Zeroizing<Vec<u64>>> =
            { polys.par_iter() }.map(|poly| mask_product(scheme, key, block, poly)).collect();
        noise.par_chunks_mut(dimension).zip(rows).for_each(|(noise, row)| {
            let place = *row as usize % degree;
            let mut errors = Zeroizing::new(vec![0i32; dims.len()]);
            witness.noise(block, slab, dims.len(), place).gaussian(&mut errors);
            let each = errors.iter().zip(&columns);
            for (noise, (error, column)) in noise[dims.clone()].iter_mut().zip(each) {
                *noise = remove_rounding(width, *error, column[place]);
            }
        });
    }
}

/// a_i · s of a block, as exact integers modulo 2^64.
fn mask_product(
    scheme: &Compact,
    key: &SegmentKey,
    block: usize,
    poly: &[u64],
) -> Zeroizing<Vec<u64>> {
    let mut product = Zeroizing::new(vec![0u64; poly.len()]);
    let mut scratch = Vec::new();
    scheme.convolve(&scheme.residues(poly), key.block(block), &mut product, &mut scratch);
    scratch.zeroize();
    product
}

/// The rows themselves: D, row-major `rows × dimension`, every one as it was rounded when it was
/// sealed. `None` if a block holds other words than were sealed.
pub fn unseal_exact(
    scheme: &Compact,
    masks: &Masks,
    (key, check): (&SegmentKey, &AnswerCheck),
    witness: &Witness<'_>,
    stored: &[u8],
    rows: usize,
) -> Option<Vec<i64>> {
    let width = scheme.width();
    let dimension = masks.dimension();
    let block_words = width.degree() * dimension;
    let mut plain = vec![0i64; rows * dimension];
    let sound = plain
        .par_chunks_mut(block_words)
        .zip(stored.par_chunks(block_words * width.word_bytes()))
        .enumerate()
        .all(|(block, (plain, stored))| {
            let rows = plain.len() / dimension;
            let mut errors = Zeroizing::new(Vec::new());
            let mut column = vec![0u64; rows];
            for (slab, dims) in slabs(masks) {
                errors.resize(rows * dims.len(), 0i32);
                witness.noise(block, slab, dims.len(), 0).gaussian(&mut errors);
                for (at, poly) in masks.polynomials(slab, &dims).iter().enumerate() {
                    let product = mask_product(scheme, key, block, poly);
                    read_column(width, stored, dimension, dims.start + at, &mut column);
                    if !check.holds(block, dims.start + at, &column) {
                        return false;
                    }
                    for row in 0..rows {
                        let error = errors[row * dims.len() + at];
                        plain[row * dimension + dims.start + at] =
                            integer(width, column[row], product[row], error);
                    }
                }
            }
            true
        });
    sound.then_some(plain)
}

/// The words of one dimension of a block.
fn read_column(width: Width, stored: &[u8], dimension: usize, dim: usize, column: &mut [u64]) {
    let rows = column.len();
    for (start, column) in (0..).step_by(TILE).zip(column.chunks_mut(TILE)) {
        let base = start * dimension + dim * TILE.min(rows - start);
        for (index, word) in column.iter_mut().enumerate() {
            *word = match width.word_bytes() {
                3 => serialize::load::<3>(stored, base + index),
                4 => serialize::load::<4>(stored, base + index),
                _ => serialize::load::<8>(stored, base + index),
            };
        }
    }
}

/// word − round((product + error) / 2^drop), modulo 2^w and centred.
fn integer(width: Width, word: u64, product: u64, error: i32) -> i64 {
    let half = (1u64 << width.dropped_bits()) >> 1;
    let masked = product.wrapping_add(i64::from(error) as u64).wrapping_add(half);
    // Above w bits it is cut away in any case, so that the shift need not know of Q.
    let masked = masked >> width.dropped_bits();
    let shift = 64 - width.word_bits();
    ((word.wrapping_sub(masked) << shift) as i64) >> shift
}
