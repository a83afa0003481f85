//! Reduces sums of 52-bit product halves to residues in `[0, q)`, once for many products.
//!
//! # Sums of products
//!
//! `dot` and the ring scan add `luq` and `huq` into two accumulators; 4096 halves below 2^52 fit 64
//! bits. `LazyReduction` splits the sums into l0 + 2^52 m + 2^104 h, multiplies by 1, 2^52 and
//! 2^104 mod q, adds (below 6q) and subtracts 4q, 2q, q by minima. AVX2 splits factors at 25 bits:
//! four `vpmuludq` and three sums, of which 4096 fit too. A key switch sums at most fifteen
//! products, so one quotient of the two upper halves' sum serves both (`residue_of_few`).
//! `dot_pair` computes both sums from one read of the digits.

use core::arch::x86_64::*;

use crate::modulus::Modulus;

/// Products below `2^100` whose upper halves add up to less than `2^52`.
pub(crate) const FEW: usize = 15;

/// The constants of one late reduction. With `R = 2^52`, a sum is `low + R high` where both halves
/// are words; splitting them again at 52 bits leaves `l0 + R (l1 + h0) + R^2 h1`, each below
/// `2^52`, and three fixed factors.
pub(crate) struct LazyReduction {
    q: __m512i,
    /// `2^52 - q`: subtracting a multiple of `q` modulo `2^52` becomes an addition.
    negated: __m512i,
    mask: __m512i,
    /// Factor and `floor(factor 2^52 / q)` for 1, R and R^2.
    factors: [(__m512i, __m512i); 3],
}

impl LazyReduction {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn new(m: &Modulus) -> Self {
        let q = m.value();
        let factor = |x: u64| {
            let quotient = ((u128::from(x) << 52) / u128::from(q)) as i64;
            (_mm512_set1_epi64(x as i64), _mm512_set1_epi64(quotient))
        };
        let radix = m.reduce(1 << 52);
        LazyReduction {
            q: _mm512_set1_epi64(q as i64),
            negated: _mm512_set1_epi64(((1u64 << 52) - q) as i64),
            mask: _mm512_set1_epi64((1 << 52) - 1),
            factors: [factor(m.reduce(1)), factor(radix), factor(m.mul(radix, radix))],
        }
    }

    /// `x w` modulo `q`, below `2q`, for `x < 2^52`: Shoup's quotient is short by less than 2.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn scale(&self, x: __m512i, (w, quotient): (__m512i, __m512i)) -> __m512i {
        let zero = _mm512_setzero_si512();
        let estimate = _mm512_madd52hi_epu64(zero, x, quotient);
        let product = _mm512_madd52lo_epu64(zero, x, w);
        let rest = _mm512_madd52lo_epu64(product, estimate, self.negated);
        _mm512_and_si512(rest, self.mask)
    }

    /// The residue of `low + 2^52 high`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn residue(&self, low: __m512i, high: __m512i) -> __m512i {
        let middle =
            _mm512_add_epi64(_mm512_and_si512(high, self.mask), _mm512_srli_epi64::<52>(low));
        // The middle sum can reach 2^52 + 2^12: carry what is above into the top part.
        let top = _mm512_add_epi64(_mm512_srli_epi64::<52>(high), _mm512_srli_epi64::<52>(middle));
        let low = _mm512_and_si512(low, self.mask);
        let middle = _mm512_and_si512(middle, self.mask);
        let [one, radix, square] = self.factors;
        let sum = _mm512_add_epi64(
            _mm512_add_epi64(self.scale(low, one), self.scale(middle, radix)),
            self.scale(top, square),
        );
        // Below 6q: subtract 4q, 2q and q where that does not wrap.
        let mut sum = sum;
        let double = _mm512_add_epi64(self.q, self.q);
        for multiple in [_mm512_add_epi64(double, double), double, self.q] {
            sum = _mm512_min_epu64(sum, _mm512_sub_epi64(sum, multiple));
        }
        sum
    }

    /// The same for a sum of at most [`FEW`] products of residues below `2^50`: then what stands
    /// above the lower 52 bits fits 52 bits itself, and one quotient serves both factors. It is
    /// short by less than 4.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn residue_of_few(&self, low: __m512i, high: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        let [(_, one), (radix, ratio), _] = self.factors;
        let high = _mm512_add_epi64(high, _mm512_srli_epi64::<52>(low));
        let quotient = _mm512_madd52hi_epu64(_mm512_madd52hi_epu64(zero, low, one), high, ratio);
        let sum = _mm512_madd52lo_epu64(low, high, radix);
        let sum = _mm512_madd52lo_epu64(sum, quotient, self.negated);
        let sum = _mm512_and_si512(sum, self.mask);
        let sum = _mm512_min_epu64(sum, _mm512_sub_epi64(sum, _mm512_add_epi64(self.q, self.q)));
        _mm512_min_epu64(sum, _mm512_sub_epi64(sum, self.q))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn store(&self, low: __m512i, high: __m512i, out: &mut [u64]) {
        let out = &mut out[..8];
        // SAFETY: the slice is eight writable words.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), self.residue(low, high)) };
    }
}
