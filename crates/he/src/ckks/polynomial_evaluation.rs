//! Evaluates a polynomial in every slot of a ciphertext. Server only.
//!
//! Depth is `⌈log2(degree + 1)⌉`, coefficients included, which is the least that products of two
//! allow. A polynomial of degree `d ≥ 2^j` is `q B + r` with `B` of degree `2^j` from the basis:
//! `q` may be one level less deep than the whole, `r` as deep. Below a block length a polynomial is
//! a sum of basis elements times numbers (Paterson and Stockmeyer's baby steps), if those elements
//! are shallow enough for the level that the numbers cost; only on the path of leading quotients
//! they are not, and there the division goes on. Products and numbers times elements meet at the
//! same scale, so a whole sum `Σ q B + block` is relinearised and rescaled once. The block length
//! is the one whose evaluation, counted, switches keys least often.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ciphertext::Ciphertext;
use super::evaluate::Evaluator;
use super::operations::{Counted, Counter, Operations, Products};
use super::polynomial::{Basis, Coefficient, Polynomial, depth_of, divide, is_zero, trimmed};
use crate::error::{Error, Result};

impl Polynomial {
    /// Products of two ciphertexts that evaluation takes, squares among them.
    pub fn products(&self) -> usize {
        self.work().products
    }

    /// How often evaluation relinearises: sums of products do so once.
    pub fn relinearisations(&self) -> usize {
        self.work().switches
    }

    /// What evaluation takes.
    pub(super) fn work(&self) -> Products {
        block(self.basis, &[&self.coefficients]).1
    }
}

/// log2 of the block length with the least work for all these together, and that work.
pub(super) fn block<C: Coefficient>(basis: Basis, all: &[&[C]]) -> (usize, Products) {
    let top = depth(all);
    let work = |log: usize| {
        let counter = Counter::default();
        let first = Counted::at(top);
        // Nothing fails that only counts.
        let values = sums(&counter, first, basis, all, 1 << log, 1);
        let values =
            values.and_then(|all| all.iter().try_for_each(|x| counter.normalise(x).map(drop)));
        (log, values.map_or(Products::default(), |()| counter.seen()))
    };
    (1..=top.max(1)).map(work).min_by_key(|&(_, work)| work).unwrap_or_default()
}

/// The levels that the highest degree of these needs, from the basis element of degree 1.
pub(super) fn depth<C: Coefficient>(all: &[&[C]]) -> usize {
    all.iter().map(|c| depth_of(trimmed(c).len().max(1))).max().unwrap_or(0)
}

/// The values of polynomials of degree 1 or more at `level`, before the rescale that the caller owes
/// them; `first` is the basis element of degree 1.
fn sums<O: Operations, C: Coefficient>(
    operations: &O,
    first: O::Value,
    basis: Basis,
    all: &[&[C]],
    block: usize,
    level: usize,
) -> Result<Vec<O::Value>> {
    let mut elements = Elements {
        operations,
        basis,
        top: operations.level(&first),
        block,
        made: BTreeMap::from([(1, Arc::new(first))]),
        matched: BTreeMap::new(),
    };
    all.iter().map(|coefficients| elements.sum(coefficients, level)).collect()
}

/// The values of polynomials of degree 1 or more that share their basis elements, each of degree 1
/// and rescaled, [`depth`] levels below `first`, the element of degree 1.
pub(super) fn evaluate_all<O: Operations, C: Coefficient>(
    operations: &O,
    first: O::Value,
    basis: Basis,
    all: &[&[C]],
) -> Result<Vec<O::Value>> {
    let (log, _) = block(basis, all);
    let level = operations.level(&first) + 1 - depth(all);
    let values = sums(operations, first, basis, all, 1 << log, level)?;
    values.iter().map(|value| operations.normalise(value)).collect()
}

impl Evaluator {
    /// `polynomial` of every slot, [`Polynomial::depth`] levels lower. What is pending in `x` is
    /// rescaled first.
    ///
    /// # Errors
    /// [`Error::Level`] if fewer levels are left, [`Error::MissingKey`] without the relinearisation
    /// key, [`Error::Range`] for coefficients too large for the modulus.
    pub fn polynomial(&self, x: &Ciphertext, polynomial: &Polynomial) -> Result<Ciphertext> {
        evaluate(self, x, polynomial)
    }
}

/// The value of a polynomial, of degree 1 and rescaled.
pub(super) fn evaluate<O: Operations>(
    operations: &O,
    x: &O::Value,
    polynomial: &Polynomial,
) -> Result<O::Value> {
    // Each form of x takes megabytes, and goes when the next is made.
    let mut x = operations.normalise(x)?;
    let from = operations.level(&x);
    x = operations.match_level(&x, from)?;
    let depth = polynomial.depth();
    if from < depth {
        return Err(Error::Level {
            operation: "a polynomial",
            needed: format!("{depth} levels for degree {}", polynomial.degree()),
            left: format!("{from} are"),
        });
    }
    let constant = polynomial.coefficients.first().copied().unwrap_or(0.0);
    if polynomial.degree() == 0 {
        return operations.add_scalar(&operations.multiply_integer(&x, 0)?, constant);
    }
    x = substitute(operations, &x, polynomial)?;
    let values = evaluate_all(operations, x, polynomial.basis, &[&polynomial.coefficients])?;
    let Some(value) = values.into_iter().next() else { return Err(no_degree()) };
    match polynomial.basis {
        Basis::Power => Ok(value),
        Basis::Chebyshev { .. } => {
            let sum = polynomial.coefficients.iter().map(|c| c.abs()).sum();
            operations.with_magnitude(value, sum)
        }
    }
}

fn no_degree() -> Error {
    Error::Range {
        what: "the degree of a polynomial to evaluate",
        expected: "at least 1".into(),
        actual: "0".into(),
    }
}

/// The basis element of degree 1.
fn substitute<O: Operations>(
    operations: &O,
    x: &O::Value,
    polynomial: &Polynomial,
) -> Result<O::Value> {
    let Basis::Chebyshev { .. } = polynomial.basis else { return Ok(x.clone()) };
    let substitution = polynomial.substitution();
    let scaled = if substitution.costs_a_level() {
        operations.mul_scalar(x, substitution.factor)?
    } else if substitution.factor == 1.0 {
        x.clone()
    } else {
        operations.multiply_integer(x, substitution.factor as i64)?
    };
    operations.with_magnitude(operations.add_scalar(&scaled, substitution.summand)?, 1.0)
}

/// Elements of the basis, each made when it is first needed and as shallow as it can be.
struct Elements<'a, O: Operations> {
    operations: &'a O,
    basis: Basis,
    /// The level of the first one.
    top: usize,
    /// Polynomials shorter than this are sums of elements times numbers.
    block: usize,
    made: BTreeMap<usize, Arc<O::Value>>,
    matched: BTreeMap<(usize, usize), Arc<O::Value>>,
}

impl<O: Operations> Elements<'_, O> {
    /// Element `k ≥ 1`, `⌈log2 k⌉` levels below the first.
    fn get(&mut self, k: usize) -> Result<Arc<O::Value>> {
        if let Some(element) = self.made.get(&k) {
            return Ok(element.clone());
        }
        // A power of two and the rest: odd polynomials then need no even elements but those.
        let power = 1 << k.ilog2();
        let (large, small) = if power == k { (k / 2, k / 2) } else { (power, k - power) };
        let operations = self.operations;
        let (a, b) = (self.get(large)?, self.get(small)?);
        let product = match self.basis {
            Basis::Power if large == small => operations.square(&a)?,
            Basis::Power => operations.multiply(&a, &b)?,
            Basis::Chebyshev { .. } => {
                // T_(a+b) = 2 T_a T_b − T_(a−b), all at most 1.
                let other = if large == small { None } else { Some(self.get(large - small)?) };
                let product = operations.double_product(&a, &b, other.as_deref())?;
                operations.with_magnitude(product, 1.0)?
            }
        };
        let element = Arc::new(operations.normalise(&product)?);
        self.made.insert(k, element.clone());
        Ok(element)
    }

    /// Element `k` at a level and its canonical scale.
    fn at(&mut self, k: usize, level: usize) -> Result<Arc<O::Value>> {
        let element = self.get(k)?;
        if self.operations.level(&element) == level {
            return Ok(element);
        }
        if let Some(element) = self.matched.get(&(k, level)) {
            return Ok(element.clone());
        }
        let element = Arc::new(self.operations.match_level(&element, level)?);
        self.matched.insert((k, level), element.clone());
        Ok(element)
    }

    /// The value of a polynomial of degree 1 or more at `level`, before the rescale that the caller
    /// owes it.
    fn sum<C: Coefficient>(&mut self, coefficients: &[C], level: usize) -> Result<O::Value> {
        let operations = self.operations;
        let mut rest = trimmed(coefficients).to_vec();
        let mut total = None;
        while rest.len() > 1 && !self.is_block(&rest, level) {
            let m = 1 << (rest.len() - 1).ilog2();
            let (quotient, remainder) = divide(self.basis, &rest, m);
            let divisor = self.at(m, level)?;
            let term = if let [factor] = quotient[..] {
                operations.multiply_scalar(&divisor, factor)?
            } else {
                let quotient = operations.normalise(&self.sum(&quotient, level + 1)?)?;
                operations.multiply(&quotient, &divisor)?
            };
            total = Some(self.plus(total, term)?);
            rest = trimmed(&remainder).to_vec();
        }
        for (k, &factor) in rest.iter().enumerate().skip(1).filter(|(_, c)| !is_zero(**c)) {
            // Whatever scale the element has up there, the product's is that of every product at
            // this level.
            let element = self.get(k)?;
            total = Some(match total {
                Some(total) => operations.add_multiple(total, &element, level, factor.into())?,
                None => {
                    operations.multiply_scalar(&operations.drop_to(&element, level)?, factor)?
                }
            });
        }
        let constant = rest.first().copied().unwrap_or_default();
        match total {
            Some(total) if !is_zero(constant) => operations.add_scalar(&total, constant),
            Some(total) => Ok(total),
            None => Err(no_degree()),
        }
    }

    fn plus(&self, total: Option<O::Value>, term: O::Value) -> Result<O::Value> {
        match total {
            Some(total) => self.operations.add_to(total, &term),
            None => Ok(term),
        }
    }

    /// Whether it is short, and all elements that it needs exist at `level`.
    fn is_block<C: Coefficient>(&self, coefficients: &[C], level: usize) -> bool {
        let needed = coefficients.iter().enumerate().skip(1).filter(|(_, c)| !is_zero(**c));
        coefficients.len() <= self.block
            && needed.map(|(k, _)| depth_of(k)).all(|depth| level + depth <= self.top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_polynomials_take_few_products() {
        for (degree, switches, products) in [
            (1, 0, 0),
            (3, 2, 2),
            (5, 3, 4),
            (7, 4, 5),
            (13, 6, 7),
            (15, 7, 8),
            (27, 8, 11),
            (31, 10, 13),
        ] {
            let odd = |k: usize| (k % 2) as f64 / (k + 1) as f64;
            let coefficients: Vec<f64> = (0..=degree).map(odd).collect();
            let polynomial = Polynomial::chebyshev(-1.0, 1.0, &coefficients).unwrap();
            let work = (polynomial.relinearisations(), polynomial.products());
            assert_eq!(work, (switches, products), "degree {degree}");
        }
        assert_eq!(Polynomial::power(&[3.0]).unwrap().work(), Products::default());
    }
}
