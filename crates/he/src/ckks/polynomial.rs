//! Polynomial with real coefficients in a basis of powers or of Chebyshev polynomials: depth,
//! values and quotients.

use super::Complex;
use crate::error::{Error, Result};
use core::f64::consts::PI;
use core::ops::{Add, SubAssign};

/// What the coefficients multiply.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Basis {
    /// `x^k`. For low degrees: at high ones coefficients and powers cancel, and precision with
    /// them.
    Power,
    /// The Chebyshev polynomials `T_k(u)`, where `u` runs from −1 at `low` to 1 at `high`. Outside
    /// of that interval values grow like the `degree`-th power of the distance: a slot outside of
    /// it, which nothing can detect, spoils that slot and, by wrapping around the modulus, possibly
    /// all.
    Chebyshev {
        /// The lower end of the interval.
        low: f64,
        /// The upper end.
        high: f64,
    },
}

/// A polynomial with real coefficients.
#[derive(Clone, PartialEq, Debug)]
pub struct Polynomial {
    pub(super) basis: Basis,
    pub(super) coefficients: Vec<f64>,
}

/// Multiplying by an integer costs no level, if it is not so large that it costs precision.
const FREE: f64 = 1024.0;
/// Numbers that a polynomial is taken of side by side.
const TOGETHER: usize = 8;
/// What the largest of samples may be over.
const SAMPLED: f64 = 1.01;

impl Polynomial {
    /// `Σ coefficients[k] x^k`.
    ///
    /// # Errors
    /// [`Error::Range`] for coefficients that are not finite.
    pub fn power(coefficients: &[f64]) -> Result<Self> {
        Self::new(Basis::Power, coefficients)
    }

    /// `Σ coefficients[k] T_k(u)`, see [`Basis::Chebyshev`].
    ///
    /// # Errors
    /// [`Error::Range`] for coefficients that are not finite, or unless `low < high`, both finite.
    pub fn chebyshev(low: f64, high: f64, coefficients: &[f64]) -> Result<Self> {
        if !(low < high && low.is_finite() && high.is_finite()) {
            return Err(Error::Range {
                what: "an interval",
                expected: "from a finite number up to a larger one".into(),
                actual: format!("[{low}, {high}]"),
            });
        }
        Self::new(Basis::Chebyshev { low, high }, coefficients)
    }

    fn new(basis: Basis, coefficients: &[f64]) -> Result<Self> {
        if let Some(place) = coefficients.iter().position(|c| !c.is_finite()) {
            return Err(Error::Range {
                what: "a coefficient of a polynomial",
                expected: "finite".into(),
                actual: format!("{} at degree {place}", coefficients[place]),
            });
        }
        Ok(Polynomial { basis, coefficients: trimmed(coefficients).to_vec() })
    }

    /// The basis.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// The coefficients, without leading zeros.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// The degree; 0 for the zero polynomial too.
    pub fn degree(&self) -> usize {
        self.coefficients.len().saturating_sub(1)
    }

    /// The levels that evaluation spends: `⌈log2(degree + 1)⌉`, and one for getting from `x` to `u`
    /// unless `2/(high − low)` is an integer.
    pub fn depth(&self) -> usize {
        match self.degree() {
            0 => 0,
            degree => depth_of(degree + 1) + usize::from(self.substitution().costs_a_level()),
        }
    }

    /// The value at `x` in double precision.
    pub fn evaluate(&self, x: f64) -> f64 {
        let [value] = self.evaluate_all(&[x]);
        value
    }

    /// The values at several numbers, which a processor works on side by side.
    fn evaluate_all<const COUNT: usize>(&self, x: &[f64; COUNT]) -> [f64; COUNT] {
        let mut value = [0.0; COUNT];
        match self.basis {
            Basis::Power => {
                for c in self.coefficients.iter().rev() {
                    value.iter_mut().zip(x).for_each(|(sum, x)| *sum = *sum * x + c);
                }
            }
            Basis::Chebyshev { .. } => {
                // Clenshaw: b_k = c_k + 2u b_(k+1) − b_(k+2), and the value is b_0 − u b_1.
                let substitution = self.substitution();
                let u = x.map(|x| substitution.evaluate(x));
                let mut before = value;
                for c in self.coefficients.iter().rev() {
                    let known = value;
                    let places = value.iter_mut().zip(&before).zip(&u);
                    places.for_each(|((b1, b2), u)| *b1 = c + 2.0 * u * *b1 - b2);
                    before = known;
                }
                value.iter_mut().zip(&before).zip(&u).for_each(|((b0, b1), u)| *b0 -= u * b1);
            }
        }
        value
    }

    /// The largest slope, in absolute value, at numbers of the interval up to `most` and up to `off`
    /// beyond; those of a Chebyshev basis are in its interval.
    pub(super) fn steepest(&self, most: f64, off: f64) -> f64 {
        let (low, high) = self.domain(most);
        let places: Vec<f64> = samples(low - off, high + off, self.degree()).collect();
        let slope = self.derivative();
        let (whole, rest) = places.as_chunks::<TOGETHER>();
        let most = whole.iter().map(|x| slope.largest(x)).fold(0.0, f64::max);
        SAMPLED * rest.iter().map(|&x| slope.largest(&[x])).fold(most, f64::max)
    }

    /// The largest of the values there, in absolute value.
    fn largest<const COUNT: usize>(&self, x: &[f64; COUNT]) -> f64 {
        let values = self.evaluate_all(x);
        values.into_iter().map(f64::abs).fold(0.0, f64::max)
    }

    /// Between which numbers those are that it is taken of, which are `most` at most.
    pub(super) fn domain(&self, most: f64) -> (f64, f64) {
        match self.basis {
            Basis::Power => (-most, most),
            Basis::Chebyshev { low, high } => (low.max(-most).min(high), high.min(most).max(low)),
        }
    }

    fn derivative(&self) -> Polynomial {
        let c = &self.coefficients;
        let degree = self.degree();
        let mut slope = vec![0.0; degree + 2];
        match self.basis {
            Basis::Power => (1..=degree).for_each(|k| slope[k - 1] = k as f64 * c[k]),
            Basis::Chebyshev { .. } => {
                // d_(k-1) = d_(k+1) + 2k c_k, and half of that for k = 1.
                for k in (1..=degree).rev() {
                    slope[k - 1] = slope[k + 1] + 2.0 * k as f64 * c[k];
                }
                slope[0] *= 0.5;
                let factor = self.substitution().factor;
                slope.iter_mut().for_each(|one| *one *= factor);
            }
        }
        Polynomial { basis: self.basis, coefficients: trimmed(&slope).to_vec() }
    }

    /// From `x` to what the basis elements take.
    pub(super) fn substitution(&self) -> Substitution {
        match self.basis {
            Basis::Power => Substitution { factor: 1.0, summand: 0.0 },
            Basis::Chebyshev { low, high } => {
                Substitution { factor: 2.0 / (high - low), summand: -(high + low) / (high - low) }
            }
        }
    }
}

/// `factor x + summand`.
#[derive(Clone, Copy)]
pub(super) struct Substitution {
    pub factor: f64,
    pub summand: f64,
}

impl Substitution {
    fn evaluate(self, x: f64) -> f64 {
        self.factor * x + self.summand
    }

    pub fn costs_a_level(self) -> bool {
        self.factor.fract() != 0.0 || self.factor > FREE
    }
}

/// `⌈log2 n⌉`.
pub(super) fn depth_of(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}

/// What elements of a basis are multiplied by: real numbers, or complex ones where slots are.
pub(super) trait Coefficient:
    Copy + Default + PartialEq + Add<Output = Self> + SubAssign + Into<Complex>
{
}

impl Coefficient for f64 {}
impl Coefficient for Complex {}

/// Whether a coefficient is 0.
pub(super) fn is_zero<C: Coefficient>(c: C) -> bool {
    c == C::default()
}

pub(super) fn trimmed<C: Coefficient>(coefficients: &[C]) -> &[C] {
    let length = coefficients.iter().rposition(|&c| !is_zero(c)).map_or(0, |last| last + 1);
    &coefficients[..length]
}

/// `(q, r)` with `c = q B + r`, `B` the basis element of degree `m`, for `m` up to the degree and
/// above half of it.
pub(super) fn divide<C: Coefficient>(basis: Basis, c: &[C], m: usize) -> (Vec<C>, Vec<C>) {
    let (low, high) = c.split_at(m);
    let (mut quotient, mut rest) = (high.to_vec(), low.to_vec());
    if let Basis::Chebyshev { .. } = basis {
        // T_(m+i) = 2 T_m T_i − T_(m−i).
        for i in 1..quotient.len() {
            rest[m - i] -= quotient[i];
            quotient[i] = quotient[i] + quotient[i];
        }
    }
    (quotient, rest)
}

/// Points of `[low, high]`, as dense as the nodes of `degree` are and 16 times as many.
pub(super) fn samples(low: f64, high: f64, degree: usize) -> impl Iterator<Item = f64> {
    let count = 16 * (degree + 1);
    (0..=count).map(move |k| {
        let cosine = (PI * k as f64 / count as f64).cos();
        (low + (high - low) * (0.5 + 0.5 * cosine)).clamp(low, high)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_is_exact() {
        let coefficients: Vec<f64> = (0..12).map(|k| f64::from(k * k % 7) - 3.0).collect();
        for basis in [Basis::Power, Basis::Chebyshev { low: -1.0, high: 1.0 }] {
            let whole = Polynomial::new(basis, &coefficients).unwrap();
            let (q, r) = divide(basis, &coefficients, 8);
            let mut divisor = vec![0.0; 9];
            divisor[8] = 1.0;
            let part = |c: &[f64]| Polynomial::new(basis, c).unwrap();
            let (q, r, b) = (part(&q), part(&r), part(&divisor));
            for x in [-1.0, -0.3, 0.0, 0.7, 1.0] {
                let value = q.evaluate(x) * b.evaluate(x) + r.evaluate(x);
                assert!((value - whole.evaluate(x)).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn slopes_are_those_of_the_polynomial() {
        let coefficients: Vec<f64> = (0..12).map(|k| f64::from(k * k % 7) - 3.0).collect();
        for basis in [Basis::Power, Basis::Chebyshev { low: -0.5, high: 1.5 }] {
            let p = Polynomial::new(basis, &coefficients).unwrap();
            let slope = p.derivative();
            for x in [-0.5, -0.3, 0.0, 0.7, 1.2] {
                let rise = (p.evaluate(x + 1e-6) - p.evaluate(x - 1e-6)) / 2e-6;
                assert!((slope.evaluate(x) - rise).abs() < 1e-5 * (1.0 + rise.abs()), "{basis:?}");
            }
        }
        // T_7 is steepest at the ends, 49; x² at 3 and what it is off by.
        let mut seventh = vec![0.0; 8];
        seventh[7] = 1.0;
        let t7 = Polynomial::chebyshev(-1.0, 1.0, &seventh).unwrap();
        assert!((t7.steepest(1.0, 0.0) / 49.0 - 1.0).abs() < 2e-2);
        let square = Polynomial::power(&[0.0, 0.0, 1.0]).unwrap();
        assert!((square.steepest(3.0, 0.5) / 7.0 - 1.0).abs() < 2e-2);
        assert_eq!(Polynomial::power(&[2.0]).unwrap().steepest(3.0, 0.5), 0.0);
    }

    #[test]
    fn depth_is_the_least() {
        for (degree, depth) in [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (31, 5), (32, 6)] {
            let mut coefficients = vec![0.0; degree + 1];
            coefficients[degree] = 1.0;
            assert_eq!(Polynomial::power(&coefficients).unwrap().depth(), depth);
            // To [-1, 1] and [0, 2] and [0, 1] by integers; to [0, 3] by 2/3.
            for (low, high, more) in [(-1.0, 1.0, 0), (0.0, 2.0, 0), (0.0, 1.0, 0), (0.0, 3.0, 1)] {
                let polynomial = Polynomial::chebyshev(low, high, &coefficients).unwrap();
                assert_eq!(polynomial.depth(), depth + more);
            }
        }
        assert_eq!(Polynomial::power(&[2.0, 0.0, 0.0]).unwrap().depth(), 0);
    }
}
