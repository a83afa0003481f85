//! Powers of a root of unity as the trees that a vector transform's passes walk.

use crate::backend::operands::ntt::NttPlan;

/// Roots and what else a transform needs, as one back-end's numbers: a root and beside it its
/// quotient by `q`. `L` is what a tail of that back-end covers.
#[derive(Clone, Debug)]
pub(crate) struct Roots<T, const L: usize> {
    pub forward: Tree<T, L>,
    pub inverse: Tree<T, L>,
    pub modulus: T,
    /// `1 / q`, rounded, where the numbers are doubles.
    pub reciprocal: T,
    /// `N^-1`, or `(2N)^-1` before an unfolding, and that times the root of the last inverse stage.
    pub scale: (T, T),
    pub scaled_last: (T, T),
}

/// Roots in tree order: entry `k` splits node `k` into nodes `2k` and `2k + 1`; the whole transform
/// is node 1. Here are the nodes that passes split; the subtrees below them, one for each tail, lie
/// one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Tree<T, const L: usize> {
    pub root: Vec<T>,
    pub ratio: Vec<T>,
    pub tails: Vec<Subtree<T, L>>,
}

/// The roots of a node of `L` values and of all below it, in tree order, its own at 1: one run of
/// memory, which the processor fetches ahead by itself, and places known when the kernels are
/// compiled.
#[derive(Clone, Debug)]
pub(crate) struct Subtree<T, const L: usize> {
    pub root: [T; L],
    pub ratio: [T; L],
}

impl<T: Copy + Default, const L: usize> Roots<T, L> {
    /// Of a plan's transform, each root as `pair` makes it and its quotient.
    pub(crate) fn new(
        plan: &NttPlan,
        modulus: T,
        reciprocal: T,
        pair: impl Fn(u64) -> (T, T),
    ) -> Self {
        let (forward, inverse) = plan.powers();
        let scale = plan.scale();
        Roots {
            forward: Tree::new(&forward, &pair),
            inverse: Tree::new(&inverse, &pair),
            modulus,
            reciprocal,
            scale: pair(scale),
            scaled_last: pair(plan.modulus.mul(scale, inverse[1])),
        }
    }
}

impl<T: Copy + Default, const L: usize> Tree<T, L> {
    /// From all roots in tree order, each as `pair` makes it and its quotient.
    fn new(powers: &[u64], pair: impl Fn(u64) -> (T, T)) -> Self {
        let count = powers.len() / L;
        let tails = (count..2 * count).map(|node| {
            let mut subtree = Subtree { root: [T::default(); L], ratio: [T::default(); L] };
            for local in 1..L {
                // Local node 2^d + t is node 2^d node + t.
                let width = 1 << local.ilog2();
                let power = powers[node * width + local - width];
                (subtree.root[local], subtree.ratio[local]) = pair(power);
            }
            subtree
        });
        let tails = tails.collect();
        let (root, ratio) = powers[..count].iter().map(|&w| pair(w)).unzip();
        Tree { root, ratio, tails }
    }
}

/// The roots of node `k` and its children `2k ..`.
macro_rules! node_pair {
    ($tree:ident, $node:expr) => {{
        let k = $node;
        let (root, ratio) = (&$tree.root[2 * k..2 * k + 2], &$tree.ratio[2 * k..2 * k + 2]);
        [
            spread($tree.root[k], $tree.ratio[k]),
            spread(root[0], ratio[0]),
            spread(root[1], ratio[1]),
        ]
    }};
}
pub(crate) use node_pair;

/// The roots of node `k`, its children `2k ..` and its grandchildren `4k ..`.
macro_rules! node_family {
    ($tree:ident, $node:expr) => {{
        let k = $node;
        let [w0, w1, w2] = node_pair!($tree, k);
        let (root, ratio) = (&$tree.root[4 * k..4 * k + 4], &$tree.ratio[4 * k..4 * k + 4]);
        let w3 = spread(root[0], ratio[0]);
        let w4 = spread(root[1], ratio[1]);
        let w5 = spread(root[2], ratio[2]);
        let w6 = spread(root[3], ratio[3]);
        [w0, w1, w2, w3, w4, w5, w6]
    }};
}
pub(crate) use node_family;
