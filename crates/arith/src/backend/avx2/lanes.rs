//! Four residues as doubles: the operations that the transform is written in.

use core::arch::x86_64::*;

use crate::backend::transform::DoubleTree;

pub(crate) const LANES: usize = 4;
pub(crate) const LOG_LANES: u32 = 2;
pub(crate) type V = __m256d;

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

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// `x` up to `8q` to `[-q/2, q/2]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn reduce(c: &Constants, x: V) -> V {
    let quotient = _mm256_round_pd::<NEAREST>(_mm256_mul_pd(x, c.reciprocal));
    _mm256_fnmadd_pd(quotient, c.q, x)
}

/// `x w mod q`, up to `q (1/2 + 0.1 x/q)`. The product is kept as high + low, both exact.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn mul_root(c: &Constants, x: V, w: (V, V)) -> V {
    let high = _mm256_mul_pd(x, w.0);
    let low = _mm256_fmsub_pd(x, w.0, high);
    let quotient = _mm256_round_pd::<NEAREST>(_mm256_mul_pd(x, w.1));
    _mm256_add_pd(_mm256_fnmadd_pd(quotient, c.q, high), low)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn spread(w: (f64, f64)) -> (V, V) {
    (_mm256_set1_pd(w.0), _mm256_set1_pd(w.1))
}

/// The root of one node in all lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn node_roots(tree: &DoubleTree, k: usize) -> (V, V) {
    spread((tree.root[k], tree.ratio[k]))
}

/// The roots of nodes `k` and `k + 1`, each in two neighbouring lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn two_nodes(from: &[f64], k: usize) -> V {
    let roots = &from[k..k + 2];
    _mm256_setr_pd(roots[0], roots[0], roots[1], roots[1])
}

/// The roots of four nodes from `k` on.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn four_nodes(from: &[f64], k: usize) -> V {
    let roots = &from[k..k + 4];
    // SAFETY: the slice covers four doubles.
    unsafe { _mm256_loadu_pd(roots.as_ptr()) }
}

/// Lower halves of both, then upper halves. Its own inverse.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exchange_halves(a: V, b: V) -> (V, V) {
    (_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b))
}

/// Even elements of both interleaved, then odd ones. Its own inverse.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exchange_parity(a: V, b: V) -> (V, V) {
    (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b))
}

/// The two stages inside a pair of vectors that holds nodes `k` and `k + 1`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn tail_split(c: &Constants, tree: &DoubleTree, k: usize, a: V, b: V) -> (V, V) {
    let (x, y) = exchange_halves(a, b);
    let t = mul_root(c, y, (two_nodes(&tree.root, k), two_nodes(&tree.ratio, k)));
    let (x, y) = exchange_parity(add(x, t), sub(x, t));
    let t = mul_root(c, y, (four_nodes(&tree.root, 2 * k), four_nodes(&tree.ratio, 2 * k)));
    let (a, b) = exchange_parity(add(x, t), sub(x, t));
    exchange_halves(a, b)
}

/// The same stages backwards; the sums come out reduced, the differences are by their product.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn tail_join(c: &Constants, tree: &DoubleTree, k: usize, a: V, b: V) -> (V, V) {
    let (a, b) = exchange_halves(a, b);
    let (x, y) = exchange_parity(a, b);
    let roots = (four_nodes(&tree.root, 2 * k), four_nodes(&tree.ratio, 2 * k));
    let t = mul_root(c, sub(x, y), roots);
    let (x, y) = exchange_parity(add(x, y), t);
    let t = mul_root(c, sub(x, y), (two_nodes(&tree.root, k), two_nodes(&tree.ratio, k)));
    exchange_halves(reduce(c, add(x, y)), t)
}
