//! The public masks a_r, shared by all segments of a collection. A 32-byte seed enters; polynomials in NTT form and their
//! products with a query leave. Both sides.

use super::{DEGREE, Layout, Ring, expand::Expanded, pack_poly, unpack_poly};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::{poly, sample::Stream};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Masks, expanded from their seed when first needed.
pub struct Masks {
    seed: [u8; 32],
    nodes: Vec<OnceLock<Vec<u64>>>,
}

impl Masks {
    /// The masks of a collection of `dimension` dimensions.
    pub fn new(seed: [u8; 32], dimension: usize) -> Self {
        // No level has more nodes than there are dimensions.
        Masks { seed, nodes: (0..dimension).map(|_| OnceLock::new()).collect() }
    }

    /// The seed: public.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// a_r of node `node`, NTT form.
    pub(super) fn node(&self, ring: &Ring, node: usize) -> &[u64] {
        self.nodes[node].get_or_init(|| {
            let mut mask = vec![0; DEGREE];
            Stream::new(&self.seed, node as u64).uniform(ring.modulus(), &mut mask);
            mask
        })
    }

    /// Bytes expanded so far.
    pub fn bytes(&self) -> usize {
        self.nodes.iter().filter(|node| node.get().is_some()).count() * DEGREE * 8
    }
}

/// (Σ a_r c0_r, Σ a_r c1_r) of one query at one level, NTT form: what the owner multiplies by a block's secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaskSums {
    pub(super) constant: Vec<u64>,
    pub(super) linear: Vec<u64>,
}

impl MaskSums {
    /// Bytes of one serialised pair.
    pub const BYTES: usize = 2 * super::POLY_BYTES;

    /// The server's sums for one expanded query.
    pub fn compute(ring: &Ring, masks: &Masks, layout: &Layout, query: &Expanded) -> Self {
        (0..layout.nodes()).into_par_iter().for_each(|node| {
            masks.node(ring, node);
        });
        let rows: Vec<&[u64]> = (0..layout.nodes()).map(|node| masks.node(ring, node)).collect();
        let sum = |part: usize| {
            let polys = query.polynomials(part);
            let columns: Vec<&[u64]> = polys.iter().map(Vec::as_slice).collect();
            let mut out = vec![0; DEGREE];
            poly::dot(&mut out, &rows, &columns, ring.modulus());
            out
        };
        MaskSums { constant: sum(0), linear: sum(1) }
    }

    /// Appends both sums, 50 bits a residue.
    pub fn append(&self, out: &mut Vec<u8>) {
        pack_poly(&self.constant, out);
        pack_poly(&self.linear, out);
    }

    /// Reads what [`Self::append`] wrote.
    ///
    /// # Errors
    /// Too few bytes or a residue at or above q.
    pub fn read(ring: &Ring, reader: &mut Reader<'_>) -> Result<Self> {
        let constant = unpack_poly("a response", reader.take(super::POLY_BYTES)?, ring.modulus())?;
        let linear = unpack_poly("a response", reader.take(super::POLY_BYTES)?, ring.modulus())?;
        Ok(MaskSums { constant, linear })
    }
}
