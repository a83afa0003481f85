//! Noise estimate: the error of a result from the errors of its operands.
//!
//! Two figures travel with a ciphertext (docs/ckks.md, section 5): the standard deviation of a
//! coefficient of the error, which takes errors for independent and is what one sees; and a bound
//! on the error in every slot whatever the messages, which adds absolute values and is what a
//! published result is flooded by.
//!
//! # The rules
//!
//! Let δ be the mean square of a value at a root of unity over that of a coefficient: N in the standard ring, 2N in the
//! conjugate-invariant one. A product of polynomials with independent coefficients of variance v and w has coefficients of
//! variance δ v w; a product with a message whose slots have the mean square M² has M² v. A ternary secret has v = 2/3, a
//! rounding error 1/12.
//!
//! |operation|variance of a coefficient of the error|
//! |---|---|
//! |encoding|1/12|
//! |encryption, secret key|σ² + 1/12|
//! |encryption, public key|σ² (1 + 2 δ · 2/3) + 1/12|
//! |sum|v + w|
//! |product of (Δ, M, v) and (Δ', M', w)|(Δ' M')² v + (Δ M)² w + δ v w|
//! |square of (Δ, M, v)|(2 Δ M √v + √δ v)²|
//! |rescale by q, degree 1|v/q² + (1 + δ · 2/3)/12|
//! |rescale by q, degree 2|the same plus 2 (δ · 2/3)²/12|
//! |key switch|v + Σ_i δ (D_i/P)² σ²/12 + (1 + δ · 2/3)/12|
//!
//! For the bound, put 9.5 √(δ v) for every fresh polynomial of variance v and read sums of squares as sums.

use crate::params::TAIL_DEVIATIONS;
use ciphervec_arith::sample::GAUSSIAN_SIGMA;

/// The variance of a ternary coefficient.
const TERNARY: f64 = 2.0 / 3.0;
/// The variance of a rounding error.
const ROUNDING: f64 = 1.0 / 12.0;

/// The error of a ciphertext, in units of its coefficients: divide by the scale for that of the
/// numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Noise {
    /// The standard deviation of a coefficient, on average over messages.
    pub std: f64,
    /// Exceeded by the absolute value in a slot with probability below 2⁻⁶⁴, whatever the messages.
    pub bound: f64,
}

impl Noise {
    /// Independent coefficients of this variance.
    fn fresh(variance: f64, delta: f64) -> Self {
        let std = variance.sqrt();
        Noise { std, bound: TAIL_DEVIATIONS * (delta * variance).sqrt() }
    }

    /// The rounding of an encoded message.
    pub(super) fn encoding(delta: f64) -> Self {
        Noise::fresh(ROUNDING, delta)
    }

    /// A ciphertext under the secret key.
    #[doc(hidden)]
    pub fn secret_key(delta: f64) -> Self {
        Noise::fresh(GAUSSIAN_SIGMA * GAUSSIAN_SIGMA + ROUNDING, delta)
    }

    /// A ciphertext under the public key: e₀ + e u + e₁ s.
    pub(super) fn public_key(delta: f64) -> Self {
        let gaussian = Noise::fresh(GAUSSIAN_SIGMA * GAUSSIAN_SIGMA, delta);
        let ternary = Noise::fresh(TERNARY, delta);
        let products = Noise {
            std: (2.0 * delta).sqrt() * gaussian.std * ternary.std,
            bound: 2.0 * gaussian.bound * ternary.bound,
        };
        gaussian.plus(products).plus(Noise::encoding(delta))
    }

    /// What no ciphertext has less of: that of a fresh one, which dropping levels leaves as it is,
    /// or of a rescale's rounding.
    #[doc(hidden)]
    pub fn least(delta: f64) -> Self {
        Noise::secret_key(delta).least_of(Noise::rounding(delta, 1))
    }

    fn least_of(self, other: Noise) -> Self {
        Noise { std: self.std.min(other.std), bound: self.bound.min(other.bound) }
    }

    /// At least that of `least`.
    #[doc(hidden)]
    pub fn at_least(self, least: Noise) -> Self {
        Noise { std: self.std.max(least.std), bound: self.bound.max(least.bound) }
    }

    /// The rounding of a ciphertext of `degree`: r₀ + r₁ s + r₂ s².
    pub(super) fn rounding(delta: f64, degree: usize) -> Self {
        let rounding = Noise::fresh(ROUNDING, delta);
        let secret = Noise::fresh(TERNARY, delta);
        let mut sum = rounding;
        let (mut square, mut bound) = (1.0, 1.0);
        for power in 1..=degree {
            // Values of s are nearly Gaussian: their fourth moment is at most three times the
            // square of their second.
            square *= delta * TERNARY * power as f64;
            bound *= secret.bound;
            sum = sum
                .plus(Noise { std: rounding.std * square.sqrt(), bound: rounding.bound * bound });
        }
        sum
    }

    /// What switching keys adds: per digit of magnitude up to `digits[i]`/2 a product with a key's
    /// error, divided by P.
    pub(super) fn key_switch(delta: f64, digits: impl Iterator<Item = f64>, special: f64) -> Self {
        let key = Noise::fresh(GAUSSIAN_SIGMA * GAUSSIAN_SIGMA, delta);
        let products = digits.map(|size| {
            let ratio = size / special;
            let digit = Noise::fresh(ROUNDING * ratio * ratio, delta);
            Noise { std: delta.sqrt() * digit.std * key.std, bound: digit.bound * key.bound }
        });
        products.fold(Noise::rounding(delta, 1), Noise::plus)
    }

    /// The noise of a sum.
    pub(super) fn plus(self, other: Noise) -> Self {
        // Not `hypot`, whose last bit is not the same everywhere: the figure is part of what is
        // serialised.
        let square = self.std * self.std + other.std * other.std;
        Noise { std: square.sqrt(), bound: capped(self.bound + other.bound) }
    }

    /// [`Self::product`] of factors whose errors may be one and the same, as those of a square are:
    /// they add up, and not their squares.
    pub(super) fn dependent_product(
        self,
        mine: f64,
        other: Noise,
        theirs: f64,
        delta: f64,
    ) -> Self {
        let independent = self.product(mine, other, theirs, delta);
        let std = self.std * theirs + other.std * mine + delta.sqrt() * self.std * other.std;
        Noise { std, ..independent }
    }

    /// The noise times a number.
    pub(super) fn times(self, factor: f64) -> Self {
        Noise { std: self.std * factor, bound: capped(self.bound * factor) }
    }

    /// The noise of a product of messages of magnitudes `mine` and `theirs`, scales included.
    pub(super) fn product(self, mine: f64, other: Noise, theirs: f64, delta: f64) -> Self {
        let both = Noise {
            std: delta.sqrt() * self.std * other.std,
            bound: capped(self.bound * other.bound),
        };
        self.times(theirs).plus(other.times(mine)).plus(both)
    }

    /// log2 of the standard deviation of a coefficient.
    pub fn bits(&self) -> f64 {
        self.std.log2()
    }
}

/// A bound that grew beyond all numbers, which deep circuits' do, as the largest of them.
fn capped(bound: f64) -> f64 {
    bound.min(f64::MAX)
}
