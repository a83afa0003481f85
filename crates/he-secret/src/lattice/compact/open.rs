//! Decryption, compact form: a segment's secrets take the masks off the server's sums. Owner only.

use super::asked::AskedQueries;
use super::masks::Masks;
use super::words::Words;
use super::{Compact, Width, serialize};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::SegmentId;
use ciphervec_arith::matmul::TILE;
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{convert, poly};
use zeroize::Zeroize;

/// The secrets of a segment, one ternary polynomial per block, as it is and in NTT form for each
/// prime. Wiped on drop.
pub struct SegmentKey {
    blocks: Vec<BlockSecret>,
}

struct BlockSecret {
    ternary: Vec<i8>,
    residues: Vec<Vec<u64>>,
}

impl SegmentKey {
    /// Derives the secrets of segment `id` of `rows` vectors.
    pub fn derive(
        scheme: &Compact,
        master: &MasterKey,
        collection: &[u8],
        id: SegmentId,
        rows: usize,
    ) -> Self {
        let params = scheme.width().param_id();
        let seed =
            master.derive(Purpose::SegmentSecret, &[collection, b"compact", &params.0, &id.0]);
        let degree = scheme.width().degree();
        let blocks = (0..scheme.blocks(rows))
            .into_par_iter()
            .map(|block| {
                let mut ternary = vec![0i8; degree];
                Stream::new(seed.expose(), block as u64).ternary(&mut ternary);
                BlockSecret { residues: scheme.secret_residues(&ternary), ternary }
            })
            .collect();
        SegmentKey { blocks }
    }

    pub(super) fn block(&self, block: usize) -> &[Vec<u64>] {
        &self.blocks[block].residues
    }

    pub(super) fn ternary(&self, block: usize) -> &[i8] {
        &self.blocks[block].ternary
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let of = |block: &BlockSecret| block.ternary.len() * (1 + 8 * block.residues.len());
        self.blocks.iter().map(of).sum()
    }
}

impl Drop for SegmentKey {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            block.ternary.zeroize();
            block.residues.iter_mut().for_each(|poly| poly.zeroize());
        }
    }
}

impl core::fmt::Debug for SegmentKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SegmentKey({} blocks, redacted)", self.blocks.len())
    }
}

impl Compact {
    /// NTT form of an unsigned polynomial, one row per prime.
    pub(super) fn residues(&self, poly: &[u64]) -> Vec<Vec<u64>> {
        self.tables
            .iter()
            .map(|table| {
                let mut row: Vec<u64> =
                    poly.iter().map(|&value| table.modulus().reduce(value)).collect();
                table.forward(&mut row);
                row
            })
            .collect()
    }

    fn secret_residues(&self, ternary: &[i8]) -> Vec<Vec<u64>> {
        self.tables
            .iter()
            .map(|table| {
                let mut row = vec![0; ternary.len()];
                convert::lift_ternary(&mut row, ternary, table.modulus());
                table.forward(&mut row);
                row
            })
            .collect()
    }

    /// The negacyclic product of two transformed polynomials as exact integers modulo 2^64.
    pub(super) fn convolve(
        &self,
        a: &[Vec<u64>],
        s: &[Vec<u64>],
        out: &mut [u64],
        scratch: &mut Vec<u64>,
    ) {
        match (&self.rns, self.tables.as_slice()) {
            (Some(rns), [first, second]) => {
                scratch.resize(2 * out.len(), 0);
                let (low, high) = scratch.split_at_mut(out.len());
                poly::mul(low, &a[0], &s[0], first.modulus());
                first.inverse(low);
                poly::mul(high, &a[1], &s[1], second.modulus());
                second.inverse(high);
                rns.lift_wrapping(low, high, out);
            }
            (_, tables) => {
                let table = &tables[0];
                poly::mul(out, &a[0], &s[0], table.modulus());
                table.inverse(out);
                convert::centre(out, table.modulus());
            }
        }
    }
}

/// What the server's sums of one block are without their masks.
pub struct Unmasked<'a> {
    /// 2^drop Σ_i q_i x_i with the noise still in it, modulo 2^Q and centred, a sum a row.
    pub sums: &'a mut [i64],
    /// The sums in units of the caller's.
    pub scaled: &'a mut [f64],
}

/// Room for one product, used again and again. Wiped on drop.
#[derive(Default)]
pub struct Scratch {
    product: Vec<u64>,
    other: Vec<u64>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.product.zeroize();
        self.other.zeroize();
    }
}

impl core::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Scratch(redacted)")
    }
}

/// Removes the masks from the server's sums of one query over one block, a word a row; the least and
/// the greatest of what is left. A scaled sum is times `unit`.
///
/// What comes out depends on the secret (`docs/sealed.md`, section 4): it is for [`super::settle`] to
/// take the noise off, and for nobody but the key owner to see.
pub fn unmask(
    scheme: &Compact,
    key: &SegmentKey,
    (asked, query): (&AskedQueries, usize),
    (block, answer): (usize, &Words),
    unit: f64,
    scratch: &mut Scratch,
    out: Unmasked<'_>,
) -> (i64, i64) {
    let Scratch { product, other } = scratch;
    product.resize(scheme.width().degree(), 0);
    scheme.convolve(asked.combined(query), key.block(block), product, other);
    answer.differences(scheme.width(), product, unit, out.sums, out.scaled)
}

/// (word · 2^drop − product) mod 2^Q, centred.
fn centre<const WIDTH: usize>(width: Width, product: &[u64], sums: &[u8], out: &mut [i64]) {
    let shift = 64 - width.ciphertext_modulus_bits();
    for (index, (out, product)) in out.iter_mut().zip(product).enumerate() {
        let difference =
            (serialize::load::<WIDTH>(sums, index) << width.dropped_bits()).wrapping_sub(*product);
        *out = (difference << shift) as i64 >> shift;
    }
}

/// Decrypts the rows themselves: quantised coordinates in stored steps with their noise, row-major
/// `rows × dimension`. Of segments without a witness there is nothing better.
pub fn unseal(
    scheme: &Compact,
    masks: &Masks,
    key: &SegmentKey,
    stored: &[u8],
    rows: usize,
) -> Vec<f64> {
    let width = scheme.width();
    let (degree, dimension) = (width.degree(), masks.dimension());
    let word = width.word_bytes();
    let mut plain = vec![0.0; rows * dimension];
    let blocks =
        plain.par_chunks_mut(degree * dimension).zip(stored.par_chunks(degree * dimension * word));
    let slabs: Vec<_> = masks.slabs().collect();
    blocks.enumerate().for_each(|(block, (plain, stored))| {
        let rows = plain.len() / dimension;
        let mut product = vec![0u64; degree];
        let mut scratch = Vec::new();
        let mut column = [0i64; TILE];
        let unit = f64::exp2(-f64::from(width.dropped_bits()));
        for (slab, dims) in &slabs {
            for (dim, poly) in dims.clone().zip(masks.polynomials(*slab, dims)) {
                scheme.convolve(
                    &scheme.residues(&poly),
                    key.block(block),
                    &mut product,
                    &mut scratch,
                );
                for start in (0..rows).step_by(TILE) {
                    let tile = TILE.min(rows - start);
                    let words = &stored[(start * dimension + dim * tile) * word..][..tile * word];
                    let (product, column) = (&product[start..start + tile], &mut column[..tile]);
                    match word {
                        3 => centre::<3>(width, product, words, column),
                        4 => centre::<4>(width, product, words, column),
                        _ => centre::<8>(width, product, words, column),
                    }
                    for (row, value) in column.iter().enumerate() {
                        plain[(start + row) * dimension + dim] = *value as f64 * unit;
                    }
                }
            }
        }
        product.zeroize();
    });
    plain
}
