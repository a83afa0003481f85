//! Checks that the server computed an answer from the words that were sealed, compact form. Owner
//! only: holds the secret weights.
//!
//! With secret weights rho, uniform words, and h_i = sum_v rho_v b_i[v], kept in the sidecar,
//!
//! ```text
//! sum_v rho_v y_v = sum_i q_i h_i    modulo 2^w
//! ```
//!
//! holds for every honest answer y.
//!
//! Let an answer be wrong by δ, of which 2^t divides every entry and 2^(t+1) not. Some δ_v = 2^t · odd, and for every choice of
//! the other weights rho_v has to be one residue modulo 2^(w−t). The k = 16 equations are independent, so a wrong answer passes
//! with probability 2^(−16 (w−t)): 2⁻⁵¹² for a shift by one, 2⁻¹⁶ at worst, for a shift by half the range, and below 2⁻²⁴⁰ for
//! the answer to another query, as two within the scales differ by less than 2^17.

use super::asked::AskedQueries;
use super::witness::{CHECKS, Witness};
use super::words::Words;
use super::{Compact, Width};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::SegmentId;
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use zeroize::Zeroize;

/// The weights of a segment's checks, block by block. A block of fewer rows than checks has a check
/// a row instead, which is all that there is to know of it. Wiped on drop.
pub struct CheckWeights {
    blocks: Vec<Words>,
    /// Rows of each block.
    rows: Vec<usize>,
    width: Width,
}

impl core::fmt::Debug for CheckWeights {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CheckWeights({} blocks, redacted)", self.blocks.len())
    }
}

impl CheckWeights {
    /// Checks of a block, at most.
    pub const MOST: usize = CHECKS;

    /// The weights of segment `id` of `rows` rows.
    pub fn derive(
        scheme: &Compact,
        master: &MasterKey,
        collection: &[u8],
        id: SegmentId,
        rows: usize,
    ) -> Self {
        let width = scheme.width();
        let parts: [&[u8]; 4] = [collection, b"compact", &width.param_id().0, &id.0];
        let seed = master.derive(Purpose::AnswerCheck, &parts);
        let degree = width.degree();
        let of_block = |block: usize| (rows - block * degree).min(degree);
        let rows: Vec<usize> = (0..scheme.blocks(rows)).map(of_block).collect();
        let blocks = rows.par_iter().enumerate().map(|(block, &rows)| {
            if rows < Self::MOST {
                let identity = (0..rows * rows).map(|i| u64::from(i % (rows + 1) == 0));
                return Words::of(width, identity);
            }
            let mut stream = Stream::new(seed.expose(), block as u64);
            let mut weights = Words::zeroed(width, Self::MOST * rows);
            match &mut weights {
                Words::Narrow(words) => {
                    stream.fill(bytemuck::cast_slice_mut(words));
                    words.iter_mut().for_each(|word| *word = u32::from_le(*word));
                }
                Words::Wide(words) => {
                    stream.fill(bytemuck::cast_slice_mut(words));
                    words.iter_mut().for_each(|word| *word = u64::from_le(*word));
                }
            }
            weights
        });
        CheckWeights { blocks: blocks.collect(), rows, width }
    }

    /// h_i of every check of a block: `column` has one dimension's words of its rows.
    pub(super) fn sums(&self, block: usize, column: &[u64]) -> Vec<u64> {
        let column = Words::of(self.width, column.iter().copied());
        column.dots(self.width, &self.blocks[block])
    }

    /// Bytes held.
    fn bytes(&self) -> usize {
        self.blocks.iter().map(Words::bytes).sum()
    }
}

impl Drop for CheckWeights {
    fn drop(&mut self) {
        self.blocks.iter_mut().for_each(Words::zeroize);
    }
}

/// The weights of a segment with what they have to give. Wiped on drop.
pub struct AnswerCheck {
    weights: CheckWeights,
    /// h of each block, check by check.
    sums: Vec<Words>,
    dimension: usize,
}

impl core::fmt::Debug for AnswerCheck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AnswerCheck({} blocks, redacted)", self.sums.len())
    }
}

impl Drop for AnswerCheck {
    fn drop(&mut self) {
        self.sums.iter_mut().for_each(Words::zeroize);
    }
}

impl AnswerCheck {
    /// The check that a segment's witness allows, of so many dimensions.
    pub fn new(weights: CheckWeights, witness: &Witness<'_>, dimension: usize) -> Self {
        let width = weights.width;
        let sums = |(block, rows): (usize, usize)| {
            let count = rows.min(CheckWeights::MOST) * dimension;
            let all = (0..count).map(|index| witness.sum(width, dimension, block, index));
            Words::of(width, all)
        };
        let sums = weights.rows.iter().copied().enumerate().map(sums).collect();
        AnswerCheck { weights, sums, dimension }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.weights.bytes() + self.sums.iter().map(Words::bytes).sum::<usize>()
    }

    /// Whether one dimension's words of a block are those that were sealed.
    pub(super) fn holds(&self, block: usize, dim: usize, column: &[u64]) -> bool {
        let sums = self.weights.sums(block, column);
        let sealed = |check: usize| self.sums[block].get(check * self.dimension + dim);
        sums.iter().enumerate().all(|(check, sum)| *sum == sealed(check))
    }

    /// Whether `answer`, a word for each row of a block, can be what the stored words give to this
    /// query. Rows that are deleted are answered for like others, as long as the segment lives.
    pub fn verify(&self, asked: &AskedQueries, query: usize, block: usize, answer: &Words) -> bool {
        let width = self.weights.width;
        let expected = asked.words(query).dots(width, &self.sums[block]);
        expected == answer.dots(width, &self.weights.blocks[block])
    }
}
