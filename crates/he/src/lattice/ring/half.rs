//! Answers in halves, U and V: the server sends each by itself, and the owner puts them together.
//!
//! V and its mask sum depend on a query's c1 and the evaluation keys, not on what is asked: they can be sent before it is
//! known. Put together the halves are, bit for bit, what the whole query is answered with.

use super::response::{write_linear, write_scores};
use super::{AnswerWords, Half, Layout, Ring, Sums};
use ciphervec_arith::words::packed_len;
use core::ops::Range;
use rayon::prelude::*;

impl AnswerWords {
    /// Bytes of half of the answer of one query over `rows` vectors.
    pub fn half_len(&self, half: Half, layout: &Layout, rows: usize) -> usize {
        let linear = layout.blocks(rows).saturating_mul(self.linear_len());
        match half {
            Half::Linear => linear,
            Half::Constant => self.answer_len(layout, rows).saturating_sub(linear),
        }
    }

    /// Bytes of half of the answer over a full block.
    fn block_half_len(&self, half: Half, layout: &Layout) -> usize {
        match half {
            Half::Linear => self.linear_len(),
            Half::Constant => packed_len(layout.vectors_per_block(), self.constant()),
        }
    }
}

/// Writes half of some `blocks` of the answers over one segment: to the first query, and to the second where there is one,
/// as [`super::expand_halves`] put them together. Each of `outs` has [`AnswerWords::half_len`] bytes.
pub fn write_halves(
    ring: &Ring,
    layout: &Layout,
    words: AnswerWords,
    half: Half,
    blocks: Range<usize>,
    sums: &Sums,
    outs: &mut [&mut [u8]],
) {
    let per_block = words.block_half_len(half, layout);
    for (query, out) in outs.iter_mut().enumerate() {
        let end = out.len().min(blocks.end * per_block);
        let part = &mut out[blocks.start * per_block..end];
        part.par_chunks_mut(per_block).enumerate().for_each(|(block, out)| {
            let sums = if query == 0 { sums.constant(block) } else { sums.linear(block) };
            match half {
                Half::Linear => write_linear(ring, words, sums, out),
                Half::Constant => write_scores(ring, layout, words, sums, out),
            }
        });
    }
}

/// Puts both halves of one query's answer over one segment together.
///
/// # Panics
/// If one of them, or `out`, has another length than that of the same rows.
pub fn join_halves(
    layout: &Layout,
    words: AnswerWords,
    linear: &[u8],
    constant: &[u8],
    out: &mut [u8],
) {
    assert_eq!(out.len(), linear.len() + constant.len(), "bytes of the answer");
    let scores = words.block_half_len(Half::Constant, layout);
    let parts = linear.chunks(words.linear_len()).zip(constant.chunks(scores));
    for (out, (linear, constant)) in out.chunks_mut(words.linear_len() + scores).zip(parts) {
        let (first, rest) = out.split_at_mut(linear.len());
        first.copy_from_slice(linear);
        rest.copy_from_slice(constant);
    }
}
