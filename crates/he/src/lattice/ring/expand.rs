//! Expands a query into its tree under the evaluation keys. Both sides: the server to answer, the owner to know what an honest
//! server's tree is.
//!
//! A step maps c to (c + τ(c), X^(2^k) (c − τ(c))), τ: X ↦ X^(N/2^k + 1): even and odd multiples of
//! X^(−2^k) part ways, messages double, and so does the average energy of the noise (‖e + τe‖² + ‖e
//! − τe‖² = 4‖e‖²).
//!
//! # Nodes and keys
//!
//! The server needs ciphertexts that hold *some* dimensions. The automorphism τ_k, X ↦ X^(N/2^k + 1), fixes
//! X^(2^(k+1) j) and negates X^(2^k (2j+1)). So one step
//!
//! ```text
//! c  ↦  ( c + τ_k(c),   X^(2^k) · (c − τ_k(c)) )
//! ```
//!
//! splits a polynomial supported on multiples of 2^k into its even and odd multiples, each times 2, the odd ones
//! shifted to become even. After k steps node r of 2^k holds 2^k Σ q_i X^(−(i−r)) over the i ≡ r (mod 2^k). Empty
//! nodes, where d is not a power of two, are not computed.
//!
//! τ_k changes a ciphertext's key to τ_k(t), and an evaluation key switches back: (b, a) modulo q·P, 100 bits, with
//! b = −a t + e + P B^i τ_k(t) for digit i. The first three steps take two digits of 25 bits (B = 2^25), later ones
//! the whole residue (`bound.rs`). Vectors of more than N dimensions are cut into equal pieces,
//! each with a ciphertext and a tree.

use super::buffer_pool::Buffer;
use super::galois::{Scratch, TreeKeys};
use super::{Ciphertext, DEGREE, EvaluationKeys, Half, Layout, Ring};
use crate::error::{Error, Result};
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::STRIP;
use core::ops::Range;

/// Words of a node: both components.
const NODE: usize = 2 * DEGREE;

/// The nodes of one query at one level, in the order the scan reads them:
/// `[strip][node][8 of c0, 8 of c1]`, or in their places the same component of two queries.
pub struct Expanded {
    layout: Layout,
    strips: Buffer,
}

impl Expanded {
    /// The layout these nodes serve.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The words of each strip, `[node][8 of c0, 8 of c1]`, NTT form.
    #[doc(hidden)]
    pub fn strips(&self) -> impl Iterator<Item = &[u64]> {
        (0..Layout::STRIPS).map(|strip| self.strip(strip))
    }

    /// Words of one strip.
    fn strip(&self, strip: usize) -> &[u64] {
        let length = self.layout.nodes() * 2 * STRIP;
        &self.strips[strip * Self::stride(&self.layout)..][..length]
    }

    /// Words from one strip to the next. A line more than there are: a power of two apart, the lines of one node
    /// would all fall into the same sets of the caches.
    fn stride(layout: &Layout) -> usize {
        (layout.nodes() + 1) * 2 * STRIP
    }

    /// Some of the nodes.
    pub(in crate::lattice) fn nodes(&self, range: Range<usize>) -> Nodes<'_> {
        Nodes { expanded: self, range }
    }

    /// Both components of a node, NTT form.
    pub(in crate::lattice) fn node(&self, node: usize, constant: &mut [u64], linear: &mut [u64]) {
        let outs = constant.as_chunks_mut::<STRIP>().0.iter_mut();
        for (strip, (u, v)) in outs.zip(linear.as_chunks_mut::<STRIP>().0).enumerate() {
            let here = &self.strip(strip)[node * 2 * STRIP..];
            u.copy_from_slice(&here[..STRIP]);
            v.copy_from_slice(&here[STRIP..2 * STRIP]);
        }
    }

    /// Bytes of the nodes of one query at a level.
    pub fn bytes(layout: &Layout) -> usize {
        Layout::STRIPS * Self::stride(layout) * size_of::<u64>()
    }

    /// Room for the nodes of a level.
    fn vacant(layout: &Layout) -> Self {
        let length = Layout::STRIPS * Self::stride(layout);
        Expanded { layout: *layout, strips: Buffer::take(length) }
    }

    /// Puts `components` of some nodes, given by their places, where each is to be scanned.
    fn gather(&mut self, nodes: &[(usize, &[u64])], components: [Component; 2]) {
        let length = Self::stride(&self.layout);
        self.strips.par_chunks_mut(GATHERED * length).enumerate().for_each(|(index, out)| {
            let (first, strips) = (index * GATHERED * STRIP, out.len() / length);
            for (place, node) in nodes {
                for (half, component) in components.into_iter().enumerate() {
                    let at = (2 * place + half) * STRIP;
                    let out = out.chunks_exact_mut(length).map(|strip| &mut strip[at..][..STRIP]);
                    match component {
                        Component::Of(part) => {
                            let from = &node[part * DEGREE + first..][..strips * STRIP];
                            for (out, from) in out.zip(from.as_chunks::<STRIP>().0) {
                                out.copy_from_slice(from);
                            }
                        }
                        Component::Zero => out.for_each(|out| out.fill(0)),
                        Component::Kept => {}
                    }
                }
            }
        });
    }
}

/// Nodes of one query that a scan multiplies with, in order.
pub(in crate::lattice) struct Nodes<'a> {
    expanded: &'a Expanded,
    range: Range<usize>,
}

impl Nodes<'_> {
    /// Their words of one strip.
    pub(super) fn strip(&self, strip: usize) -> &[u64] {
        let words = self.range.start * 2 * STRIP..self.range.end * 2 * STRIP;
        &self.expanded.strip(strip)[words]
    }
}

/// Strips that are put together: runs of lines at a time, or each line of a node would be a stream of
/// its own.
const GATHERED: usize = 8;

/// What is put in one of the two places of a node.
#[derive(Clone, Copy)]
enum Component {
    Of(usize),
    Zero,
    Kept,
}

/// The tree of one piece, or a branch of it, grown in place: of the nodes that it has, node r of a level stays where it is
/// and its sibling r + 2^level moves in behind.
struct Tree {
    words: Buffer,
    dims: usize,
    /// Levels from where it starts.
    height: u8,
}

/// A step's node, and where its sibling goes if it has one.
type Step<'a> = (&'a mut [u64], Option<&'a mut [u64]>);

impl Tree {
    /// Room for a tree that grows by so many levels.
    fn vacant(dims: usize, levels: u8) -> Self {
        Tree { words: Buffer::take(dims.min(1 << levels) * NODE), dims, height: 0 }
    }

    /// Starts from a root of so many dimensions.
    fn plant(&mut self, dims: usize, root: [&[u64]; 2]) {
        (self.dims, self.height) = (dims, 0);
        let (constant, linear) = self.words[..NODE].split_at_mut(DEGREE);
        constant.copy_from_slice(root[0]);
        linear.copy_from_slice(root[1]);
    }

    /// The nodes of the present level; those that would hold no dimension do not exist.
    fn nodes(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(NODE).take(self.dims.min(1 << self.height))
    }

    /// What is to be done for the next level.
    fn steps(&mut self) -> Vec<Step<'_>> {
        let step = 1usize << self.height;
        self.height += 1;
        let (present, wanted) = (self.dims.min(step), self.dims.min(2 * step));
        let (low, high) = self.words.split_at_mut(present * NODE);
        let siblings = high.chunks_exact_mut(NODE).take(wanted - present).map(Some);
        let siblings = siblings.chain(core::iter::repeat_with(|| None));
        low.chunks_exact_mut(NODE).zip(siblings).collect()
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
    expand_under(ring, keys.tree(), pieces, layouts)
}

/// As [`expand`], under keys of trees alone.
pub(in crate::lattice) fn expand_under(
    ring: &Ring,
    keys: &TreeKeys,
    pieces: &[Ciphertext],
    layouts: &[Layout],
) -> Result<Vec<Expanded>> {
    let mut kept: Vec<Expanded> = layouts.iter().map(Expanded::vacant).collect();
    let both = [Component::Of(0), Component::Of(1)];
    expand_into(ring, keys, pieces, [[true; 2]; 2], both, &mut kept)?;
    Ok(kept)
}

/// As [`expand`], one component of the nodes of one query or of two, which then take one scan together: the first query's
/// half stands where c0 of a whole one would, the second's where c1 would.
///
/// # Errors
/// As [`expand`].
pub fn expand_halves(
    ring: &Ring,
    keys: &EvaluationKeys,
    half: Half,
    first: &[Ciphertext],
    second: Option<&[Ciphertext]>,
    layouts: &[Layout],
) -> Result<Vec<Expanded>> {
    let mut kept: Vec<Expanded> = layouts.iter().map(Expanded::vacant).collect();
    let (part, wanted) = match half {
        // c0 of nodes takes c1 of those above them.
        Half::Constant => (0, [[true; 2], [true, false]]),
        Half::Linear => (1, [[false, true]; 2]),
    };
    let of = Component::Of(part);
    expand_into(ring, keys.tree(), first, wanted, [of, Component::Zero], &mut kept)?;
    if let Some(second) = second {
        expand_into(ring, keys.tree(), second, wanted, [Component::Kept, of], &mut kept)?;
    }
    Ok(kept)
}

/// Puts `components` of the nodes of one query into `kept`. `wanted` are the components computed at a step, and at the last.
fn expand_into(
    ring: &Ring,
    keys: &TreeKeys,
    pieces: &[Ciphertext],
    wanted: [[bool; 2]; 2],
    components: [Component; 2],
    kept: &mut [Expanded],
) -> Result<()> {
    let Some(deepest) = kept.iter().map(|kept| kept.layout).max_by_key(Layout::level) else {
        return Ok(());
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
    let grown = Grown { ring, keys, deepest: deepest.level(), wanted, components };
    // Of a level, the nodes of the pieces before.
    let mut before = vec![0; usize::from(deepest.level()) + 1];
    for (chunk, piece) in pieces.iter().enumerate() {
        let dims = deepest.chunk_size(chunk);
        grown.piece(piece, dims, &before, kept);
        before.iter_mut().enumerate().for_each(|(level, nodes)| *nodes += dims.min(1 << level));
    }
    Ok(())
}

/// Levels of a branch that is grown by itself: its 8 nodes fit the second-level cache beside the keys, where a whole tree of
/// a thousand would come from memory and go back once a level.
const BRANCH: u8 = 3;

/// How trees are grown.
struct Grown<'a> {
    ring: &'a Ring,
    keys: &'a TreeKeys,
    deepest: u8,
    wanted: [[bool; 2]; 2],
    components: [Component; 2],
}

impl Grown<'_> {
    /// Grows the tree of one piece: the trunk level by level, then its branches, as many at a time as there are threads.
    fn piece(&self, piece: &Ciphertext, dims: usize, before: &[usize], kept: &mut [Expanded]) {
        let threads = current_num_threads();
        // Every thread has some branches.
        let busy = (4 * threads).next_power_of_two().trailing_zeros() as u8;
        let low = if threads > 1 { busy.min(self.deepest) } else { 0 };
        let fork = self.deepest.saturating_sub(BRANCH).max(low);
        let mut trunk = Tree::vacant(dims, fork);
        trunk.plant(dims, [&piece.constant, &piece.linear]);
        for level in 0..=fork {
            if level > 0 {
                self.step(level, trunk.steps());
            }
            let nodes = trunk.nodes().enumerate();
            self.keep(level, nodes.map(|(r, node)| (before[usize::from(level)] + r, node)), kept);
        }
        let step = 1usize << fork;
        let roots: Vec<&[u64]> = trunk.nodes().collect();
        let mut branches: Vec<Tree> = (0..threads.min(roots.len()))
            .map(|_| Tree::vacant(dims.div_ceil(step), self.deepest - fork))
            .collect();
        for (batch, roots) in roots.chunks(threads).enumerate() {
            let first = batch * threads;
            let branches = &mut branches[..roots.len()];
            for (at, (branch, root)) in branches.iter_mut().zip(roots).enumerate() {
                let (constant, linear) = root.split_at(DEGREE);
                branch.plant((dims - first - at).div_ceil(step), [constant, linear]);
            }
            for level in fork + 1..=self.deepest {
                self.step(level, branches.iter_mut().flat_map(Tree::steps).collect());
                let place = before[usize::from(level)] + first;
                let nodes = branches.iter().enumerate().flat_map(|(at, branch)| {
                    let nodes = branch.nodes().enumerate();
                    nodes.map(move |(i, node)| (place + at + step * i, node))
                });
                self.keep(level, nodes, kept);
            }
        }
    }

    /// Takes a step to this level.
    fn step(&self, level: u8, steps: Vec<Step<'_>>) {
        let wanted = self.wanted[usize::from(level == self.deepest)];
        steps.into_par_iter().for_each_init(Scratch::new, |scratch, (even, odd)| {
            self.keys.split(self.ring, level - 1, wanted, even, odd, scratch);
        });
    }

    /// Keeps nodes of this level, given by their places, for whoever scans with them.
    fn keep<'a>(
        &self,
        level: u8,
        nodes: impl Iterator<Item = (usize, &'a [u64])>,
        kept: &mut [Expanded],
    ) {
        let mut wanting = kept.iter_mut().filter(|kept| kept.layout.level() == level).peekable();
        if wanting.peek().is_some() {
            let nodes: Vec<_> = nodes.collect();
            wanting.for_each(|kept| kept.gather(&nodes, self.components));
        }
    }
}
