//! Query expansion: a query and evaluation keys enter, the tree's nodes leave. Server only.
//!
//! A step maps c to (c + τ(c), X^(2^k) (c − τ(c))), τ: X ↦ X^(N/2^k + 1): even and odd multiples of
//! X^(−2^k) part ways, messages double, and so does the average energy of the noise (‖e + τe‖² + ‖e
//! − τe‖² = 4‖e‖²).

use super::buffer_pool::Buffer;
use super::galois::Scratch;
use super::{Ciphertext, DEGREE, EvaluationKeys, Layout, Ring};
use crate::error::{Error, Result};
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::STRIP;

/// Words of a node: both components.
const NODE: usize = 2 * DEGREE;

/// The nodes of one query at one level, in the order the scan reads them:
/// `[strip][node][8 of c0, 8 of c1]`.
pub struct Expanded {
    layout: Layout,
    strips: Buffer,
}

impl Expanded {
    /// The layout these nodes serve.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Words of one strip.
    pub(super) fn strip(&self, strip: usize) -> &[u64] {
        let length = self.layout.nodes() * 2 * STRIP;
        &self.strips[strip * length..][..length]
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.strips.len() * 8
    }

    fn gather(layout: Layout, trees: &[Tree]) -> Self {
        let length = layout.nodes() * 2 * STRIP;
        let mut strips = Buffer::take(Layout::STRIPS * length);
        strips.par_chunks_exact_mut(length).enumerate().for_each(|(strip, out)| {
            let nodes = trees.iter().flat_map(Tree::nodes);
            for (node, out) in nodes.zip(out.as_chunks_mut::<{ 2 * STRIP }>().0) {
                let (low, high) = out.split_at_mut(STRIP);
                low.copy_from_slice(&node[strip * STRIP..][..STRIP]);
                high.copy_from_slice(&node[DEGREE + strip * STRIP..][..STRIP]);
            }
        });
        Expanded { layout, strips }
    }
}

/// The tree of one piece, grown in place: node r of a level stays where it is and its sibling r +
/// 2^level moves in behind.
struct Tree {
    words: Buffer,
    dims: usize,
    level: u8,
}

impl Tree {
    fn new(piece: &Ciphertext, dims: usize, deepest: u8) -> Self {
        let mut words = Buffer::take(dims.min(1 << deepest) * NODE);
        words[..DEGREE].copy_from_slice(&piece.constant);
        words[DEGREE..NODE].copy_from_slice(&piece.linear);
        Tree { words, dims, level: 0 }
    }

    /// The nodes of the present level; those that would hold no dimension do not exist.
    fn nodes(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(NODE).take(self.dims.min(1 << self.level))
    }

    fn grow(&mut self, ring: &Ring, keys: &EvaluationKeys) {
        let (level, step) = (self.level, 1usize << self.level);
        self.level += 1;
        let (present, wanted) = (self.dims.min(step), self.dims.min(2 * step));
        let (low, high) = self.words.split_at_mut(present * NODE);
        let siblings = &mut high[..(wanted - present) * NODE];
        let (paired, alone) = low.split_at_mut(siblings.len());
        paired
            .par_chunks_exact_mut(NODE)
            .zip(siblings.par_chunks_exact_mut(NODE))
            .for_each_init(Scratch::new, |scratch, (even, odd)| {
                keys.split(ring, level, even, Some(odd), scratch)
            });
        alone.par_chunks_exact_mut(NODE).for_each_init(Scratch::new, |scratch, even| {
            keys.split(ring, level, even, None, scratch)
        });
    }
}

/// Expands the pieces of one query down to the deepest of `layouts` and keeps every level asked
/// for.
///
/// # Errors
/// If the keys reach less deep than a layout asks, or a layout is for another dimension.
pub fn expand(
    ring: &Ring,
    keys: &EvaluationKeys,
    pieces: &[Ciphertext],
    layouts: &[Layout],
) -> Result<Vec<Expanded>> {
    let Some(deepest) = layouts.iter().max_by_key(|layout| layout.level()) else {
        return Ok(Vec::new());
    };
    if deepest.level() > keys.levels() {
        return Err(Error::Range {
            what: "the level of a segment",
            expected: format!("at most {}, which the evaluation keys reach", keys.levels()),
            actual: deepest.level().to_string(),
        });
    }
    if deepest.chunks() != pieces.len() {
        return Err(Error::Range {
            what: "the number of query pieces",
            expected: deepest.chunks().to_string(),
            actual: pieces.len().to_string(),
        });
    }
    let mut trees: Vec<Tree> = pieces
        .iter()
        .enumerate()
        .map(|(chunk, piece)| Tree::new(piece, deepest.chunk_size(chunk), deepest.level()))
        .collect();
    let mut kept: Vec<Option<Expanded>> = layouts.iter().map(|_| None).collect();
    for level in 0..=deepest.level() {
        if level > 0 {
            trees.iter_mut().for_each(|tree| tree.grow(ring, keys));
        }
        for (layout, kept) in
            layouts.iter().zip(&mut kept).filter(|(layout, _)| layout.level() == level)
        {
            *kept = Some(Expanded::gather(*layout, &trees));
        }
    }
    Ok(kept.into_iter().flatten().collect())
}
