//! Eight residues as doubles: the operations that the transform is written in.

use core::arch::x86_64::*;

pub(crate) const LANES: usize = 8;
pub(crate) const LOG_LANES: u32 = 3;
pub(crate) type V = __m512d;

#[derive(Clone, Copy)]
pub(crate) struct Constants {
    q: V,
    reciprocal: V,
    integer: __m512i,
}

impl Constants {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn new(q: f64, reciprocal: f64) -> Self {
        Constants {
            q: _mm512_set1_pd(q),
            reciprocal: _mm512_set1_pd(reciprocal),
            integer: _mm512_set1_epi64(q as i64),
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_values(from: &[u64; LANES]) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_pd(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_values(to: &mut [u64; LANES], x: V) {
    // SAFETY: the reference covers 64 writable bytes; the store has no alignment.
    unsafe { _mm512_storeu_pd(to.as_mut_ptr().cast(), x) }
}

/// Words below `2^53`, exactly.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn load_residues(from: &[u64; LANES]) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    _mm512_cvtepu64_pd(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
}

/// Doubles in `(-q, q)` to words in `[0, q)`: a negative one is huge as a word, so the minimum takes it plus `q`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn store_residues(c: &Constants, to: &mut [u64; LANES], x: V) {
    let word = _mm512_cvtpd_epi64(x);
    let word = _mm512_min_epu64(word, _mm512_add_epi64(word, c.integer));
    // SAFETY: the reference covers 64 writable bytes; the store has no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), word) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn add(x: V, y: V) -> V {
    _mm512_add_pd(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn sub(x: V, y: V) -> V {
    _mm512_sub_pd(x, y)
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// `x` up to `8q` to `[-q/2, q/2]`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn reduce(c: &Constants, x: V) -> V {
    let quotient = _mm512_roundscale_pd::<NEAREST>(_mm512_mul_pd(x, c.reciprocal));
    _mm512_fnmadd_pd(quotient, c.q, x)
}

/// `x w mod q`, up to `q (1/2 + 0.1 x/q)`. The product is kept as high + low, both exact.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn mul_root(c: &Constants, x: V, w: (V, V)) -> V {
    let high = _mm512_mul_pd(x, w.0);
    let low = _mm512_fmsub_pd(x, w.0, high);
    let quotient = _mm512_roundscale_pd::<NEAREST>(_mm512_mul_pd(x, w.1));
    _mm512_add_pd(_mm512_fnmadd_pd(quotient, c.q, high), low)
}

/// `x y mod q` for two residues in `[0, q)`, up to `7/8 q`: the quotient is off by at most 3/8 before it is rounded.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn multiply(c: &Constants, x: V, y: V) -> V {
    let high = _mm512_mul_pd(x, y);
    let low = _mm512_fmsub_pd(x, y, high);
    let quotient = _mm512_roundscale_pd::<NEAREST>(_mm512_mul_pd(high, c.reciprocal));
    _mm512_add_pd(_mm512_fnmadd_pd(quotient, c.q, high), low)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn spread(root: f64, ratio: f64) -> (V, V) {
    (_mm512_set1_pd(root), _mm512_set1_pd(ratio))
}

/// The roots of two nodes, alternating over the lanes: a broadcasting load, no shuffle. So are the next ones.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn two_nodes(from: &[f64; 2]) -> V {
    // SAFETY: the reference covers two doubles.
    _mm512_broadcast_f64x2(unsafe { _mm_loadu_pd(from.as_ptr()) })
}

/// The roots of four nodes, twice.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn four_nodes(from: &[f64; 4]) -> V {
    // SAFETY: the reference covers four doubles.
    _mm512_broadcast_f64x4(unsafe { _mm256_loadu_pd(from.as_ptr()) })
}

/// The roots of eight nodes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn eight_nodes(from: &[f64; 8]) -> V {
    // SAFETY: the reference covers eight doubles.
    unsafe { _mm512_loadu_pd(from.as_ptr()) }
}

/// The perfect shuffle: the first halves interleaved, then the second halves.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn interleave(a: V, b: V) -> (V, V) {
    let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b))
}

/// Its inverse: the even elements of both, then the odd ones.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn separate(a: V, b: V) -> (V, V) {
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b))
}

/// The three stages inside four pairs of vectors, each pair holding two nodes, the first of them `k`. One shuffle before
/// each stage brings partners to the same lane of the pair's two vectors, with roots repeating with period 2, 4 and 8; a
/// fourth restores the order.
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

/// The same stages backwards; the sums come out reduced, the differences are by their product.
macro_rules! tail_join {
    ($c:ident, $tree:ident, $k:expr, $x:expr) => {{
        let [a0, b0, a1, b1, a2, b2, a3, b3] = $x;
        let k = $k;
        let w = &$tree.root[4 * k..4 * k + 32].as_chunks::<8>().0[..4];
        let p = &$tree.ratio[4 * k..4 * k + 32].as_chunks::<8>().0[..4];
        let ((a0, b0), (a1, b1)) = (separate(a0, b0), separate(a1, b1));
        let ((a2, b2), (a3, b3)) = (separate(a2, b2), separate(a3, b3));
        let (a0, b0) = join!($c, a0, b0, (eight_nodes(&w[0]), eight_nodes(&p[0])));
        let (a1, b1) = join!($c, a1, b1, (eight_nodes(&w[1]), eight_nodes(&p[1])));
        let (a2, b2) = join!($c, a2, b2, (eight_nodes(&w[2]), eight_nodes(&p[2])));
        let (a3, b3) = join!($c, a3, b3, (eight_nodes(&w[3]), eight_nodes(&p[3])));
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
        let ((a0, b0), (a1, b1)) = (separate(reduce($c, a0), b0), separate(reduce($c, a1), b1));
        let ((a2, b2), (a3, b3)) = (separate(reduce($c, a2), b2), separate(reduce($c, a3), b3));
        [a0, b0, a1, b1, a2, b2, a3, b3]
    }};
}
pub(crate) use tail_join;
