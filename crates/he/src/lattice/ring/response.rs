//! Response, ring form: U and V enter, 24-bit coefficients leave. Server to owner.
//!
//! V leaves whole, U only where a score stands.

use super::{DEGREE, Layout, RESPONSE_BITS, Ring, Sums};
use ciphervec_arith::convert;
use core::ops::Range;
use rayon::prelude::*;

const WIDTH: usize = RESPONSE_BITS as usize / 8;

/// Bytes of the answer of one query over `rows` vectors: per block N coefficients of V, then one of
/// U a vector.
pub fn answer_len(layout: &Layout, rows: usize) -> usize {
    (layout.blocks(rows) * DEGREE + rows) * WIDTH
}

/// Writes some `blocks` of the answer of one query over one segment; `out`, the whole answer, has
/// [`answer_len`] bytes.
pub fn write_answer(
    ring: &Ring,
    layout: &Layout,
    blocks: Range<usize>,
    sums: &Sums,
    out: &mut [u8],
) {
    let vectors = layout.vectors_per_block();
    let per_block = (DEGREE + vectors) * WIDTH;
    let end = out.len().min(blocks.end * per_block);
    let part = &mut out[blocks.start * per_block..end];
    part.par_chunks_mut(per_block).enumerate().for_each(|(block, out)| {
        let (linear, constant) = out.split_at_mut(DEGREE * WIDTH);
        let mut switched = [0u32; DEGREE];
        convert::switch_down(&mut switched, sums.linear(block), ring.modulus());
        convert::pack24(linear, &switched);
        convert::switch_down(&mut switched, sums.constant(block), ring.modulus());
        let mut scores = [0u32; DEGREE];
        let count = constant.len() / WIDTH;
        for (vector, score) in scores[..count].iter_mut().enumerate() {
            *score = switched[layout.position(vector)];
        }
        convert::pack24(constant, &scores[..count]);
    });
}
