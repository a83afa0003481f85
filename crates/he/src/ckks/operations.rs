//! Operations: what functions of numbers are made of, run on ciphertexts or counted. Server only.

use core::cell::Cell;

use super::Complex;
use super::ciphertext::Ciphertext;
use super::evaluate::Evaluator;
use super::expected::Expected;
use super::noise::Noise;
use crate::error::Result;

/// What a function of many operations needs of an evaluator. Each means what the method of that
/// name of [`Evaluator`] does.
pub(super) trait Operations {
    /// A ciphertext, or what stands for one.
    type Value: Clone;
    fn level(&self, a: &Self::Value) -> usize;
    fn with_magnitude(&self, a: Self::Value, magnitude: f64) -> Result<Self::Value>;
    fn add(&self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value>;
    fn add_to(&self, a: Self::Value, b: &Self::Value) -> Result<Self::Value>;
    fn sub(&self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value>;
    fn add_scalar(&self, a: &Self::Value, number: impl Into<Complex>) -> Result<Self::Value>;
    fn multiply_scalar(&self, a: &Self::Value, number: impl Into<Complex>) -> Result<Self::Value>;
    fn mul_scalar(&self, a: &Self::Value, number: impl Into<Complex>) -> Result<Self::Value>;
    fn multiply_integer(&self, a: &Self::Value, factor: i64) -> Result<Self::Value>;
    fn multiply(&self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value>;
    fn double_product(
        &self,
        a: &Self::Value,
        b: &Self::Value,
        c: Option<&Self::Value>,
    ) -> Result<Self::Value>;
    fn square(&self, a: &Self::Value) -> Result<Self::Value>;
    fn normalise(&self, a: &Self::Value) -> Result<Self::Value>;
    fn drop_to(&self, a: &Self::Value, level: usize) -> Result<Self::Value>;
    fn match_level(&self, a: &Self::Value, level: usize) -> Result<Self::Value>;

    /// `sum + a number`, with a at `level`: three operations.
    fn add_multiple(
        &self,
        sum: Self::Value,
        a: &Self::Value,
        level: usize,
        number: Complex,
    ) -> Result<Self::Value> {
        let term = self.multiply_scalar(&self.drop_to(a, level)?, number)?;
        self.add_to(sum, &term)
    }
}

/// What a function needs besides that is judged by how far its operands are off.
pub(super) trait Estimates: Operations {
    /// δ of `docs/ckks.md`, section 5.
    fn expansion(&self) -> f64;
    fn scale(&self, a: &Self::Value) -> f64;
    fn noise(&self, a: &Self::Value) -> Noise;
    fn magnitude(&self, a: &Self::Value) -> f64;
    fn negate(&self, a: &Self::Value) -> Self::Value;
    fn with_noise(&self, a: Self::Value, noise: Noise) -> Self::Value;
}

impl Estimates for Evaluator {
    fn expansion(&self) -> f64 {
        self.params().expansion()
    }

    fn scale(&self, a: &Ciphertext) -> f64 {
        a.scale()
    }

    fn noise(&self, a: &Ciphertext) -> Noise {
        *a.noise()
    }

    fn magnitude(&self, a: &Ciphertext) -> f64 {
        a.magnitude()
    }

    fn negate(&self, a: &Ciphertext) -> Ciphertext {
        self.negate(a)
    }

    fn with_noise(&self, a: Ciphertext, noise: Noise) -> Ciphertext {
        let expected = Expected { noise, ..a.expected() };
        a.estimated(&expected)
    }
}

/// Hands every operation on to the method of that name.
macro_rules! as_methods {
    ($evaluator:ty, $value:ty $(, $more:item)?) => {
        impl $crate::ckks::operations::Operations for $evaluator {
            type Value = $value;
            fn level(&self, a: &$value) -> usize {
                a.level()
            }
            fn with_magnitude(&self, a: $value, magnitude: f64) -> Result<$value> {
                a.with_magnitude(magnitude)
            }
            fn add(&self, a: &$value, b: &$value) -> Result<$value> {
                self.add(a, b)
            }
            fn add_to(&self, a: $value, b: &$value) -> Result<$value> {
                self.add_to(a, b)
            }
            fn double_product(&self, a: &$value, b: &$value, c: Option<&$value>) -> Result<$value> {
                self.double_product(a, b, c)
            }
            fn sub(&self, a: &$value, b: &$value) -> Result<$value> {
                self.sub(a, b)
            }
            fn add_scalar(
                &self,
                a: &$value,
                number: impl Into<$crate::ckks::Complex>,
            ) -> Result<$value> {
                self.add_scalar(a, number)
            }
            fn multiply_scalar(
                &self,
                a: &$value,
                number: impl Into<$crate::ckks::Complex>,
            ) -> Result<$value> {
                self.multiply_scalar(a, number)
            }
            fn mul_scalar(
                &self,
                a: &$value,
                number: impl Into<$crate::ckks::Complex>,
            ) -> Result<$value> {
                self.mul_scalar(a, number)
            }
            fn multiply_integer(&self, a: &$value, factor: i64) -> Result<$value> {
                self.multiply_integer(a, factor)
            }
            fn multiply(&self, a: &$value, b: &$value) -> Result<$value> {
                self.multiply(a, b)
            }
            fn square(&self, a: &$value) -> Result<$value> {
                self.square(a)
            }
            fn normalise(&self, a: &$value) -> Result<$value> {
                self.normalise(a)
            }
            fn drop_to(&self, a: &$value, level: usize) -> Result<$value> {
                self.drop_to(a, level)
            }
            fn match_level(&self, a: &$value, level: usize) -> Result<$value> {
                self.match_level(a, level)
            }
            $($more)?
        }
    };
}

pub(super) use as_methods;

as_methods!(
    Evaluator,
    Ciphertext,
    fn add_multiple(
        &self,
        sum: Ciphertext,
        a: &Ciphertext,
        level: usize,
        number: Complex,
    ) -> Result<Ciphertext> {
        self.add_multiple(sum, a, level, number)
    }
);

/// What costs most of a function: key switches, then products.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Products {
    /// Relinearisations.
    pub switches: usize,
    /// Products of two ciphertexts, squares among them.
    pub products: usize,
}

impl core::ops::Add for Products {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Products {
            switches: self.switches + other.switches,
            products: self.products + other.products,
        }
    }
}

/// Counts operations on nothing.
#[derive(Default)]
pub(super) struct Counter {
    seen: Cell<Products>,
}

/// A level, and whether the value is a product that is still to be relinearised or rescaled.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub level: usize,
    square: bool,
    pending: bool,
}

impl Counted {
    pub fn at(level: usize) -> Self {
        Counted { level, square: false, pending: false }
    }
}

impl Counter {
    /// What was counted.
    pub fn seen(&self) -> Products {
        self.seen.get()
    }

    fn count(&self, switches: usize, products: usize) {
        self.seen.set(self.seen.get() + Products { switches, products });
    }

    fn rescaled(a: &Counted) -> Counted {
        Counted { level: a.level - usize::from(a.pending), pending: false, ..*a }
    }

    /// At one level: pending ones are rescaled where the level has to fall, or always.
    fn lower(a: &Counted, b: &Counted) -> usize {
        Self::rescaled(a).level.min(Self::rescaled(b).level)
    }
}

impl Operations for Counter {
    type Value = Counted;

    fn level(&self, a: &Counted) -> usize {
        a.level
    }

    fn with_magnitude(&self, a: Counted, _: f64) -> Result<Counted> {
        Ok(a)
    }

    fn add_to(&self, a: Counted, b: &Counted) -> Result<Counted> {
        Operations::add(self, &a, b)
    }

    fn double_product(&self, a: &Counted, b: &Counted, _: Option<&Counted>) -> Result<Counted> {
        self.multiply(a, b)
    }

    fn add(&self, a: &Counted, b: &Counted) -> Result<Counted> {
        let square = a.square || b.square;
        let pending = a.pending || b.pending;
        Ok(Counted { level: a.level.min(b.level), square, pending })
    }

    fn sub(&self, a: &Counted, b: &Counted) -> Result<Counted> {
        Operations::add(self, a, b)
    }

    fn add_scalar(&self, a: &Counted, _: impl Into<Complex>) -> Result<Counted> {
        Ok(*a)
    }

    fn multiply_scalar(&self, a: &Counted, _: impl Into<Complex>) -> Result<Counted> {
        Ok(Counted { pending: true, ..Self::rescaled(a) })
    }

    fn mul_scalar(&self, a: &Counted, number: impl Into<Complex>) -> Result<Counted> {
        Ok(Self::rescaled(&self.multiply_scalar(a, number)?))
    }

    fn multiply_integer(&self, a: &Counted, _: i64) -> Result<Counted> {
        Ok(*a)
    }

    fn multiply(&self, a: &Counted, b: &Counted) -> Result<Counted> {
        self.count(0, 1);
        Ok(Counted { level: Self::lower(a, b), square: true, pending: true })
    }

    fn square(&self, a: &Counted) -> Result<Counted> {
        self.multiply(a, a)
    }

    fn normalise(&self, a: &Counted) -> Result<Counted> {
        self.count(usize::from(a.square), 0);
        Ok(Counted { square: false, ..Self::rescaled(a) })
    }

    fn drop_to(&self, a: &Counted, level: usize) -> Result<Counted> {
        Ok(Counted { level, ..*a })
    }

    fn match_level(&self, a: &Counted, level: usize) -> Result<Counted> {
        Ok(Counted { level, pending: false, ..*a })
    }
}
