//! Linear part: a spent ciphertext enters, its coefficients as slots modulo all primes leave. Server
//! only.
//!
//! Slots to coefficients at the lowest levels, the modulus raised, coefficients to slots: what comes
//! before any function that takes multiples of q_0 away.

use super::super::ciphertext::{Ciphertext, Meta};
use super::super::evaluate::Evaluator;
use super::super::keys::KeyPlan;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::poly::{Ntt, Poly};
use super::dft::{Direction, matrices};
use super::encapsulation::Encapsulation;
use super::transform::CompactTransform;
use crate::error::{Error, Result};
use std::sync::Arc;

/// How the linear part of a set is laid out.
pub(super) struct LinearLayout {
    /// Products of slots-to-coefficients: levels 1 up to this.
    pub slots_to_coefficients: usize,
    /// The scale of the coefficients modulo q_0.
    pub base_scale: f64,
    /// Products of coefficients-to-slots, from the highest level down.
    pub coefficients_to_slots: usize,
    /// What u is x divided by.
    pub divisor: f64,
    /// K: |x| is at most this.
    pub range: f64,
}

/// Both transforms and what lies between them.
pub(super) struct LinearPart {
    params: Arc<Params>,
    range: f64,
    pub slots_to_coefficients: Vec<CompactTransform>,
    pub coefficients_to_slots: Vec<CompactTransform>,
}

impl LinearPart {
    pub fn new(params: &Arc<Params>, layout: &LinearLayout) -> Self {
        let slots = params.max_slots();
        let prime = |level: usize| params.prime(level).value() as f64;
        let transforms = |direction, top: usize, count: usize, gain: f64| -> Vec<_> {
            let levels = (top + 1 - count..=top).rev();
            let dropped: f64 = levels.clone().map(prime).product();
            // One scale for all diagonals, so that none is rounded more than the others.
            let scale = (gain * dropped).powf(1.0 / count as f64);
            let matrices = matrices(direction, slots, count);
            let encode = |(matrix, level)| CompactTransform::new(params, matrix, level, scale);
            matrices.iter().zip(levels).map(encode).collect()
        };
        let (lowest, direction) = (layout.slots_to_coefficients, Direction::SlotsToCoefficients);
        let gain = layout.base_scale / params.scale(lowest);
        let slots_to_coefficients = transforms(direction, lowest, lowest, gain);
        // From x at the scale q_0 to twice its real part at the scale of x over its divisor.
        let (top, count) = (params.max_level(), layout.coefficients_to_slots);
        let gain = params.scale(top - count) / (2.0 * layout.divisor * prime(0));
        let coefficients_to_slots = transforms(Direction::CoefficientsToSlots, top, count, gain);
        let params = params.clone();
        LinearPart { params, range: layout.range, slots_to_coefficients, coefficients_to_slots }
    }

    /// The lowest level that a ciphertext can be taken from slots to coefficients at.
    pub fn lowest(&self) -> usize {
        self.slots_to_coefficients.len()
    }

    /// The level of u.
    pub fn end(&self) -> usize {
        self.params.max_level() - self.coefficients_to_slots.len()
    }

    /// The keys of slots-to-coefficients, and those of coefficients-to-slots.
    pub fn key_plans(&self) -> [KeyPlan; 2] {
        let rotations = |transforms: &[CompactTransform]| -> Vec<i64> {
            transforms.iter().flat_map(CompactTransform::rotations).collect()
        };
        let [low, high] =
            [&self.slots_to_coefficients, &self.coefficients_to_slots].map(|t| rotations(t));
        [
            KeyPlan::new().rotations(low).at_level(self.lowest()),
            KeyPlan::new().rotations(high).conjugate().at_level(self.params.max_level()),
        ]
    }

    /// The same numbers as coefficients modulo q_0, at level 0; `low` has the first keys.
    pub fn to_coefficients(&self, low: &Evaluator, a: &Ciphertext) -> Result<Ciphertext> {
        let mut x = low.match_level(a, self.lowest())?.with_slots(self.params.max_slots())?;
        for transform in &self.slots_to_coefficients {
            x = low.rescale(&transform.apply(low, &x)?)?;
        }
        Ok(x)
    }

    /// x = coefficients/q_0 + integers as slots, those of the first half and those of the second,
    /// in bit-reversed order, each over the divisor at [`Self::end`]; `high` has the last keys.
    pub fn to_slots(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<[Ciphertext; 2]> {
        // Both parts are taken apart before the rescale, which then rounds each once.
        let [w, conjugate] = self.both(high, encapsulation, a)?;
        let real = high.add(&w, &conjugate)?;
        let imaginary = high.multiply_by_i(&high.sub(&conjugate, &w)?)?;
        Ok([self.unit(high, &real)?, self.unit(high, &imaginary)?])
    }

    /// The first of [`Self::to_slots`] alone.
    pub fn to_real_slots(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<Ciphertext> {
        let [w, conjugate] = self.both(high, encapsulation, a)?;
        self.unit(high, &high.add_to(w, &conjugate)?)
    }

    /// x of the first half + i x of the second, to be rescaled, and its conjugate.
    fn both(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<[Ciphertext; 2]> {
        let mut x = self.raised(encapsulation, a)?;
        let (last, first) =
            self.coefficients_to_slots.split_last().ok_or_else(|| Error::Range {
                what: "the products of coefficients-to-slots",
                expected: "at least 1".into(),
                actual: self.coefficients_to_slots.len().to_string(),
            })?;
        for transform in first {
            x = high.rescale(&transform.apply(high, &x)?)?;
        }
        let w = last.apply(high, &x)?;
        let conjugate = high.conjugate(&w)?;
        Ok([w, conjugate])
    }

    /// x over its divisor, from twice the real part of x that is to be rescaled.
    fn unit(&self, evaluator: &Evaluator, part: &Ciphertext) -> Result<Ciphertext> {
        let mut u = evaluator.rescale(part)?;
        u.meta.scale = self.params.scale(u.level());
        u.meta.noise = Noise::rounding(self.params.expansion(), 1);
        u.with_magnitude(1.0)
    }

    /// The numbers modulo q_0 as x = numbers + multiples of 1, at the highest level.
    fn raised(&self, encapsulation: &Encapsulation, a: &Ciphertext) -> Result<Ciphertext> {
        let parts: [&Poly<Ntt>; 2] =
            a.parts().iter().collect::<Vec<_>>().try_into().map_err(|parts: Vec<_>| {
                Error::Range {
                    what: "a ciphertext",
                    expected: "of degree 1 (relinearise it first)".into(),
                    actual: format!("degree {}", parts.len() - 1),
                }
            })?;
        let parts = encapsulation.raise(parts);
        let scale = self.params.prime(0).value() as f64;
        let magnitude = self.range * self.params.degree() as f64;
        let meta = Meta { scale, magnitude, ..a.meta };
        Ok(Ciphertext { parts, meta })
    }
}
