//! Bootstrapping: a ciphertext without levels enters, the same numbers with levels leave. Server
//! only.
//!
//! Slots to coefficients at the lowest levels; the modulus raised under a sparse secret, which
//! leaves a multiple of q_0 in every coefficient; coefficients to slots; and the multiples reduced
//! away (docs/ckks.md, section 10).

mod dft;
mod encapsulation;
mod failure;
mod keys;
#[cfg(feature = "client")]
mod owner;
mod precision;
mod reduction;
mod spec;
#[cfg(all(test, feature = "client"))]
mod tests;
mod trace;
mod transform;

pub use keys::BootstrappingKeys;
pub use spec::BootstrapSpec;

use super::ciphertext::{Ciphertext, Meta};
use super::evaluate::Evaluator;
use super::keys::KeyPlan;
use super::noise::Noise;
use super::params::Params;
use super::poly::{Ntt, Poly};
use crate::error::{Error, Result};
use dft::{Direction, matrices};
use precision::{Parts, Precision};
use reduction::Reduction;
use spec::WEIGHT;
use std::sync::Arc;
use transform::CompactTransform;

/// What a bootstrapping takes and gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BootstrapPlan {
    /// The level of a refreshed ciphertext.
    pub level: usize,
    /// The lowest level at which a ciphertext can still be refreshed.
    pub lowest_level: usize,
    /// Levels to compute with between two refreshings.
    pub levels_left: usize,
    /// The most slots.
    pub slots: usize,
    /// −log2 of the standard deviation of the error that is added to a real part, for parts that
    /// are uniform in [−1, 1].
    pub precision_bits: f64,
    /// −log2 of a bound on the absolute value of that error in every slot.
    pub bound_bits: f64,
    /// log2 of a bound on the chance that any slot of a ciphertext is lost: the number of slots that
    /// are lost on average.
    pub failure_log2: f64,
    /// Bytes of the keys as they are sent.
    pub key_bytes: usize,
    /// Bytes of the diagonals in memory.
    pub diagonal_bytes: usize,
    /// Rotations that keys are needed for, the conjugation included.
    pub rotations: usize,
    /// Key switches that a reduction relinearises with, of which there are two.
    pub relinearisations: usize,
}

/// Refreshes ciphertexts of one parameter set.
pub struct Bootstrapper {
    params: Arc<Params>,
    spec: BootstrapSpec,
    reduction: Reduction,
    slots_to_coefficients: Vec<CompactTransform>,
    coefficients_to_slots: Vec<CompactTransform>,
    key_plans: [KeyPlan; 3],
    precision: Precision,
}

impl Bootstrapper {
    /// Makes the parameters of `spec` and all that is computed from them.
    ///
    /// # Errors
    /// [`Error::Insecure`] for a modulus over the table's limit, [`Error::Range`] for sizes that no
    /// chain of primes is found for.
    pub fn new(spec: BootstrapSpec) -> Result<Self> {
        Self::build(spec, false)
    }

    /// [`Self::new`] of a set that the security table is not asked about, for tests.
    ///
    /// # Errors
    /// [`Error::Range`] as for [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_new(spec: BootstrapSpec) -> Result<Self> {
        Self::build(spec, true)
    }

    fn build(spec: BootstrapSpec, insecure: bool) -> Result<Self> {
        spec.check()?;
        let reduction = spec.reduction()?;
        let params = spec.build(&reduction, insecure)?;
        let slots = params.max_slots();
        let prime = |level: usize| params.prime(level).value() as f64;
        let lowest = spec.slots_to_coefficients;
        let left = lowest + spec.levels;
        // What a reduction at this scale makes of numbers is what they are at the scale of the
        // level that it ends on.
        let last = params.scale(left + 1).powi(2) / prime(left + 1);
        let base_scale = params.scale(left) * prime(0) / (reduction.slope() * last);

        let transforms = |direction, top: usize, count: usize, gain: f64| -> Vec<_> {
            let levels = (top + 1 - count..=top).rev();
            let dropped: f64 = levels.clone().map(prime).product();
            // One scale for all diagonals, so that none is rounded more than the others.
            let scale = (gain * dropped).powf(1.0 / count as f64);
            let matrices = matrices(direction, slots, count);
            let encode = |(matrix, level)| CompactTransform::new(&params, matrix, level, scale);
            matrices.iter().zip(levels).map(encode).collect()
        };
        let gain = base_scale / params.scale(lowest);
        let slots_to_coefficients =
            transforms(Direction::SlotsToCoefficients, lowest, lowest, gain);
        // From x at the scale q_0 to twice its real part at the scale of x over its divisor.
        let (top, count) = (params.max_level(), spec.coefficients_to_slots);
        let end = top - count;
        let gain = params.scale(end) / (2.0 * reduction.divisor() * prime(0));
        let coefficients_to_slots = transforms(Direction::CoefficientsToSlots, top, count, gain);

        let rotations = |transforms: &[CompactTransform]| -> Vec<i64> {
            transforms.iter().flat_map(CompactTransform::rotations).collect()
        };
        let key_plans = [
            KeyPlan::new().rotations(rotations(&slots_to_coefficients)).at_level(lowest),
            KeyPlan::new().relinearise().at_level(end),
            KeyPlan::new().rotations(rotations(&coefficients_to_slots)).conjugate().at_level(top),
        ];
        let parts = Parts {
            params: &params,
            reduction: &reduction,
            slots_to_coefficients: &slots_to_coefficients,
            coefficients_to_slots: &coefficients_to_slots,
            base_scale,
        };
        let precision = parts.precision(params.scale(lowest))?;
        Ok(Bootstrapper {
            spec,
            reduction,
            slots_to_coefficients,
            coefficients_to_slots,
            key_plans,
            precision,
            params,
        })
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// What the set was laid out by.
    pub fn spec(&self) -> &BootstrapSpec {
        &self.spec
    }

    /// The evaluation keys of slots-to-coefficients, of the reduction and of
    /// coefficients-to-slots, each for the highest level of its stage.
    pub fn key_plans(&self) -> &[KeyPlan; 3] {
        &self.key_plans
    }

    /// What a bootstrapping takes and gives.
    ///
    /// # Errors
    /// [`Error::Range`] never, for a bootstrapper that was made.
    pub fn plan(&self) -> Result<BootstrapPlan> {
        let transforms = || self.slots_to_coefficients.iter().chain(&self.coefficients_to_slots);
        let coefficients = f64::from(self.spec.log_degree);
        let tail = failure::tail_log2(WEIGHT as u32 + 1, self.spec.range);
        let keys = self.key_plans.iter().map(|plan| plan.keys(&self.params)).sum::<usize>();
        Ok(BootstrapPlan {
            level: self.level(),
            lowest_level: self.spec.slots_to_coefficients,
            levels_left: self.spec.levels,
            slots: self.params.max_slots(),
            precision_bits: -self.precision.deviation().log2(),
            bound_bits: -self.precision.bound().log2(),
            failure_log2: tail + coefficients,
            key_bytes: keys::bytes(&self.params, &self.key_plans)?,
            diagonal_bytes: transforms().map(CompactTransform::memory).sum(),
            rotations: keys - 1,
            relinearisations: self.reduction.relinearisations(),
        })
    }

    /// The level of a refreshed ciphertext: the one to encrypt at.
    pub fn level(&self) -> usize {
        self.spec.slots_to_coefficients + self.spec.levels
    }

    /// The numbers of `a`, real and imaginary parts of magnitude at most 1, at [`Self::level`].
    /// Numbers beyond that come out wrong, each by the cube of its size; only the owner can see it.
    ///
    /// # Errors
    /// [`Error::Level`] below the levels of slots-to-coefficients, [`Error::Range`] for a declared
    /// magnitude over 1 or degree 2, [`Error::MissingKey`], [`Error::WrongKey`],
    /// [`Error::Parameters`].
    pub fn bootstrap(&self, a: &Ciphertext, keys: &BootstrappingKeys) -> Result<Ciphertext> {
        let parts = self.reduced(a, keys)?;
        let [real, imaginary] = parts;
        let evaluator = Evaluator::without_keys(self.params.clone());
        let sum = evaluator.add(&real, &evaluator.multiply_by_i(&imaginary)?)?;
        let level = self.level();
        let scale = self.params.scale(level);
        // What a slot is off is √(δ/2) times as much as a coefficient, its real part; of the
        // numbers that came in a real part was as far off as it is now.
        let spread = (self.params.expansion() / 2.0).sqrt();
        let (mine, theirs) = (a.noise(), a.scale());
        let added = Noise {
            std: self.precision.deviation() * scale / spread,
            bound: self.precision.bound() * scale,
        };
        let noise = mine.times(scale / theirs).plus(added);
        let meta = Meta { scale, noise, ..a.meta };
        Ok(Ciphertext { parts: sum.parts, meta })
    }

    /// The real and the imaginary parts, times the slope of the reduction.
    fn reduced(&self, a: &Ciphertext, keys: &BootstrappingKeys) -> Result<[Ciphertext; 2]> {
        self.check(a, keys)?;
        let [low, middle, high] = keys.sets().each_ref().map(|set| Evaluator::new(Arc::clone(set)));
        let lowest = self.spec.slots_to_coefficients;
        let mut x = low.match_level(a, lowest)?.with_slots(self.params.max_slots())?;
        for transform in &self.slots_to_coefficients {
            x = low.rescale(&transform.apply(&low, &x)?)?;
        }
        let mut x = self.raised(&x, keys)?;
        let (last, first) =
            self.coefficients_to_slots.split_last().ok_or_else(|| self.no_transform())?;
        for transform in first {
            x = high.rescale(&transform.apply(&high, &x)?)?;
        }
        // Both parts are taken apart before the rescale, which then rounds each once.
        let w = last.apply(&high, &x)?;
        let conjugate = high.conjugate(&w)?;
        let real = high.add(&w, &conjugate)?;
        let imaginary = high.multiply_by_i(&high.sub(&conjugate, &w)?)?;
        let reduce = |part: &Ciphertext| self.reduction.apply(&middle, &self.unit(&high, part)?);
        Ok([reduce(&real)?, reduce(&imaginary)?])
    }

    /// x over its divisor, from twice the real part of x that is to be rescaled.
    fn unit(&self, evaluator: &Evaluator, part: &Ciphertext) -> Result<Ciphertext> {
        let mut u = evaluator.rescale(part)?;
        u.meta.scale = self.params.scale(u.level());
        u.meta.noise = Noise::rounding(self.params.expansion(), 1);
        u.with_magnitude(1.0)
    }

    /// The numbers modulo q_0 as x = numbers + multiples of 1, at the highest level.
    fn raised(&self, a: &Ciphertext, keys: &BootstrappingKeys) -> Result<Ciphertext> {
        let parts: [&Poly<Ntt>; 2] =
            a.parts().iter().collect::<Vec<_>>().try_into().map_err(|parts: Vec<_>| {
                Error::Range {
                    what: "a ciphertext",
                    expected: "of degree 1 (relinearise it first)".into(),
                    actual: format!("degree {}", parts.len() - 1),
                }
            })?;
        let parts = keys.encapsulation().raise(parts);
        let scale = self.params.prime(0).value() as f64;
        let magnitude = self.spec.range * self.params.degree() as f64;
        let meta = Meta { scale, magnitude, ..a.meta };
        Ok(Ciphertext { parts, meta })
    }

    fn check(&self, a: &Ciphertext, keys: &BootstrappingKeys) -> Result<()> {
        self.params.check_same("a ciphertext", a.params())?;
        self.params.check_same("bootstrapping keys", keys.params())?;
        if keys.key_id() != a.key_id() {
            let (expected, actual) = (keys.key_id(), a.key_id());
            return Err(Error::WrongKey { what: "a ciphertext", expected, actual });
        }
        a.expected().linear("a ciphertext to refresh")?;
        if a.magnitude() > 1.0 {
            return Err(Error::Range {
                what: "the magnitude of numbers to refresh",
                expected: "at most 1 (scale them, or declare what they are known to be)".into(),
                actual: a.magnitude().to_string(),
            });
        }
        let needed = self.spec.slots_to_coefficients;
        if a.level() < needed {
            return Err(Error::Level {
                operation: "bootstrapping",
                needed: format!("{needed} levels, for slots-to-coefficients,"),
                left: format!("{} are", a.level()),
            });
        }
        let [low, middle, high] = keys.sets();
        for (set, plan) in [low, middle, high].into_iter().zip(&self.key_plans) {
            if !set.covers(plan) {
                return Err(Error::MissingKey {
                    key: format!("one of those that {plan:?} lists"),
                    make: "SecretKey::bootstrapping_keys with this bootstrapper".into(),
                });
            }
        }
        Ok(())
    }

    fn no_transform(&self) -> Error {
        Error::Range {
            what: "the products of coefficients-to-slots",
            expected: "at least 1".into(),
            actual: self.coefficients_to_slots.len().to_string(),
        }
    }
}

impl core::fmt::Debug for Bootstrapper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bootstrapper").field("spec", &self.spec).finish_non_exhaustive()
    }
}
