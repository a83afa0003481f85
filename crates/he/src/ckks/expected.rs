//! What is known in public of a result, from what is known of its operands.
//!
//! Levels, scales, errors and magnitudes follow from those of the operands alone. [`super::Evaluator`]
//! computes a result's polynomials and takes the rest from here; [`super::Forecast`] has nothing
//! else. The formulas are those of `docs/ckks.md`, section 5.

use super::Complex;
use super::modulus_chain::ModulusChain;
use super::noise::Noise;
use super::spec::Ring;
use crate::error::{Error, Result};

/// How far the ratio of two scales may be from the integer that stands for it, relative to it.
const NEARLY: f64 = 1.0 / (1u64 << 34) as f64;

/// What is known in public about a ciphertext, without its polynomials.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// How often it can be rescaled.
    pub level: usize,
    /// The degree in s: 1, or 2 for a product that was not relinearised.
    pub degree: usize,
    /// What its slots hold is numbers times this.
    pub scale: f64,
    /// The number of slots.
    pub slots: usize,
    /// How far it is off, in units of its coefficients.
    pub noise: Noise,
    /// The bound on the absolute value in a slot.
    pub magnitude: f64,
}

impl Expected {
    /// The level.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The same with a bound that the caller knows to hold.
    ///
    /// # Errors
    /// [`Error::Range`] unless it is positive and finite.
    pub fn with_magnitude(self, magnitude: f64) -> Result<Self> {
        check_magnitude(magnitude)?;
        Ok(Expected { magnitude, ..self })
    }

    /// What no number is beyond but for noise: a quarter above the magnitude, which leaves out how
    /// far a polynomial is from the function that it stands for.
    pub fn largest(&self) -> f64 {
        1.25 * self.magnitude
    }

    /// Refuses what was not computed as this: of another level, degree, scale or number of slots, or
    /// by its own word with a larger error or larger numbers.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn check_instance(&self, other: &Expected) -> Result<()> {
        let shape = |of: &Expected| (of.level, of.degree, of.scale.to_bits(), of.slots);
        let larger = other.noise.bound > self.noise.bound || other.magnitude > self.magnitude;
        if shape(self) == shape(other) && !larger {
            return Ok(());
        }
        let text = |of: &Expected| {
            let &Expected { level, degree, scale, slots, noise, magnitude } = of;
            let (scale, bound) = (scale.log2(), noise.bound / scale);
            format!(
                "level {level}, degree {degree}, scale 2^{scale:.9}, {slots} slots, numbers up to \
                 {magnitude} with errors up to {bound:.3e}"
            )
        };
        Err(Error::Range {
            what: "a ciphertext to publish",
            expected: format!("as the expected computation gives it, {}", text(self)),
            actual: text(other),
        })
    }

    /// Refuses degree 2.
    pub(super) fn linear(&self, what: &'static str) -> Result<()> {
        if self.degree == 1 {
            return Ok(());
        }
        Err(Error::Range {
            what,
            expected: "of degree 1 (relinearise it first)".into(),
            actual: format!("degree {}", self.degree),
        })
    }

    /// The largest number that it holds, times the scale.
    fn size(&self) -> f64 {
        self.scale * self.magnitude
    }
}

/// Refuses a scale that numbers cannot be encoded at.
pub(super) fn check_scale(scale: f64) -> Result<()> {
    if scale.is_finite() && scale >= 1.0 {
        return Ok(());
    }
    Err(Error::Range {
        what: "a scale",
        expected: "finite and at least 1".into(),
        actual: scale.to_string(),
    })
}

/// Refuses what is no bound on numbers.
pub(super) fn check_magnitude(magnitude: f64) -> Result<()> {
    if magnitude.is_finite() && magnitude > 0.0 {
        return Ok(());
    }
    Err(Error::Range {
        what: "a bound on the magnitude",
        expected: "positive and finite".into(),
        actual: magnitude.to_string(),
    })
}

/// The magnitude that is declared for numbers of which the largest is this: the least power of two
/// that serves, from 1 on.
pub(super) fn declared(largest: f64) -> f64 {
    f64::exp2(largest.max(1.0).log2().ceil())
}

/// Refuses a complex number where slots are real.
pub(super) fn real_only(ring: Ring, value: Complex) -> Result<()> {
    if ring == Ring::Standard || value.im == 0.0 {
        return Ok(());
    }
    Err(Error::Range {
        what: "a number in the conjugate-invariant ring",
        expected: "real; the standard ring takes complex ones".into(),
        actual: format!("{} + {}i", value.re, value.im),
    })
}

/// Refuses a number of slots to sum over that rotations by powers of two do not make.
pub(super) fn check_count(count: usize, slots: usize) -> Result<()> {
    if count.is_power_of_two() && count <= slots {
        return Ok(());
    }
    Err(Error::Range {
        what: "the number of slots to sum over",
        expected: format!("a power of two up to {slots}"),
        actual: count.to_string(),
    })
}

/// The integer that takes what is subtracted from a product at `level` to its scale.
fn subtrahend(c: &Expected, level: usize, scale: f64) -> Result<f64> {
    c.linear("what is subtracted")?;
    if c.level < level {
        return Err(Error::Range {
            what: "the level of what is subtracted",
            expected: format!("at least {level}, that of the product"),
            actual: c.level.to_string(),
        });
    }
    let ratio = scale / c.scale;
    if ratio < 0.5 || (ratio.round() / ratio - 1.0).abs() > NEARLY {
        return Err(Error::Scale {
            operation: "a difference from twice a product",
            expected: format!("2^{:.9} divided by an integer", scale.log2()),
            actual: format!("2^{:.9}", c.scale.log2()),
            advice: "subtract after a rescale",
        });
    }
    Ok(ratio.round())
}

/// A level that is needed, and none is left.
pub(super) fn no_level(operation: &'static str) -> Error {
    Error::Level { operation, needed: "1 level".into(), left: "none is".into() }
}

impl ModulusChain {
    /// log2 of the standard deviation of the error of a slot's real part: coefficient errors of
    /// many slots add up.
    pub fn error_bits(&self, a: &Expected) -> f64 {
        // Of a sparse ciphertext only the coefficients of its slots are read.
        let read = a.slots as f64 / self.max_slots() as f64;
        (a.noise.std * (self.part_expansion() * read).sqrt() / a.scale).log2()
    }

    /// Divided by the last prime.
    pub fn rescaled(&self, a: &Expected) -> Result<Expected> {
        if a.level == 0 {
            return Err(no_level("a rescale"));
        }
        let prime = self.prime(a.level);
        let rounding = Noise::rounding(self.expansion(), a.degree);
        let noise = a.noise.times(1.0 / prime).plus(rounding);
        Ok(Expected { level: a.level - 1, scale: a.scale / prime, noise, ..*a })
    }

    /// Without the limbs above `level`.
    pub fn dropped(&self, a: &Expected, level: usize) -> Result<Expected> {
        if level > a.level {
            return Err(Error::Range {
                what: "the level to drop to",
                expected: format!("at most {}, the ciphertext's own", a.level),
                actual: level.to_string(),
            });
        }
        Ok(Expected { level, ..*a })
    }

    /// Times an integer that takes the scale to `scale`, up to its own rounding.
    pub fn scaled_up(&self, a: &Expected, factor: f64, scale: f64) -> Expected {
        let rounding = (factor * a.scale - scale).abs() * a.magnitude;
        let error = Noise { std: rounding / self.expansion().sqrt(), bound: rounding };
        Expected { scale, noise: a.noise.times(factor).plus(error), ..*a }
    }

    /// A sum or a difference at one level and scale.
    pub fn sum(&self, a: &Expected, b: &Expected) -> Expected {
        Expected {
            degree: a.degree.max(b.degree),
            slots: a.slots.max(b.slots),
            noise: a.noise.plus(b.noise),
            magnitude: a.magnitude + b.magnitude,
            ..*a
        }
    }

    /// A sum with a plaintext of the same scale.
    pub fn sum_with_plain(&self, a: &Expected, slots: usize, magnitude: f64) -> Expected {
        Expected {
            slots: a.slots.max(slots),
            noise: a.noise.plus(Noise::encoding(self.expansion())),
            magnitude: a.magnitude + magnitude,
            ..*a
        }
    }

    /// A sum with one number.
    pub fn sum_with_scalar(&self, a: &Expected, number: Complex) -> Result<Expected> {
        self.finite(number)?;
        self.check_constant(a, number.norm() * a.scale)?;
        Ok(Expected { magnitude: a.magnitude + number.norm(), ..*a })
    }

    /// A product with one number, with the scale of that number; `a` is not pending.
    pub fn product_with_scalar(&self, a: &Expected, number: Complex) -> Result<(f64, Expected)> {
        let factor = self.factor_scale(a)?;
        self.check_room("a product with a number", a, factor)?;
        self.check_constant(a, number.norm() * factor * a.scale)?;
        // The factor is off by up to half a unit in each part.
        let off = Noise { std: a.size() / self.expansion().sqrt(), bound: a.size() };
        let noise = a
            .noise
            .times(number.scale(factor).norm().max(1.0))
            .plus(off.times(core::f64::consts::FRAC_1_SQRT_2));
        let magnitude = a.magnitude * number.norm().max(f64::MIN_POSITIVE);
        Ok((factor, Expected { scale: a.scale * factor, noise, magnitude, ..*a }))
    }

    /// A product with a Gaussian integer.
    pub fn product_with_integer(&self, a: &Expected, re: i64, im: i64) -> Result<Expected> {
        let factor = Complex::new(re as f64, im as f64);
        self.finite(factor)?;
        self.check_constant(a, factor.norm() * a.scale)?;
        if re.unsigned_abs().max(im.unsigned_abs()) >= 1 << 53 {
            return Err(Error::Range {
                what: "an integer factor",
                expected: "below 2^53".into(),
                actual: format!("{re} + {im}i"),
            });
        }
        // Zero times anything has no error; what travels is a positive number all the same.
        let size = factor.norm();
        let noise = a.noise.times(size.max(f64::EPSILON));
        Ok(Expected { noise, magnitude: a.magnitude * size.max(f64::MIN_POSITIVE), ..*a })
    }

    /// A product of two of degree 1 at one level, of degree 2.
    pub fn product(&self, operation: &'static str, a: &Expected, b: &Expected) -> Result<Expected> {
        self.check_room(operation, a, b.scale)?;
        let noise = a.noise.product(a.size(), b.noise, b.size(), self.expansion());
        Ok(Expected {
            level: a.level,
            degree: 2,
            scale: a.scale * b.scale,
            slots: a.slots.max(b.slots),
            noise,
            magnitude: a.magnitude * b.magnitude,
        })
    }

    /// [`Self::product`] of two whose errors may be the same.
    pub fn dependent_product(
        &self,
        operation: &'static str,
        a: &Expected,
        b: &Expected,
    ) -> Result<Expected> {
        let noise = a.noise.dependent_product(a.size(), b.noise, b.size(), self.expansion());
        Ok(Expected { noise, ..self.product(operation, a, b)? })
    }

    /// `2 a b − c`, with the integer that takes `c` to the product's scale, or `2 a b − 1`, where
    /// `b` may be `a`.
    pub fn doubled(
        &self,
        a: &Expected,
        b: &Expected,
        c: Option<&Expected>,
    ) -> Result<(f64, Expected)> {
        const OPERATION: &str = "twice a product";
        self.check_room(OPERATION, a, 2.0 * b.scale)?;
        let product = match c {
            Some(_) => self.product(OPERATION, a, b)?,
            None => self.dependent_product(OPERATION, a, b)?,
        };
        let factor = c.map_or(Ok(1.0), |c| subtrahend(c, a.level, product.scale))?;
        let twice = product.noise.times(2.0);
        let (noise, magnitude) = match c {
            Some(c) => (twice.plus(c.noise.times(factor)), c.magnitude),
            None => (twice, 1.0),
        };
        let magnitude = 2.0 * a.magnitude * b.magnitude + magnitude;
        let slots = product.slots.max(c.map_or(0, |c| c.slots));
        Ok((factor, Expected { slots, noise, magnitude, ..product }))
    }

    /// A product with a plaintext.
    pub fn product_with_plain(
        &self,
        a: &Expected,
        scale: f64,
        slots: usize,
        magnitude: f64,
    ) -> Result<Expected> {
        self.check_room("a product with a plaintext", a, scale)?;
        let encoding = Noise::encoding(self.expansion());
        let noise = a.noise.product(a.size(), encoding, scale * magnitude, self.expansion());
        Ok(Expected {
            scale: a.scale * scale,
            slots: a.slots.max(slots),
            noise,
            magnitude: a.magnitude * magnitude,
            ..*a
        })
    }

    /// A sum of products whose magnitude is known; all `a` of one level and scale, and all `b`.
    pub fn inner_product(
        &self,
        a: &[Expected],
        b: &[Expected],
        magnitude: f64,
    ) -> Result<Expected> {
        let range = |expected: &str, actual: String| Error::Range {
            what: "the factors of an inner product",
            expected: expected.into(),
            actual,
        };
        let (Some(first), Some(second)) = (a.first(), b.first()) else {
            return Err(range("at least one pair", format!("{} and {}", a.len(), b.len())));
        };
        if a.len() != b.len() {
            return Err(range("equally many", format!("{} and {}", a.len(), b.len())));
        }
        for (operands, model) in [(a, first), (b, second)] {
            for operand in operands {
                operand.linear("a factor")?;
                let alike = operand.level == first.level
                    && operand.scale.to_bits() == model.scale.to_bits();
                if !alike {
                    let (level, scale) = (operand.level, operand.scale.log2());
                    let actual = format!("level {level}, scale 2^{scale:.9}");
                    return Err(range("of one level, and of one scale on each side", actual));
                }
            }
        }
        let scale = first.scale * second.scale;
        let needed = scale.log2() + magnitude.max(1.0 / scale).log2() + 1.0;
        let room = self.log_modulus(first.level);
        if needed > room {
            return Err(Error::Level {
                operation: "an inner product",
                needed: format!("a modulus of {needed:.0} bits"),
                left: format!("{room:.0} bits at level {} are", first.level),
            });
        }
        let delta = self.expansion();
        let noises =
            a.iter().zip(b).map(|(a, b)| a.noise.product(a.size(), b.noise, b.size(), delta));
        let noise = noises.fold(Noise { std: 0.0, bound: 0.0 }, Noise::plus);
        let slots = first.slots.max(second.slots);
        Ok(Expected { level: first.level, degree: 2, scale, slots, noise, magnitude })
    }

    /// Under another key, of degree 1.
    pub fn switched(&self, a: &Expected) -> Expected {
        Expected { degree: 1, noise: a.noise.plus(self.switch_noise(a.level)), ..*a }
    }

    /// Of degree 1 and divided by the last prime, both in one pass.
    pub fn switched_and_rescaled(&self, a: &Expected) -> Expected {
        let prime = self.prime(a.level);
        let noise = a.noise.plus(self.switch_noise(a.level)).times(1.0 / prime);
        let noise = noise.plus(Noise::rounding(self.expansion(), 1));
        Expected { level: a.level - 1, degree: 1, scale: a.scale / prime, noise, ..*a }
    }

    /// The scale of a factor whose product with `a` rescales to the canonical scale of the level
    /// below; or, at the lowest level of a stage, to what a product of ciphertexts there does.
    pub fn factor_scale(&self, a: &Expected) -> Result<f64> {
        let below = a.level.checked_sub(1).ok_or_else(|| no_level("a product"))?;
        let product = self.left_by(a.level).unwrap_or(self.scale(below) * self.prime(a.level));
        Ok(product / a.scale)
    }

    /// Refuses a product whose scale the modulus has no room for.
    pub fn check_room(&self, operation: &'static str, a: &Expected, factor: f64) -> Result<()> {
        // A bit for the sign, and one for numbers up to 1.
        let needed = a.scale.log2() + factor.log2() + 2.0;
        let room = self.log_modulus(a.level);
        if needed <= room {
            return Ok(());
        }
        if a.level == 0 {
            return Err(no_level(operation));
        }
        Err(Error::Level {
            operation,
            needed: format!("a modulus of {needed:.0} bits"),
            left: format!("{room:.0} bits at level {} are", a.level),
        })
    }

    /// Refuses numbers to encode that the modulus has no room for.
    pub fn check_encoded(&self, largest: f64, level: usize, scale: f64) -> Result<()> {
        let room = self.log_modulus(level) - 1.0;
        if (largest * scale).log2() < room {
            return Ok(());
        }
        Err(Error::Range {
            what: "a number to encode",
            expected: format!(
                "below 2^{:.1} at level {level} and scale 2^{:.1}",
                room - scale.log2(),
                scale.log2(),
            ),
            actual: largest.to_string(),
        })
    }

    /// Refuses a constant that would wrap around the modulus by itself.
    fn check_constant(&self, a: &Expected, size: f64) -> Result<()> {
        let room = self.log_modulus(a.level) - 1.0;
        if size < 1.0 || size.log2() < room {
            return Ok(());
        }
        Err(Error::Range {
            what: "a number times the scale",
            expected: format!("below 2^{room:.1} at level {}", a.level),
            actual: format!("2^{:.1}", size.log2()),
        })
    }

    /// Refuses a number that no slot can hold.
    pub fn finite(&self, number: Complex) -> Result<()> {
        if number.is_finite() {
            return real_only(self.spec.ring, number);
        }
        Err(Error::Range {
            what: "a number",
            expected: "finite".into(),
            actual: format!("{} + {}i", number.re, number.im),
        })
    }

    /// What one key switch at `level` adds.
    pub fn switch_noise(&self, level: usize) -> Noise {
        let digits = (0..self.digits(level)).map(|digit| {
            let range = self.digit_range(level, digit);
            range.map(|index| self.prime(index)).product()
        });
        Noise::key_switch(self.expansion(), digits, f64::exp2(self.log_special()))
    }
}
