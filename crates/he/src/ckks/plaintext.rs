//! Encodes numbers as a polynomial whose slots hold them times a scale, and decodes it.

use super::Complex;
use super::expected::{check_scale, declared, real_only};
use super::noise::Noise;
use super::params::{Params, Slots};
use super::poly::{Coefficient, Ntt, Poly};
use super::spec::Ring;
use crate::error::{Error, Result};
use ciphervec_arith::{Modulus, convert, poly};
use std::sync::Arc;

/// How to encode; what is `None` takes its default.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Encoding {
    /// The level, the highest by default.
    pub level: Option<usize>,
    /// The scale, that of the level by default.
    pub scale: Option<f64>,
    /// A bound on the absolute value in every slot. It is public: it travels with what is computed
    /// from the plaintext. By default the least power of two that serves, from 1 on; declare one
    /// where the size itself is a secret.
    pub magnitude: Option<f64>,
    /// The number of slots, a power of two; by default the least that holds the values. The rest is
    /// zero.
    pub slots: Option<usize>,
}

/// A polynomial whose values in the slots are numbers times a scale.
#[derive(Clone, PartialEq, Debug)]
pub struct Plaintext {
    pub(super) poly: Poly<Ntt>,
    pub(super) scale: f64,
    pub(super) slots: usize,
    pub(super) magnitude: f64,
}

impl Plaintext {
    /// Of what a ciphertext holds, at its scale. Hidden: secret keys decrypt.
    #[doc(hidden)]
    pub fn from_parts(poly: Poly<Ntt>, scale: f64, slots: usize, magnitude: f64) -> Self {
        Plaintext { poly, scale, slots, magnitude }
    }

    /// Encodes real numbers at the highest level.
    ///
    /// # Errors
    /// [`Error::Range`] for a number that is not finite or too large, or more numbers than slots.
    pub fn encode(params: &Arc<Params>, values: &[f64]) -> Result<Self> {
        Self::encode_with(params, values, &Encoding::default())
    }

    /// [`Self::encode`] as `encoding` says.
    ///
    /// # Errors
    /// As [`Self::encode`], and for a level, scale or number of slots that the parameters do not
    /// have.
    pub fn encode_with(params: &Arc<Params>, values: &[f64], encoding: &Encoding) -> Result<Self> {
        let plan = Plan::new(params, values.len(), encoding)?;
        let largest = largest(values.iter().map(|value| value.abs()))?;
        match params.slots() {
            Slots::Real(embedding) => plan.finish(largest, |out| {
                embedding.to_coefficients(&padded(values, plan.slots), out);
            }),
            Slots::Complex(embedding) => plan.finish(largest, |out| {
                let values: Vec<Complex> = values.iter().map(|&value| value.into()).collect();
                embedding.to_coefficients(&padded(&values, plan.slots), out);
            }),
        }
    }

    /// Encodes complex numbers at the highest level.
    ///
    /// # Errors
    /// As [`Self::encode`]; in the conjugate-invariant ring also for numbers that are not real.
    pub fn encode_complex(params: &Arc<Params>, values: &[Complex]) -> Result<Self> {
        Self::encode_complex_with(params, values, &Encoding::default())
    }

    /// [`Self::encode_complex`] as `encoding` says.
    ///
    /// # Errors
    /// As [`Self::encode_with`] and [`Self::encode_complex`].
    pub fn encode_complex_with(
        params: &Arc<Params>,
        values: &[Complex],
        encoding: &Encoding,
    ) -> Result<Self> {
        let plan = Plan::new(params, values.len(), encoding)?;
        let largest = largest(values.iter().map(|value| value.norm()))?;
        match params.slots() {
            Slots::Real(_) => {
                values.iter().try_for_each(|value| real_only(params.ring(), *value))?;
                let values: Vec<f64> = values.iter().map(|value| value.re).collect();
                Self::encode_with(params, &values, encoding)
            }
            Slots::Complex(embedding) => plan.finish(largest, |out| {
                embedding.to_coefficients(&padded(values, plan.slots), out);
            }),
        }
    }

    /// Encodes the polynomial with these coefficients themselves, times the scale: for layouts that
    /// use products of polynomials rather than slots. Coefficient k of the conjugate-invariant ring
    /// belongs to `X^k + X^-k`.
    ///
    /// # Errors
    /// As [`Self::encode_with`], with the degree in place of the number of slots.
    pub fn encode_coefficients(
        params: &Arc<Params>,
        coefficients: &[f64],
        encoding: &Encoding,
    ) -> Result<Self> {
        if coefficients.len() > params.degree() {
            return Err(Error::Range {
                what: "the number of coefficients",
                expected: format!("at most {}", params.degree()),
                actual: coefficients.len().to_string(),
            });
        }
        let slots = Some(params.max_slots());
        let plan = Plan::new(params, 0, &Encoding { slots, ..*encoding })?;
        // In a slot a polynomial is at most the sum of its coefficients, twice that in the second
        // ring.
        largest(coefficients.iter().map(|value| value.abs()))?;
        let sum: f64 = coefficients.iter().map(|value| value.abs()).sum();
        let weight = if params.ring() == Ring::Standard { 1.0 } else { 2.0 };
        plan.finish(weight * sum, |out| {
            out[..coefficients.len()].copy_from_slice(coefficients);
            out[coefficients.len()..].fill(0.0);
        })
    }

    /// The coefficients divided by the scale: the inverse of [`Self::encode_coefficients`].
    pub fn decode_coefficients(&self) -> Vec<f64> {
        let mut coefficients = coefficients(&self.poly, (self.scale * self.magnitude).log2() + 1.0);
        coefficients.iter_mut().for_each(|value| *value /= self.scale);
        coefficients
    }

    /// The real parts of the slots.
    pub fn decode(&self) -> Vec<f64> {
        let coefficients = self.decode_coefficients();
        match self.params().slots() {
            Slots::Real(embedding) => {
                let mut out = vec![0.0; self.slots];
                embedding.to_slots(&coefficients, &mut out);
                out
            }
            Slots::Complex(_) => self.decode_complex().into_iter().map(|value| value.re).collect(),
        }
    }

    /// The slots.
    pub fn decode_complex(&self) -> Vec<Complex> {
        match self.params().slots() {
            Slots::Real(_) => self.decode().into_iter().map(Complex::from).collect(),
            Slots::Complex(embedding) => {
                let mut out = vec![Complex::default(); self.slots];
                embedding.to_slots(&self.decode_coefficients(), &mut out);
                out
            }
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        self.poly.params()
    }

    /// The polynomial.
    pub fn poly(&self) -> &Poly<Ntt> {
        &self.poly
    }

    /// The level.
    pub fn level(&self) -> usize {
        self.poly.level()
    }

    /// The scale.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The bound on the absolute value in a slot.
    pub fn magnitude(&self) -> f64 {
        self.magnitude
    }

    /// The error of rounding coefficients to integers.
    pub(super) fn noise(&self) -> Noise {
        Noise::encoding(self.params().expansion())
    }
}

/// The largest of absolute values, all of which must be finite.
fn largest(values: impl Iterator<Item = f64>) -> Result<f64> {
    let mut largest = 0.0f64;
    for (slot, value) in values.enumerate() {
        if !value.is_finite() {
            return Err(Error::Range {
                what: "a number to encode",
                expected: "finite".into(),
                actual: format!("{value} at place {slot}"),
            });
        }
        largest = largest.max(value);
    }
    Ok(largest)
}

fn padded<T: Copy + Default>(values: &[T], length: usize) -> Vec<T> {
    let mut out = values.to_vec();
    out.resize(length, T::default());
    out
}

/// A checked encoding.
struct Plan<'a> {
    params: &'a Arc<Params>,
    level: usize,
    scale: f64,
    slots: usize,
    magnitude: Option<f64>,
}

impl<'a> Plan<'a> {
    fn new(params: &'a Arc<Params>, count: usize, encoding: &Encoding) -> Result<Self> {
        let level = encoding.level.unwrap_or(params.max_level());
        params.chain().check_level(level)?;
        let scale = encoding.scale.unwrap_or_else(|| params.scale(level));
        check_scale(scale)?;
        if let Some(magnitude) = encoding.magnitude.filter(|m| !(m.is_finite() && *m > 0.0)) {
            return Err(Error::Range {
                what: "a declared magnitude",
                expected: "positive and finite".into(),
                actual: magnitude.to_string(),
            });
        }
        let slots = encoding.slots.unwrap_or_else(|| count.next_power_of_two());
        params.chain().check_slots(slots)?;
        if count > slots {
            return Err(Error::Range {
                what: "the number of values",
                expected: format!("at most {slots}, one for each slot"),
                actual: count.to_string(),
            });
        }
        Ok(Plan { params, level, scale, slots, magnitude: encoding.magnitude })
    }

    fn finish(&self, largest: f64, fill: impl FnOnce(&mut [f64])) -> Result<Plaintext> {
        let magnitude = self.magnitude.unwrap_or_else(|| declared(largest));
        if largest > magnitude {
            return Err(Error::Range {
                what: "a number to encode",
                expected: format!("of magnitude at most {magnitude}, as declared"),
                actual: largest.to_string(),
            });
        }
        self.params.chain().check_encoded(largest, self.level, self.scale)?;
        let mut values = vec![0.0; self.params.degree()];
        fill(&mut values);
        let poly = round(self.params, self.level, self.scale, &values).into_ntt();
        Ok(Plaintext { poly, scale: self.scale, slots: self.slots, magnitude })
    }
}

/// 1.5 · 2^52: added to a double below 2^51, it leaves the nearest integer in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Rounds `values` times `scale` to integers modulo the primes of the level.
fn round(params: &Arc<Params>, level: usize, scale: f64, values: &[f64]) -> Poly<Coefficient> {
    let mut poly = Poly::scratch(params, level);
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs())) * scale;
    let narrowest = (0..=level).map(|i| params.prime(i).value()).min().unwrap_or(0);
    if largest < f64::exp2(51.0).min(narrowest as f64 - 1.0) {
        let integer = |value: &f64| (value * scale + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits());
        let integers: Vec<i64> = values.iter().map(|value| integer(value) as i64).collect();
        poly.for_limbs(|_, table, limb| convert::lift(limb, &integers, table.modulus()));
    } else {
        poly.for_limbs(|_, table, limb| {
            let rounded = values.iter().map(|value| (value * scale).round_ties_even());
            limb.iter_mut().zip(rounded).for_each(|(out, x)| *out = residue(x, table.modulus()));
        });
    }
    poly
}

/// An integer, given as a double of any size, modulo `m`.
pub(super) fn residue(x: f64, m: &Modulus) -> u64 {
    if x.abs() < f64::exp2(63.0) {
        return m.from_i64(x as i64);
    }
    // A double is 53 bits times a power of two.
    let exponent = (x.to_bits() >> 52 & 0x7ff) - 1075;
    let mantissa = m.reduce(x.to_bits() & ((1 << 52) - 1) | 1 << 52);
    let magnitude = m.mul(mantissa, m.pow(2, exponent));
    if x < 0.0 { m.neg(magnitude) } else { magnitude }
}

/// The centred coefficients, expected to have `bits` bits.
///
/// Dividing by one prime after the other leaves digits of a mixed radix, all centred, so a small
/// coefficient of either sign has zeros for its last digits. So it is enough to look at as many
/// primes as the coefficients need and one more: its digits are zero, but for a chance of one in
/// 2^40, only if the others say it all. Where they are not, all primes are used.
fn coefficients(values: &Poly<Ntt>, bits: f64) -> Vec<f64> {
    let params = values.params();
    let enough = (0..values.level()).find(|&level| params.log_modulus(level) > bits + 1.0);
    let enough = enough.map_or(values.level(), |level| level + 1);
    if enough < values.level() {
        let digits = mixed_radix(values.at_level(enough));
        if digits.limb(0).iter().all(|&digit| digit == 0) {
            return evaluate(&digits);
        }
    }
    evaluate(&mixed_radix(values.at_level(values.level())))
}

/// Digits v_l … v_0 of x = v_l + q_l (v_{l−1} + q_{l−1} (… v_0)), each centred.
fn mixed_radix(values: Poly<Ntt>) -> Poly<Coefficient> {
    let mut digits = values.into_coefficients();
    let (params, level) = (digits.params().clone(), digits.level());
    let degree = params.degree();
    for dropped in (1..=level).rev() {
        let (lower, upper) = digits.residues_mut().split_at_mut(dropped * degree);
        let inverses = params.prime_inverses(dropped);
        for (index, limb) in lower.chunks_exact_mut(degree).enumerate() {
            let (q, from) = (params.prime(index), params.prime(dropped));
            poly::sub_centred_scale_assign(limb, &upper[..degree], from, &inverses[index], q);
        }
    }
    digits
}

fn evaluate(digits: &Poly<Coefficient>) -> Vec<f64> {
    let params = digits.params();
    let mut out = vec![0.0; params.degree()];
    for (index, limb) in digits.limbs().enumerate() {
        let q = params.prime(index);
        let modulus = q.value() as f64;
        for (out, &digit) in out.iter_mut().zip(limb) {
            *out = *out * modulus + q.to_centered(digit) as f64;
        }
    }
    out
}
