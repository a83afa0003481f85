//! IFMA butterflies: eight residues as integers below `4q < 2^52`, and Harvey's butterflies on
//! 52-bit multiply-adds, in which the transform is written.
//!
//! # Bounds
//!
//! Primes are below 2^50, because 4q must fit the 52 bits that `vpmadd52luq/huq` multiply.
//!
//! With w' = floor(w 2^52 / q), h = high52(y w') is less than 2 below the true quotient, so t = y w
//! − h q is in \[0, 2q). Two `luq` compute its low 52 bits as low52(y w) + low52(h (2^52 − q)); an
//! AND follows. An unsigned min(x, x − 2q) reduces x from \[0, 4q) to \[0, 2q); the outputs x + t
//! and x − t + 2q are in \[0, 4q). Nine operations.

use core::arch::x86_64::*;

use crate::modulus::{Modulus, Shoup};

pub(crate) use crate::backend::shared::prefetch::prefetch;

pub(crate) const LANES: usize = 8;
pub(crate) const LOG_LANES: u32 = 3;
/// What roots are stored as.
pub(crate) type Root = u64;
pub(crate) type V = __m512i;

/// A root and `floor(w 2^52 / q)`.
pub(crate) fn root_and_ratio(m: &Modulus, w: u64) -> (Root, Root) {
    (w, ((u128::from(w) << 52) / u128::from(m.value())) as u64)
}

/// `q`; integers need no reciprocal.
pub(crate) fn modulus_and_reciprocal(m: &Modulus) -> (Root, Root) {
    (m.value(), 0)
}

#[derive(Clone, Copy)]
pub(crate) struct Constants {
    q: V,
    double: V,
    /// `2^52 - q`.
    negated: V,
    mask: V,
}

impl Constants {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn new(q: u64, _: u64) -> Self {
        Constants {
            q: _mm512_set1_epi64(q as i64),
            double: _mm512_set1_epi64(2 * q as i64),
            negated: _mm512_set1_epi64(((1u64 << 52) - q) as i64),
            mask: _mm512_set1_epi64((1 << 52) - 1),
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_values(from: &[u64; LANES]) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_values(to: &mut [u64; LANES], x: V) {
    // SAFETY: the reference covers 64 writable bytes; the store has no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
}

/// Words below `4q` are values already.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_residues(from: &[u64; LANES]) -> V {
    load_values(from)
}

/// `[0, 2q)` to `[0, q)`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_residues(c: &Constants, to: &mut [u64; LANES], x: V) {
    store_values(to, _mm512_min_epu64(x, _mm512_sub_epi64(x, c.q)));
}

/// `[0, 4q)` to `[0, q)`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_final(c: &Constants, to: &mut [u64; LANES], x: V) {
    store_residues(c, to, halve(c, x));
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn add(x: V, y: V) -> V {
    _mm512_add_epi64(x, y)
}

/// `x - y + 2q`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn difference(c: &Constants, x: V, y: V) -> V {
    _mm512_sub_epi64(_mm512_add_epi64(x, c.double), y)
}

/// `[0, 4q)` to `[0, 2q)`: where the difference wraps it is huge, and the minimum keeps `x`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn halve(c: &Constants, x: V) -> V {
    _mm512_min_epu64(x, _mm512_sub_epi64(x, c.double))
}

/// Integer butterflies keep their own bounds.
#[inline]
pub(crate) fn settle(_: &Constants, x: V) -> V {
    x
}

/// `x w mod q` in `[0, 2q)` for `x < 2^52`: Shoup's quotient is short by less than 2; the
/// difference of the low halves is taken by adding a multiple of `2^52 - q` and dropping what
/// passes 52 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn mul_root(c: &Constants, x: V, w: (V, V)) -> V {
    let zero = _mm512_setzero_si512();
    let quotient = _mm512_madd52hi_epu64(zero, x, w.1);
    let low = _mm512_madd52lo_epu64(zero, x, w.0);
    _mm512_and_si512(_mm512_madd52lo_epu64(low, quotient, c.negated), c.mask)
}

/// A prepared factor in 52 bits: `floor(w 2^52 / q)` from `floor(w 2^64 / q)`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn factor(_: &Modulus, w: &Shoup) -> (V, V) {
    spread(w.value, w.quotient >> 12)
}

/// `[0, 4q)` to where a product fits on top.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn make_room(c: &Constants, x: V) -> V {
    halve(c, x)
}

/// A folded value in `[0, 4q)`: a canonical word if `FINAL`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_folded<const FINAL: bool>(c: &Constants, to: &mut [u64; LANES], x: V) {
    if FINAL { store_final(c, to, x) } else { store_values(to, x) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn reverse(x: V) -> V {
    _mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), x)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn spread(root: u64, ratio: u64) -> (V, V) {
    (_mm512_set1_epi64(root as i64), _mm512_set1_epi64(ratio as i64))
}

/// The roots of two nodes, alternating over the lanes: a broadcasting load, no shuffle. So are the
/// next ones.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn two_nodes(from: &[u64; 2]) -> V {
    // SAFETY: the reference covers two words.
    _mm512_broadcast_i64x2(unsafe { _mm_loadu_si128(from.as_ptr().cast()) })
}

/// The roots of four nodes, twice.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn four_nodes(from: &[u64; 4]) -> V {
    // SAFETY: the reference covers four words.
    _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
}

/// The roots of eight nodes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn eight_nodes(from: &[u64; 8]) -> V {
    // SAFETY: the reference covers eight words.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// The perfect shuffle: the first halves interleaved, then the second halves.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn interleave(a: V, b: V) -> (V, V) {
    let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    (_mm512_permutex2var_epi64(a, low, b), _mm512_permutex2var_epi64(a, high, b))
}

/// Its inverse: the even elements of both, then the odd ones.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn separate(a: V, b: V) -> (V, V) {
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    (_mm512_permutex2var_epi64(a, even, b), _mm512_permutex2var_epi64(a, odd, b))
}

/// Cooley-Tukey: `(x + w y, x - w y)`, `[0, 4q)` to `[0, 4q)`. This and the next ones are macros,
/// not functions, to stay in registers: nothing forces a `#[target_feature]` function inline.
macro_rules! split {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, t) = (halve($c, $x), mul_root($c, $y, $w));
        (add(x, t), difference($c, x, t))
    }};
}
pub(crate) use split;

/// The same where `x` is below `2q` already.
macro_rules! split_residues {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, t) = ($x, mul_root($c, $y, $w));
        (add(x, t), difference($c, x, t))
    }};
}
pub(crate) use split_residues;

/// Gentleman-Sande: `(x + y, (x - y) w)`, `[0, 2q)` to `[0, 2q)`.
macro_rules! join {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, y) = ($x, $y);
        (halve($c, add(x, y)), mul_root($c, difference($c, x, y), $w))
    }};
}
pub(crate) use join;

/// The same for `x` and `y` below `q`.
macro_rules! join_residues {
    ($c:ident, $x:expr, $y:expr, $w:expr) => {{
        let (x, y) = ($x, $y);
        (add(x, y), mul_root($c, difference($c, x, y), $w))
    }};
}
pub(crate) use join_residues;

/// The three stages inside four pairs of vectors, each pair holding two nodes, the first of them
/// `k`. One shuffle before each stage brings partners to the same lane of the pair's two vectors,
/// with roots repeating with period 2, 4 and 8; a fourth restores the order.
macro_rules! tail_split {
    ($c:ident, $tree:ident, $k:expr, $x:expr) => {{
        let [a0, b0, a1, b1, a2, b2, a3, b3] = $x;
        let k = $k;
        let w = &$tree.root[k..k + 8].as_chunks::<2>().0[..4];
        let p = &$tree.ratio[k..k + 8].as_chunks::<2>().0[..4];
        let ((a0, b0), (a1, b1)) = (interleave(a0, b0), interleave(a1, b1));
        let ((a2, b2), (a3, b3)) = (interleave(a2, b2), interleave(a3, b3));
        let (a0, b0) = split!($c, a0, b0, (two_nodes(&w[0]), two_nodes(&p[0])));
        let (a1, b1) = split!($c, a1, b1, (two_nodes(&w[1]), two_nodes(&p[1])));
        let (a2, b2) = split!($c, a2, b2, (two_nodes(&w[2]), two_nodes(&p[2])));
        let (a3, b3) = split!($c, a3, b3, (two_nodes(&w[3]), two_nodes(&p[3])));
        let w = &$tree.root[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let p = &$tree.ratio[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let ((a0, b0), (a1, b1)) = (interleave(a0, b0), interleave(a1, b1));
        let ((a2, b2), (a3, b3)) = (interleave(a2, b2), interleave(a3, b3));
        let (a0, b0) = split!($c, a0, b0, (four_nodes(&w[0]), four_nodes(&p[0])));
        let (a1, b1) = split!($c, a1, b1, (four_nodes(&w[1]), four_nodes(&p[1])));
        let (a2, b2) = split!($c, a2, b2, (four_nodes(&w[2]), four_nodes(&p[2])));
        let (a3, b3) = split!($c, a3, b3, (four_nodes(&w[3]), four_nodes(&p[3])));
        let w = &$tree.root[4 * k..4 * k + 32].as_chunks::<8>().0[..4];
        let p = &$tree.ratio[4 * k..4 * k + 32].as_chunks::<8>().0[..4];
        let ((a0, b0), (a1, b1)) = (interleave(a0, b0), interleave(a1, b1));
        let ((a2, b2), (a3, b3)) = (interleave(a2, b2), interleave(a3, b3));
        let (a0, b0) = split!($c, a0, b0, (eight_nodes(&w[0]), eight_nodes(&p[0])));
        let (a1, b1) = split!($c, a1, b1, (eight_nodes(&w[1]), eight_nodes(&p[1])));
        let (a2, b2) = split!($c, a2, b2, (eight_nodes(&w[2]), eight_nodes(&p[2])));
        let (a3, b3) = split!($c, a3, b3, (eight_nodes(&w[3]), eight_nodes(&p[3])));
        let ((a0, b0), (a1, b1)) = (interleave(a0, b0), interleave(a1, b1));
        let ((a2, b2), (a3, b3)) = (interleave(a2, b2), interleave(a3, b3));
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
        let w = &$tree.root[4 * k..4 * k + 32].as_chunks::<8>().0[..4];
        let p = &$tree.ratio[4 * k..4 * k + 32].as_chunks::<8>().0[..4];
        let ((a0, b0), (a1, b1)) = (separate(a0, b0), separate(a1, b1));
        let ((a2, b2), (a3, b3)) = (separate(a2, b2), separate(a3, b3));
        let (a0, b0) = $first!($c, a0, b0, (eight_nodes(&w[0]), eight_nodes(&p[0])));
        let (a1, b1) = $first!($c, a1, b1, (eight_nodes(&w[1]), eight_nodes(&p[1])));
        let (a2, b2) = $first!($c, a2, b2, (eight_nodes(&w[2]), eight_nodes(&p[2])));
        let (a3, b3) = $first!($c, a3, b3, (eight_nodes(&w[3]), eight_nodes(&p[3])));
        let w = &$tree.root[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let p = &$tree.ratio[2 * k..2 * k + 16].as_chunks::<4>().0[..4];
        let ((a0, b0), (a1, b1)) = (separate(a0, b0), separate(a1, b1));
        let ((a2, b2), (a3, b3)) = (separate(a2, b2), separate(a3, b3));
        let (a0, b0) = join!($c, a0, b0, (four_nodes(&w[0]), four_nodes(&p[0])));
        let (a1, b1) = join!($c, a1, b1, (four_nodes(&w[1]), four_nodes(&p[1])));
        let (a2, b2) = join!($c, a2, b2, (four_nodes(&w[2]), four_nodes(&p[2])));
        let (a3, b3) = join!($c, a3, b3, (four_nodes(&w[3]), four_nodes(&p[3])));
        let w = &$tree.root[k..k + 8].as_chunks::<2>().0[..4];
        let p = &$tree.ratio[k..k + 8].as_chunks::<2>().0[..4];
        let ((a0, b0), (a1, b1)) = (separate(a0, b0), separate(a1, b1));
        let ((a2, b2), (a3, b3)) = (separate(a2, b2), separate(a3, b3));
        let (a0, b0) = join!($c, a0, b0, (two_nodes(&w[0]), two_nodes(&p[0])));
        let (a1, b1) = join!($c, a1, b1, (two_nodes(&w[1]), two_nodes(&p[1])));
        let (a2, b2) = join!($c, a2, b2, (two_nodes(&w[2]), two_nodes(&p[2])));
        let (a3, b3) = join!($c, a3, b3, (two_nodes(&w[3]), two_nodes(&p[3])));
        let ((a0, b0), (a1, b1)) = (separate(settle($c, a0), b0), separate(settle($c, a1), b1));
        let ((a2, b2), (a3, b3)) = (separate(settle($c, a2), b2), separate(settle($c, a3), b3));
        [a0, b0, a1, b1, a2, b2, a3, b3]
    }};
}
pub(crate) use tail_join;
