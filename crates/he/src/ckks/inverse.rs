//! Inverses and inverse square roots of encrypted numbers of an interval. Server only.
//!
//! A polynomial makes the start, iterations square its error. What counts is the residual,
//! `e = 1 − xy` or `e = 1 − xy²`.
//!
//! **Inverse.** The start `p` has the residual `1 − x p(x) = T_(d+1)(u) / T_(d+1)(u_0)`, `u`
//! running from −1 to 1 over the interval and `u_0 = u(0)`: of all polynomials of degree `d` none
//! has a smaller largest residual, because that of any is 1 at 0. It is
//! `δ = 1 / cosh((d + 1) arcosh|u_0|)`. Newton's step `y(2 − xy)` is `y(1 + e)` and takes `e` to
//! `e²`: with `e` squared beside it, a step costs one level after one for the first `e`.
//!
//! **Inverse square root.** The start interpolates `x^(-1/2)`; its largest residual is found by
//! sampling. Newton's step `y(3 − xy²)/2`, as `3/2 y − (x/2 y) y²`, costs two levels and takes `e`
//! to `e²(3 + e)/4`, at most `e²` for `|e| ≤ 1`. The relative error `|1 − √x y| = |1 − √(1−e)|` is
//! at most `|e|`.
//!
//! Numbers outside of the interval give results that mean nothing, as for every polynomial; nothing
//! on the server can see them. Only a declared magnitude below the interval is refused.

use super::ciphertext::Ciphertext;
use super::evaluate::Evaluator;
use super::operations::Estimates;
use super::polynomial::{Polynomial, samples};
use super::polynomial_evaluation::evaluate;
use crate::error::{Error, Result};

/// Starts have degree `2^k − 1` with `k` up to this.
const MOST_DEPTH: u32 = 8;
const MOST_STEPS: usize = 6;
/// Residuals from which iterations start: below this a Newton step of either kind squares them,
/// with room for noise.
const START: f64 = 0.9;

/// A start and a number of steps.
#[derive(Clone, Debug)]
struct Iteration {
    start: Polynomial,
    low: f64,
    /// Largest residual before each step, and after the last.
    residuals: Vec<f64>,
}

impl Iteration {
    /// The shallowest choice whose residual is at most `2^-bits`; of equally deep ones, that with
    /// the smallest start.
    fn new(
        [low, high]: [f64; 2],
        bits: u32,
        start: impl Fn(usize) -> Result<(Polynomial, f64)>,
        step: impl Fn(f64) -> f64,
        levels: impl Fn(usize) -> usize,
    ) -> Result<Self> {
        if !(low > 0.0 && low < high && high.is_finite()) {
            return Err(Error::Range {
                what: "an interval",
                expected: "of positive numbers, the first below the second".into(),
                actual: format!("[{low}, {high}]"),
            });
        }
        let goal = (-f64::from(bits)).exp2();
        let mut best: Option<(usize, Self)> = None;
        for log in 1..=MOST_DEPTH {
            let (start, residual) = start((1 << log) - 1)?;
            if residual > START {
                continue;
            }
            let mut residuals = vec![residual];
            while residuals[residuals.len() - 1] > goal && residuals.len() <= MOST_STEPS {
                residuals.push(step(residuals[residuals.len() - 1]));
            }
            let depth = start.depth() + levels(residuals.len() - 1);
            let reached = residuals[residuals.len() - 1] <= goal;
            if reached && best.as_ref().is_none_or(|(least, _)| depth < *least) {
                best = Some((depth, Iteration { start, low, residuals }));
            }
        }
        best.map(|(_, iteration)| iteration).ok_or_else(|| Error::Range {
            what: "the precision of an inverse",
            expected: format!("within reach on [{low}, {high}] from a start of degree 255"),
            actual: format!("{bits} bits"),
        })
    }

    fn steps(&self) -> usize {
        self.residuals.len() - 1
    }

    fn error(&self) -> f64 {
        self.residuals[self.steps()]
    }

    /// Refuses a number whose declared bound is below the interval.
    fn check<O: Estimates>(&self, operations: &O, x: &O::Value, depth: usize) -> Result<()> {
        let (magnitude, level) = (operations.magnitude(x), operations.level(x));
        if magnitude < self.low {
            return Err(Error::Range {
                what: "the declared magnitude of a number to invert",
                expected: format!("at least {}, where the interval begins", self.low),
                actual: magnitude.to_string(),
            });
        }
        if level < depth {
            return Err(Error::Level {
                operation: "an inverse",
                needed: format!("{depth} levels"),
                left: format!("{level} are"),
            });
        }
        Ok(())
    }
}

/// How to invert numbers of an interval.
#[derive(Clone, Debug)]
pub struct Inverse(Iteration);

impl Inverse {
    /// For numbers in `[low, high]`, to a relative error of `2^-bits` before noise, in the fewest
    /// levels.
    ///
    /// # Errors
    /// [`Error::Range`] unless `0 < low < high`, both finite, or where a start of degree 255 is not
    /// good enough.
    pub fn new(low: f64, high: f64, bits: u32) -> Result<Self> {
        let center = (high + low) / (high - low);
        let start = |degree: usize| {
            // T_n outside of [-1, 1], with the sign of T_n(-center).
            let top = (degree + 1) as f64;
            let sign = if degree % 2 == 1 { 1.0 } else { -1.0 };
            let ratio = sign / (top * center.acosh()).cosh();
            let function = |x: f64| {
                let u = (2.0 * x - high - low) / (high - low);
                (1.0 - ratio * (top * u.clamp(-1.0, 1.0).acos()).cos()) / x
            };
            Ok((Polynomial::interpolate(function, low, high, degree)?, ratio.abs()))
        };
        let levels = |steps: usize| if steps == 0 { 0 } else { steps + 1 };
        Iteration::new([low, high], bits, start, |e| e * e, levels).map(Inverse)
    }

    /// The levels that it spends.
    pub fn depth(&self) -> usize {
        let steps = self.0.steps();
        self.0.start.depth() + if steps == 0 { 0 } else { steps + 1 }
    }

    /// The bound on the relative error on the interval, before noise.
    pub fn relative_error(&self) -> f64 {
        self.0.error()
    }
}

/// How to take inverse square roots of numbers of an interval: for normalising vectors, of their
/// squared norms.
#[derive(Clone, Debug)]
pub struct InverseSquareRoot(Iteration);

impl InverseSquareRoot {
    /// For numbers in `[low, high]`, to a relative error of `2^-bits` before noise, in the fewest
    /// levels.
    ///
    /// # Errors
    /// As [`Inverse::new`].
    pub fn new(low: f64, high: f64, bits: u32) -> Result<Self> {
        let start = |degree: usize| {
            let start = Polynomial::interpolate(|x| x.sqrt().recip(), low, high, degree)?;
            let residual = |x: f64| (1.0 - x * start.evaluate(x).powi(2)).abs();
            // Between samples the residual may be a little higher.
            let largest = samples(low, high, degree).map(residual).fold(0.0, f64::max) * 1.02;
            Ok((start, largest))
        };
        let step = |e: f64| e * e * (3.0 + e) / 4.0;
        Iteration::new([low, high], bits, start, step, |steps| 2 * steps).map(InverseSquareRoot)
    }

    /// The levels that it spends.
    pub fn depth(&self) -> usize {
        self.0.start.depth() + 2 * self.0.steps()
    }

    /// The bound on the relative error on the interval, before noise.
    pub fn relative_error(&self) -> f64 {
        self.0.error()
    }
}

impl Evaluator {
    /// `1/x` in every slot, [`Inverse::depth`] levels lower.
    ///
    /// # Errors
    /// [`Error::Level`] if fewer levels are left, [`Error::MissingKey`] without the relinearisation
    /// key, [`Error::Range`] if the declared magnitude of `x` is below the interval.
    pub fn inverse(&self, x: &Ciphertext, inverse: &Inverse) -> Result<Ciphertext> {
        invert(self, x, inverse)
    }

    /// `1/√x` in every slot, [`InverseSquareRoot::depth`] levels lower.
    ///
    /// # Errors
    /// As [`Self::inverse`].
    pub fn inverse_square_root(
        &self,
        x: &Ciphertext,
        root: &InverseSquareRoot,
    ) -> Result<Ciphertext> {
        invert_root(self, x, root)
    }
}

/// `1/x` in every slot.
pub(super) fn invert<O: Estimates>(
    operations: &O,
    x: &O::Value,
    inverse: &Inverse,
) -> Result<O::Value> {
    let x = operations.normalise(x)?;
    inverse.0.check(operations, &x, inverse.depth())?;
    let most = |residual: f64| (1.0 + residual) / inverse.0.low;
    let (residuals, steps) = (&inverse.0.residuals, inverse.0.steps());
    let y = evaluate(operations, &x, &inverse.0.start)?;
    let mut y = operations.with_magnitude(y, most(residuals[0]))?;
    if steps == 0 {
        return Ok(y);
    }
    let product = operations.negate(&mul(operations, &x, &y)?);
    let rest = operations.add_scalar(&product, 1.0)?;
    let mut rest = operations.with_magnitude(rest, residuals[0])?;
    for (left, &residual) in (0..steps).rev().zip(&residuals[1..]) {
        let factor = operations.add_scalar(&rest, 1.0)?;
        y = operations.with_magnitude(mul(operations, &y, &factor)?, most(residual))?;
        if left > 0 {
            rest = operations.normalise(&operations.square(&rest)?)?;
        }
    }
    Ok(y)
}

/// `1/√x` in every slot.
pub(super) fn invert_root<O: Estimates>(
    operations: &O,
    x: &O::Value,
    root: &InverseSquareRoot,
) -> Result<O::Value> {
    let x = operations.normalise(x)?;
    root.0.check(operations, &x, root.depth())?;
    let most = |residual: f64| ((1.0 + residual) / root.0.low).sqrt();
    let residuals = &root.0.residuals;
    let y = evaluate(operations, &x, &root.0.start)?;
    let mut y = operations.with_magnitude(y, most(residuals[0]))?;
    if root.0.steps() == 0 {
        return Ok(y);
    }
    let half = operations.mul_scalar(&x, 0.5)?;
    for &residual in &residuals[1..] {
        let square = operations.normalise(&operations.square(&y)?)?;
        let product = operations.multiply(&mul(operations, &half, &y)?, &square)?;
        // At the level of the product, and by its own rule at the scale of it.
        let same = operations.drop_to(&y, operations.level(&product))?;
        let more = operations.multiply_scalar(&same, 1.5)?;
        let next = operations.normalise(&operations.sub(&more, &product)?)?;
        y = operations.with_magnitude(next, most(residual))?;
    }
    Ok(y)
}

fn mul<O: Estimates>(operations: &O, a: &O::Value, b: &O::Value) -> Result<O::Value> {
    operations.normalise(&operations.multiply(a, b)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_have_the_residual_they_claim() {
        for (low, high) in [(0.5, 2.0), (0.01, 1.0), (3.0, 300.0)] {
            for bits in [4, 10, 25] {
                let Iteration { start, residuals, .. } = Inverse::new(low, high, bits).unwrap().0;
                let residual = |x: f64| (1.0 - x * start.evaluate(x)).abs();
                let points = samples(low, high, start.degree());
                let largest = points.map(residual).fold(0.0, f64::max);
                assert!(largest <= residuals[0] * (1.0 + 1e-6) + 1e-12);
                assert!(largest >= residuals[0] * 0.999 - 1e-12, "the ripples reach the bound");
            }
        }
    }

    #[test]
    fn errors_are_what_was_asked_for() {
        for bits in [8u32, 20] {
            let (inverse, root) = (
                Inverse::new(0.1, 1.0, bits).unwrap(),
                InverseSquareRoot::new(0.1, 1.0, bits).unwrap(),
            );
            for k in 0..=1000 {
                let x = 0.1 + 0.9 * f64::from(k) / 1000.0;
                let mut y = inverse.0.start.evaluate(x);
                (0..inverse.0.steps()).for_each(|_| y *= 2.0 - x * y);
                assert!((1.0 - x * y).abs() <= inverse.relative_error() + 1e-12);
                let mut y = root.0.start.evaluate(x);
                (0..root.0.steps()).for_each(|_| y *= 1.5 - 0.5 * x * y * y);
                assert!((1.0 - x.sqrt() * y).abs() <= root.relative_error() + 1e-12);
            }
            assert!(inverse.relative_error() <= f64::from(bits).exp2().recip());
        }
    }

    #[test]
    fn refuses_intervals_with_zero() {
        for (low, high) in [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, f64::NAN), (1.0, 1.0)] {
            assert!(Inverse::new(low, high, 10).is_err());
            assert!(InverseSquareRoot::new(low, high, 10).is_err());
        }
        // A condition of 10^9 is beyond a start of degree 255.
        assert!(Inverse::new(1e-9, 1.0, 10).is_err());
    }
}
