//! Complex numbers: what a slot holds. Doubles enter and leave. Both sides.

use core::ops::{Add, Mul, Neg, Sub};

/// A complex number in double precision.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Complex {
    /// The real part.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
}

impl Complex {
    /// `re + im i`.
    pub const fn new(re: f64, im: f64) -> Self {
        Complex { re, im }
    }

    /// `exp(i angle)`.
    pub fn unit(angle: f64) -> Self {
        Complex { re: angle.cos(), im: angle.sin() }
    }

    /// The complex conjugate.
    pub fn conj(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }

    /// `factor` times this number.
    pub fn scale(self, factor: f64) -> Self {
        Complex { re: self.re * factor, im: self.im * factor }
    }

    /// The square of the absolute value.
    pub fn norm_sqr(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    /// The absolute value.
    pub fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    /// Whether both parts are finite.
    pub fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
}

impl From<f64> for Complex {
    fn from(re: f64) -> Self {
        Complex { re, im: 0.0 }
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

impl Neg for Complex {
    type Output = Self;

    fn neg(self) -> Self {
        Complex { re: -self.re, im: -self.im }
    }
}
