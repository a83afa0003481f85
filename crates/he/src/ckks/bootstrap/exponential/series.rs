//! Chebyshev series of a multiple of exp(2πi x) on a range of x, and its evaluation. Server only.
//!
//! exp(i a u) = Σ (2 − δ_k) i^k J_k(a) T_k(u): one Chebyshev series with complex coefficients, of
//! the cosine in its even terms and of the sine in its odd ones. With r squarings a = 2πK/2^r, and
//! (exp(2πi x/2^r))^(2^r) follows (docs/ckks.md, section 11.2).
//!
//! # Degree and levels
//!
//! With a = 2πK/2^r,
//!
//! ```text
//! exp(i a u) = J_0(a) + Σ 2 i^k J_k(a) T_k(u),        exp(2πi x) = exp(i a x/K)^(2^r).
//! ```
//!
//! One series with complex coefficients: a complex constant is a polynomial a + b X^(N/2) and costs
//! what a real one does. It ends where what is left is half of what the first rescale does to the
//! result. For K = 16 and an error of 2^−30, r = 0 takes degree 135, 8 levels and 19
//! relinearisations, and a rescale's error has 2610 times its size at most; r = 3, which the sets
//! use, degree 31, 8 levels, 13, and 347 times. A root has modulus 1, so the coefficients are
//! multiplied by f with f^(2^r) the ratio between what the ladder leaves and the canonical scale
//! below.

use super::super::super::Complex;
use super::super::super::operations::Operations;
use super::super::super::polynomial::Basis;
use super::super::super::polynomial_evaluation::{block, depth, evaluate_all};
use super::super::trace::{Trace, Traced};
use crate::error::{Error, Result};
use core::f64::consts::{PI, TAU};

/// Points that a series is interpolated at: well beyond any degree that comes out.
const NODES: usize = 1024;
/// Points between two integers that errors are looked at.
const POINTS: u32 = 4;
const BASIS: Basis = Basis::Chebyshev { low: -1.0, high: 1.0 };

/// How x becomes a root of unity.
#[derive(Clone, Debug)]
pub(in super::super) struct ExponentialSeries {
    /// K: |x| is at most this.
    range: f64,
    doublings: u32,
    /// What exp(2πi x) is multiplied by in the result.
    size: f64,
    /// Of u = x/K in [−1, 1].
    coefficients: Vec<Complex>,
}

impl ExponentialSeries {
    /// The shortest series whose result is off by at most `tolerance`.
    pub fn new(range: f64, doublings: u32, tolerance: f64) -> Result<Self> {
        let angle = TAU * range / f64::exp2(f64::from(doublings));
        let node = |j: usize| (j as f64 + 0.5) * PI / NODES as f64;
        let values: Vec<(f64, f64)> =
            (0..NODES).map(|j| (angle * node(j).cos()).sin_cos()).collect();
        let coefficient = |k: usize| {
            let terms = values.iter().enumerate().map(|(j, &(sine, cosine))| {
                (if k.is_multiple_of(2) { cosine } else { sine }) * (k as f64 * node(j)).cos()
            });
            let value = terms.sum::<f64>() * if k == 0 { 1.0 } else { 2.0 } / NODES as f64;
            if k.is_multiple_of(2) { Complex::new(value, 0.0) } else { Complex::new(0.0, value) }
        };
        let mut coefficients: Vec<Complex> = (0..NODES / 2).map(coefficient).collect();
        // A squaring doubles what is wrong.
        let tolerance = tolerance / f64::exp2(f64::from(doublings));
        let mut left = 0.0;
        while let Some(last) = coefficients.last() {
            left += last.norm();
            if left > tolerance {
                break;
            }
            coefficients.pop();
        }
        if (2..NODES / 2).contains(&coefficients.len()) {
            return Ok(ExponentialSeries { range, doublings, size: 1.0, coefficients });
        }
        Err(Error::Range {
            what: "the series of an exponential",
            expected: format!("a tolerance that {} terms reach, and below 1", NODES / 2),
            actual: format!("{tolerance:e}"),
        })
    }

    /// The same with `size` exp(2πi x) for its result: no level is spent on that.
    pub fn with_size(mut self, size: f64) -> Self {
        let factor = (size / self.size).powf(f64::exp2(-f64::from(self.doublings)));
        self.coefficients.iter_mut().for_each(|c| *c *= factor);
        ExponentialSeries { size, ..self }
    }

    /// The levels that it spends.
    pub fn levels(&self) -> usize {
        depth(&[&self.coefficients[..]]) + self.doublings as usize
    }

    /// The degree of the series.
    #[cfg(test)]
    pub fn degree(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// How often it switches keys.
    pub fn relinearisations(&self) -> usize {
        block(BASIS, &[&self.coefficients[..]]).1.switches + self.doublings as usize
    }

    /// From u = x/K to the result; of degree 1 and rescaled.
    pub fn apply<O: Operations>(&self, operations: &O, u: &O::Value) -> Result<O::Value> {
        let series = [&self.coefficients[..]];
        let mut values = evaluate_all(operations, u.clone(), BASIS, &series)?;
        let mut size = self.size.powf(f64::exp2(-f64::from(self.doublings)));
        let mut value = operations.with_magnitude(values.swap_remove(0), size)?;
        for _ in 0..self.doublings {
            size *= size;
            value = operations.normalise(&operations.square(&value)?)?;
            value = operations.with_magnitude(value, size)?;
        }
        Ok(value)
    }

    /// Points of the range, and what errors do to exp(2πi x) at each: the result over its size, less
    /// the exponential.
    pub fn at_points(&self, level: usize) -> Result<(Vec<f64>, Traced, Vec<usize>)> {
        let last = (self.range * f64::from(POINTS)).floor() as i32;
        let points: Vec<f64> = (-last..=last).map(|k| f64::from(k) / f64::from(POINTS)).collect();
        let values = points.iter().map(|x| (x / self.range).into()).collect();
        let trace = Trace::default();
        let traced = self.apply(&trace, &trace.input(level, values))?;
        let roots = points.iter().map(|x| Complex::cis(TAU * x));
        Ok((points.clone(), traced.over(self.size).less(roots), trace.levels()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_the_exponential() {
        // The table of docs/ckks.md, 11.2, at sizes that must not matter.
        for (doublings, size, degree, levels, switches, gain) in [
            (0, 1.0, 135, 8, 19, 2610.0),
            (1, 0.25, 78, 8, 16, 1305.0),
            (2, 1.0, 48, 8, 14, 653.0),
            (3, 0.01, 31, 8, 13, 347.0),
            (4, 2.0, 22, 9, 12, 171.0),
        ] {
            let series = ExponentialSeries::new(16.0, doublings, f64::exp2(-30.0)).unwrap();
            let found = (series.degree(), series.levels(), series.relinearisations());
            assert_eq!(found, (degree, levels, switches), "{doublings} squarings");
            let (points, traced, _) = series.clone().with_size(size).at_points(20).unwrap();
            let largest = traced.values.iter().fold(0.0f64, |most, y| most.max(y.norm()));
            let worst = (0..points.len()).map(|k| traced.by_rescales(k)).fold(0.0, f64::max);
            assert!((worst / gain - 1.0).abs() < 0.01, "{doublings} squarings: {worst}");
            assert!(largest < f64::exp2(-30.0), "{doublings}: {largest:e}");
            for (point, x) in points.iter().enumerate() {
                let slope = traced.by_input(point) / (Complex::cis(TAU * x) * TAU * 16.0);
                assert!((slope - Complex::i()).norm() < 1e-5, "{doublings}: {slope} at {x}");
            }
        }
        assert!(ExponentialSeries::new(16.0, 0, 0.0).is_err());
        assert!(ExponentialSeries::new(16.0, 0, 1e9).is_err());
    }
}
