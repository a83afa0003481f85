//! Scalars: a ciphertext and one number for all slots enter, a ciphertext leaves. Server only.
//!
//! `X^(N/2)` is i in every slot, so a + b i with integers a and b is the polynomial a + b X^(N/2):
//! such factors and all summands cost no level. The transform holds `X^(N/2)` as I in its first
//! half and −I in its second, I² = −1.

use super::super::Complex;
use super::super::ciphertext::Ciphertext;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::plaintext::{real_only, residue};
use super::super::poly::{Ntt, Poly};
use super::Evaluator;
use crate::error::{Error, Result};
use ciphervec_arith::{Modulus, NttTable, poly};

/// Integers, held as doubles, as real and imaginary part of a constant.
#[derive(Clone, Copy)]
struct Constant {
    re: f64,
    im: f64,
}

impl Constant {
    /// Its residues in the first and in the second half of a transform.
    fn residues(self, table: &NttTable) -> [u64; 2] {
        let m = table.modulus();
        let re = residue(self.re, m);
        if self.im == 0.0 {
            return [re, re];
        }
        let unit = m.pow(table.root(), table.degree() as u64 / 2);
        let im = m.mul(residue(self.im, m), unit);
        [m.add(re, im), m.sub(re, im)]
    }

    /// Runs `work` on every half of every limb.
    fn apply(self, part: &mut Poly<Ntt>, work: impl Fn(&mut [u64], u64, &Modulus) + Send + Sync) {
        part.for_limbs(|_, table, limb| {
            let [first, second] = self.residues(table);
            if first == second {
                work(limb, first, table.modulus());
                return;
            }
            let (low, high) = limb.split_at_mut(table.degree() / 2);
            work(low, first, table.modulus());
            work(high, second, table.modulus());
        });
    }

    fn multiply(self, a: &Ciphertext) -> Vec<Poly<Ntt>> {
        let mut parts = a.parts().to_vec();
        parts.iter_mut().for_each(|part| self.apply(part, poly::scalar_mul_assign));
        parts
    }
}

impl Evaluator {
    /// `a + number` in every slot; no level is spent.
    ///
    /// # Errors
    /// [`Error::Range`] for a number that is not finite, too large for the modulus, or not real in
    /// the conjugate-invariant ring.
    pub fn add_scalar(&self, a: &Ciphertext, number: impl Into<Complex>) -> Result<Ciphertext> {
        let number = number.into();
        self.check(a)?;
        finite(&self.params, number)?;
        room(&self.params, a, number.norm() * a.scale())?;
        let rounded = number.scale(a.scale());
        let constant =
            Constant { re: rounded.re.round_ties_even(), im: rounded.im.round_ties_even() };
        let mut result = a.clone();
        constant.apply(&mut result.parts[0], |half, c, m| {
            half.iter_mut().for_each(|value| *value = m.add(*value, c));
        });
        let (noise, magnitude) = (*a.noise(), a.magnitude() + number.norm());
        Ok(result.with_estimates(a.scale(), noise, magnitude))
    }

    /// `a` times a number, at the scale whose rescale is canonical: a level is spent when it is
    /// rescaled.
    ///
    /// # Errors
    /// [`Error::Level`] if no level is left; [`Error::Range`] as for [`Self::add_scalar`].
    pub fn multiply_scalar(
        &self,
        a: &Ciphertext,
        number: impl Into<Complex>,
    ) -> Result<Ciphertext> {
        let number = number.into();
        finite(&self.params, number)?;
        let a = self.due(a)?;
        let factor = self.factor_scale(&a)?;
        self.check_room("a product with a number", &a, factor)?;
        room(&self.params, &a, number.norm() * factor * a.scale())?;
        let exact = number.scale(factor);
        let constant = Constant { re: exact.re.round_ties_even(), im: exact.im.round_ties_even() };
        let delta = self.params.expansion();
        // The factor is off by up to half a unit in each part.
        let off = Noise {
            std: a.scale() * a.magnitude() / delta.sqrt(),
            bound: a.scale() * a.magnitude(),
        };
        let noise = a
            .noise()
            .times(exact.norm().max(1.0))
            .plus(off.times(core::f64::consts::FRAC_1_SQRT_2));
        let magnitude = a.magnitude() * number.norm().max(f64::MIN_POSITIVE);
        Ok(a.with_parts(constant.multiply(&a), a.scale() * factor, noise, magnitude))
    }

    /// [`Self::multiply_scalar`], rescaled.
    ///
    /// # Errors
    /// As [`Self::multiply_scalar`].
    pub fn mul_scalar(&self, a: &Ciphertext, number: impl Into<Complex>) -> Result<Ciphertext> {
        self.rescale(&self.multiply_scalar(a, number)?)
    }

    /// `a` times an integer; no level is spent.
    ///
    /// # Errors
    /// [`Error::Range`] if the modulus has no room for it.
    pub fn multiply_integer(&self, a: &Ciphertext, factor: i64) -> Result<Ciphertext> {
        self.multiply_gaussian(a, factor, 0)
    }

    /// `a` times the Gaussian integer `re + im i`; no level is spent.
    ///
    /// # Errors
    /// As [`Self::multiply_integer`]; [`Error::Range`] for an imaginary part in the
    /// conjugate-invariant ring.
    pub fn multiply_gaussian(&self, a: &Ciphertext, re: i64, im: i64) -> Result<Ciphertext> {
        self.check(a)?;
        let factor = Complex::new(re as f64, im as f64);
        finite(&self.params, factor)?;
        room(&self.params, a, factor.norm() * a.scale())?;
        let parts = if re.unsigned_abs().max(im.unsigned_abs()) < 1 << 53 {
            Constant { re: factor.re, im: factor.im }.multiply(a)
        } else {
            return Err(Error::Range {
                what: "an integer factor",
                expected: "below 2^53".into(),
                actual: format!("{re} + {im}i"),
            });
        };
        // Zero times anything has no error; what travels is a positive number all the same.
        let size = factor.norm();
        let noise = a.noise().times(size.max(f64::EPSILON));
        let magnitude = a.magnitude() * size.max(f64::MIN_POSITIVE);
        Ok(a.with_parts(parts, a.scale(), noise, magnitude))
    }

    /// `a` times i; no level is spent.
    ///
    /// # Errors
    /// [`Error::Range`] in the conjugate-invariant ring.
    pub fn multiply_by_i(&self, a: &Ciphertext) -> Result<Ciphertext> {
        self.multiply_gaussian(a, 0, 1)
    }
}

fn finite(params: &Params, number: Complex) -> Result<()> {
    if number.is_finite() {
        return real_only(params, number);
    }
    Err(Error::Range {
        what: "a number",
        expected: "finite".into(),
        actual: format!("{} + {}i", number.re, number.im),
    })
}

/// Refuses a constant that would wrap around the modulus by itself.
fn room(params: &Params, a: &Ciphertext, size: f64) -> Result<()> {
    let room = params.log_modulus(a.level()) - 1.0;
    if size < 1.0 || size.log2() < room {
        return Ok(());
    }
    Err(Error::Range {
        what: "a number times the scale",
        expected: format!("below 2^{room:.1} at level {}", a.level()),
        actual: format!("2^{:.1}", size.log2()),
    })
}
