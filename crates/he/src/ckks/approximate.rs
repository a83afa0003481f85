//! Chebyshev interpolation: the polynomial close to a function on an interval, and how far it is
//! off.

use core::f64::consts::PI;

use super::polynomial::{Polynomial, samples};
use crate::error::{Error, Result};

/// The highest degree to interpolate at.
const MAX_DEGREE: usize = 1 << 12;

impl Polynomial {
    /// The polynomial of `degree` that equals `function` at the zeros of `T_(degree+1)` on
    /// `[low, high]`, in the Chebyshev basis.
    ///
    /// For a function analytic inside the ellipse with foci `low` and `high` whose axes, in units
    /// of half the interval, add up to `ρ > 1`, and of absolute value at most `M` there, the error
    /// on the interval is at most `4 M ρ^-degree / (ρ − 1)` (Trefethen, Approximation Theory and
    /// Approximation Practice, theorem 8.2). [`Self::largest_error`] measures it.
    ///
    /// # Errors
    /// [`Error::Range`] unless `low < high`, both finite, for degrees over 4096, or where the
    /// function is not finite.
    pub fn interpolate(
        function: impl Fn(f64) -> f64,
        low: f64,
        high: f64,
        degree: usize,
    ) -> Result<Self> {
        if degree > MAX_DEGREE {
            return Err(Error::Range {
                what: "the degree of an interpolation",
                expected: format!("at most {MAX_DEGREE}"),
                actual: degree.to_string(),
            });
        }
        let nodes = degree + 1;
        // cos(π k / 2n) for all k modulo 4n: every cosine below is one of them.
        let cosine: Vec<f64> =
            (0..4 * nodes).map(|k| (PI * k as f64 / (2 * nodes) as f64).cos()).collect();
        let at = |k: usize| low + (high - low) * (0.5 + 0.5 * cosine[2 * k + 1]);
        let values: Vec<f64> = (0..nodes).map(|k| function(at(k))).collect();
        let coefficient = |j: usize| {
            let terms = values.iter().enumerate();
            let sum: f64 = terms.map(|(k, f)| f * cosine[j * (2 * k + 1) % (4 * nodes)]).sum();
            sum * if j == 0 { 1.0 } else { 2.0 } / nodes as f64
        };
        Self::chebyshev(low, high, &(0..nodes).map(coefficient).collect::<Vec<_>>())
    }

    /// The largest `|function − polynomial|` at 16 points between any two neighbouring nodes of an
    /// interpolation of this degree on `[low, high]`, and at both ends. For smooth functions the
    /// error swings about once between nodes, so this is the maximum but for a few per cent.
    pub fn largest_error(&self, function: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
        samples(low, high, self.degree())
            .map(|x| (function(x) - self.evaluate(x)).abs())
            .fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_met_exactly() {
        let cubic = |x: f64| 1.0 - 2.0 * x + 3.0 * x * x - 0.5 * x * x * x;
        let p = Polynomial::interpolate(cubic, -2.0, 5.0, 3).unwrap();
        assert!(p.largest_error(cubic, -2.0, 5.0) < 1e-12);
        // On [-1, 1] the coefficients are known: 4x³ = T_3 + 3 T_1.
        let p = Polynomial::interpolate(|x| 4.0 * x.powi(3), -1.0, 1.0, 3).unwrap();
        for (c, expected) in p.coefficients().iter().zip([0.0, 3.0, 0.0, 1.0]) {
            assert!((c - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn errors_obey_their_bound() {
        // The exponential is entire; on the ellipse of ρ it is at most exp((ρ + 1/ρ)/2).
        for degree in [2usize, 5, 9, 12] {
            let p = Polynomial::interpolate(f64::exp, -1.0, 1.0, degree).unwrap();
            let bound = |rho: f64| {
                4.0 * (0.5 * (rho + 1.0 / rho)).exp() * rho.powi(-(degree as i32)) / (rho - 1.0)
            };
            let bound = (2..60).map(|rho| bound(f64::from(rho))).fold(f64::INFINITY, f64::min);
            let error = p.largest_error(f64::exp, -1.0, 1.0);
            assert!(error < bound + 1e-14, "degree {degree}: {error} over {bound}");
            assert!(error > bound / 100.0, "degree {degree}: {error} far below {bound}");
        }
    }

    #[test]
    fn refuses_what_is_not_finite() {
        assert!(Polynomial::interpolate(|x| 1.0 / x, -1.0, 1.0, 2).is_err());
        assert!(Polynomial::interpolate(f64::exp, 1.0, 1.0, 2).is_err());
        assert!(Polynomial::interpolate(f64::exp, 0.0, f64::INFINITY, 2).is_err());
        assert!(Polynomial::interpolate(f64::exp, 0.0, 1.0, 5000).is_err());
    }
}
