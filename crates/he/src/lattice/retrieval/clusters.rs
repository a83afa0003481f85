//! Clusters chosen under encryption, for both sides: what a client says of its choice, and how a server folds the scanned
//! blocks of all clusters to those that were chosen. Lengths depend on how many there are, never on which
//! (`docs/decisions/0044-clusters-are-chosen-under-encryption.md`).

use super::keys::LEVELS;
use super::selector::{GADGET, Selector, fold, fold_together};
use crate::error::{Error, Result};
use crate::lattice::ring::inner::SwitchingKey;
use crate::lattice::ring::{
    Ciphertext, EvaluationKeys, Expanded, Layout, POLY_BYTES, Ring, Scratch, Sums, expand,
    products_of_all,
};
use crate::wire::Reader;
use ciphervec_arith::parallel::*;

/// Clusters of which the blocks are held before they are folded.
const RUN_BITS: usize = 5;

/// How many clusters there are, and how many of them a query chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChoiceShape {
    clusters: usize,
    probes: usize,
    /// Of the tree that carries the numbers.
    level: u8,
}

impl ChoiceShape {
    /// Most clusters.
    pub const MAX_CLUSTERS: usize = 1 << 20;
    /// Most that a query chooses: the selectors of each take some 9 MB of a server's memory.
    pub const MAX_PROBES: usize = 64;

    /// `probes` of `clusters`, of vectors of this dimension.
    ///
    /// # Errors
    /// [`Error::Range`] for none of either, or too many.
    pub fn new(dimension: usize, clusters: usize, probes: usize) -> Result<Self> {
        let most = clusters.min(Self::MAX_PROBES);
        let numbers = [
            ("clusters", Self::MAX_CLUSTERS, clusters),
            ("clusters that a query chooses", most, probes),
        ];
        for (what, most, actual) in numbers {
            if !(1..=most).contains(&actual) {
                let (expected, actual) = (format!("1 to {most}"), actual.to_string());
                return Err(Error::Range { what, expected, actual });
            }
        }
        Ok(ChoiceShape { clusters, probes, level: Layout::top_level(dimension).min(LEVELS) })
    }

    /// Clusters there are.
    pub fn clusters(&self) -> usize {
        self.clusters
    }

    /// Clusters that a query chooses.
    pub fn probes(&self) -> usize {
        self.probes
    }

    /// Bits of a cluster's number.
    pub fn bits(&self) -> usize {
        self.clusters.next_power_of_two().trailing_zeros() as usize
    }

    /// The level of the tree that carries the numbers.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Numbers that a choice encrypts: [`GADGET`] times each bit of each cluster's number, the lowest first.
    fn numbers(&self) -> usize {
        self.probes * self.bits() * GADGET.count as usize
    }

    /// How the numbers stand in each ciphertext.
    ///
    /// # Errors
    /// None that a shape could have.
    #[doc(hidden)]
    pub fn layouts(&self) -> Result<Vec<Layout>> {
        let (all, each) = (self.numbers(), 1 << self.level);
        let layout = |first| {
            let numbers = each.min(all - first);
            Layout::new(numbers, Layout::top_level(numbers))
        };
        (0..all).step_by(each).map(layout).collect()
    }

    /// Bytes of a choice.
    pub fn byte_len(&self) -> usize {
        SwitchingKey::BYTES + 32 + self.numbers().div_ceil(1 << self.level) * POLY_BYTES
    }

    /// Bytes that folding takes of a server's memory, for clusters of so many blocks.
    ///
    /// # Errors
    /// As [`Self::layouts`].
    pub fn working_len(&self, blocks: usize) -> Result<usize> {
        let trees: usize = self.layouts()?.iter().map(Expanded::bytes).sum();
        let selectors = self.probes * self.bits() * Selector::BYTES;
        let kept = self.probes * self.clusters.div_ceil(ClusterFolds::RUN);
        let run = ClusterFolds::RUN * (1 + self.probes.div_ceil(2));
        Ok(trees + selectors + (kept + run) * blocks * Sums::BLOCK)
    }
}

/// Which clusters a query chooses, encrypted; and the key that switches t² to t.
pub struct ClusterChoice {
    square: SwitchingKey,
    seed: [u8; 32],
    ciphertexts: Vec<Ciphertext>,
}

impl ClusterChoice {
    /// Of ciphertexts whose c1 are the streams of `seed`. Hidden: a query key encrypts.
    #[doc(hidden)]
    pub fn from_parts(square: SwitchingKey, seed: [u8; 32], ciphertexts: Vec<Ciphertext>) -> Self {
        ClusterChoice { square, seed, ciphertexts }
    }

    /// Appends the key, the seed, then c0 of each ciphertext: [`ChoiceShape::byte_len`] bytes.
    pub fn append(&self, out: &mut Vec<u8>) {
        self.square.append(out);
        out.extend_from_slice(&self.seed);
        self.ciphertexts.iter().for_each(|ciphertext| ciphertext.append(out));
    }

    /// Reads what [`Self::append`] wrote of a choice of this shape.
    ///
    /// # Errors
    /// Too few bytes, or residues that are none.
    pub fn read(ring: &Ring, reader: &mut Reader<'_>, shape: &ChoiceShape) -> Result<Self> {
        let square = SwitchingKey::read(ring, reader)?;
        let seed = reader.array()?;
        let read = |(stream, _)| Ciphertext::read(ring, reader, &seed, stream as u64);
        let ciphertexts = shape.layouts()?.iter().enumerate().map(read).collect::<Result<_>>()?;
        Ok(ClusterChoice { square, seed, ciphertexts })
    }
}

/// Folds the clusters of one query, a run at a time.
pub struct ClusterFolds<'a> {
    ring: &'a Ring,
    shape: ChoiceShape,
    /// Of each chosen cluster, from the lowest bit on.
    selectors: Vec<Vec<Selector>>,
    /// Of a cluster.
    blocks: usize,
    /// What is left of each run, for each chosen cluster.
    kept: Vec<Sums>,
    runs: usize,
}

impl<'a> ClusterFolds<'a> {
    /// Clusters of a run.
    pub const RUN: usize = 1 << RUN_BITS;

    /// By a choice of this shape under the query key of `keys`, of clusters of so many blocks.
    ///
    /// # Errors
    /// A choice of another shape.
    pub fn new(
        ring: &'a Ring,
        keys: &EvaluationKeys,
        shape: ChoiceShape,
        choice: &ClusterChoice,
        blocks: usize,
    ) -> Result<Self> {
        let layouts = shape.layouts()?;
        if layouts.len() != choice.ciphertexts.len() {
            return Err(Error::Range {
                what: "ciphertexts of a choice of clusters",
                expected: layouts.len().to_string(),
                actual: choice.ciphertexts.len().to_string(),
            });
        }
        let mut trees: Vec<Expanded> = Vec::with_capacity(layouts.len());
        for (layout, ciphertext) in layouts.into_iter().zip(&choice.ciphertexts) {
            trees.extend(expand(ring, keys, core::slice::from_ref(ciphertext), &[layout])?);
        }
        let (bits, level) = (shape.bits(), shape.level);
        let selectors =
            (0..shape.probes * bits).into_par_iter().map_init(Scratch::new, |scratch, bit| {
                let node = |digit: usize, constant: &mut [u64], linear: &mut [u64]| {
                    let number = bit * GADGET.count as usize + digit;
                    trees[number >> level].node(number & ((1 << level) - 1), constant, linear);
                };
                Selector::new(ring, core::slice::from_ref(&choice.square), node, scratch)
            });
        let mut all = selectors.collect::<Vec<_>>().into_iter();
        let selectors = (0..shape.probes).map(|_| all.by_ref().take(bits).collect()).collect();
        let runs = shape.clusters.div_ceil(Self::RUN);
        let kept = (0..shape.probes).map(|_| Sums::take(runs * blocks)).collect();
        Ok(ClusterFolds { ring, shape, selectors, blocks, kept, runs: 0 })
    }

    /// Scans the next clusters, [`Self::RUN`] of them or the last ones, of `rows` vectors each, and folds them.
    ///
    /// # Panics
    /// If a segment has another length, the query another layout, or there are more clusters than the shape has.
    pub fn take(&mut self, layout: &Layout, segments: &[&[u8]], rows: usize, query: &Expanded) {
        let mut sums = products_of_all(self.ring, layout, segments, rows, query);
        let (at, blocks) = (self.runs * self.blocks, self.blocks);
        self.runs += 1;
        let low = self.shape.bits().min(RUN_BITS);
        let folded = if low == 0 {
            vec![sums]
        } else {
            let first: Vec<&Selector> = self.selectors.iter().map(|bits| &bits[0]).collect();
            fold_together(self.ring, &first, &mut sums, blocks)
        };
        let rest = folded.into_par_iter().zip(&self.selectors).zip(&mut self.kept);
        rest.for_each(|((mut sums, selectors), kept)| {
            fold(self.ring, &selectors[low.min(1)..low], &mut sums, blocks);
            (0..blocks).for_each(|block| kept.copy_block(at + block, &sums, block));
        });
    }

    /// The blocks of each chosen cluster.
    pub fn finish(self) -> Vec<Sums> {
        let ClusterFolds { ring, shape, selectors, blocks, kept, .. } = self;
        let low = shape.bits().min(RUN_BITS);
        let folds = kept.into_par_iter().zip(&selectors);
        let folds = folds.map(|(mut kept, selectors)| {
            fold(ring, &selectors[low..], &mut kept, blocks);
            kept.shorten(blocks);
            kept.inverse_transform(ring);
            kept
        });
        folds.collect()
    }
}
