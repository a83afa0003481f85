//! Failure of a bootstrapping: the chance that a coefficient is beyond the range of the reduction.
//!
//! Raised from q_0, a coefficient is x q_0 with x = (c_0 + Σ ± c_1)/q_0 over the coefficients of c_1
//! that the sparse secret meets: a sum of independent numbers uniform in [−1/2, 1/2], h + 1 of them
//! in the standard ring and up to 2h + 1 in the conjugate-invariant one (docs/ckks.md, sections 10.2
//! and 10.8).
//!
//! # Range in the conjugate-invariant ring
//!
//! Coefficient k of a product a s meets each s_j twice, by a_(k−j) and a_(k+j): x is a sum of 2h +
//! 1 = 65 uniform numbers, of deviation √(65/12) = 2.33, never above 32.5. The constant coefficient
//! is c_0 + 2 Σ ± c_j: 32 of them doubled. It decides: |x| > K has at most the chance of |Σ_32| >
//! K/2 − 1/4, which for K = 31 is
//!
//! ```text
//! 2 (3/4)^32 / 32! = 2^−129.9 ,
//! ```
//!
//! and all other coefficients together add 2^−247 at N = 2^16. At K = 31 what is like a sine has
//! degree 255 in 8 levels, what is straight 511 in 9.

use super::super::spec::Ring;
use super::spec::WEIGHT;

/// The most terms that a coefficient is the sum of, under the sparse secret.
pub(super) const fn terms(ring: Ring) -> u32 {
    match ring {
        Ring::Standard => WEIGHT as u32 + 1,
        Ring::ConjugateInvariant => 2 * WEIGHT as u32 + 1,
    }
}

/// The standard deviation of a coefficient.
pub(super) fn deviation(ring: Ring) -> f64 {
    (f64::from(terms(ring)) / 12.0).sqrt()
}

/// log2 of a bound on the chance that any of 2^`log_coefficients` coefficients exceeds `range`, by the
/// sum over all.
///
/// In the conjugate-invariant ring the constant coefficient meets each coefficient of c_1 twice: it
/// is twice a sum of h terms and another one, which is at most 1/2.
pub(super) fn lost_log2(ring: Ring, range: f64, log_coefficients: u32) -> f64 {
    let all = tail_log2(terms(ring), range) + f64::from(log_coefficients);
    match ring {
        Ring::Standard => all,
        Ring::ConjugateInvariant => {
            let constant = tail_log2(WEIGHT as u32, range / 2.0 - 0.25);
            let larger = all.max(constant);
            if larger == f64::NEG_INFINITY {
                return larger;
            }
            larger + ((all - larger).exp2() + (constant - larger).exp2()).log2()
        }
    }
}

/// log2 of the chance that the absolute value of a sum of `terms` numbers, independent and uniform
/// in [−1/2, 1/2], exceeds `range`.
///
/// The distribution of the sum of n numbers uniform in [0, 1] (Irwin and Hall) obeys
/// n F_n(y) = y F_(n−1)(y) + (n − y) F_(n−1)(y − 1), in which all terms are positive, so that the
/// tail has nearly all digits of a double however small it is. Both tails are the same.
pub(super) fn tail_log2(terms: u32, range: f64) -> f64 {
    let rest = f64::from(terms) / 2.0 - range;
    // F_n at rest, rest − 1, ….
    let places = |k: u32| rest - f64::from(k);
    let mut chances: Vec<f64> = (0..terms).map(|k| places(k).clamp(0.0, 1.0)).collect();
    for n in 2..=terms {
        let count = f64::from(n);
        for k in 0..(terms - n + 1) as usize {
            let y = places(k as u32);
            let sum = y * chances[k] + (count - y) * chances[k + 1];
            chances[k] = if y <= 0.0 {
                0.0
            } else if y >= count {
                1.0
            } else {
                sum / count
            };
        }
    }
    (2.0 * chances[0]).min(1.0).log2()
}

/// The chance that the sum lies between `centre` − 1/2 and `centre` + 1/2, by the normal density of
/// the same variance: for averages, not for tails.
pub(super) fn weight(terms: u32, centre: f64) -> f64 {
    let variance = f64::from(terms) / 12.0;
    (-centre * centre / (2.0 * variance)).exp() / (core::f64::consts::TAU * variance).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_a_sum() {
        // Two numbers: P(|x| > 3/4) = (1/4)² with both tails.
        assert!((tail_log2(2, 0.75) + 4.0).abs() < 1e-12);
        // Three: P(|x| > 1) = 2 (1/2)³/6; four at 5/4: 2 (3/4)⁴/24.
        assert!((tail_log2(3, 1.0) - (1.0f64 / 24.0).log2()).abs() < 1e-12);
        assert!((tail_log2(4, 1.25) - (0.75f64.powi(4) / 12.0).log2()).abs() < 1e-12);
        // Eight at 2.25: (y⁸ − 8 (y − 1)⁸)/8! with y = 1.75, twice.
        let exact = (1.75f64.powi(8) - 8.0 * 0.75f64.powi(8)) / 20_160.0;
        assert!((tail_log2(8, 2.25) - exact.log2()).abs() < 1e-12);
        // And where alternating sums have lost all digits: half of them lie within 0.67 deviations.
        assert!((tail_log2(33, 0.6745 * 2.75f64.sqrt()) + 1.0).abs() < 0.01);
        assert_eq!(tail_log2(33, 17.0), f64::NEG_INFINITY);
        assert_eq!(tail_log2(33, 0.0), 0.0);
    }

    /// 32 coefficients and a range of 16: below 2^-154 each, and so below 2^-138 at degree 2^16.
    #[test]
    fn a_range_of_sixteen_is_enough_for_a_weight_of_thirty_two() {
        let one = tail_log2(33, 16.0);
        assert!((-155.0..-154.0).contains(&one), "{one}");
        assert!(one + 16.0 < -138.0);
        let exact = 33.0 * 0.5f64.log2() + 1.0 - (1..=33).map(|k| f64::from(k).log2()).sum::<f64>();
        assert!((one - exact).abs() < 1e-9);
    }

    /// 65 terms leave 16 far more often than 33. The constant coefficient has 32 terms twice and one,
    /// which exceed 31 only where all are near their ends.
    #[test]
    fn a_range_of_thirty_one_is_enough_where_coefficients_meet_twice() {
        let ring = Ring::ConjugateInvariant;
        let lost = |range: f64| lost_log2(ring, range, 16);
        assert!((-22.0..-10.0).contains(&lost(16.0)), "{}", lost(16.0));
        // The 32 terms exceed 15.25 where what they are short of their ends is below 0.75.
        let factorial: f64 = (1..=32).map(|k| f64::from(k).log2()).sum();
        let constant = 1.0 + 32.0 * 0.75f64.log2() - factorial;
        assert!((lost(31.0) - constant).abs() < 1e-6, "{}", lost(31.0));
        assert!(lost(30.0) > -128.0 && lost(31.0) < -129.0);
        assert_eq!(lost(33.0), f64::NEG_INFINITY);
        assert!((deviation(ring) - (65.0f64 / 12.0).sqrt()).abs() < 1e-15);
        // Of one term twice and another, |2u + v| > 1 with a chance of 1/4; the bound says 1/2.
        let chance = tail_log2(1, 0.25).exp2();
        assert!((0.25..=0.5).contains(&chance), "{chance}");
    }

    #[test]
    fn weights_add_up_to_one() {
        let sum: f64 = (-16..=16).map(|k| weight(33, f64::from(k))).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
