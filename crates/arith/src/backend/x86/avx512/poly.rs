//! Pointwise arithmetic, eight residues at a time. Residues stay in `[0, q)`.
//!
//! **Permutations.** In bit-reversed order an automorphism moves aligned blocks of eight values:
//! one load and one `vpermq`, after a check that they share a block. `dot_pair_permuted` permutes
//! digits as it reads them.

use core::arch::x86_64::*;

use super::ifma_butterflies as ifma;
use super::lazy_reduction::LazyReduction;

crate::backend::shared::poly::double_pointwise!("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl");

/// Terms after which a sum of 52-bit halves could pass 64 bits.
const TERMS: usize = 4096;

#[inline]
#[target_feature(enable = "avx512f")]
fn words(p: &[u64], at: usize) -> __m512i {
    let p = &p[at..at + 8];
    // SAFETY: the slice is eight readable words.
    unsafe { _mm512_loadu_si512(p.as_ptr().cast()) }
}

/// Vectors that go through the terms together: a cache line of every factor at a time would defeat
/// the prefetcher.
const VECTORS: usize = 4;

/// The differences that are multiplied are below `4q < 2^52`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub(crate) fn split(
    [even, odd]: [&mut [u64]; 2],
    low: &mut [u64],
    high: &[u64],
    inverse: &Shoup,
    rotated: Option<&[u64]>,
    w: &[u64],
    m: &Modulus,
) {
    if m.value() >> KERNEL_BITS != 0 || !even.len().is_multiple_of(LANES) {
        return portable::poly::split([even, odd], low, high, inverse, rotated, w, m);
    }
    let (c, lazy) = (ifma::Constants::new(m.value(), 0), LazyReduction::new(m));
    let (inverse, zero) = (ifma::factor(m, inverse), _mm512_setzero_si512());
    let q = _mm512_set1_epi64(m.value() as i64);
    let above = _mm512_set1_epi64(3 * m.value() as i64);
    let outs = even.as_chunks_mut().0.iter_mut().zip(odd.as_chunks_mut().0);
    let switched = low.as_chunks().0.iter().zip(high.as_chunks().0);
    let rotated = rotated.map(|rotated| rotated.as_chunks().0);
    for (i, (((even, odd), (low, high)), w)) in outs.zip(switched).zip(w.as_chunks().0).enumerate()
    {
        let difference =
            _mm512_sub_epi64(_mm512_add_epi64(ifma::load_values(low), q), ifma::load_values(high));
        let mut s = ifma::mul_root(&c, difference, inverse);
        if let Some(rotated) = rotated {
            s = ifma::add(s, ifma::load_values(&rotated[i]));
        }
        let (x, w) = (ifma::load_values(even), ifma::load_values(w));
        ifma::store_final(&c, even, ifma::add(x, s));
        let x = _mm512_sub_epi64(_mm512_add_epi64(x, above), s);
        let (low, high) = (_mm512_madd52lo_epu64(zero, x, w), _mm512_madd52hi_epu64(zero, x, w));
        ifma::store_values(odd, lazy.residue_of_few(low, high));
    }
}

/// `out = sum_j a_j b_j` with one reduction in 4096 terms.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    if m.value() >> KERNEL_BITS != 0 {
        return portable::poly::dot(out, a, b, m);
    }
    let lazy = LazyReduction::new(m);
    let wide = out.len() / (VECTORS * LANES) * (VECTORS * LANES);
    for at in (0..wide).step_by(VECTORS * LANES) {
        dot_vectors::<VECTORS, false>(&lazy, out, a, b, [at, at]);
    }
    let whole = out.len() / LANES * LANES;
    for at in (wide..whole).step_by(LANES) {
        dot_vectors::<1, false>(&lazy, out, a, b, [at, at]);
    }
    portable::poly::dot_from(whole, out, a, b, m);
}

/// The same with each word of a `b_j` as often as `out` is longer.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn dot_repeated(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    let gap = out.len() / b[0].len();
    if m.value() >> KERNEL_BITS != 0 || !gap.is_multiple_of(LANES) {
        return portable::poly::dot_repeated(out, a, b, m);
    }
    let lazy = LazyReduction::new(m);
    for place in 0..b[0].len() {
        let (first, end) = (place * gap, (place + 1) * gap);
        let wide = end - gap % (VECTORS * LANES);
        for at in (first..wide).step_by(VECTORS * LANES) {
            dot_vectors::<VECTORS, true>(&lazy, out, a, b, [at, place]);
        }
        for at in (wide..end).step_by(LANES) {
            dot_vectors::<1, true>(&lazy, out, a, b, [at, place]);
        }
    }
}

/// `N` vectors of the sum from index `at` on, which is at `place` of a `b_j`: for all of them one
/// word if that is repeated.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn dot_vectors<const N: usize, const REPEATED: bool>(
    lazy: &LazyReduction,
    out: &mut [u64],
    a: &[&[u64]],
    b: &[&[u64]],
    [at, place]: [usize; 2],
) {
    let target = &mut out[at..at + N * LANES];
    target.fill(0);
    for (a, b) in a.chunks(TERMS - 1).zip(b.chunks(TERMS - 1)) {
        // What earlier terms left is a residue: it enters as one more low half.
        let zero = _mm512_setzero_si512();
        let (mut low, mut high) = ([zero; N], [zero; N]);
        for (i, low) in low.iter_mut().enumerate() {
            *low = words(target, i * LANES);
        }
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (&a[at..at + N * LANES], &b[place..]);
            for i in 0..N {
                let x = words(a, i * LANES);
                let y = if REPEATED { _mm512_set1_epi64(b[0] as i64) } else { words(b, i * LANES) };
                low[i] = _mm512_madd52lo_epu64(low[i], x, y);
                high[i] = _mm512_madd52hi_epu64(high[i], x, y);
            }
        }
        for (i, target) in target.chunks_exact_mut(LANES).enumerate() {
            lazy.store(low[i], high[i], target);
        }
    }
}
