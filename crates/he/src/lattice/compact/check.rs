//! Checks of answers, compact form: secret weights and an answer enter; whether the server computed
//! it from the words that were sealed leaves. Owner only.
//!
//! With secret weights rho, uniform words, and h_i = sum_v rho_v b_i[v], kept in the sidecar,
//!
//! ```text
//! sum_v rho_v y_v = sum_i q_i h_i    modulo 2^w
//! ```
//!
//! holds for every honest answer y. `docs/sealed.md`, section 4.4, says what a wrong one has to get past.

use super::witness::{CHECKS, Witness};
use super::{Compact, Width, serialize};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::SegmentId;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::wrapping;
use rayon::prelude::*;
use zeroize::Zeroize;

/// Words of checks: 24 bits are computed in 32 and cut.
enum Words {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Words {
    fn zeroed(width: Width, len: usize) -> Self {
        match width {
            Width::Wide => Words::Wide(vec![0; len]),
            Width::Standard | Width::Small => Words::Narrow(vec![0; len]),
        }
    }

    /// Little-endian words of the width's bytes.
    fn read(width: Width, bytes: &[u8]) -> Self {
        let count = bytes.len() / width.word_bytes();
        match width {
            Width::Small => {
                Words::Narrow((0..count).map(|i| serialize::load::<3>(bytes, i) as u32).collect())
            }
            Width::Standard => {
                Words::Narrow((0..count).map(|i| serialize::load::<4>(bytes, i) as u32).collect())
            }
            Width::Wide => {
                Words::Wide((0..count).map(|i| serialize::load::<8>(bytes, i)).collect())
            }
        }
    }

    fn of(width: Width, words: impl Iterator<Item = u64>) -> Self {
        match width {
            Width::Wide => Words::Wide(words.collect()),
            Width::Standard | Width::Small => {
                Words::Narrow(words.map(|word| word as u32).collect())
            }
        }
    }

    /// A sum for each row of `weights`.
    fn dots(&self, weights: &Words) -> Vec<u64> {
        match (self, weights) {
            (Words::Narrow(x), Words::Narrow(weights)) => {
                let mut sums = vec![0; weights.len() / x.len().max(1)];
                wrapping::dots_u32(x, weights, &mut sums);
                sums.iter().map(|sum| u64::from(*sum)).collect()
            }
            (Words::Wide(x), Words::Wide(weights)) => {
                let mut sums = vec![0; weights.len() / x.len().max(1)];
                wrapping::dots_u64(x, weights, &mut sums);
                sums
            }
            // One segment has words of one width.
            _ => Vec::new(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Words::Narrow(words) => words.len() * 4,
            Words::Wide(words) => words.len() * 8,
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        match self {
            Words::Narrow(words) => words.zeroize(),
            Words::Wide(words) => words.zeroize(),
        }
    }
}

/// The weights of a segment's checks, block by block. A block of fewer rows than checks has a check
/// a row instead, which is all that there is to know of it. Wiped on drop.
pub struct CheckWeights {
    blocks: Vec<Words>,
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
        let blocks = (0..scheme.blocks(rows)).into_par_iter().map(|block| {
            let rows = (rows - block * degree).min(degree);
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
        CheckWeights { blocks: blocks.collect(), width }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(Words::bytes).sum()
    }

    /// h_i of every check of a block: `column` has one dimension's words of its rows.
    pub(super) fn sums(&self, block: usize, column: &[u64]) -> Vec<u64> {
        let column = Words::of(self.width, column.iter().copied());
        self.cut(column.dots(&self.blocks[block]))
    }

    /// Whether one dimension's words of a block are those that were sealed.
    pub(super) fn holds(
        &self,
        witness: &Witness<'_>,
        block: usize,
        dimension: usize,
        dim: usize,
        column: &[u64],
    ) -> bool {
        let sums = self.sums(block, column);
        let of = |check: usize| witness.sum(self.width, dimension, block, check * dimension + dim);
        sums.iter().enumerate().all(|(check, sum)| *sum == of(check))
    }

    fn cut(&self, mut sums: Vec<u64>) -> Vec<u64> {
        let mask = u64::MAX >> (64 - self.width.word_bits());
        sums.iter_mut().for_each(|sum| *sum &= mask);
        sums
    }

    /// Whether `answer`, a word a row, can be what the stored words give to `query`. `deleted` rows
    /// may have been taken out, which shows by their words being 0; a block that lacks some is not
    /// checked, unless it has a check a row.
    pub fn verify(
        &self,
        witness: &Witness<'_>,
        query: &[i64],
        answer: &[u8],
        deleted: &[bool],
    ) -> bool {
        let (degree, bytes) = (self.width.degree(), self.width.word_bytes());
        let weights = Words::of(self.width, query.iter().map(|weight| *weight as u64));
        let blocks = answer.par_chunks(degree * bytes).zip(deleted.par_chunks(degree));
        blocks.enumerate().all(|(block, (answer, deleted))| {
            let missing = (0..deleted.len())
                .filter(|&row| deleted[row])
                .any(|row| answer[row * bytes..][..bytes].iter().all(|&byte| byte == 0));
            let a_check_a_row = deleted.len() < Self::MOST;
            if missing && !a_check_a_row {
                return true;
            }
            let checks = self.blocks[block].bytes() / (deleted.len() * self.bytes_a_word());
            let sums = (0..checks * query.len())
                .map(|index| witness.sum(self.width, query.len(), block, index));
            let expected = self.cut(weights.dots(&Words::of(self.width, sums)));
            let found = self.cut(Words::read(self.width, answer).dots(&self.blocks[block]));
            { expected.iter().zip(&found) }.enumerate().all(|(check, (expected, found))| {
                expected == found || (a_check_a_row && deleted[check])
            })
        })
    }

    fn bytes_a_word(&self) -> usize {
        if self.width == Width::Wide { 8 } else { 4 }
    }
}
