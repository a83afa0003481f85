//! Polynomial evaluation: a ciphertext enters, the value in every slot leaves. Server only.
//!
//! Depth is `⌈log2(degree + 1)⌉`, coefficients included, which is the least that products of two
//! allow. A polynomial of degree `d ≥ 2^j` is `q B + r` with `B` of degree `2^j` from the basis:
//! `q` may be one level less deep than the whole, `r` as deep. Below a block length a polynomial is
//! a sum of basis elements times numbers (Paterson and Stockmeyer's baby steps), if those elements
//! are shallow enough for the level that the numbers cost; only on the path of leading quotients
//! they are not, and there the division goes on. Products and numbers times elements meet at the
//! same scale, so a whole sum `Σ q B + block` is relinearised and rescaled once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ciphertext::Ciphertext;
use super::evaluate::Evaluator;
use crate::error::{Error, Result};

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
    basis: Basis,
    coefficients: Vec<f64>,
}

/// Multiplying by an integer costs no level, if it is not so large that it costs precision.
const FREE: f64 = 1024.0;

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
        match self.basis {
            Basis::Power => self.coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c),
            Basis::Chebyshev { .. } => {
                // Clenshaw: b_k = c_k + 2u b_(k+1) − b_(k+2), and the value is b_0 − u b_1.
                let u = self.substitution().evaluate(x);
                let step = |(b1, b2): (f64, f64), c: &f64| (c + 2.0 * u * b1 - b2, b1);
                let (b0, b1) = self.coefficients.iter().rev().fold((0.0, 0.0), step);
                b0 - u * b1
            }
        }
    }

    /// From `x` to what the basis elements take.
    fn substitution(&self) -> Substitution {
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
struct Substitution {
    factor: f64,
    summand: f64,
}

impl Substitution {
    fn evaluate(self, x: f64) -> f64 {
        self.factor * x + self.summand
    }

    fn costs_a_level(self) -> bool {
        self.factor.fract() != 0.0 || self.factor > FREE
    }
}

/// `⌈log2 n⌉`.
fn depth_of(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}

fn trimmed(coefficients: &[f64]) -> &[f64] {
    let length = coefficients.iter().rposition(|&c| c != 0.0).map_or(0, |last| last + 1);
    &coefficients[..length]
}

/// The block length, as a power of two, with the fewest products for a dense polynomial of this
/// degree: elements of the basis, divisors, quotients, and the divisions that go on inside the
/// leading block.
fn block_log(degree: usize) -> usize {
    let top = depth_of(degree + 1);
    let cost = |log: usize| (1 << log) + (top - log) + (degree >> log) + log;
    (1..=top.max(1)).min_by_key(|&log| cost(log.min(top))).unwrap_or(1)
}

/// `(q, r)` with `c = q B + r`, `B` the basis element of degree `m`, for `m` up to the degree and
/// above half of it.
fn divide(basis: Basis, c: &[f64], m: usize) -> (Vec<f64>, Vec<f64>) {
    let (low, high) = c.split_at(m);
    let (mut quotient, mut rest) = (high.to_vec(), low.to_vec());
    if let Basis::Chebyshev { .. } = basis {
        // T_(m+i) = 2 T_m T_i − T_(m−i).
        for i in 1..quotient.len() {
            rest[m - i] -= quotient[i];
            quotient[i] *= 2.0;
        }
    }
    (quotient, rest)
}

impl Evaluator {
    /// `polynomial` of every slot, [`Polynomial::depth`] levels lower. What is pending in `x` is
    /// rescaled first.
    ///
    /// # Errors
    /// [`Error::Level`] if fewer levels are left, [`Error::MissingKey`] without the relinearisation
    /// key, [`Error::Range`] for coefficients too large for the modulus.
    pub fn polynomial(&self, x: &Ciphertext, polynomial: &Polynomial) -> Result<Ciphertext> {
        let x = self.normalise(x)?;
        let x = self.match_level(&x, x.level())?;
        let depth = polynomial.depth();
        if x.level() < depth {
            return Err(Error::Level {
                operation: "a polynomial",
                needed: format!("{depth} levels for degree {}", polynomial.degree()),
                left: format!("{} are", x.level()),
            });
        }
        let constant = polynomial.coefficients.first().copied().unwrap_or(0.0);
        if polynomial.degree() == 0 {
            return self.add_scalar(&self.multiply_integer(&x, 0)?, constant);
        }
        let level = x.level() + 1 - depth;
        let first = self.substitute(&x, polynomial)?;
        let mut elements = Elements {
            evaluator: self,
            basis: polynomial.basis,
            top: first.level(),
            block: 1 << block_log(polynomial.degree()),
            made: BTreeMap::from([(1, Arc::new(first))]),
            matched: BTreeMap::new(),
        };
        let value = self.normalise(&elements.sum(&polynomial.coefficients, level)?)?;
        match polynomial.basis {
            Basis::Power => Ok(value),
            Basis::Chebyshev { .. } => {
                value.with_magnitude(polynomial.coefficients.iter().map(|c| c.abs()).sum())
            }
        }
    }

    fn substitute(&self, x: &Ciphertext, polynomial: &Polynomial) -> Result<Ciphertext> {
        let Basis::Chebyshev { .. } = polynomial.basis else { return Ok(x.clone()) };
        let substitution = polynomial.substitution();
        let scaled = if substitution.costs_a_level() {
            self.mul_scalar(x, substitution.factor)?
        } else if substitution.factor == 1.0 {
            x.clone()
        } else {
            self.multiply_integer(x, substitution.factor as i64)?
        };
        self.add_scalar(&scaled, substitution.summand)?.with_magnitude(1.0)
    }
}

/// Elements of the basis, each made when it is first needed and as shallow as it can be.
struct Elements<'a> {
    evaluator: &'a Evaluator,
    basis: Basis,
    /// The level of the first one.
    top: usize,
    /// Polynomials shorter than this are sums of elements times numbers.
    block: usize,
    made: BTreeMap<usize, Arc<Ciphertext>>,
    matched: BTreeMap<(usize, usize), Arc<Ciphertext>>,
}

impl Elements<'_> {
    /// Element `k ≥ 1`, `⌈log2 k⌉` levels below the first.
    fn get(&mut self, k: usize) -> Result<Arc<Ciphertext>> {
        if let Some(element) = self.made.get(&k) {
            return Ok(element.clone());
        }
        // A power of two and the rest: odd polynomials then need no even elements but those.
        let power = 1 << k.ilog2();
        let (large, small) = if power == k { (k / 2, k / 2) } else { (power, k - power) };
        let evaluator = self.evaluator;
        let mut product = if large == small {
            evaluator.square(&*self.get(large)?)?
        } else {
            let (a, b) = (self.get(large)?, self.get(small)?);
            evaluator.multiply(&a, &b)?
        };
        if let Basis::Chebyshev { .. } = self.basis {
            // T_(a+b) = 2 T_a T_b − T_(a−b), all at most 1.
            product = evaluator.multiply_integer(&product, 2)?;
            product = if large == small {
                evaluator.add_scalar(&product, -1.0)?
            } else {
                let other = evaluator.drop_to(&*self.get(large - small)?, product.level())?;
                evaluator.sub(&product, &other)?
            };
            product = product.with_magnitude(1.0)?;
        }
        let element = Arc::new(evaluator.normalise(&product)?);
        self.made.insert(k, element.clone());
        Ok(element)
    }

    /// Element `k` at a level and its canonical scale.
    fn at(&mut self, k: usize, level: usize) -> Result<Arc<Ciphertext>> {
        let element = self.get(k)?;
        if element.level() == level {
            return Ok(element);
        }
        if let Some(element) = self.matched.get(&(k, level)) {
            return Ok(element.clone());
        }
        let element = Arc::new(self.evaluator.match_level(&element, level)?);
        self.matched.insert((k, level), element.clone());
        Ok(element)
    }

    /// The value of a polynomial of degree 1 or more at `level`, before the rescale that the caller
    /// owes it.
    fn sum(&mut self, coefficients: &[f64], level: usize) -> Result<Ciphertext> {
        let evaluator = self.evaluator;
        let mut rest = trimmed(coefficients).to_vec();
        let mut total = None;
        while rest.len() > 1 && !self.is_block(&rest, level) {
            let m = 1 << (rest.len() - 1).ilog2();
            let (quotient, remainder) = divide(self.basis, &rest, m);
            let divisor = self.at(m, level)?;
            let term = if let [factor] = quotient[..] {
                evaluator.multiply_scalar(&divisor, factor)?
            } else {
                let quotient = evaluator.normalise(&self.sum(&quotient, level + 1)?)?;
                evaluator.multiply(&quotient, &divisor)?
            };
            total = Some(self.plus(total, term)?);
            rest = trimmed(&remainder).to_vec();
        }
        for (k, &factor) in rest.iter().enumerate().skip(1).filter(|(_, factor)| **factor != 0.0) {
            // Whatever scale the element has up there, the product's is that of every product at
            // this level.
            let element = evaluator.drop_to(&*self.get(k)?, level)?;
            let term = evaluator.multiply_scalar(&element, factor)?;
            total = Some(self.plus(total, term)?);
        }
        let constant = rest.first().copied().unwrap_or(0.0);
        match total {
            Some(total) if constant != 0.0 => evaluator.add_scalar(&total, constant),
            Some(total) => Ok(total),
            None => Err(Error::Range {
                what: "the degree of a quotient",
                expected: "at least 1".into(),
                actual: "0".into(),
            }),
        }
    }

    fn plus(&self, total: Option<Ciphertext>, term: Ciphertext) -> Result<Ciphertext> {
        match total {
            Some(total) => self.evaluator.add(&total, &term),
            None => Ok(term),
        }
    }

    /// Whether it is short, and all elements that it needs exist at `level`.
    fn is_block(&self, coefficients: &[f64], level: usize) -> bool {
        let needed = coefficients.iter().enumerate().skip(1).filter(|(_, c)| **c != 0.0);
        coefficients.len() <= self.block
            && needed.map(|(k, _)| depth_of(k)).all(|depth| level + depth <= self.top)
    }
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
