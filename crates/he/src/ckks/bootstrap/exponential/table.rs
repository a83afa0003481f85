//! Look-up table: a function on the integers modulo p, as a polynomial of a root of unity.
//!
//! With α = exp(2πi j/p), T(j) = c_0 + Σ 2 Re(c_k α^k) over 0 < k ≤ p/2: the discrete Fourier
//! transform of the values, the shortest trigonometric polynomial through them. Its powers are half
//! as high as p because the values are real. How far a value is off when α is follows from
//! derivatives, computed along the evaluation; where that is too far α is cleaned first, by
//! Newton's step for α^p = 1 (docs/ckks.md, section 11.4).
//!
//! # Degree, swings and cleaning
//!
//! x = j/p, p ≤ 256. T is real, so its discrete Fourier transform c_k has c_(−k) = c̄_k, and
//!
//! ```text
//! T(j) = 2 Re(c_0/2 + Σ c_k α^k + c_(p/2)/2 α^(p/2)),        0 < k < p/2 ,
//! ```
//!
//! of degree p/2, in ⌈log2(p/2 + 1)⌉ levels; one conjugation takes the real part. Tables of one
//! integer share the powers (`look_up_all`). T(j) = j/p refreshes an integer; sums of integers over
//! p are sums modulo p.
//!
//! *Between integers* the curve swings beyond the values (`LookupTable::evaluate`): nothing is
//! rounded. A number that is η/p off costs about η T'. `table_plan()` says what the error of a
//! value is; `look_up` refuses roots whose error reaches 1/p.
//!
//! *Cleaning* is Newton's step for z^p = 1 without its division, for each root ω:
//!
//! ```text
//! z ↦ z (1 + 1/p) − z^(p+1)/p ,        ω(1 + δ) ↦ ω(1 − (p + 1)/2 δ² + …)
//! ```
//!
//! An integer that is η off is πη² off afterwards, for ⌈log2(p + 2)⌉ levels. Half way between two
//! integers it decides nothing. `with_cleanings(n)` puts n steps before the table.

use super::super::super::Complex;
use super::super::super::operations::Operations;
use super::super::super::polynomial::{Basis, trimmed};
use super::super::super::polynomial_evaluation::{block, depth, evaluate_all};
use super::super::trace::{Trace, Traced};
use crate::error::{Error, Result};
use core::f64::consts::TAU;

/// The largest p.
const MODULUS: usize = 256;
/// The most cleanings: each squares an error.
const CLEANINGS: usize = 8;
/// A level to trace errors from: only differences count.
const TOP: usize = 40;

/// T of the integers modulo p, p at most 256.
#[derive(Clone, PartialEq, Debug)]
pub struct LookupTable {
    values: Vec<f64>,
    cleanings: usize,
    /// Of α^k: half of the real constant, then c_k. The conjugate is added.
    coefficients: Vec<Complex>,
    gains: Gains,
    cleaning_gains: Gains,
}

/// What errors are multiplied by on the way, on average over the integers and at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Gains {
    /// That of the root.
    pub input: [f64; 2],
    /// The root of the sum of squares over all rescales.
    pub rescales: [f64; 2],
}

impl Gains {
    fn of(traced: &Traced, points: usize) -> Self {
        let figures = |gain: &dyn Fn(usize) -> f64| {
            let square = (0..points).map(|k| gain(k).powi(2)).sum::<f64>() / points as f64;
            [square.sqrt(), (0..points).map(gain).fold(0.0, f64::max)]
        };
        Gains {
            input: figures(&|k| traced.by_input(k).norm()),
            rescales: figures(&|k| traced.by_rescales(k)),
        }
    }
}

/// The roots of unity of order p.
fn roots(p: usize) -> impl Iterator<Item = Complex> {
    (0..p).map(move |j| Complex::cis(TAU * j as f64 / p as f64))
}

/// (1 + 1/p) z − z^(p+1)/p.
fn newton(p: usize) -> Vec<Complex> {
    let mut coefficients = vec![Complex::default(); p + 2];
    coefficients[1] = Complex::from(1.0 + 1.0 / p as f64);
    coefficients[p + 1] = Complex::from(-1.0 / p as f64);
    coefficients
}

/// A root of order p, cleaned once, of degree 1 and rescaled: relative to a root of 1, an error δ
/// becomes −(p + 1)/2 δ² and higher powers.
pub(super) fn clean<O: Operations>(operations: &O, root: &O::Value, p: usize) -> Result<O::Value> {
    let step = newton(p);
    let mut values = evaluate_all(operations, root.clone(), Basis::Power, &[&step[..]])?;
    operations.with_magnitude(values.swap_remove(0), 1.0)
}

/// The levels that a cleaning of roots of order p spends: ⌈log2(p + 2)⌉.
pub(super) fn cleaning_levels(p: usize) -> usize {
    depth(&[&newton(p)[..]])
}

impl LookupTable {
    /// The table that takes j to `values[j]`, for integers modulo their number p.
    ///
    /// # Errors
    /// [`Error::Range`] unless there are 2 to 256 of them, all finite.
    pub fn new(values: &[f64]) -> Result<Self> {
        let p = values.len();
        let range =
            |what, expected: String, actual: String| Error::Range { what, expected, actual };
        if !(2..=MODULUS).contains(&p) {
            let expected = format!("2 to {MODULUS}");
            return Err(range("the number of values of a table", expected, p.to_string()));
        }
        if let Some(j) = values.iter().position(|value| !value.is_finite()) {
            let actual = format!("{} at {j}", values[j]);
            return Err(range("a value of a table", "finite".into(), actual));
        }
        let largest = values.iter().fold(0.0f64, |most, value| value.abs().max(most));
        let coefficient = |k: usize| {
            let turn = |j: usize| Complex::cis(-TAU * (j * k % p) as f64 / p as f64);
            let terms = values.iter().enumerate().map(|(j, &value)| turn(j) * value);
            let sum = terms.sum::<Complex>() / p as f64;
            // The first and, where p is even, the last have no partner but themselves.
            let sum = if k == 0 || 2 * k == p { Complex::from(sum.re / 2.0) } else { sum };
            // What is left of sums that cancel costs products, and is nothing.
            if sum.norm() < largest * f64::EPSILON * p as f64 { Complex::default() } else { sum }
        };
        let coefficients: Vec<Complex> = (0..=p / 2).map(coefficient).collect();
        let coefficients = trimmed(&coefficients).to_vec();
        let trace = Trace::default();
        let input = trace.input(TOP, roots(p).collect());
        let value = interpolate(&trace, &input, &[&coefficients])?;
        let gains = Gains::of(&value[0], p);
        let trace = Trace::default();
        let cleaned = clean(&trace, &trace.input(TOP, roots(p).collect()), p)?;
        let cleaning_gains = Gains::of(&cleaned, p);
        let values = values.to_vec();
        Ok(LookupTable { values, cleanings: 0, coefficients, gains, cleaning_gains })
    }

    /// The same with the root cleaned `cleanings` times before: each takes ⌈log2(p + 2)⌉ levels,
    /// and brings what is η away from an integer to within about πη² of it.
    ///
    /// # Errors
    /// [`Error::Range`] for more than 8.
    pub fn with_cleanings(self, cleanings: usize) -> Result<Self> {
        if cleanings > CLEANINGS {
            return Err(Error::Range {
                what: "the cleanings before a table",
                expected: format!("at most {CLEANINGS}"),
                actual: cleanings.to_string(),
            });
        }
        Ok(LookupTable { cleanings, ..self })
    }

    /// p, the number of values.
    pub fn modulus(&self) -> usize {
        self.values.len()
    }

    /// The values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The numbers that stand for `integers`: j/p of j. For whoever encrypts them; what is computed
    /// from them may run over, and −j is p − j.
    ///
    /// # Errors
    /// [`Error::Range`] for an integer that is p or more.
    pub fn fractions(&self, integers: &[usize]) -> Result<Vec<f64>> {
        let p = self.modulus();
        let fraction = |&j: &usize| {
            if j < p {
                return Ok(j as f64 / p as f64);
            }
            Err(Error::Range {
                what: "an integer to look up",
                expected: format!("0 to {}, as the table has {p} values", p - 1),
                actual: j.to_string(),
            })
        };
        integers.iter().map(fraction).collect()
    }

    /// The largest slope at an integer j, in values for each unit of x = j/p: what the error of a
    /// number is multiplied by, without cleanings.
    pub fn slope(&self) -> f64 {
        2.0 * TAU * self.gains.input[1]
    }

    /// How often the root is cleaned before.
    pub fn cleanings(&self) -> usize {
        self.cleanings
    }

    /// The levels that it spends of a root.
    pub fn levels(&self) -> usize {
        self.cleanings * cleaning_levels(self.modulus()) + depth(&[&self.coefficients[..]])
    }

    /// How often it switches keys, conjugation included.
    pub fn relinearisations(&self) -> usize {
        let newton = newton(self.modulus());
        let cleaning = block(Basis::Power, &[&newton[..]]).1.switches;
        let table = block(Basis::Power, &[&self.coefficients[..]]).1.switches;
        self.cleanings * cleaning + table + 1
    }

    /// What it makes of x, which stands for px: at x = j/p the value of j, elsewhere a smooth curve
    /// through the values, which without cleanings swings between them; with each cleaning it is
    /// flatter around them, and steeper half way.
    pub fn evaluate(&self, x: f64) -> f64 {
        let p = self.modulus() as f64;
        let clean = |z: Complex, _| z * (1.0 + 1.0 / p) - z.powi(self.modulus() as i32 + 1) / p;
        let root = (0..self.cleanings).fold(Complex::cis(TAU * x), clean);
        let horner = |sum: Complex, c: &Complex| sum * root + c;
        2.0 * self.coefficients.iter().rev().fold(Complex::default(), horner).re
    }

    /// The largest absolute value.
    pub fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |most, value| value.abs().max(most))
    }

    /// Of α^k: their sum and its conjugate is the value.
    pub(super) fn coefficients(&self) -> &[Complex] {
        &self.coefficients
    }

    /// What interpolation does to errors of the root and of rescales, before the conjugate is
    /// added.
    pub(super) fn gains(&self) -> Gains {
        self.gains
    }

    /// What a cleaning does to them.
    pub(super) fn cleaning_gains(&self) -> Gains {
        self.cleaning_gains
    }

    /// Σ k²|c_k|/2: the second derivative by an error of the root is at most twice that.
    pub(super) fn curvature(&self) -> f64 {
        let terms = self.coefficients.iter().enumerate();
        terms.map(|(k, c)| (k * k) as f64 * c.norm() / 2.0).sum()
    }
}

/// Σ c_k α^k of each of `all`, of one root: of degree 1 and rescaled, all at one level.
pub(super) fn interpolate<O: Operations>(
    operations: &O,
    root: &O::Value,
    all: &[&[Complex]],
) -> Result<Vec<O::Value>> {
    let level = operations.level(root) - depth(all);
    let (constant, series): (Vec<&[Complex]>, Vec<&[Complex]>) =
        all.iter().partition(|coefficients| coefficients.len() < 2);
    let mut series = match series.is_empty() {
        true => Vec::new(),
        false => evaluate_all(operations, root.clone(), Basis::Power, &series)?,
    }
    .into_iter();
    // A table of one value only is that, and no function of the root.
    let mut constants = constant.into_iter().map(|coefficients| {
        let zero = operations.multiply_integer(&operations.match_level(root, level)?, 0)?;
        operations.add_scalar(&zero, coefficients.first().copied().unwrap_or_default())
    });
    let value = |coefficients: &&[Complex]| match coefficients.len() {
        0 | 1 => constants.next().transpose(),
        _ => Ok(series.next()),
    };
    let values: Result<Vec<Option<O::Value>>> = all.iter().map(value).collect();
    Ok(values?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(p: usize) -> Vec<f64> {
        (0..p).map(|j| ((j * j * 7 + 2 * j + 1) % p) as f64 / p as f64 - 0.3).collect()
    }

    #[test]
    fn tables_are_met_at_the_integers() {
        for p in [2, 3, 4, 5, 12, 16, 31, 100, 255, 256] {
            let values = table(p);
            for cleanings in 0..3 {
                let table = LookupTable::new(&values).unwrap().with_cleanings(cleanings).unwrap();
                for (j, value) in values.iter().enumerate() {
                    let error = (table.evaluate(j as f64 / p as f64) - value).abs();
                    assert!(error < 1e-11, "p = {p}, {cleanings} cleanings: {error:e} at {j}");
                }
            }
        }
    }

    /// An error η of an integer is πη², then π³η⁴, and the table's slope times that.
    #[test]
    fn cleanings_square_errors() {
        let p = 16;
        let values = table(p);
        let plain = LookupTable::new(&values).unwrap();
        for eta in [0.01, -0.02] {
            let largest = |cleanings| {
                let table = plain.clone().with_cleanings(cleanings).unwrap();
                let error = |(j, value): (usize, &f64)| {
                    (table.evaluate((j as f64 + eta) / p as f64) - value).abs()
                };
                values.iter().enumerate().map(error).fold(0.0, f64::max)
            };
            let [none, once, twice] = [0, 1, 2].map(largest);
            let slope = 2.0 * plain.gains().input[1] * TAU / p as f64;
            assert!((0.5..1.2).contains(&(none / (slope * eta.abs()))), "{none}");
            let cleaned = core::f64::consts::PI * eta * eta;
            assert!(once < 1.2 * slope * cleaned, "{once:e}");
            assert!(twice < 1.2 * slope * core::f64::consts::PI * cleaned.powi(2), "{twice:e}");
        }
    }

    /// The table of docs/ckks.md, 11.4, and p = 100: the levels of the value and of a cleaning, and
    /// the key switches of a cleaning and of the value after it, with its conjugation.
    #[test]
    fn levels_are_the_least() {
        // A level at most doubles a power, and a factor that is no integer takes a product too:
        // what l levels reach with such a factor is 1 + 2 + … + 2^(l − 1) = 2^l − 1.
        let least = |degree: usize| (0..).find(|&levels| degree < 1 << levels);
        for (p, levels, cleaning, switches) in [
            (2, 1, 2, [2, 1]),
            (4, 2, 3, [3, 2]),
            (16, 4, 5, [5, 5]),
            (100, 6, 7, [9, 10]),
            (256, 8, 9, [9, 16]),
        ] {
            assert_eq!((Some(levels), Some(cleaning)), (least(p / 2), least(p + 1)), "p = {p}");
            let table = LookupTable::new(&table(p)).unwrap();
            assert_eq!((table.levels(), cleaning_levels(p)), (levels, cleaning), "p = {p}");
            let cleaned = table.clone().with_cleanings(2).unwrap();
            assert_eq!(cleaned.levels(), levels + 2 * cleaning);
            let once = table.clone().with_cleanings(1).unwrap();
            let found =
                [once.relinearisations() - table.relinearisations(), table.relinearisations()];
            assert_eq!(found, switches, "p = {p}");
        }
        let constant = LookupTable::new(&[0.5; 8]).unwrap();
        assert_eq!((constant.levels(), constant.coefficients().len()), (0, 1));
        // One bit of the integer has few terms.
        let odd: Vec<f64> = (0..256).map(|j| f64::from(j % 2)).collect();
        let terms = LookupTable::new(&odd).unwrap();
        assert_eq!(terms.coefficients().iter().filter(|c| c.norm() > 0.0).count(), 2);
    }

    #[test]
    fn refuses_what_is_no_table() {
        assert!(LookupTable::new(&[1.0]).is_err());
        assert!(LookupTable::new(&[0.0; 257]).is_err());
        assert!(LookupTable::new(&[0.0, f64::INFINITY]).is_err());
        let table = LookupTable::new(&[0.0, 1.0, 0.5, 0.0]).unwrap();
        assert!(table.clone().with_cleanings(9).is_err());
        assert_eq!(table.fractions(&[0, 3]).unwrap(), [0.0, 0.75]);
        assert!(table.fractions(&[0, 4]).is_err());
    }
}
