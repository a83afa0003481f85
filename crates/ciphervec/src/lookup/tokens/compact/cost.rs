//! What compact transport takes: operations, bytes and the error of a batch. Public numbers only.

use super::plan::{CompactPlan, TRANSFORMS};
use crate::error::Result;
use crate::lookup::strategy::Strategy;
use crate::lookup::tokens::answer::answer_bytes;
use crate::lookup::tokens::cost::{Counter, Operations};
use crate::lookup::tokens::design::{Design, Shape, design};
use crate::lookup::transport::Transport;

/// Bytes of a query's frames and their lengths, its ids and its seed.
const QUERY_HEAD: usize = 2 * 64 + 32 + 8 + 21;
/// Bytes of a memo beside its bits, sealed.
const MEMO_HEAD: usize = 64;

/// What a lookup with compact transport takes for one batch, before its parameters are made.
pub struct CompactCost {
    /// Indices of a batch.
    pub batch: usize,
    pub depth: usize,
    /// Roots and their functions.
    pub generation: Operations,
    pub sums: Operations,
    pub query_bytes: usize,
    pub answer_bytes: usize,
    pub key_bytes: usize,
    pub error: f64,
    /// Levels, key switches of an exponential and keys of coefficients-to-slots that were reckoned with,
    /// and the precision of a root.
    #[cfg(feature = "hazmat")]
    pub planned: (usize, usize, usize),
    #[cfg(feature = "hazmat")]
    pub root_bits: f64,
}

impl CompactCost {
    /// Of so many tables.
    ///
    /// # Errors
    /// Those of [`CompactPlan::new`].
    pub fn new(strategy: Strategy, shape: Shape, tables: usize) -> Result<Self> {
        let (bases, folded) = design(strategy, Transport::Compact, &shape)?;
        let design = Design { shape, bases: &bases, folded, wide: true };
        let plan = CompactPlan::new(strategy, &design)?;
        let lists = tables * bases.len();
        let mut generation = design.generation(&plan.params).repeated(tables);
        generation += plan.roots(lists);
        Ok(CompactCost {
            batch: plan.batch(),
            depth: design.top_level() - shape.levels,
            generation,
            sums: design.sums(&plan.params, tables),
            query_bytes: plan.query_bytes(lists),
            answer_bytes: answer_bytes(&plan.params, &design),
            key_bytes: plan.key_bytes(),
            error: plan.error,
            #[cfg(feature = "hazmat")]
            planned: (plan.params.levels, plan.switches, plan.rotations),
            #[cfg(feature = "hazmat")]
            root_bits: plan.root_bits,
        })
    }
}

impl CompactPlan {
    /// N/2: indices that are looked up at once.
    fn batch(&self) -> usize {
        1 << (self.spec.log_degree - 1)
    }

    /// What the roots of one batch take, for so many lists of numbers, two to a bootstrapping.
    fn roots(&self, lists: usize) -> Operations {
        let mut counter = Counter::new(&self.params);
        let top = self.params.levels;
        let spec = &self.params;
        for _ in 0..lists.div_ceil(2) {
            // To the sparse secret and back; then the products: rotations, of which half share their
            // digits, a transform of each diagonal to each prime, and two multiply-adds.
            counter.switch(top, false);
            for level in (top + 1 - TRANSFORMS..=top).rev() {
                let rotations = self.rotations / TRANSFORMS;
                (0..rotations.div_ceil(2)).for_each(|_| counter.switch(level, false));
                let hoisted = 2 * (level + 1 + spec.special_primes) * (rotations / 2);
                counter.sum.transforms += hoisted as f64;
                let digits = (level + 1).div_ceil(spec.digit_primes());
                let wide = digits * (level + 1 + spec.special_primes);
                counter.sum.passes += (2 * wide * (rotations / 2) + hoisted) as f64;
                let diagonals = 1usize << (self.spec.log_degree as usize - 1).div_ceil(TRANSFORMS);
                counter.sum.transforms += (2 * diagonals * (level + 1)) as f64;
                counter.sum.passes += (6 * diagonals * (level + 1)) as f64;
            }
            counter.switch(top + 1 - TRANSFORMS, false);
        }
        // An exponential's products lie at its levels, most of them at the upper ones.
        let upper = top - TRANSFORMS;
        let lower = self.spec.levels + 1;
        for _ in 0..lists {
            (0..self.switches).for_each(|at| {
                counter.product(upper - at * (upper - lower) / self.switches);
            });
        }
        counter.sum
    }

    /// Bytes of a batch's query, with its memo.
    fn query_bytes(&self, lists: usize) -> usize {
        let each = self.batch() / 8 * self.bits as usize;
        QUERY_HEAD + MEMO_HEAD + self.batch() / 8 + lists * each
    }

    /// About the bytes of the keys: those of coefficients-to-slots at the top, and few at lower
    /// levels.
    fn key_bytes(&self) -> usize {
        let spec = &self.params;
        let bits = self.spec.exponential_bits as usize;
        let limbs = spec.primes() + spec.special_primes;
        let each = spec.digits * limbs * 2 * self.batch() * bits / 8;
        // With those of relinearisation and of the sparse secret.
        (self.rotations + 3) * each
    }
}
