//! Courses: what a polynomial adds to its value by being evaluated, number by number: all on the way
//! is known for each number that goes in, and so is what an error on the way comes to. Both sides.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::Complex;
use super::super::align::{Path, Place, descend, join, meet};
use super::super::expected::Expected;
use super::super::operations::Operations;
use super::super::polynomial::{Polynomial, samples};
use super::super::polynomial_evaluation::evaluate;
use super::Forecast;
use super::names::{did, hashed, named};
use crate::error::Result;

/// Most numbers that a polynomial is looked at for.
const MOST: usize = 2048;

/// The largest standard deviation, over numbers that may go in, of what evaluating adds to the value
/// of a polynomial of `x`. `forecast` counts work that nobody does.
pub(super) fn added(forecast: &Forecast, x: &Expected, polynomial: &Polynomial) -> Result<f64> {
    let (low, high) = polynomial.domain(x.magnitude);
    let places = samples(low, high, polynomial.degree().min(MOST / 16 - 1));
    let mut expected = *x;
    (expected.noise.std, expected.noise.bound) = (0.0, 0.0);
    let course = Course { expected, name: 0, values: Rc::new(places.collect()), error: None };
    let courses = Courses { forecast, errors: RefCell::default() };
    let found = evaluate(&courses, &course, polynomial)?;
    let variances = variances(&courses.errors.take(), found.error, found.values.len());
    Ok(variances.into_iter().fold(0.0, f64::max).sqrt())
}

/// A ciphertext, for each of many numbers.
#[derive(Clone)]
struct Course {
    expected: Expected,
    name: u64,
    values: Rc<Vec<f64>>,
    /// Its place among errors; none where nothing was added yet.
    error: Option<usize>,
}

/// An error: what a step has added, under a name that all have which added the same, and what came
/// with its operands.
struct Added {
    own: Option<(u64, f64)>,
    brought: Vec<(usize, Factor)>,
}

/// What an operand's error is multiplied by.
#[derive(Clone)]
enum Factor {
    Number(f64),
    /// A number times those.
    Each(f64, Rc<Vec<f64>>),
}

struct Courses<'a> {
    forecast: &'a Forecast,
    /// Each after those that it is made of.
    errors: RefCell<Vec<Added>>,
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

impl Factor {
    /// Adds what it makes of `error`.
    fn times(&self, error: &[f64], sums: &mut [f64]) {
        match self {
            Factor::Number(factor) => {
                sums.iter_mut().zip(error).for_each(|(sum, one)| *sum += one * factor);
            }
            Factor::Each(factor, each) => {
                let factors = each.iter().map(|one| one * factor);
                sums.iter_mut()
                    .zip(error.iter().zip(factors))
                    .for_each(|(sum, (a, b))| *sum += a * b);
            }
        }
    }
}

/// For each number the variance of an error: from the last step back to the first, what each of them
/// comes to in it, whose cost does not grow with how many steps there were.
fn variances(errors: &[Added], last: Option<usize>, count: usize) -> Vec<f64> {
    let mut variances = vec![0.0; count];
    let Some(last) = last else { return variances };
    let mut comes_to: Vec<Option<Vec<f64>>> = vec![None; last + 1];
    comes_to[last] = Some(vec![1.0; count]);
    // In an order that is the same everywhere, as plans are.
    let mut by_name: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut alike: BTreeMap<u64, usize> = BTreeMap::new();
    let names = errors[..=last].iter().filter_map(|one| one.own);
    names.for_each(|(name, _)| *alike.entry(name).or_default() += 1);
    let mut square = |error: &[f64], std: f64| {
        let squares = error.iter().map(|one| (one * std) * (one * std));
        variances.iter_mut().zip(squares).for_each(|(sum, one)| *sum += one);
    };
    for (place, Added { own, brought }) in errors[..=last].iter().enumerate().rev() {
        let Some(error) = comes_to[place].take() else { continue };
        match own {
            Some((name, std)) if alike[name] == 1 => square(&error, *std),
            Some((name, std)) => {
                let sums = by_name.entry(*name).or_insert_with(|| vec![0.0; count]);
                Factor::Number(*std).times(&error, sums);
            }
            None => {}
        }
        for (operand, factor) in brought {
            let sums = comes_to[*operand].get_or_insert_with(|| vec![0.0; count]);
            factor.times(&error, sums);
        }
    }
    by_name.values().for_each(|error| square(error, 1.0));
    variances
}

impl Courses<'_> {
    /// The error of what is made of operands, each times its factor, and of an own one.
    fn error<const COUNT: usize>(
        &self,
        operands: [(&Course, Factor); COUNT],
        own: Option<(u64, f64)>,
    ) -> Option<usize> {
        let operands = operands.into_iter();
        let brought: Vec<_> =
            operands.filter_map(|(one, factor)| Some((one.error?, factor))).collect();
        if brought.is_empty() && own.is_none() {
            return None;
        }
        let mut errors = self.errors.borrow_mut();
        errors.push(Added { own, brought });
        Some(errors.len() - 1)
    }

    /// Times a number.
    fn times(&self, a: &Course, expected: Expected, name: u64, factor: f64) -> Course {
        let values = a.values.iter().map(|value| value * factor).collect();
        let error = self.error([(a, Factor::Number(factor))], None);
        Course { expected, name, values: Rc::new(values), error }
    }

    /// With what a step of that name has added, as its result says, which had nothing before.
    fn step(&self, a: &Course, expected: Expected, name: u64) -> Course {
        let std = self.forecast.error_bits(&expected).exp2();
        let mut silent = expected;
        (silent.noise.std, silent.noise.bound) = (0.0, 0.0);
        let error = match std > 0.0 {
            true => self.error([(a, Factor::Number(1.0))], Some((name, std))),
            false => a.error,
        };
        Course { expected: silent, name, values: a.values.clone(), error }
    }

    fn follow(&self, a: &Course, path: &Path) -> Result<Course> {
        if path.is_empty() {
            return Ok(a.clone());
        }
        let Place { level, scale } = path.end;
        let name = hashed(&[did::FOLLOW, a.name, level as u64, scale.to_bits()]);
        Ok(self.step(a, self.forecast.follow(&a.expected, path)?, name))
    }

    fn sum(&self, operation: &'static str, a: &Course, b: &Course, sign: f64) -> Result<Course> {
        let places = [a, b].map(|x| Place::of(&x.expected));
        let paths = meet(&self.forecast.chain, operation, places)?;
        let (a, b) = (self.follow(a, &paths[0])?, self.follow(b, &paths[1])?);
        let expected = self.forecast.add(&a.expected, &b.expected)?;
        let name = hashed(&[did::ADD, a.name, b.name, sign.to_bits()]);
        let values = Rc::new(zip(&a.values, &b.values, |a, b| a + sign * b));
        let error = [(&a, Factor::Number(1.0)), (&b, Factor::Number(sign))];
        Ok(Course { expected, name, values, error: self.error(error, None) })
    }

    fn product(
        &self,
        a: &Course,
        b: &Course,
        factor: f64,
        run: impl Fn(&Expected, &Expected) -> Result<Expected>,
    ) -> Result<Course> {
        let paths = join(&self.forecast.chain, [a, b].map(|x| Place::of(&x.expected)));
        let (a, b) = (self.follow(a, &paths[0])?, self.follow(b, &paths[1])?);
        let expected = run(&a.expected, &b.expected)?;
        let name = hashed(&[did::MULTIPLY, a.name, b.name, factor.to_bits()]);
        let values = Rc::new(zip(&a.values, &b.values, |a, b| factor * a * b));
        let times = |one: &Course| Factor::Each(factor, one.values.clone());
        let error = self.error([(&a, times(&b)), (&b, times(&a))], None);
        Ok(Course { expected, name, values, error })
    }
}

impl Operations for Courses<'_> {
    type Value = Course;

    fn level(&self, a: &Course) -> usize {
        a.expected.level
    }

    fn with_magnitude(&self, a: Course, magnitude: f64) -> Result<Course> {
        Ok(Course { expected: a.expected.with_magnitude(magnitude)?, ..a })
    }

    fn add(&self, a: &Course, b: &Course) -> Result<Course> {
        self.sum("addition", a, b, 1.0)
    }

    fn add_to(&self, a: Course, b: &Course) -> Result<Course> {
        self.sum("addition", &a, b, 1.0)
    }

    fn sub(&self, a: &Course, b: &Course) -> Result<Course> {
        self.sum("subtraction", a, b, -1.0)
    }

    fn add_scalar(&self, a: &Course, number: impl Into<Complex>) -> Result<Course> {
        let number = number.into();
        let expected = self.forecast.add_scalar(&a.expected, number)?;
        let values = a.values.iter().map(|value| value + number.re).collect();
        Ok(Course { expected, values: Rc::new(values), ..a.clone() })
    }

    fn multiply_scalar(&self, a: &Course, number: impl Into<Complex>) -> Result<Course> {
        let number = number.into();
        let a = self.mul_due(a)?;
        let name = hashed(&[did::MULTIPLY_VALUES, a.name, named(&[number.re])]);
        let expected = self.forecast.multiply_scalar(&a.expected, number)?;
        Ok(self.step(&self.times(&a, expected, name, number.re), expected, name))
    }

    fn mul_scalar(&self, a: &Course, number: impl Into<Complex>) -> Result<Course> {
        self.mul_due(&self.multiply_scalar(a, number)?)
    }

    fn multiply_integer(&self, a: &Course, factor: i64) -> Result<Course> {
        let expected = self.forecast.multiply_integer(&a.expected, factor)?;
        Ok(self.times(a, expected, a.name, factor as f64))
    }

    fn multiply(&self, a: &Course, b: &Course) -> Result<Course> {
        self.product(a, b, 1.0, |a, b| self.forecast.multiply(a, b))
    }

    fn double_product(&self, a: &Course, b: &Course, c: Option<&Course>) -> Result<Course> {
        let known = c.map(|c| c.expected);
        let run = |a: &Expected, b: &Expected| self.forecast.double_product(a, b, known.as_ref());
        let product = self.product(a, b, 2.0, run)?;
        let Some(c) = c else {
            let values = product.values.iter().map(|value| value - 1.0).collect();
            return Ok(Course { values: Rc::new(values), ..product });
        };
        let name = hashed(&[product.name, c.name]);
        let values = Rc::new(zip(&product.values, &c.values, |a, b| a - b));
        let error = [(&product, Factor::Number(1.0)), (c, Factor::Number(-1.0))];
        let error = self.error(error, None);
        Ok(Course { expected: product.expected, name, values, error })
    }

    fn square(&self, a: &Course) -> Result<Course> {
        self.product(a, a, 1.0, |a, _| self.forecast.square(a))
    }

    fn normalise(&self, a: &Course) -> Result<Course> {
        if a.expected.degree == 1 {
            return self.mul_due(a);
        }
        let name = hashed(&[did::NORMALISE, a.name, a.expected.level as u64]);
        Ok(self.step(a, self.forecast.normalise(&a.expected)?, name))
    }

    fn drop_to(&self, a: &Course, level: usize) -> Result<Course> {
        Ok(Course { expected: self.forecast.drop_to(&a.expected, level)?, ..a.clone() })
    }

    fn match_level(&self, a: &Course, level: usize) -> Result<Course> {
        let path = descend(&self.forecast.chain, Place::of(&a.expected), level)?;
        let result = self.follow(a, &path)?;
        if result.expected.level == level { Ok(result) } else { self.drop_to(&result, level) }
    }
}

impl Courses<'_> {
    /// A rescale, where one is due.
    fn mul_due(&self, a: &Course) -> Result<Course> {
        match Path::due(&self.forecast.chain, Place::of(&a.expected)) {
            Some(path) => self.follow(a, &path),
            None => Ok(a.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::plaintext::Encoding;
    use super::super::super::spec::{ParamsSpec, Ring};
    use super::super::EncryptionKey;
    use super::*;
    use crate::params::Security;

    /// T_2 is off by a rescale with relinearising, r; T_4 = 2 T_2² − 1 by that times 4 T_2, and one
    /// more. Both are multiplied with their coefficient, for another rescale: √(16 + 1 + 1) r to √(1 + 1) r.
    #[test]
    fn errors_on_the_way_come_to_what_was_worked_out_by_hand() {
        let spec = ParamsSpec {
            log_degree: 13,
            ring: Ring::ConjugateInvariant,
            base_bits: 45,
            scale_bits: 35,
            levels: 3,
            special_primes: 1,
            special_bits: 45,
            digits: 4,
            security: Security::Classical128,
        };
        let forecast = Forecast::of_spec(&spec).unwrap();
        let x = forecast.fresh(EncryptionKey::Secret, &Encoding::default()).unwrap();
        let of = |degree: usize| {
            let mut coefficients = vec![0.0; degree + 1];
            coefficients[degree] = 1.0;
            let polynomial = Polynomial::chebyshev(-1.0, 1.0, &coefficients).unwrap();
            added(&forecast, &x, &polynomial).unwrap()
        };
        let (second, fourth) = (of(2), of(4));
        let ratio = fourth / second;
        assert!((2.9..3.1).contains(&ratio), "{second:e} {fourth:e}");
    }

    /// Of 2a − (±a + a'), where a and a' are added under one name, 3 each, and 1 is added at last: 2a − a − a'
    /// is none, and 2a + a − a' is 2 · 3.
    #[test]
    fn what_is_added_twice_adds_up_before_it_is_squared() {
        let three = Some((7, 3.0));
        let signs = Factor::Each(1.0, Rc::new(vec![1.0, -1.0]));
        let errors = [
            Added { own: three, brought: vec![] },
            Added { own: None, brought: vec![(0, Factor::Number(2.0))] },
            Added { own: three, brought: vec![(0, signs)] },
            Added {
                own: Some((8, 1.0)),
                brought: vec![(1, Factor::Number(1.0)), (2, Factor::Number(-1.0))],
            },
            // Not on the way to it.
            Added { own: Some((9, 5.0)), brought: vec![(3, Factor::Number(1.0))] },
        ];
        assert_eq!(variances(&errors, Some(3), 2), [1.0, 37.0]);
        assert_eq!(variances(&errors, Some(4), 2), [26.0, 62.0]);
        assert_eq!(variances(&errors, None, 2), [0.0, 0.0]);
    }
}
