//! Forecast of functions of numbers: polynomials, signs, inverses and inverse square roots.

use super::super::expected::Expected;
use super::super::inverse::{Inverse, InverseSquareRoot, invert, invert_root};
use super::super::noise::Noise;
use super::super::operations::{Estimates, as_methods};
use super::super::polynomial::Polynomial;
use super::super::polynomial_evaluation::evaluate;
use super::super::sign::{Sign, take, take_stage};
use super::Forecast;
use crate::error::Result;

impl Forecast {
    /// A polynomial of every slot.
    ///
    /// # Errors
    /// As `Evaluator::polynomial`.
    pub fn polynomial(&self, x: &Expected, polynomial: &Polynomial) -> Result<Expected> {
        evaluate(self, x, polynomial)
    }

    /// About the sign of every slot.
    ///
    /// # Errors
    /// As `Evaluator::sign`.
    pub fn sign(&self, x: &Expected, sign: &Sign) -> Result<Expected> {
        take(self, x, sign)
    }

    /// One polynomial of a sign.
    ///
    /// # Errors
    /// As `Evaluator::sign_stage`.
    pub fn sign_stage(&self, x: &Expected, sign: &Sign, stage: usize) -> Result<Expected> {
        take_stage(self, x, sign, stage)
    }

    /// `1/x` in every slot.
    ///
    /// # Errors
    /// As `Evaluator::inverse`.
    pub fn inverse(&self, x: &Expected, inverse: &Inverse) -> Result<Expected> {
        invert(self, x, inverse)
    }

    /// `1/√x` in every slot.
    ///
    /// # Errors
    /// As `Evaluator::inverse_square_root`.
    pub fn inverse_square_root(&self, x: &Expected, root: &InverseSquareRoot) -> Result<Expected> {
        invert_root(self, x, root)
    }
}

as_methods!(Forecast, Expected);

impl Estimates for Forecast {
    fn expansion(&self) -> f64 {
        self.chain.expansion()
    }

    fn scale(&self, a: &Expected) -> f64 {
        a.scale
    }

    fn noise(&self, a: &Expected) -> Noise {
        a.noise
    }

    fn magnitude(&self, a: &Expected) -> f64 {
        a.magnitude
    }

    fn negate(&self, a: &Expected) -> Expected {
        self.negate(a)
    }

    fn with_noise(&self, a: Expected, noise: Noise) -> Expected {
        Expected { noise, ..a }
    }
}
