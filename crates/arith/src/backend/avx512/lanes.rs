//! Eight residues as doubles: the operations that the transform is written in.

use core::arch::x86_64::*;

use crate::backend::transform::DoubleTree;

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

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn spread(w: (f64, f64)) -> (V, V) {
    (_mm512_set1_pd(w.0), _mm512_set1_pd(w.1))
}

/// The root of one node in all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn node_roots(tree: &DoubleTree, k: usize) -> (V, V) {
    spread((tree.root[k], tree.ratio[k]))
}

/// The roots of `COUNT` nodes from `k` on, repeated over the lanes: a broadcasting load, no shuffle.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn tail_nodes<const COUNT: usize>(from: &[f64], k: usize) -> V {
    let roots = &from[k..k + COUNT];
    match COUNT {
        // SAFETY: the slice covers two doubles.
        2 => _mm512_broadcast_f64x2(unsafe { _mm_loadu_pd(roots.as_ptr()) }),
        // SAFETY: the slice covers four doubles.
        4 => _mm512_broadcast_f64x4(unsafe { _mm256_loadu_pd(roots.as_ptr()) }),
        // SAFETY: the slice covers `COUNT` doubles, and 8 is the only other count used.
        _ => unsafe { _mm512_loadu_pd(roots.as_ptr()) },
    }
}

/// The perfect shuffle: the first halves interleaved, then the second halves.
#[inline]
#[target_feature(enable = "avx512f")]
fn interleave(a: V, b: V) -> (V, V) {
    let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b))
}

/// Its inverse: the even elements of both, then the odd ones.
#[inline]
#[target_feature(enable = "avx512f")]
fn separate(a: V, b: V) -> (V, V) {
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn stage_roots<const COUNT: usize>(tree: &DoubleTree, k: usize) -> (V, V) {
    (tail_nodes::<COUNT>(&tree.root, k), tail_nodes::<COUNT>(&tree.ratio, k))
}

/// The three stages inside a pair of vectors that holds nodes `k` and `k + 1`. One shuffle before each stage brings
/// partners to the same lane of the two vectors, with roots repeating with period 2, 4 and 8; a fourth restores the order.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn tail_split(c: &Constants, tree: &DoubleTree, k: usize, a: V, b: V) -> (V, V) {
    let (x, y) = interleave(a, b);
    let t = mul_root(c, y, stage_roots::<2>(tree, k));
    let (x, y) = interleave(add(x, t), sub(x, t));
    let t = mul_root(c, y, stage_roots::<4>(tree, 2 * k));
    let (x, y) = interleave(add(x, t), sub(x, t));
    let t = mul_root(c, y, stage_roots::<8>(tree, 4 * k));
    interleave(add(x, t), sub(x, t))
}

/// The same stages backwards; the sums come out reduced, the differences are by their product.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn tail_join(c: &Constants, tree: &DoubleTree, k: usize, a: V, b: V) -> (V, V) {
    let (x, y) = separate(a, b);
    let t = mul_root(c, sub(x, y), stage_roots::<8>(tree, 4 * k));
    let (x, y) = separate(add(x, y), t);
    let t = mul_root(c, sub(x, y), stage_roots::<4>(tree, 2 * k));
    let (x, y) = separate(add(x, y), t);
    let t = mul_root(c, sub(x, y), stage_roots::<2>(tree, k));
    separate(reduce(c, add(x, y)), t)
}
