//! The query tree. A query's ciphertexts and the evaluation keys enter; the nodes of the wanted levels leave, in scan order. Server only.
//!
//! A step maps c to (c + τ(c), X^(2^k) (c − τ(c))), τ: X ↦ X^(N/2^k + 1): even and odd multiples of X^(−2^k) part ways, messages
//! double, and so does the average energy of the noise (‖e + τe‖² + ‖e − τe‖² = 4‖e‖²).

use super::{Ciphertext, DEGREE, EvaluationKeys, Layout, Ring};
use crate::error::{Error, Result};
use ciphervec_arith::matmul::STRIP;
use ciphervec_arith::poly;
use rayon::prelude::*;

/// The nodes of one query at one level, in the order the scan reads them: `[strip][node][32 of c0, 32 of c1]`.
pub struct Expanded {
    layout: Layout,
    strips: Vec<u64>,
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

    /// c0 (part 0) or c1 (part 1) of every node as whole polynomials.
    pub(super) fn polynomials(&self, part: usize) -> Vec<Vec<u64>> {
        (0..self.layout.nodes())
            .map(|node| {
                (0..Layout::STRIPS)
                    .flat_map(|strip| {
                        &self.strip(strip)[node * 2 * STRIP + part * STRIP..][..STRIP]
                    })
                    .copied()
                    .collect()
            })
            .collect()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.strips.len() * 8
    }

    fn gather(layout: Layout, nodes: &[Node]) -> Self {
        let length = nodes.len() * 2 * STRIP;
        let mut strips = vec![0; Layout::STRIPS * length];
        strips.par_chunks_exact_mut(length).enumerate().for_each(|(strip, out)| {
            for (node, out) in nodes.iter().zip(out.as_chunks_mut::<{ 2 * STRIP }>().0) {
                let (low, high) = out.split_at_mut(STRIP);
                low.copy_from_slice(&node.constant[strip * STRIP..][..STRIP]);
                high.copy_from_slice(&node.linear[strip * STRIP..][..STRIP]);
            }
        });
        Expanded { layout, strips }
    }
}

struct Node {
    constant: Vec<u64>,
    linear: Vec<u64>,
}

/// Expands the pieces of one query down to the deepest of `layouts` and keeps every level asked for.
///
/// # Errors
/// If the keys reach less deep than a layout asks, or a layout is for another dimension.
pub fn expand(
    ring: &Ring,
    keys: &EvaluationKeys,
    pieces: &[Ciphertext],
    layouts: &[Layout],
) -> Result<Vec<Expanded>> {
    let deepest = layouts.iter().map(Layout::level).max().unwrap_or(0);
    if deepest > keys.levels() {
        return Err(Error::Range {
            what: "the level of a segment",
            expected: format!("at most {}, which the evaluation keys reach", keys.levels()),
            actual: deepest.to_string(),
        });
    }
    let Some(shape) = layouts.first() else { return Ok(Vec::new()) };
    if shape.chunks() != pieces.len() {
        return Err(Error::Range {
            what: "the number of query pieces",
            expected: shape.chunks().to_string(),
            actual: pieces.len().to_string(),
        });
    }
    let mut trees: Vec<Vec<Node>> = pieces
        .iter()
        .map(|piece| vec![Node { constant: piece.constant.clone(), linear: piece.linear.clone() }])
        .collect();
    let mut kept = Vec::with_capacity(layouts.len());
    for level in 0..=deepest {
        for layout in layouts.iter().filter(|layout| layout.level() == level) {
            let nodes: Vec<Node> = if level == deepest {
                trees.iter_mut().flat_map(core::mem::take).collect()
            } else {
                let copies = trees.iter().flatten();
                copies
                    .map(|node| Node {
                        constant: node.constant.clone(),
                        linear: node.linear.clone(),
                    })
                    .collect()
            };
            kept.push(Expanded::gather(*layout, &nodes));
        }
        if level < deepest {
            for (chunk, tree) in trees.iter_mut().enumerate() {
                *tree = grow(ring, keys, level, core::mem::take(tree), shape.chunk_size(chunk));
            }
        }
    }
    // In the order asked for.
    Ok(layouts
        .iter()
        .filter_map(|layout| {
            kept.iter().position(|kept| kept.layout == *layout).map(|at| kept.remove(at))
        })
        .collect())
}

/// One level deeper: node r of `level` gives nodes r and r + 2^level, the latter only if it holds a dimension.
fn grow(ring: &Ring, keys: &EvaluationKeys, level: u8, nodes: Vec<Node>, dims: usize) -> Vec<Node> {
    let step = 1usize << level;
    let q = ring.modulus();
    let children: Vec<(Node, Option<Node>)> = nodes
        .into_par_iter()
        .enumerate()
        .map(|(index, mut node)| {
            let (constant, linear) = keys.apply(ring, level, &node.constant, &node.linear);
            let odd = (index + step < dims).then(|| {
                let monomial = &ring.monomials[usize::from(level)];
                let half = |whole: &[u64], turned: &[u64]| {
                    let mut out = vec![0; DEGREE];
                    out.copy_from_slice(whole);
                    poly::sub_assign(&mut out, turned, q);
                    poly::mul_assign(&mut out, monomial, q);
                    out
                };
                Node {
                    constant: half(&node.constant, &constant),
                    linear: half(&node.linear, &linear),
                }
            });
            poly::add_assign(&mut node.constant, &constant, q);
            poly::add_assign(&mut node.linear, &linear, q);
            (node, odd)
        })
        .collect();
    let (even, odd): (Vec<Node>, Vec<Option<Node>>) = children.into_iter().unzip();
    even.into_iter().chain(odd.into_iter().flatten()).collect()
}
