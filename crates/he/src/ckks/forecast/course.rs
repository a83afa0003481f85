//! Courses: what a polynomial adds to its value by being evaluated, number by number: all on the way
//! is known for each number that goes in, and so is what an error on the way comes to. Both sides.

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
    let (values, errors) = (Rc::new(places.collect()), Rc::new(Vec::new()));
    let mut expected = *x;
    (expected.noise.std, expected.noise.bound) = (0.0, 0.0);
    let course = Course { expected, name: 0, values, errors };
    let found = evaluate(&Courses { forecast }, &course, polynomial)?;
    let mut variances = vec![0.0; found.values.len()];
    for (_, error) in found.errors.iter() {
        variances.iter_mut().zip(error.iter()).for_each(|(sum, one)| *sum += one * one);
    }
    Ok(variances.into_iter().fold(0.0, f64::max).sqrt())
}

/// A ciphertext, for each of many numbers.
#[derive(Clone)]
struct Course {
    expected: Expected,
    name: u64,
    values: Rc<Vec<f64>>,
    /// By origin, what its error of one standard deviation comes to.
    errors: Rc<Vec<(u64, Rc<Vec<f64>>)>>,
}

struct Courses<'a> {
    forecast: &'a Forecast,
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

impl Course {
    /// Other values, with the errors of this and of another, each times its own factors.
    fn with(
        &self,
        expected: Expected,
        name: u64,
        values: Vec<f64>,
        [mine, theirs]: [&dyn Fn(usize) -> f64; 2],
        other: &Course,
    ) -> Course {
        let times = |error: &[f64], factor: &dyn Fn(usize) -> f64| -> Vec<f64> {
            error.iter().enumerate().map(|(place, one)| one * factor(place)).collect()
        };
        let mut errors: Vec<(u64, Rc<Vec<f64>>)> = Vec::new();
        let (mut first, mut second) =
            (self.errors.iter().peekable(), other.errors.iter().peekable());
        loop {
            let (origin, error) = match (first.peek(), second.peek()) {
                (None, None) => break,
                (Some((a, _)), Some((b, _))) if a == b => {
                    let (Some((origin, a)), Some((_, b))) = (first.next(), second.next()) else {
                        break;
                    };
                    (*origin, zip(&times(a, mine), &times(b, theirs), |a, b| a + b))
                }
                (Some((a, _)), Some((b, _))) if a > b => {
                    let Some((origin, error)) = second.next() else { break };
                    (*origin, times(error, theirs))
                }
                (Some(_), _) => {
                    let Some((origin, error)) = first.next() else { break };
                    (*origin, times(error, mine))
                }
                (None, Some(_)) => {
                    let Some((origin, error)) = second.next() else { break };
                    (*origin, times(error, theirs))
                }
            };
            errors.push((origin, Rc::new(error)));
        }
        Course { expected, name, values: Rc::new(values), errors: Rc::new(errors) }
    }

    /// Times a number.
    fn times(&self, expected: Expected, name: u64, factor: f64) -> Course {
        let values = self.values.iter().map(|value| value * factor).collect();
        let none = Course { errors: Rc::new(Vec::new()), ..self.clone() };
        self.with(expected, name, values, [&|_| factor, &|_| factor], &none)
    }
}

impl Courses<'_> {
    /// With what a step of that name has added, as its result says, which had nothing before.
    fn step(&self, a: &Course, expected: Expected, name: u64) -> Course {
        let std = self.forecast.error_bits(&expected).exp2();
        let mut silent = expected;
        (silent.noise.std, silent.noise.bound) = (0.0, 0.0);
        let mut errors = (*a.errors).clone();
        if std > 0.0 {
            match errors.binary_search_by_key(&name, |(origin, _)| *origin) {
                Ok(place) => {
                    let more = errors[place].1.iter().map(|one| one + std).collect();
                    errors[place].1 = Rc::new(more);
                }
                Err(place) => errors.insert(place, (name, Rc::new(vec![std; a.values.len()]))),
            }
        }
        Course { expected: silent, name, errors: Rc::new(errors), values: a.values.clone() }
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
        let values = zip(&a.values, &b.values, |a, b| a + sign * b);
        Ok(a.with(expected, name, values, [&|_| 1.0, &|_| sign], &b))
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
        let values = zip(&a.values, &b.values, |a, b| factor * a * b);
        let mine = |place: usize| factor * b.values[place];
        let theirs = |place: usize| factor * a.values[place];
        Ok(a.with(expected, name, values, [&mine, &theirs], &b))
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
        Ok(self.step(&a.times(expected, name, number.re), expected, name))
    }

    fn mul_scalar(&self, a: &Course, number: impl Into<Complex>) -> Result<Course> {
        self.mul_due(&self.multiply_scalar(a, number)?)
    }

    fn multiply_integer(&self, a: &Course, factor: i64) -> Result<Course> {
        let expected = self.forecast.multiply_integer(&a.expected, factor)?;
        Ok(a.times(expected, a.name, factor as f64))
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
        let values = zip(&product.values, &c.values, |a, b| a - b);
        Ok(product.with(product.expected, name, values, [&|_| 1.0, &|_| -1.0], c))
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
}
