//! Ternary secrets of queries and segments, ring form, derived from the master key. Owner only;
//! wiped on drop.

use super::{DEGREE, Layout, Ring};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::SegmentId;
use ciphervec_arith::convert;
use ciphervec_arith::ntt::NttTable;
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use core::ops::Range;
use zeroize::Zeroize;

/// NTT form of a ternary polynomial.
pub(super) fn transform(table: &NttTable, ternary: &[i8]) -> Vec<u64> {
    let mut poly = vec![0; ternary.len()];
    convert::lift_ternary(&mut poly, ternary, table.modulus());
    table.forward(&mut poly);
    poly
}

/// t: the key of one epoch's queries. Wiped on drop.
pub struct QueryKey {
    pub(super) ternary: Vec<i8>,
    pub(in crate::lattice) residues: Vec<u64>,
    epoch: u32,
}

impl QueryKey {
    /// The query key of `collection` in `epoch`.
    pub fn derive(ring: &Ring, master: &MasterKey, collection: &[u8], epoch: u32) -> Self {
        Self::derive_named(ring, master, [collection, b"ring", &Ring::param_id().0], epoch)
    }

    /// The key that these names and the epoch have.
    pub(in crate::lattice) fn derive_named(
        ring: &Ring,
        master: &MasterKey,
        [collection, scheme, params]: [&[u8]; 3],
        epoch: u32,
    ) -> Self {
        let parts: [&[u8]; 4] = [collection, scheme, params, &epoch.to_le_bytes()];
        let seed = master.derive(Purpose::QueryKey, &parts);
        let mut ternary = vec![0; DEGREE];
        Stream::new(seed.expose(), 0).ternary(&mut ternary);
        let residues = transform(ring.tables()[0], &ternary);
        QueryKey { ternary, residues, epoch }
    }

    /// The epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
}

impl Drop for QueryKey {
    fn drop(&mut self) {
        self.ternary.zeroize();
        self.residues.zeroize();
    }
}

impl core::fmt::Debug for QueryKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "QueryKey(epoch {}, redacted)", self.epoch)
    }
}

/// s_ν: one ternary secret per block of a segment, NTT form. Wiped on drop.
pub struct SegmentKey {
    first: usize,
    blocks: Vec<Vec<u64>>,
}

impl SegmentKey {
    /// The secrets of segment `id` of `rows` vectors.
    pub fn derive(
        ring: &Ring,
        master: &MasterKey,
        collection: &[u8],
        id: SegmentId,
        layout: &Layout,
        rows: usize,
    ) -> Self {
        Self::derive_blocks(ring, master, collection, id, 0..layout.blocks(rows))
    }

    /// The secrets of some of its blocks.
    pub fn derive_blocks(
        ring: &Ring,
        master: &MasterKey,
        collection: &[u8],
        id: SegmentId,
        blocks: Range<usize>,
    ) -> Self {
        let first = blocks.start;
        let parts: [&[u8]; 4] = [collection, b"ring", &Ring::param_id().0, &id.0];
        let seed = master.derive(Purpose::SegmentSecret, &parts);
        let blocks = blocks
            .into_par_iter()
            .map(|block| {
                let mut ternary = vec![0i8; DEGREE];
                Stream::new(seed.expose(), block as u64).ternary(&mut ternary);
                let residues = transform(ring.tables()[0], &ternary);
                ternary.zeroize();
                residues
            })
            .collect();
        SegmentKey { first, blocks }
    }

    /// The secret of this block of the segment, if it is one of those here.
    pub(super) fn block(&self, block: usize) -> &[u64] {
        &self.blocks[block - self.first]
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * DEGREE * 8
    }
}

impl Drop for SegmentKey {
    fn drop(&mut self) {
        self.blocks.iter_mut().for_each(|poly| poly.zeroize());
    }
}

impl core::fmt::Debug for SegmentKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SegmentKey({} blocks, redacted)", self.blocks.len())
    }
}
