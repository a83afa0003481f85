//! Answer of the ring form: the server rounds U and V to words of fewer bits for the owner.
//!
//! All coefficients of V are sent, and those of U where a score stands.

use super::{DEGREE, Layout, POLY_BYTES, Ring, Sums};
use crate::error::{Error, Result};
use ciphervec_arith::convert;
use ciphervec_arith::parallel::*;
use ciphervec_arith::words::{pack_words, packed_len, switch_to_words};
use core::ops::{Range, RangeInclusive};

/// How many bits of its 50 each coefficient of an answer keeps.
///
/// The owner multiplies V with t, a sum of some 2N/3 coefficients, and takes U as it is: rounding U to six bits
/// fewer than V adds as much to a score as rounding V does (`docs/sealed.md`, section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnswerWords {
    linear: u32,
    constant: u32,
}

impl AnswerWords {
    /// Answers of the first format: 24 bits a coefficient, and the mask sums of every level.
    pub const FIRST: AnswerWords = AnswerWords { linear: 24, constant: 24 };
    /// The widths of V that a query may ask for.
    pub const LINEAR: RangeInclusive<u8> = 20..=32;
    /// Bits that U has fewer than V.
    const NARROWER: u32 = 6;

    /// Words of the second format, with `linear` bits a coefficient of V.
    ///
    /// # Errors
    /// [`Error::Range`] for another width than [`Self::LINEAR`].
    pub fn new(linear: u8) -> Result<Self> {
        if !Self::LINEAR.contains(&linear) {
            return Err(Error::Range {
                what: "bits of a word of an answer",
                expected: format!("{} to {}", Self::LINEAR.start(), Self::LINEAR.end()),
                actual: linear.to_string(),
            });
        }
        let linear = u32::from(linear);
        Ok(AnswerWords { linear, constant: linear - Self::NARROWER })
    }

    /// Bits of a coefficient of V.
    pub fn linear(&self) -> u32 {
        self.linear
    }

    /// Bits of a coefficient of U.
    pub fn constant(&self) -> u32 {
        self.constant
    }

    /// Bytes of V of one block.
    #[doc(hidden)]
    pub fn linear_len(&self) -> usize {
        packed_len(DEGREE, self.linear)
    }

    /// Bytes of one block's answer with so many scores.
    pub fn block_len(&self, vectors: usize) -> usize {
        self.linear_len() + packed_len(vectors, self.constant)
    }

    /// Bytes of the answer of one query over `rows` vectors: per block N coefficients of V, then one of U a vector.
    pub fn answer_len(&self, layout: &Layout, rows: usize) -> usize {
        usize::try_from(self.answer_bytes(layout, rows)).unwrap_or(usize::MAX)
    }

    /// The same where it may be more than this machine addresses.
    pub fn answer_bytes(&self, layout: &Layout, rows: usize) -> u64 {
        let blocks = layout.blocks(rows);
        let Some(full) = blocks.checked_sub(1) else { return 0 };
        let last = self.block_len(layout.rows_in_block(rows, full));
        full as u64 * self.block_len(layout.vectors_per_block()) as u64 + last as u64
    }

    /// Bytes of the mask sums of one query at one level.
    pub fn sums_len(&self) -> usize {
        if *self == Self::FIRST { 2 * POLY_BYTES } else { 0 }
    }
}

/// Writes some `blocks` of the answer of one query over one segment; `out`, the whole answer, has
/// [`AnswerWords::answer_len`] bytes.
pub fn write_answer(
    ring: &Ring,
    layout: &Layout,
    words: AnswerWords,
    blocks: Range<usize>,
    sums: &Sums,
    out: &mut [u8],
) {
    let per_block = words.block_len(layout.vectors_per_block());
    let end = out.len().min(blocks.end * per_block);
    let part = &mut out[blocks.start * per_block..end];
    part.par_chunks_mut(per_block).enumerate().for_each(|(block, out)| {
        let (linear, constant) = out.split_at_mut(words.linear_len());
        let (u, v) = (sums.constant(block), sums.linear(block));
        if words == AnswerWords::FIRST {
            write_first(ring, layout, u, v, linear, constant);
        } else {
            write_linear(ring, words, v, linear);
            write_scores(ring, layout, words, u, constant);
        }
    });
}

/// V of one block, in words of the second format.
pub(super) fn write_linear(ring: &Ring, words: AnswerWords, v: &[u64], out: &mut [u8]) {
    write_words(ring, v, words.linear, out);
}

/// A polynomial in words of so many bits.
pub(in crate::lattice) fn write_words(ring: &Ring, poly: &[u64], bits: u32, out: &mut [u8]) {
    let mut switched = [0u64; DEGREE];
    switch_to_words(&mut switched, poly, ring.modulus(), bits);
    pack_words(out, &switched, bits);
}

/// U of one block at the places of its scores, in words of the second format.
pub(super) fn write_scores(
    ring: &Ring,
    layout: &Layout,
    words: AnswerWords,
    u: &[u64],
    out: &mut [u8],
) {
    let count = out.len() * 8 / words.constant as usize;
    let (mut scores, mut switched) = ([0u64; DEGREE], [0u64; DEGREE]);
    for (vector, score) in scores[..count].iter_mut().enumerate() {
        *score = u[layout.position(vector)];
    }
    let switched = &mut switched[..count];
    switch_to_words(switched, &scores[..count], ring.modulus(), words.constant);
    pack_words(out, switched, words.constant);
}

fn write_first(
    ring: &Ring,
    layout: &Layout,
    u: &[u64],
    v: &[u64],
    linear: &mut [u8],
    constant: &mut [u8],
) {
    let mut switched = [0u32; DEGREE];
    convert::switch_down(&mut switched, v, ring.modulus());
    convert::pack24(linear, &switched);
    convert::switch_down(&mut switched, u, ring.modulus());
    let mut scores = [0u32; DEGREE];
    let count = constant.len() / 3;
    for (vector, score) in scores[..count].iter_mut().enumerate() {
        *score = switched[layout.position(vector)];
    }
    convert::pack24(constant, &scores[..count]);
}
