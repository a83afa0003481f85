//! Public masks a_r, expanded from a seed, and their products with a query.

use super::expand::Expanded;
use super::scan::products;
use super::{DEGREE, Layout, MAX_LEVEL, POLY_BYTES, Ring};
use ciphervec_arith::AlignedBytes;
use ciphervec_arith::ring::{self, STRIP, STRIP_BYTES};
use ciphervec_arith::sample::Stream;
use std::sync::OnceLock;

/// Masks, expanded from their seed when first needed.
pub struct Masks {
    seed: [u8; 32],
    /// For sealing: a_r as polynomials.
    nodes: Vec<OnceLock<Vec<u64>>>,
    /// For answering: the masks of one level as if they were one block of a segment.
    levels: Vec<OnceLock<AlignedBytes>>,
}

impl Masks {
    /// The masks of a collection of `dimension` dimensions.
    pub fn new(seed: [u8; 32], dimension: usize) -> Self {
        // No level has more nodes than there are dimensions.
        let nodes = (0..dimension).map(|_| OnceLock::new()).collect();
        Masks { seed, nodes, levels: (0..=MAX_LEVEL).map(|_| OnceLock::new()).collect() }
    }

    /// The seed: public.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    fn expand(&self, ring: &Ring, node: usize) -> Vec<u64> {
        let mut mask = vec![0; DEGREE];
        Stream::new(&self.seed, node as u64).uniform(ring.modulus(), &mut mask);
        mask
    }

    /// a_r of node `node`, NTT form.
    #[doc(hidden)]
    pub fn node(&self, ring: &Ring, node: usize) -> &[u64] {
        self.nodes[node].get_or_init(|| self.expand(ring, node))
    }

    fn packed(&self, ring: &Ring, layout: &Layout) -> &AlignedBytes {
        self.levels[usize::from(layout.level())].get_or_init(|| {
            let nodes = layout.nodes();
            let mut data = AlignedBytes::zeroed(nodes * POLY_BYTES);
            for node in 0..nodes {
                for (strip, residues) in
                    self.expand(ring, node).as_chunks::<STRIP>().0.iter().enumerate()
                {
                    let place = (strip * nodes + node) * STRIP_BYTES;
                    ring::pack50(residues, &mut data.as_mut_slice()[place..][..STRIP_BYTES]);
                }
            }
            data
        })
    }

    /// Bytes expanded so far.
    pub fn bytes(&self) -> usize {
        let polynomials =
            self.nodes.iter().filter(|node| node.get().is_some()).count() * DEGREE * 8;
        polynomials
            + self.levels.iter().filter_map(OnceLock::get).map(AlignedBytes::len).sum::<usize>()
    }
}

/// (Σ a_r c0_r, Σ a_r c1_r) of one query at one level, NTT form: what the owner multiplies by a
/// block's secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaskSums {
    pub(super) constant: Vec<u64>,
    pub(super) linear: Vec<u64>,
}

impl MaskSums {
    /// Σ a_r c0_r and Σ a_r c1_r.
    #[doc(hidden)]
    pub fn sums(&self) -> [&[u64]; 2] {
        [&self.constant, &self.linear]
    }

    /// The sums for expanded queries of one level: the masks are scanned like one block of
    /// a segment.
    pub fn compute(
        ring: &Ring,
        masks: &Masks,
        layout: &Layout,
        queries: &[&Expanded],
    ) -> Vec<Self> {
        let one_block = layout.vectors_per_block();
        let sums = products(ring, layout, masks.packed(ring, layout), one_block, 0..1, queries);
        sums.iter()
            .map(|sums| MaskSums {
                constant: sums.constant(0).to_vec(),
                linear: sums.linear(0).to_vec(),
            })
            .collect()
    }

    /// Writes both sums, for owners of release 0.1, to twice [`POLY_BYTES`] bytes.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn write(&self, out: &mut [u8]) {
        let (constant, linear) = out.split_at_mut(POLY_BYTES);
        ring::pack50(&self.constant, constant);
        ring::pack50(&self.linear, linear);
    }
}
