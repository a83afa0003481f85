//! Transform: passes over data and tree of roots, the same for every vector width and arithmetic.
//!
//! A back-end's lanes module gives the vector type, its butterflies and few operations more; the
//! macro below writes the transform over them with that back-end's instructions enabled, because a
//! `#[target_feature]` cannot be a type parameter. Between the passes values lie in the buffer as
//! the lanes hold them: integers in a lazy range (AVX-512) or doubles (AVX2). `settle` marks where
//! the doubles must be reduced for their bounds to hold.
//!
//! # Bounds and passes
//!
//! **Butterfly with doubles (AVX2).** `vmulpd` and `vfmsub` keep the product exactly, as high +
//! low. Then b = round(y · (w/q)) and r = (high − b q) + low, exact because results are integers
//! below 2^53. With centred w and q < 2^50, |r| ≤ q (1/2 + 0.094 |y|/q). In six stages the bound
//! grows from 1 (in units of q) to 1.6, 2.3, 3.0, 3.8, 4.6, 5.6; exactness needs 8. So
//! `backend/shared/ntt.rs` reduces half of the inputs in the third pass and in the tail; backwards
//! a radix-8 pass reduces two values after its second stage and the sums at its end. Eight
//! operations.
//!
//! **Passes.** Node k of a binary tree covers N/2^j consecutive values with root w\[k]; its halves
//! are nodes 2k and 2k+1. A pass takes a node three or two stages down in registers, depth first,
//! so large transforms work in L2, then L1. The *tail* computes the last six stages on 512 bytes,
//! four or eight tails in turn; its 63 roots are contiguous and prefetched eight tails ahead.
//!
//! **Inside a vector.** In the last three stages partners share a vector. A perfect shuffle of a
//! pair of vectors (two `vpermt2q`) before each stage aligns them; roots repeat with period 2,
//! 4, 8. One more shuffle restores memory order.
//!
//! # The conjugate-invariant ring
//!
//! X^2N + 1 splits into X^N − i and X^N + i, and for a_0 + Σ a_j (X^j + X^−j) one part determines
//! the other. Modulo X^N − i the coefficients are a_j − i a_(N−j); the same passes walk node 2 of a
//! tree of twice the size. Back: a_j = (b_j + i b_(N−j)) / 2, the half inside the scaling by N^-1.

/// How many of the `stages` left above the tail the next pass takes: two or three, never one at the
/// end.
pub(crate) const fn next_pass(stages: u32) -> u32 {
    if stages == 2 || stages == 4 { 2 } else { 3 }
}

/// What the buffer holds when a pass reads it.
pub(crate) struct Form;

impl Form {
    /// Doubles.
    pub(crate) const VALUES: u8 = 0;
    /// Integers in `[0, q)`.
    pub(crate) const RESIDUES: u8 = 1;
    /// Integers in `[0, 4q)`.
    pub(crate) const LAZY: u8 = 2;
}

macro_rules! vector_transform {
    ($features:literal, $lanes:ident) => {
        use super::$lanes::*;
        use crate::backend::operands::ntt::NttPlan;
        use crate::backend::portable;
        use crate::backend::shared::ntt::{Form, next_pass};
        use crate::backend::shared::radix::{forward4, forward8, inverse8_lower};
        use crate::backend::shared::roots::{node_family, node_pair};
        use crate::modulus::{Modulus, Shoup};

        /// Vectors that the tail keeps in registers.
        const BLOCK: usize = 8;
        /// Blocks between the one at hand and the one that is fetched: the roots of a block are
        /// twice as long as the block, and where many primes take turns they come from memory.
        const AHEAD: usize = 8;

        pub(crate) type Roots = crate::backend::shared::roots::Roots<Root, { BLOCK * LANES }>;
        type Tree = crate::backend::shared::roots::Tree<Root, { BLOCK * LANES }>;
        type Subtree = crate::backend::shared::roots::Subtree<Root, { BLOCK * LANES }>;

        /// The roots as the lanes multiply by them.
        pub(crate) fn roots(plan: &NttPlan) -> Roots {
            let (modulus, reciprocal) = modulus_and_reciprocal(&plan.modulus);
            Roots::new(plan, modulus, reciprocal, |w| root_and_ratio(&plan.modulus, w))
        }

        /// `[0, q)`, or `[0, 4q)` if `LAZY`, to `[0, q)`.
        #[target_feature(enable = $features)]
        pub(crate) fn forward<const LAZY: bool>(plan: &NttPlan, roots: &Roots, data: &mut [u64]) {
            let c = Constants::new(roots.modulus, roots.reciprocal);
            let stages = data.len().trailing_zeros() - LOG_LANES - BLOCK.trailing_zeros();
            let folded = plan.fold.is_some();
            if let Some(fold) = &plan.fold {
                fold_halves::<false>(&c, &plan.modulus, data, &fold.forward);
            }
            let vectors = data.as_chunks_mut::<LANES>().0;
            if LAZY || folded {
                descend::<{ Form::LAZY }>(&c, &roots.forward, vectors, 1, stages, 0);
            } else {
                descend::<{ Form::RESIDUES }>(&c, &roots.forward, vectors, 1, stages, 0);
            }
        }

        /// `[0, q)`, or `[0, 2q)` if `LAZY`, to `[0, q)`, scaled by `N^-1`.
        #[target_feature(enable = $features)]
        pub(crate) fn inverse<const LAZY: bool>(plan: &NttPlan, roots: &Roots, data: &mut [u64]) {
            let c = Constants::new(roots.modulus, roots.reciprocal);
            let stages = data.len().trailing_zeros() - LOG_LANES - BLOCK.trailing_zeros();
            let vectors = data.as_chunks_mut::<LANES>().0;
            ascend::<LAZY, true>(&c, roots, vectors, 1, stages);
            if let Some(fold) = &plan.fold {
                fold_halves::<true>(&c, &plan.modulus, data, &fold.inverse);
                data[0] = plan.modulus.add(data[0], data[0]);
            }
        }

        /// `x_j + w x_(N-j)` for `0 < j < N`, between a conjugate-invariant polynomial and its
        /// residue: `[0, 4q)` to `[0, 4q)`, or `[0, q)` to `[0, q)` if `FINAL`. The second half is
        /// read from its end, vectors reversed.
        #[target_feature(enable = $features)]
        fn fold_halves<const FINAL: bool>(
            c: &Constants,
            modulus: &Modulus,
            data: &mut [u64],
            shoup: &Shoup,
        ) {
            let w = factor(modulus, shoup);
            let (low, high) = data.split_at_mut(data.len() / 2);
            let (middle, high) = high.split_at_mut(1);
            let (x, x_rest) = low[1..].as_chunks_mut::<LANES>();
            let (y_rest, y) = high.as_rchunks_mut::<LANES>();
            for (x, y) in x.iter_mut().zip(y.iter_mut().rev()) {
                let (a, b) = (load_residues(x), reverse(load_residues(y)));
                let (c0, c1) = (mul_root(c, b, w), mul_root(c, a, w));
                store_folded::<FINAL>(c, x, add(make_room(c, a), c0));
                store_folded::<FINAL>(c, y, reverse(add(make_room(c, b), c1)));
            }
            portable::ntt::fold_pairs(modulus, x_rest, y_rest, shoup);
            middle[0] = portable::ntt::fold_one(modulus, middle[0], middle[0], shoup);
            if FINAL {
                portable::ntt::canonical(modulus, x_rest);
                portable::ntt::canonical(modulus, y_rest);
                portable::ntt::canonical(modulus, middle);
            }
        }

        /// One pass over a node, then its children one after the other, so that a large transform
        /// soon works in cache.
        #[target_feature(enable = $features)]
        fn descend<const FORM: u8>(
            c: &Constants,
            tree: &Tree,
            data: &mut [[u64; LANES]],
            node: usize,
            stages: u32,
            depth: u32,
        ) {
            let taken = next_pass(stages);
            // From 1 the bound grows to 3.2 and 6.2 in two passes, so the third reduces, and the
            // tail always does.
            match (taken, depth == 2) {
                (2, false) => forward_pass4::<FORM, false>(c, tree, data, node),
                (2, true) => forward_pass4::<FORM, true>(c, tree, data, node),
                (_, false) => forward_pass8::<FORM, false>(c, tree, data, node),
                (_, true) => forward_pass8::<FORM, true>(c, tree, data, node),
            }
            let part = data.len() >> taken;
            if stages == taken {
                let first = (node << taken) - tree.tails.len();
                return forward_tails(c, &tree.tails[first..], data);
            }
            for (i, child) in data.chunks_exact_mut(part).enumerate() {
                let node = (node << taken) + i;
                descend::<{ Form::VALUES }>(c, tree, child, node, stages - taken, depth + 1);
            }
        }

        #[target_feature(enable = $features)]
        fn ascend<const LAZY: bool, const LAST: bool>(
            c: &Constants,
            roots: &Roots,
            data: &mut [[u64; LANES]],
            node: usize,
            stages: u32,
        ) {
            let taken = next_pass(stages);
            let part = data.len() >> taken;
            if stages == taken {
                let tails = &roots.inverse.tails;
                let first = (node << taken) - tails.len();
                inverse_tails::<LAZY>(c, &tails[first..], data);
            } else {
                for (i, child) in data.chunks_exact_mut(part).enumerate() {
                    ascend::<LAZY, false>(c, roots, child, (node << taken) + i, stages - taken);
                }
            }
            if taken == 2 {
                inverse_pass4::<LAST>(c, roots, data, node);
            } else {
                inverse_pass8::<LAST>(c, roots, data, node);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn load<const FORM: u8>(c: &Constants, from: &[u64; LANES]) -> V {
            match FORM {
                Form::VALUES => load_values(from),
                Form::RESIDUES => load_residues(from),
                _ => settle(c, load_residues(from)),
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn forward_pass4<const FORM: u8, const REDUCE: bool>(
            c: &Constants,
            tree: &Tree,
            data: &mut [[u64; LANES]],
            node: usize,
        ) {
            let [d0, d1, d2, d3] = quarters(data);
            let w = node_pair!(tree, node);
            let columns = d0.iter_mut().zip(d1).zip(d2).zip(d3);
            for (((v0, v1), v2), v3) in columns {
                let mut x = [
                    load::<FORM>(c, v0),
                    load::<FORM>(c, v1),
                    load::<FORM>(c, v2),
                    load::<FORM>(c, v3),
                ];
                if REDUCE {
                    x[0] = settle(c, x[0]);
                    x[1] = settle(c, x[1]);
                }
                let y = if FORM == Form::RESIDUES {
                    forward4!(split_residues, c, w, x)
                } else {
                    forward4!(split, c, w, x)
                };
                store_values(v0, y[0]);
                store_values(v1, y[1]);
                store_values(v2, y[2]);
                store_values(v3, y[3]);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn forward_pass8<const FORM: u8, const REDUCE: bool>(
            c: &Constants,
            tree: &Tree,
            data: &mut [[u64; LANES]],
            node: usize,
        ) {
            let (low, high) = data.split_at_mut(data.len() / 2);
            let [d0, d1, d2, d3] = quarters(low);
            let [d4, d5, d6, d7] = quarters(high);
            let w = node_family!(tree, node);
            let columns = d0.iter_mut().zip(d1).zip(d2).zip(d3).zip(d4).zip(d5).zip(d6).zip(d7);
            for (((((((v0, v1), v2), v3), v4), v5), v6), v7) in columns {
                let mut x = [
                    load::<FORM>(c, v0),
                    load::<FORM>(c, v1),
                    load::<FORM>(c, v2),
                    load::<FORM>(c, v3),
                    load::<FORM>(c, v4),
                    load::<FORM>(c, v5),
                    load::<FORM>(c, v6),
                    load::<FORM>(c, v7),
                ];
                if REDUCE {
                    x[0] = settle(c, x[0]);
                    x[1] = settle(c, x[1]);
                    x[2] = settle(c, x[2]);
                    x[3] = settle(c, x[3]);
                }
                let y = if FORM == Form::RESIDUES {
                    forward8!(split_residues, c, w, x)
                } else {
                    forward8!(split, c, w, x)
                };
                store_values(v0, y[0]);
                store_values(v1, y[1]);
                store_values(v2, y[2]);
                store_values(v3, y[3]);
                store_values(v4, y[4]);
                store_values(v5, y[5]);
                store_values(v6, y[6]);
                store_values(v7, y[7]);
            }
        }

        /// The last stages, block after block: those between vectors, then those inside of them.
        /// All five at once are so long a chain of operations that no second one finds room beside
        /// it in the processor.
        #[target_feature(enable = $features)]
        fn forward_tails(c: &Constants, tails: &[Subtree], data: &mut [[u64; LANES]]) {
            let blocks = data.as_chunks_mut::<BLOCK>().0;
            for (i, (block, tree)) in blocks.iter_mut().zip(tails).enumerate() {
                prefetch(tails.get(i + AHEAD));
                forward_outer(c, tree, block);
            }
            for (block, tree) in blocks.iter_mut().zip(tails) {
                forward_inner(c, tree, block);
            }
        }

        /// The three stages between the eight vectors of a block.
        #[inline]
        #[target_feature(enable = $features)]
        fn forward_outer(c: &Constants, tree: &Subtree, block: &mut [[u64; LANES]; BLOCK]) {
            let [v0, v1, v2, v3, v4, v5, v6, v7] = block;
            let w = node_family!(tree, 1);
            let x = [
                settle(c, load_values(v0)),
                settle(c, load_values(v1)),
                settle(c, load_values(v2)),
                settle(c, load_values(v3)),
                load_values(v4),
                load_values(v5),
                load_values(v6),
                load_values(v7),
            ];
            let x = forward8!(split, c, w, x);
            store_values(v0, x[0]);
            store_values(v1, x[1]);
            store_values(v2, x[2]);
            store_values(v3, x[3]);
            store_values(v4, x[4]);
            store_values(v5, x[5]);
            store_values(v6, x[6]);
            store_values(v7, x[7]);
        }

        /// The stages inside of vectors.
        #[inline]
        #[target_feature(enable = $features)]
        fn forward_inner(c: &Constants, tree: &Subtree, block: &mut [[u64; LANES]; BLOCK]) {
            let [v0, v1, v2, v3, v4, v5, v6, v7] = block;
            let x = [
                load_values(v0),
                load_values(v1),
                load_values(v2),
                load_values(v3),
                load_values(v4),
                load_values(v5),
                load_values(v6),
                load_values(v7),
            ];
            let x = tail_split!(c, tree, BLOCK, x);
            store_final(c, v0, x[0]);
            store_final(c, v1, x[1]);
            store_final(c, v2, x[2]);
            store_final(c, v3, x[3]);
            store_final(c, v4, x[4]);
            store_final(c, v5, x[5]);
            store_final(c, v6, x[6]);
            store_final(c, v7, x[7]);
        }

        /// The last stage of all: sums and differences times `N^-1`, as residues.
        #[inline]
        #[target_feature(enable = $features)]
        fn store_last(
            c: &Constants,
            roots: &Roots,
            low: &mut [u64; LANES],
            high: &mut [u64; LANES],
            x: V,
            y: V,
        ) {
            let sum = mul_root(c, add(x, y), spread(roots.scale.0, roots.scale.1));
            let difference =
                mul_root(c, difference(c, x, y), spread(roots.scaled_last.0, roots.scaled_last.1));
            store_residues(c, low, sum);
            store_residues(c, high, difference);
        }

        /// A stage inside: sums reduced, differences times the root, which reduces them.
        #[inline]
        #[target_feature(enable = $features)]
        fn store_inner(
            c: &Constants,
            w: (V, V),
            low: &mut [u64; LANES],
            high: &mut [u64; LANES],
            x: V,
            y: V,
        ) {
            let (sum, difference) = join!(c, x, y, w);
            store_values(low, settle(c, sum));
            store_values(high, difference);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn inverse_pass4<const LAST: bool>(
            c: &Constants,
            roots: &Roots,
            data: &mut [[u64; LANES]],
            node: usize,
        ) {
            let tree = &roots.inverse;
            let [d0, d1, d2, d3] = quarters(data);
            let w = node_pair!(tree, node);
            for (((v0, v1), v2), v3) in d0.iter_mut().zip(d1).zip(d2).zip(d3) {
                let (x0, x1) = (load_values(v0), load_values(v1));
                let (x2, x3) = (load_values(v2), load_values(v3));
                let (a0, a1) = join!(c, x0, x1, w[1]);
                let (a2, a3) = join!(c, x2, x3, w[2]);
                if LAST {
                    store_last(c, roots, v0, v2, a0, a2);
                    store_last(c, roots, v1, v3, a1, a3);
                } else {
                    store_inner(c, w[0], v0, v2, a0, a2);
                    store_inner(c, w[0], v1, v3, a1, a3);
                }
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn inverse_pass8<const LAST: bool>(
            c: &Constants,
            roots: &Roots,
            data: &mut [[u64; LANES]],
            node: usize,
        ) {
            let tree = &roots.inverse;
            let w = node_family!(tree, node);
            let (low, high) = data.split_at_mut(data.len() / 2);
            let [d0, d1, d2, d3] = quarters(low);
            let [d4, d5, d6, d7] = quarters(high);
            let columns = d0.iter_mut().zip(d1).zip(d2).zip(d3).zip(d4).zip(d5).zip(d6).zip(d7);
            for (((((((v0, v1), v2), v3), v4), v5), v6), v7) in columns {
                let x = [
                    load_values(v0),
                    load_values(v1),
                    load_values(v2),
                    load_values(v3),
                    load_values(v4),
                    load_values(v5),
                    load_values(v6),
                    load_values(v7),
                ];
                let a = inverse8_lower!(c, w, x);
                if LAST {
                    store_last(c, roots, v0, v4, a[0], a[4]);
                    store_last(c, roots, v1, v5, a[1], a[5]);
                    store_last(c, roots, v2, v6, a[2], a[6]);
                    store_last(c, roots, v3, v7, a[3], a[7]);
                } else {
                    store_inner(c, w[0], v0, v4, a[0], a[4]);
                    store_inner(c, w[0], v1, v5, a[1], a[5]);
                    store_inner(c, w[0], v2, v6, a[2], a[6]);
                    store_inner(c, w[0], v3, v7, a[3], a[7]);
                }
            }
        }

        /// The first stages back, as [`forward_tails`] does the last.
        #[target_feature(enable = $features)]
        fn inverse_tails<const LAZY: bool>(
            c: &Constants,
            tails: &[Subtree],
            data: &mut [[u64; LANES]],
        ) {
            let blocks = data.as_chunks_mut::<BLOCK>().0;
            for (i, (block, tree)) in blocks.iter_mut().zip(tails).enumerate() {
                prefetch(tails.get(i + AHEAD));
                inverse_inner::<LAZY>(c, tree, block);
            }
            for (block, tree) in blocks.iter_mut().zip(tails) {
                inverse_outer(c, tree, block);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn inverse_inner<const LAZY: bool>(
            c: &Constants,
            tree: &Subtree,
            block: &mut [[u64; LANES]; BLOCK],
        ) {
            let [v0, v1, v2, v3, v4, v5, v6, v7] = block;
            let x = [
                load_first::<LAZY>(c, v0),
                load_first::<LAZY>(c, v1),
                load_first::<LAZY>(c, v2),
                load_first::<LAZY>(c, v3),
                load_first::<LAZY>(c, v4),
                load_first::<LAZY>(c, v5),
                load_first::<LAZY>(c, v6),
                load_first::<LAZY>(c, v7),
            ];
            let x = if LAZY {
                tail_join!(join, c, tree, BLOCK, x)
            } else {
                tail_join!(join_residues, c, tree, BLOCK, x)
            };
            store_values(v0, x[0]);
            store_values(v1, x[1]);
            store_values(v2, x[2]);
            store_values(v3, x[3]);
            store_values(v4, x[4]);
            store_values(v5, x[5]);
            store_values(v6, x[6]);
            store_values(v7, x[7]);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn inverse_outer(c: &Constants, tree: &Subtree, block: &mut [[u64; LANES]; BLOCK]) {
            let [v0, v1, v2, v3, v4, v5, v6, v7] = block;
            let x = [
                load_values(v0),
                load_values(v1),
                load_values(v2),
                load_values(v3),
                load_values(v4),
                load_values(v5),
                load_values(v6),
                load_values(v7),
            ];
            let w = node_family!(tree, 1);
            let a = inverse8_lower!(c, w, x);
            store_inner(c, w[0], v0, v4, a[0], a[4]);
            store_inner(c, w[0], v1, v5, a[1], a[5]);
            store_inner(c, w[0], v2, v6, a[2], a[6]);
            store_inner(c, w[0], v3, v7, a[3], a[7]);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn load_first<const LAZY: bool>(c: &Constants, from: &[u64; LANES]) -> V {
            let x = load_residues(from);
            if LAZY { settle(c, x) } else { x }
        }

        fn quarters(data: &mut [[u64; LANES]]) -> [&mut [[u64; LANES]]; 4] {
            let (low, high) = data.split_at_mut(data.len() / 2);
            let (a, b) = low.split_at_mut(low.len() / 2);
            let (c, d) = high.split_at_mut(high.len() / 2);
            [a, b, c, d]
        }
    };
}
pub(crate) use vector_transform;
