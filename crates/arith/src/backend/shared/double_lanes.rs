//! Four residues as doubles, in one vector of 256 bits or two of 128: what the transform and the
//! other kernels are written in, over a back-end's multiply-adds.
//!
//! A back-end gives the vector `V`, `zero`, `set_double`, loads and stores, `add`, `sub`,
//! `product`, `fused` (`x y + z`), `less` (`z - x y`), `rest` (`x y - z`), `nearest`, `above`, and
//! moves of lanes.

macro_rules! double_lanes {
    ($features:literal) => {
        use crate::modulus::{Modulus, Shoup};

        pub(crate) use crate::backend::shared::double_lanes::{
            join, join as join_residues, split, split as split_residues, tail_join, tail_split,
        };
        pub(crate) use crate::backend::shared::prefetch::prefetch;

        pub(crate) const LANES: usize = 4;
        pub(crate) const LOG_LANES: u32 = 2;
        /// What roots are stored as.
        pub(crate) type Root = f64;

        /// A root, centred, and its quotient by `q`.
        pub(crate) fn root_and_ratio(m: &Modulus, w: u64) -> (Root, Root) {
            let root = m.to_centered(w) as f64;
            (root, root / m.value() as f64)
        }

        /// `q` and `1 / q`, rounded.
        pub(crate) fn modulus_and_reciprocal(m: &Modulus) -> (Root, Root) {
            let q = m.value() as f64;
            (q, 1.0 / q)
        }

        #[derive(Clone, Copy)]
        pub(crate) struct Constants {
            q: V,
            reciprocal: V,
        }

        impl Constants {
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn new(q: f64, reciprocal: f64) -> Self {
                Constants { q: set_double(q), reciprocal: set_double(reciprocal) }
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn of(m: &Modulus) -> Self {
                let (q, reciprocal) = modulus_and_reciprocal(m);
                Constants::new(q, reciprocal)
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn load_doubles(from: &[f64; LANES]) -> V {
            load_values(bytemuck::cast_ref(from))
        }

        /// Doubles are signed: nothing to add.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn difference(_: &Constants, x: V, y: V) -> V {
            sub(x, y)
        }

        /// `x` up to `8q` to `[-q/2, q/2]`.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn reduce(c: &Constants, x: V) -> V {
            less(nearest(product(x, c.reciprocal)), c.q, x)
        }

        /// `x w mod q`, up to `q (1/2 + 0.1 x/q)`. The product is kept as high + low, both exact.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn mul_root(c: &Constants, x: V, w: (V, V)) -> V {
            let high = product(x, w.0);
            let low = rest(x, w.0, high);
            let quotient = nearest(product(x, w.1));
            add(less(quotient, c.q, high), low)
        }

        /// Where a pass must reduce for its bounds to hold, doubles do.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn settle(c: &Constants, x: V) -> V {
            reduce(c, x)
        }

        /// A last value, up to `8q`, to a word in `[0, q)`.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn store_final(c: &Constants, to: &mut [u64; LANES], x: V) {
            store_residues(c, to, reduce(c, x));
        }

        /// `x y mod q` for two residues in `[0, q)`, up to `7/8 q`: the quotient is off by at most
        /// 3/8 before it is rounded.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn multiply(c: &Constants, x: V, y: V) -> V {
            let high = product(x, y);
            let low = rest(x, y, high);
            let quotient = nearest(product(high, c.reciprocal));
            add(less(quotient, c.q, high), low)
        }

        /// A prepared factor, centred, with its quotient by `q`.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn factor(m: &Modulus, w: &Shoup) -> (V, V) {
            let (root, ratio) = root_and_ratio(m, w.value);
            spread(root, ratio)
        }

        /// Doubles have room for a product on top of `4q`.
        #[inline]
        pub(crate) fn make_room(_: &Constants, x: V) -> V {
            x
        }

        /// A folded value below `8q`, as a canonical word.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn store_folded<const FINAL: bool>(c: &Constants, to: &mut [u64; LANES], x: V) {
            store_final(c, to, x);
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn spread(root: f64, ratio: f64) -> (V, V) {
            (set_double(root), set_double(ratio))
        }

        /// The roots of four nodes.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn four_nodes(from: &[f64; 4]) -> V {
            load_doubles(from)
        }

        /// From the order of the last stage back to memory order.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn restore(a: V, b: V) -> (V, V) {
            let (a, b) = exchange_parity(a, b);
            exchange_halves(a, b)
        }

        /// From memory order to the order of the last stage.
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) fn gather(a: V, b: V) -> (V, V) {
            let (a, b) = exchange_halves(a, b);
            exchange_parity(a, b)
        }
    };
}
pub(crate) use double_lanes;

/// Cooley-Tukey: `(x + w y, x - w y)`. This and the next ones are macros, not functions, to stay in
/// registers: nothing forces a `#[target_feature]` function inline.
macro_rules! split {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, t) = ($x, mul_root($c, $y, $w));
        (add(x, t), sub(x, t))
    }};
}
pub(crate) use split;

/// Gentleman-Sande: `(x + y, (x - y) w)`.
macro_rules! join {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, y) = ($x, $y);
        (add(x, y), mul_root($c, sub(x, y), $w))
    }};
}
pub(crate) use join;

/// The two stages inside four pairs of vectors, each pair holding two nodes, the first of them `k`.
macro_rules! tail_split {
    ($c:ident, $tree:ident, $k:expr, $x:expr) => {{
        let [a0, b0, a1, b1, a2, b2, a3, b3] = $x;
        let k = $k;
        let w = &$tree.root[k..k + 8].as_chunks::<2>().0[..4];
        let p = &$tree.ratio[k..k + 8].as_chunks::<2>().0[..4];
        let ((a0, b0), (a1, b1)) = (exchange_halves(a0, b0), exchange_halves(a1, b1));
        let ((a2, b2), (a3, b3)) = (exchange_halves(a2, b2), exchange_halves(a3, b3));
        let (a0, b0) = split!($c, a0, b0, (two_nodes(&w[0]), two_nodes(&p[0])));
        let (a1, b1) = split!($c, a1, b1, (two_nodes(&w[1]), two_nodes(&p[1])));
        let (a2, b2) = split!($c, a2, b2, (two_nodes(&w[2]), two_nodes(&p[2])));
        let (a3, b3) = split!($c, a3, b3, (two_nodes(&w[3]), two_nodes(&p[3])));
        let w = &$tree.root[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let p = &$tree.ratio[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let ((a0, b0), (a1, b1)) = (exchange_parity(a0, b0), exchange_parity(a1, b1));
        let ((a2, b2), (a3, b3)) = (exchange_parity(a2, b2), exchange_parity(a3, b3));
        let (a0, b0) = split!($c, a0, b0, (four_nodes(&w[0]), four_nodes(&p[0])));
        let (a1, b1) = split!($c, a1, b1, (four_nodes(&w[1]), four_nodes(&p[1])));
        let (a2, b2) = split!($c, a2, b2, (four_nodes(&w[2]), four_nodes(&p[2])));
        let (a3, b3) = split!($c, a3, b3, (four_nodes(&w[3]), four_nodes(&p[3])));
        let ((a0, b0), (a1, b1)) = (restore(a0, b0), restore(a1, b1));
        let ((a2, b2), (a3, b3)) = (restore(a2, b2), restore(a3, b3));
        [a0, b0, a1, b1, a2, b2, a3, b3]
    }};
}
pub(crate) use tail_split;

/// The same stages backwards, `$first` the butterfly of the first of them; the sums come out
/// reduced, the differences are by their product.
macro_rules! tail_join {
    ($first:ident, $c:ident, $tree:ident, $k:expr, $x:expr) => {{
        let [a0, b0, a1, b1, a2, b2, a3, b3] = $x;
        let k = $k;
        let w = &$tree.root[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let p = &$tree.ratio[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let ((a0, b0), (a1, b1)) = (gather(a0, b0), gather(a1, b1));
        let ((a2, b2), (a3, b3)) = (gather(a2, b2), gather(a3, b3));
        let (a0, b0) = $first!($c, a0, b0, (four_nodes(&w[0]), four_nodes(&p[0])));
        let (a1, b1) = $first!($c, a1, b1, (four_nodes(&w[1]), four_nodes(&p[1])));
        let (a2, b2) = $first!($c, a2, b2, (four_nodes(&w[2]), four_nodes(&p[2])));
        let (a3, b3) = $first!($c, a3, b3, (four_nodes(&w[3]), four_nodes(&p[3])));
        let w = &$tree.root[k..k + 8].as_chunks::<2>().0[..4];
        let p = &$tree.ratio[k..k + 8].as_chunks::<2>().0[..4];
        let ((a0, b0), (a1, b1)) = (exchange_parity(a0, b0), exchange_parity(a1, b1));
        let ((a2, b2), (a3, b3)) = (exchange_parity(a2, b2), exchange_parity(a3, b3));
        let (a0, b0) = join!($c, a0, b0, (two_nodes(&w[0]), two_nodes(&p[0])));
        let (a1, b1) = join!($c, a1, b1, (two_nodes(&w[1]), two_nodes(&p[1])));
        let (a2, b2) = join!($c, a2, b2, (two_nodes(&w[2]), two_nodes(&p[2])));
        let (a3, b3) = join!($c, a3, b3, (two_nodes(&w[3]), two_nodes(&p[3])));
        let ((a0, b0), (a1, b1)) =
            (exchange_halves(settle($c, a0), b0), exchange_halves(settle($c, a1), b1));
        let ((a2, b2), (a3, b3)) =
            (exchange_halves(settle($c, a2), b2), exchange_halves(settle($c, a3), b3));
        [a0, b0, a1, b1, a2, b2, a3, b3]
    }};
}
pub(crate) use tail_join;
