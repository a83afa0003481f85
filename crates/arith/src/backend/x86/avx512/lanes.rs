//! Lanes: eight residues as doubles, and the operations that the pointwise kernels are written in.

use core::arch::x86_64::*;

pub(crate) const LANES: usize = 8;
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

/// Words below `2^53`, exactly.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn load_residues(from: &[u64; LANES]) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    _mm512_cvtepu64_pd(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
}

/// Doubles in `(-q, q)` to words in `[0, q)`: a negative one is huge as a word, so the minimum
/// takes it plus `q`.
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

/// `x y mod q` for two residues in `[0, q)`, up to `7/8 q`: the quotient is off by at most 3/8
/// before it is rounded.
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
