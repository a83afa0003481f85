//! Traces how far errors of rescales put the value of a function off.
//!
//! Every rescale adds an error of its own to its value. A trace carries, beside the value at each of
//! a few points, its derivative by every error so far: so what they make of the result is known to
//! first order, with what they have in common. Numbers are complex, and so are errors: what is
//! traced is made of sums and products, whose derivatives are complex numbers as well.

use core::cell::RefCell;

use super::super::Complex;
use super::super::operations::Operations;
use crate::error::Result;

const ONE: Complex = Complex::new(1.0, 0.0);

/// Runs operations at points.
#[derive(Default)]
pub(super) struct Trace {
    /// The level of the value that each error was added to.
    levels: RefCell<Vec<usize>>,
}

/// Values at the points, and their derivatives by each error.
#[derive(Clone)]
pub(super) struct Traced {
    level: usize,
    /// Whether a rescale is due.
    pending: bool,
    pub values: Vec<Complex>,
    /// `[error][point]`; the first error is that of the input.
    slopes: Vec<Vec<Complex>>,
}

impl Traced {
    /// The derivative by the error of the input at a point.
    pub fn by_input(&self, point: usize) -> Complex {
        self.slopes.first().map_or(Complex::default(), |slopes| slopes[point])
    }

    /// The root of the sum of squared absolute values of the derivatives by all others.
    pub fn by_rescales(&self, point: usize) -> f64 {
        self.slopes.iter().skip(1).map(|slopes| slopes[point].norm_sqr()).sum::<f64>().sqrt()
    }

    /// The same with each derivative times the size of its error.
    pub fn by_sizes(&self, point: usize, sizes: &[f64]) -> f64 {
        let errors = self.slopes.iter().zip(sizes).skip(1);
        let squares = errors.map(|(slopes, size)| slopes[point].norm_sqr() * size * size);
        squares.sum::<f64>().sqrt()
    }

    /// Divided by a number.
    pub fn over(&self, size: f64) -> Self {
        self.map(|x| x / size, Complex::from(1.0 / size))
    }

    /// Less a number at each point.
    pub fn less(mut self, numbers: impl IntoIterator<Item = Complex>) -> Self {
        self.values.iter_mut().zip(numbers).for_each(|(value, number)| *value -= number);
        self
    }

    fn map(&self, value: impl Fn(Complex) -> Complex, slope: Complex) -> Self {
        let slopes = self.slopes.iter().map(|row| row.iter().map(|x| slope * x).collect());
        let values = self.values.iter().map(|&x| value(x)).collect();
        Traced { values, slopes: slopes.collect(), ..*self }
    }

    /// A value of both whose derivatives by them are `slopes` of the two values.
    fn join(
        &self,
        other: &Self,
        value: impl Fn(Complex, Complex) -> Complex,
        slopes: impl Fn(Complex, Complex) -> (Complex, Complex),
    ) -> Self {
        let points = self.values.len();
        let pairs = || self.values.iter().zip(&other.values).map(|(&a, &b)| (a, b));
        let at = |rows: &[Vec<Complex>], error: usize, point: usize| {
            rows.get(error).map_or(Complex::default(), |row| row[point])
        };
        let weights: Vec<(Complex, Complex)> = pairs().map(|(a, b)| slopes(a, b)).collect();
        let row = |error: usize| {
            let slope = |point: usize| {
                let (mine, theirs) = weights[point];
                mine * at(&self.slopes, error, point) + theirs * at(&other.slopes, error, point)
            };
            (0..points).map(slope).collect()
        };
        let errors = self.slopes.len().max(other.slopes.len());
        Traced {
            level: self.level.min(other.level),
            pending: self.pending || other.pending,
            values: pairs().map(|(a, b)| value(a, b)).collect(),
            slopes: (0..errors).map(row).collect(),
        }
    }
}

impl Trace {
    /// An input at `level` with these values.
    pub fn input(&self, level: usize, values: Vec<Complex>) -> Traced {
        let input = Traced { level, pending: false, values, slopes: Vec::new() };
        self.disturbed(input)
    }

    /// The levels of the values that the errors so far were added to.
    pub fn levels(&self) -> Vec<usize> {
        self.levels.borrow().clone()
    }

    /// With an error of its own.
    fn disturbed(&self, mut a: Traced) -> Traced {
        let mut levels = self.levels.borrow_mut();
        let error = levels.len();
        levels.push(a.level);
        let points = a.values.len();
        a.slopes.resize(error, vec![Complex::default(); points]);
        a.slopes.push(vec![ONE; points]);
        a
    }

    fn rescaled(&self, a: &Traced) -> Traced {
        if !a.pending {
            return a.clone();
        }
        self.disturbed(Traced { level: a.level - 1, pending: false, ..a.clone() })
    }

    fn product(&self, a: &Traced, b: &Traced) -> Traced {
        let (a, b) = (self.rescaled(a), self.rescaled(b));
        Traced { pending: true, ..a.join(&b, |a, b| a * b, |a, b| (b, a)) }
    }
}

impl Operations for Trace {
    type Value = Traced;

    fn level(&self, a: &Traced) -> usize {
        a.level
    }

    fn with_magnitude(&self, a: Traced, _: f64) -> Result<Traced> {
        Ok(a)
    }

    fn add(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        Ok(a.join(b, |a, b| a + b, |_, _| (ONE, ONE)))
    }

    fn add_to(&self, a: Traced, b: &Traced) -> Result<Traced> {
        Operations::add(self, &a, b)
    }

    fn sub(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        Ok(a.join(b, |a, b| a - b, |_, _| (ONE, -ONE)))
    }

    fn add_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        let number = number.into();
        Ok(a.map(|x| x + number, ONE))
    }

    fn multiply_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        let number = number.into();
        Ok(Traced { pending: true, ..self.rescaled(a).map(|x| x * number, number) })
    }

    fn mul_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        Ok(self.rescaled(&self.multiply_scalar(a, number)?))
    }

    fn multiply_integer(&self, a: &Traced, factor: i64) -> Result<Traced> {
        Ok(a.map(|x| x * factor as f64, Complex::from(factor as f64)))
    }

    fn multiply(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        Ok(self.product(a, b))
    }

    fn double_product(&self, a: &Traced, b: &Traced, c: Option<&Traced>) -> Result<Traced> {
        let twice = self.product(a, b).map(|x| x * 2.0, Complex::from(2.0));
        match c {
            Some(c) => Ok(Traced { pending: true, ..self.sub(&twice, c)? }),
            None => self.add_scalar(&twice, -1.0),
        }
    }

    fn square(&self, a: &Traced) -> Result<Traced> {
        let a = self.rescaled(a);
        Ok(self.product(&a, &a))
    }

    fn normalise(&self, a: &Traced) -> Result<Traced> {
        Ok(self.rescaled(a))
    }

    fn drop_to(&self, a: &Traced, level: usize) -> Result<Traced> {
        Ok(Traced { level, ..a.clone() })
    }

    fn match_level(&self, a: &Traced, level: usize) -> Result<Traced> {
        let a = self.rescaled(a);
        if a.level == level {
            return Ok(a);
        }
        // A factor and a rescale.
        Ok(self.disturbed(Traced { level, ..a }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_common_add_up_and_others_by_their_squares() {
        let trace = Trace::default();
        let x = trace.input(3, [0.5, -2.0].map(Complex::from).to_vec());
        let square = trace.normalise(&trace.square(&x).unwrap()).unwrap();
        assert_eq!((square.level, &square.values[..]), (2, &[0.25, 4.0].map(Complex::from)[..]));
        assert_eq!((square.by_input(1), square.by_rescales(1)), (Complex::from(-4.0), 1.0));
        let x2 = trace.match_level(&x, 2).unwrap();
        let cube = trace.normalise(&trace.multiply(&square, &x2).unwrap()).unwrap();
        // 3x²; and the rescales of the square, of x itself and of the cube: x, x² and 1.
        assert_eq!(cube.by_input(1), Complex::from(12.0));
        assert_eq!(trace.levels(), [3, 2, 2, 1]);
        let sizes = [1.0, 1.0, 1.0, 3.0];
        assert!((cube.by_sizes(1, &sizes) - (4.0f64 + 16.0 + 9.0).sqrt()).abs() < 1e-12);
    }
}
