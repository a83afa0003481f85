//! Lanes: four residues as doubles, and the operations that the transform is written in.

use core::arch::x86_64::*;

use crate::modulus::{Modulus, Shoup};

pub(crate) use crate::backend::x86::prefetch::prefetch;

pub(crate) const LANES: usize = 4;
pub(crate) const LOG_LANES: u32 = 2;
/// What roots are stored as.
pub(crate) type Root = f64;
pub(crate) type V = __m256d;

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
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn new(q: f64, reciprocal: f64) -> Self {
        Constants { q: _mm256_set1_pd(q), reciprocal: _mm256_set1_pd(reciprocal) }
    }
}

/// `2^52`: a double in `[2^52, 2^53)` has the integer above `2^52` as its low 52 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shift() -> V {
    _mm256_set1_pd((1u64 << 52) as f64)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load_values(from: &[u64; LANES]) -> V {
    // SAFETY: the reference covers 32 readable bytes; the load has no alignment.
    unsafe { _mm256_loadu_pd(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_values(to: &mut [u64; LANES], x: V) {
    // SAFETY: the reference covers 32 writable bytes; the store has no alignment.
    unsafe { _mm256_storeu_pd(to.as_mut_ptr().cast(), x) }
}

/// Words below `2^52`, exactly.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load_residues(from: &[u64; LANES]) -> V {
    _mm256_sub_pd(_mm256_or_pd(load_values(from), shift()), shift())
}

/// Doubles in `(-q, q)` to words in `[0, q)`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_residues(c: &Constants, to: &mut [u64; LANES], x: V) {
    let negative = _mm256_cmp_pd::<_CMP_LT_OQ>(x, _mm256_setzero_pd());
    let x = _mm256_add_pd(x, _mm256_and_pd(negative, c.q));
    store_values(to, _mm256_xor_pd(_mm256_add_pd(x, shift()), shift()));
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn add(x: V, y: V) -> V {
    _mm256_add_pd(x, y)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sub(x: V, y: V) -> V {
    _mm256_sub_pd(x, y)
}

/// Doubles are signed: nothing to add.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn difference(_: &Constants, x: V, y: V) -> V {
    sub(x, y)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn nearest(x: V) -> V {
    _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)
}

/// `x` up to `8q` to `[-q/2, q/2]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn reduce(c: &Constants, x: V) -> V {
    let quotient = nearest(_mm256_mul_pd(x, c.reciprocal));
    _mm256_fnmadd_pd(quotient, c.q, x)
}

/// `x w mod q`, up to `q (1/2 + 0.1 x/q)`. The product is kept as high + low, both exact.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn mul_root(c: &Constants, x: V, w: (V, V)) -> V {
    let high = _mm256_mul_pd(x, w.0);
    let low = _mm256_fmsub_pd(x, w.0, high);
    let quotient = nearest(_mm256_mul_pd(x, w.1));
    _mm256_add_pd(_mm256_fnmadd_pd(quotient, c.q, high), low)
}

/// Where a pass must reduce for its bounds to hold, doubles do.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn settle(c: &Constants, x: V) -> V {
    reduce(c, x)
}

/// A last value, up to `8q`, to a word in `[0, q)`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_final(c: &Constants, to: &mut [u64; LANES], x: V) {
    store_residues(c, to, reduce(c, x));
}

/// `x y mod q` for two residues in `[0, q)`, up to `7/8 q`: the quotient is off by at most 3/8
/// before it is rounded.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn multiply(c: &Constants, x: V, y: V) -> V {
    let high = _mm256_mul_pd(x, y);
    let low = _mm256_fmsub_pd(x, y, high);
    let quotient = nearest(_mm256_mul_pd(high, c.reciprocal));
    _mm256_add_pd(_mm256_fnmadd_pd(quotient, c.q, high), low)
}

/// A prepared factor, centred, with its quotient by `q`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn factor(m: &Modulus, w: &Shoup) -> (V, V) {
    let root = m.to_centered(w.value) as f64;
    spread(root, root / m.value() as f64)
}

/// Doubles have room for a product on top of `4q`.
#[inline]
pub(crate) fn make_room(_: &Constants, x: V) -> V {
    x
}

/// A folded value below `8q`, as a canonical word.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_folded<const FINAL: bool>(c: &Constants, to: &mut [u64; LANES], x: V) {
    store_final(c, to, x);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn reverse(x: V) -> V {
    _mm256_permute4x64_pd::<0b00_01_10_11>(x)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn spread(root: f64, ratio: f64) -> (V, V) {
    (_mm256_set1_pd(root), _mm256_set1_pd(ratio))
}

/// The roots of two nodes, each in two neighbouring lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn two_nodes(from: &[f64; 2]) -> V {
    _mm256_setr_pd(from[0], from[0], from[1], from[1])
}

/// The roots of four nodes.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn four_nodes(from: &[f64; 4]) -> V {
    // SAFETY: the reference covers four doubles.
    unsafe { _mm256_loadu_pd(from.as_ptr()) }
}

/// Lower halves of both, then upper halves. Its own inverse.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn exchange_halves(a: V, b: V) -> (V, V) {
    (_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b))
}

/// Even elements of both interleaved, then odd ones. Its own inverse.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn exchange_parity(a: V, b: V) -> (V, V) {
    (opaque(_mm256_unpacklo_pd(a, b)), _mm256_unpackhi_pd(a, b))
}

/// `x`, of which the compiler forgets where it came from: a sum and a difference of what
/// [`exchange_parity`] returns it would make horizontal ones, which take twice as long.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn opaque(mut x: V) -> V {
    // SAFETY: no instruction, only a register that is said to be written.
    unsafe {
        core::arch::asm!("/* {} */", inout(ymm_reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}

/// From the order of the last stage back to memory order.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn restore(a: V, b: V) -> (V, V) {
    let (a, b) = exchange_parity(a, b);
    exchange_halves(a, b)
}

/// From memory order to the order of the last stage.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn gather(a: V, b: V) -> (V, V) {
    let (a, b) = exchange_halves(a, b);
    exchange_parity(a, b)
}

/// Cooley-Tukey: `(x + w y, x - w y)`. This and the next ones are macros, not functions, to stay in
/// registers: nothing forces a `#[target_feature]` function inline.
macro_rules! split {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, t) = ($x, mul_root($c, $y, $w));
        (add(x, t), sub(x, t))
    }};
}
pub(crate) use split;
pub(crate) use split as split_residues;

/// Gentleman-Sande: `(x + y, (x - y) w)`.
macro_rules! join {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, y) = ($x, $y);
        (add(x, y), mul_root($c, sub(x, y), $w))
    }};
}
pub(crate) use join;
pub(crate) use join as join_residues;

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
