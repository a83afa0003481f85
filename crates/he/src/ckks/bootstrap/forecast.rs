//! Forecast of bootstrapping: what is known of a refreshed ciphertext, and the work that it takes,
//! from what is known of the spent one.

use super::super::expected::Expected;
use super::super::forecast::Forecast;
use super::super::keys::KeyPlan;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::spec::ParamsSpec;
use super::super::work::{LevelWork, Work};
use super::linear::LinearPart;
use super::{BootstrapSpec, Bootstrapper};
use crate::error::{Error, Result};
use crate::params::TAIL_DEVIATIONS;

impl BootstrapSpec {
    /// The sizes of the parameter set that a bootstrapper of it makes. Its levels come in stages, so
    /// that [`super::Params::new`] would make another set of it.
    ///
    /// # Errors
    /// [`Error::Range`] for sizes that no set has.
    pub fn params(&self) -> Result<ParamsSpec> {
        self.check()?;
        Ok(self.layout(&self.reduction()?).0)
    }

    /// Whether `params` are those that a bootstrapper of it makes.
    pub fn describes(&self, params: &Params) -> bool {
        let sizes = self.check().and_then(|()| Ok(self.layout(&self.reduction()?)));
        sizes.is_ok_and(|(spec, stages)| spec == *params.spec() && stages == params.stages())
    }
}

impl Bootstrapper {
    /// What is known of the result of [`Self::bootstrap`], from what is known of its operand.
    ///
    /// # Errors
    /// [`Error::Level`] below the levels of slots-to-coefficients, [`Error::Range`] for a declared
    /// magnitude over 1 or degree 2.
    pub fn refreshed(&self, a: &Expected) -> Result<Expected> {
        a.linear("a ciphertext to refresh")?;
        if a.magnitude > 1.0 {
            return Err(Error::Range {
                what: "the magnitude of numbers to refresh",
                expected: "at most 1 (scale them, or declare what they are known to be)".into(),
                actual: a.magnitude.to_string(),
            });
        }
        if a.slots > self.slots() {
            return Err(Error::Range {
                what: "the slots of a ciphertext to refresh",
                expected: format!("at most {}, as the set was made for", self.slots()),
                actual: a.slots.to_string(),
            });
        }
        let needed = self.spec.slots_to_coefficients;
        if a.level < needed {
            return Err(Error::Level {
                operation: "bootstrapping",
                needed: format!("{needed} levels for slots-to-coefficients"),
                left: format!("{} are", a.level),
            });
        }
        let level = self.level();
        let scale = self.params.scale(level);
        // What the real part of a slot is off is so many times as much as a coefficient; of the
        // numbers that came in a real part was as far off as it is now.
        let spread = self.params.part_expansion().sqrt();
        let added = Noise {
            std: self.precision.deviation() * scale / spread,
            bound: self.precision.bound() * scale,
        };
        // A rescale takes numbers down to where slots-to-coefficients begins.
        let spent = Forecast::new(&self.params).match_level(a, needed)?;
        // Numbers are at most 1: estimates beyond say nothing, and grow without end in a loop.
        let brought = spent.noise.times(scale / spent.scale);
        let brought = Noise { std: brought.std.min(scale), bound: brought.bound.min(scale) };
        Ok(Expected { level, scale, noise: brought.plus(added), ..*a })
    }

    /// What a stage of a sign has to stand of numbers that were just refreshed.
    pub fn sign_noise(&self) -> f64 {
        TAIL_DEVIATIONS * (self.spec.ring.parts() as f64).sqrt() * self.precision.deviation()
    }

    /// What a bootstrapping takes: the reduction as it runs, both transforms by their keys and
    /// diagonals.
    ///
    /// # Errors
    /// [`Error::Range`] never, for a bootstrapper that was made.
    pub fn work(&self) -> Result<Work> {
        let plan = self.plan()?;
        let forecast = Forecast::new(&self.params);
        let (top, high) = (self.params.max_level(), self.spec.coefficients_to_slots);
        let part = Expected {
            level: top - high,
            degree: 1,
            scale: self.params.scale(top - high),
            slots: self.params.max_slots(),
            noise: Noise::rounding(self.params.expansion(), 1),
            magnitude: 1.0,
        };
        for _ in 0..plan.reductions {
            self.reduction.apply(&forecast, &part)?;
        }
        let mut work = forecast.take_work();
        for _ in 0..plan.iterations {
            linear_work(
                &self.params,
                &self.key_plans,
                &self.linear,
                plan.diagonal_bytes,
                &mut work,
            );
        }
        Ok(work)
    }
}

/// Adds what both transforms take, by their keys and diagonals, and raising the modulus between them.
pub(super) fn linear_work(
    params: &Params,
    key_plans: &[KeyPlan; 3],
    linear: &LinearPart,
    diagonal_bytes: usize,
    work: &mut Work,
) {
    let chain = params.chain();
    let [low, _, above] = key_plans.each_ref().map(|plan| plan.keys(params));
    let (top, high) = (params.max_level(), linear.coefficients_to_slots.len());
    let diagonals = diagonal_bytes / (8 * params.degree());
    let lowest = linear.lowest();
    for (level, products, rotations) in [(lowest, lowest, low), (top, high, above)] {
        work.count(level, LevelWork { rotations: rotations as u64, ..LevelWork::default() });
        for place in 0..rotations {
            work.count(level, chain.switch_of_digits(level));
            // Baby steps share a decomposition, giant steps have one each.
            if place < products + rotations / 2 {
                work.count(level, chain.decomposition(level));
            }
        }
        // A diagonal is lifted to every prime, and multiplied by both parts.
        let lifted = (diagonals * products / (lowest + high) * (level + 1)) as u64;
        let lifts = LevelWork { transforms: lifted, products: 2 * lifted, ..LevelWork::default() };
        work.count(level, lifts);
    }
    // From the modulus q_0 to all primes, and one key switch up there.
    let raised = LevelWork { transforms: 2 * (top + 1) as u64, ..chain.decomposition(top) };
    work.count(top, raised);
    work.count(top, chain.switch_of_digits(top));
}
