//! Linear part of a bootstrapping: turns a spent ciphertext's coefficients into slots modulo all
//! primes. Server only.
//!
//! Slots to coefficients at the lowest levels, the modulus raised, coefficients to slots: what comes
//! before any function that takes multiples of q_0 away.

use super::super::ciphertext::{Ciphertext, Meta};
use super::super::evaluate::Evaluator;
use super::super::keys::KeyPlan;
use super::super::lazy_switch::WidePair;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::poly::{Ntt, Poly};
use super::super::spec::Ring;
use super::dft::{self, Diagonals, Direction};
use super::encapsulation::Encapsulation;
use super::real_dft;
use super::transform::{CompactTransform, Route, rounded, unit};
use crate::error::{Error, Result};
use std::sync::Arc;

/// How much smaller a key of slots-to-coefficients is than one of coefficients-to-slots.
const LOWER: usize = 4;

/// How the linear part of a set is laid out.
#[derive(Clone, Copy)]
pub(super) struct LinearLayout {
    /// The most slots.
    pub slots: usize,
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
    /// The baby rotations that a key of coefficients-to-slots less may cost.
    pub key_cost: usize,
    /// Whether numbers also come as coefficients modulo q_0, which are then to be placed.
    pub placed: bool,
}

/// Both transforms and what lies between them.
pub(super) struct LinearPart {
    params: Arc<Params>,
    layout: LinearLayout,
    /// By how much slots are rotated between both transforms.
    middle: usize,
    pub slots_to_coefficients: Vec<CompactTransform>,
    pub coefficients_to_slots: Arc<Vec<CompactTransform>>,
}

/// The rotations of slots before and after each product, such that all steps of the first transform
/// are to the left and all of the second to the right. In between slots stay rotated by what both can
/// agree on, as the products with the longest step wrap around; in the end they are back.
pub fn routes(
    forward: &[Diagonals],
    back: &[Diagonals],
    slots: usize,
    key_cost: usize,
) -> [Vec<Route>; 2] {
    // How far the diagonals reach against the way that a product goes; where they wrap around they
    // need not.
    let reach = |matrix: &Diagonals, backward: bool| {
        let unit = unit(matrix, slots);
        let against = |&k: &usize| if backward { k } else { (slots - k) % slots };
        let steps = matrix.keys().map(against).filter(|&step| step < slots / 2);
        if matrix.len() * unit >= slots { 0 } else { steps.max().unwrap_or(0) }
    };
    let sum = |matrices: &[Diagonals], backward: bool| {
        matrices.iter().map(|matrix| reach(matrix, backward)).sum::<usize>()
    };
    let middle = sum(forward, false).max(sum(back, true));
    let mut at = 0;
    let last = forward.len().saturating_sub(1);
    let there = forward.iter().enumerate().map(|(t, matrix)| {
        let from = at;
        at = if t == last { middle } else { at + reach(matrix, false) };
        Route {
            backward: false,
            from,
            to: at,
            lazy: false,
            key_cost: key_cost / LOWER,
            split: false,
        }
    });
    let there = there.collect();
    at = middle;
    let again = back.iter().enumerate().map(|(t, matrix)| {
        let from = at;
        at = if t == 0 { sum(&back[1..], true) } else { at - reach(matrix, true) };
        Route { backward: true, from, to: at, lazy: true, key_cost, split: false }
    });
    [there, again.collect()]
}

impl LinearPart {
    pub fn new(params: &Arc<Params>, layout: &LinearLayout) -> Result<Self> {
        Self::build(params, layout, None)
    }

    /// The same with the coefficients at another scale modulo q_0: with the same keys, and the same
    /// diagonals of coefficients-to-slots.
    pub fn with_base_scale(&self, base_scale: f64) -> Result<Self> {
        let layout = LinearLayout { base_scale, ..self.layout };
        Self::build(&self.params, &layout, Some(Arc::clone(&self.coefficients_to_slots)))
    }

    fn build(
        params: &Arc<Params>,
        layout: &LinearLayout,
        shared: Option<Arc<Vec<CompactTransform>>>,
    ) -> Result<Self> {
        let slots = layout.slots;
        let prime = |level: usize| params.prime(level).value() as f64;
        let transforms = |matrices: &[Diagonals], routes: Vec<Route>, top: usize, gain: f64| {
            let levels = (top + 1 - matrices.len()..=top).rev();
            let dropped: f64 = levels.clone().map(prime).product();
            // Scales such that rounding the diagonals of one product costs as much as of another.
            let weights: Vec<f64> = matrices.iter().map(|m| rounded(m, slots)).collect();
            let share = gain * dropped / weights.iter().product::<f64>();
            let unit = share.powf(1.0 / matrices.len() as f64);
            let all = matrices.iter().zip(levels).zip(routes).zip(weights);
            let encode = |(((matrix, level), route), weight)| {
                CompactTransform::new(params, matrix, level, unit * weight, route)
            };
            all.map(encode).collect::<Result<Vec<_>>>()
        };
        let lowest = layout.slots_to_coefficients;
        let (top, count) = (params.max_level(), layout.coefficients_to_slots);
        let matrices = match params.ring() {
            Ring::Standard => dft::matrices,
            Ring::ConjugateInvariant => real_dft::matrices,
        };
        let forward = matrices(Direction::SlotsToCoefficients, slots, lowest);
        let back = matrices(Direction::CoefficientsToSlots, slots, count);
        let [there, mut again] = routes(&forward, &back, slots, layout.key_cost);
        let middle = again.first().map_or(0, |route| route.from);
        // The trace multiplies what it leaves.
        let trace = (params.max_slots() / slots) as f64;
        if let Some(last) = again.last_mut() {
            last.split = params.ring() == Ring::Standard && slots < params.max_slots();
        }
        let gain = layout.base_scale / params.scale(lowest);
        let slots_to_coefficients = transforms(&forward, there, lowest, gain)?;
        // From x at the scale q_0 to twice its real part at the scale of x over its divisor, or where
        // all is real to x.
        let parts = params.ring().parts() as f64;
        let gain = params.scale(top - count) / (parts * layout.divisor * prime(0) * trace);
        let coefficients_to_slots = match shared {
            Some(shared) => shared,
            None => Arc::new(transforms(&back, again, top, gain)?),
        };
        let (params, layout) = (params.clone(), *layout);
        Ok(LinearPart { params, layout, middle, slots_to_coefficients, coefficients_to_slots })
    }

    /// How it is laid out.
    pub fn layout(&self) -> &LinearLayout {
        &self.layout
    }

    /// The lowest level that a ciphertext can be taken from slots to coefficients at.
    pub fn lowest(&self) -> usize {
        self.slots_to_coefficients.len()
    }

    /// The level of u.
    pub fn end(&self) -> usize {
        self.params.max_level() - self.coefficients_to_slots.len()
    }

    /// The rotations whose sums leave the coefficients of fewer slots, each times how often slots
    /// repeat, and no others.
    fn trace(&self) -> impl Iterator<Item = i64> {
        let repeats = (self.params.max_slots() / self.layout.slots).ilog2();
        let slots = self.layout.slots as i64;
        (0..repeats).map(move |log| slots << log)
    }

    /// The keys of slots-to-coefficients, and those of coefficients-to-slots.
    pub fn key_plans(&self) -> [KeyPlan; 2] {
        let rotations = |transforms: &[CompactTransform]| -> Vec<i64> {
            transforms.iter().flat_map(CompactTransform::rotations).collect()
        };
        let [low, high] =
            [&self.slots_to_coefficients, &*self.coefficients_to_slots].map(|t| rotations(t));
        let place = self.layout.placed.then_some(self.middle as i64);
        let high = KeyPlan::new().rotations(high).rotations(self.trace());
        let high = match self.params.ring() {
            Ring::Standard => high.conjugate(),
            Ring::ConjugateInvariant => high,
        };
        [
            KeyPlan::new().rotations(low).rotations(place).at_level(self.lowest()),
            high.at_level(self.params.max_level()),
        ]
    }

    /// Numbers that are coefficients modulo q_0 already, as [`Self::to_slots`] takes them; `low` has
    /// the first keys.
    pub fn place(&self, low: &Evaluator, a: &Ciphertext) -> Result<Ciphertext> {
        low.rotate(&low.drop_to(a, 0)?.with_slots(self.layout.slots)?, self.middle as i64)
    }

    /// The same numbers as coefficients modulo q_0, at level 0; `low` has the first keys.
    pub fn to_coefficients(&self, low: &Evaluator, a: &Ciphertext) -> Result<Ciphertext> {
        let mut x = low.match_level(a, self.lowest())?.with_slots(self.layout.slots)?;
        for transform in &self.slots_to_coefficients {
            x = transform.apply(low, &x)?;
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
        let x = self.raised(high, encapsulation, a)?;
        let [mut w, mut conjugate] = self.both(high, &x)?;
        w.add_assign(&conjugate);
        let real = self.unit(&w, &x)?;
        // 2 conj(w) − (w + conj(w)) is −2i times the imaginary part.
        conjugate.double();
        conjugate.sub_assign(&w);
        conjugate.multiply_by_i();
        Ok([real, self.unit(&conjugate, &x)?])
    }

    /// Both results of [`Self::to_slots`] as the halves of one with twice as many slots, where slots
    /// repeat.
    pub fn to_split_slots(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<Ciphertext> {
        let x = self.raised(high, encapsulation, a)?.with_slots(2 * self.layout.slots)?;
        let [mut parts, conjugate] = self.both(high, &x)?;
        parts.add_assign(&conjugate);
        self.unit(&parts, &x)
    }

    /// The first of [`Self::to_slots`] alone.
    pub fn to_real_slots(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<Ciphertext> {
        let x = self.raised(high, encapsulation, a)?;
        let [mut real, conjugate] = self.both(high, &x)?;
        real.add_assign(&conjugate);
        self.unit(&real, &x)
    }

    /// x of all coefficients in the conjugate-invariant ring, in some order and up to signs.
    pub fn to_all_slots(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<Ciphertext> {
        let x = self.raised(high, encapsulation, a)?;
        self.unit(&self.last(high, &x)?, &x)
    }

    /// P times x as slots, from what comes before the last product.
    fn last(&self, high: &Evaluator, x: &Ciphertext) -> Result<WidePair> {
        let last = self.coefficients_to_slots.last().ok_or_else(|| Error::Range {
            what: "the products of coefficients-to-slots",
            expected: "at least 1".into(),
            actual: "0".into(),
        })?;
        last.sum(high, x)
    }

    /// P times x of the first half + i x of the second, and its conjugate, from what comes before
    /// the last product.
    fn both(&self, high: &Evaluator, x: &Ciphertext) -> Result<[WidePair; 2]> {
        let w = self.last(high, x)?;
        let (element, key) = high.conjugation_key(x)?;
        let conjugate = w.rotated(key, &self.params.automorphism(element));
        Ok([w, conjugate])
    }

    /// x over its divisor, from P times twice the real part of x that is to be rescaled.
    fn unit(&self, part: &WidePair, like: &Ciphertext) -> Result<Ciphertext> {
        let mut u = Ciphertext { parts: part.divide(true), meta: like.meta };
        u.meta.scale = self.params.scale(u.level());
        u.meta.noise = Noise::rounding(self.params.expansion(), 1);
        u.with_magnitude(1.0)
    }

    /// The numbers modulo q_0 as x = numbers + multiples of 1, before the last product.
    fn raised(
        &self,
        high: &Evaluator,
        encapsulation: &Encapsulation,
        a: &Ciphertext,
    ) -> Result<Ciphertext> {
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
        let magnitude = self.layout.range * self.params.degree() as f64;
        let meta = Meta { scale, magnitude, ..a.meta };
        let mut x = Ciphertext { parts, meta }.with_slots(self.params.max_slots())?;
        for steps in self.trace() {
            let rotated = high.rotate(&x, steps)?;
            x.parts.iter_mut().zip(&rotated.parts).for_each(|(x, part)| x.add_assign(part));
        }
        x = x.with_slots(self.layout.slots)?;
        let before = self.coefficients_to_slots.len().saturating_sub(1);
        for transform in &self.coefficients_to_slots[..before] {
            x = transform.apply(high, &x)?;
        }
        Ok(x)
    }
}
