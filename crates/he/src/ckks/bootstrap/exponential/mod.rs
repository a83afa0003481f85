//! Exponential: makes roots of unity, with levels, of numbers modulo 1 in slots or coefficients.
//! Server only.
//!
//! Bootstrapping without its reduction: q_0 stands for 1, so that the multiples of q_0 which
//! raising the modulus leaves are whole turns, and exp(2πi x) does away with them (docs/ckks.md,
//! section 11).

mod encode;
mod forecast;
mod look_up;
mod precision;
mod series;
mod spec;
mod table;

pub use look_up::TablePlan;
pub use spec::ExponentialSpec;
use spec::SQUARINGS;
pub use table::LookupTable;

use super::super::ciphertext::Ciphertext;
use super::super::evaluate::Evaluator;
use super::super::expected::Expected;
use super::super::keys::KeyPlan;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::spec::Ring;
use super::keys::{self, BootstrappingKeys};
use super::linear::{LinearLayout, LinearPart};
use super::precision::{Parts, TERMS};
use super::transform::CompactTransform;
use super::{Bootstrapper, failure};
use crate::error::{Error, Result};
use crate::params::TAIL_DEVIATIONS;
use core::f64::consts::TAU;
use precision::RootPrecision;
use series::ExponentialSeries;
use std::sync::Arc;

/// The largest magnitude of numbers in slots: what rounded diagonals take from them grows with it.
const MAGNITUDE: f64 = 256.0;
/// The baby rotations that a key of coefficients-to-slots less may cost.
const KEY_COST: usize = 2;
/// How far a scale may be from q_0, relative to it.
const SAME: f64 = 1.0 / (1u64 << 42) as f64;

/// Which numbers become roots: one exponential each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Components {
    /// Real parts of slots, or the first half of the coefficients. The others may be anything.
    Real,
    /// Also imaginary parts, or the second half.
    Both,
}

/// What an exponential takes and gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExponentialPlan {
    /// The level of the roots, at its canonical scale.
    pub level: usize,
    /// The lowest level at which slots are taken; coefficients are taken at level 0.
    pub lowest_level: usize,
    /// Levels to compute with until slots can be taken again.
    pub levels_left: usize,
    /// The most slots, half as many as coefficients.
    pub slots: usize,
    /// −log2 of the standard deviation of the error of either part of a root, besides what the
    /// error of the number turns it by, 2π times that.
    pub precision_bits: f64,
    /// −log2 of a bound on the absolute value of that error in every slot.
    pub bound_bits: f64,
    /// log2 of a bound on the chance that any root of a ciphertext is lost.
    pub failure_log2: f64,
    /// Bytes of the keys as they are sent.
    pub key_bytes: usize,
    /// Bytes of the diagonals in memory.
    pub diagonal_bytes: usize,
    /// Rotations that keys are needed for, the conjugation included.
    pub rotations: usize,
    /// Key switches that an exponential relinearises with: one for each of [`Components`].
    pub relinearisations: usize,
}

/// Makes roots of unity of the numbers in ciphertexts of one parameter set.
pub struct Exponential {
    params: Arc<Params>,
    spec: ExponentialSpec,
    series: ExponentialSeries,
    linear: LinearPart,
    key_plans: [KeyPlan; 3],
    /// Of numbers that come as slots, if they may, and of those that come as coefficients.
    precision: [RootPrecision; 2],
    /// The variance of what slots-to-coefficients adds to numbers of magnitude 1.
    below: f64,
}

impl Exponential {
    /// Makes the parameters of `spec` and all that is computed from them.
    ///
    /// # Errors
    /// [`Error::Insecure`] for a modulus over the table's limit, [`Error::Range`] for sizes that no
    /// chain of primes is found for.
    pub fn new(spec: ExponentialSpec) -> Result<Self> {
        Self::build(spec, false)
    }

    /// [`Self::new`] of a set that the security table is not asked about, for tests.
    ///
    /// # Errors
    /// [`Error::Range`] as for [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_new(spec: ExponentialSpec) -> Result<Self> {
        Self::build(spec, true)
    }

    fn build(spec: ExponentialSpec, insecure: bool) -> Result<Self> {
        spec.check()?;
        let series = spec.series()?;
        let params = spec.build(&series, insecure)?;
        let layout = LinearLayout {
            slots: params.max_slots(),
            slots_to_coefficients: spec.slots_to_coefficients,
            base_scale: params.prime(0).value() as f64,
            coefficients_to_slots: spec.coefficients_to_slots,
            divisor: spec.range,
            range: spec.range,
            key_cost: KEY_COST,
            placed: true,
        };
        Self::assemble(spec, series, LinearPart::new(&params, &layout)?, params)
    }

    /// Under the parameters of `bootstrapper` and with the keys that it refreshes with: numbers in
    /// slots may then be refreshed or looked up as is due. Coefficients are not taken. [`Self::spec`]
    /// is for reading only, as the levels of the exponential are those of the reduction.
    ///
    /// # Errors
    /// [`Error::Range`] for a bootstrapper of fewer slots than the ring has or of real slots, where
    /// there are no roots of unity, or whose reduction has not as many levels as an exponential
    /// takes: 8, or up to 10 with more squarings.
    pub fn beside(bootstrapper: &Bootstrapper) -> Result<Self> {
        let (from, params) = (bootstrapper.spec(), bootstrapper.params());
        if from.ring != Ring::Standard {
            return Err(Error::Range {
                what: "the ring of a bootstrapper to make roots beside",
                expected: "the standard one, with complex slots".into(),
                actual: format!("the {} one, with real slots", from.ring.as_str()),
            });
        }
        if from.repeats() {
            return Err(Error::Range {
                what: "the slots of a bootstrapper to make roots beside",
                expected: format!("{}, all that the ring has", params.max_slots()),
                actual: (1usize << from.log_slots).to_string(),
            });
        }
        let linear = bootstrapper.linear.with_base_scale(params.prime(0).value() as f64)?;
        let levels = linear.end() - from.slots_to_coefficients - from.levels;
        let divisor = linear.layout().divisor;
        let fits = |doublings: u32| {
            let spec = ExponentialSpec::like(from, doublings);
            let series = ExponentialSpec { range: divisor, ..spec }.series().ok()?;
            (series.levels() == levels).then_some((spec, series))
        };
        let (spec, series) = (0..=SQUARINGS).rev().find_map(fits).ok_or_else(|| Error::Range {
            what: "the levels of a bootstrapper's reduction",
            expected: "as many as an exponential takes, 8 to 10".into(),
            actual: levels.to_string(),
        })?;
        Self::assemble(spec, series, linear, params.clone())
    }

    fn assemble(
        spec: ExponentialSpec,
        series: ExponentialSeries,
        linear: LinearPart,
        params: Arc<Params>,
    ) -> Result<Self> {
        let left = spec.slots_to_coefficients + spec.levels;
        // A root times this, at the scale that the last product leaves, is the root at the canonical
        // scale of its level.
        let last = params.scale(left + 1).powi(2) / params.prime(left + 1).value() as f64;
        let series = series.with_size(params.scale(left) / last);
        let [low, high] = linear.key_plans();
        let key_plans = [low, KeyPlan::new().relinearise().at_level(linear.end()), high];
        let parts = Parts {
            params: &params,
            slots_to_coefficients: &linear.slots_to_coefficients,
            coefficients_to_slots: &linear.coefficients_to_slots,
            repeats: 1.0,
            base_scale: linear.layout().base_scale,
            end: (left, last),
        };
        let switched = parts.switched();
        let below = match linear.lowest() {
            0 => switched,
            lowest => parts.below(params.scale(lowest), 1.0),
        };
        let of = |below| RootPrecision::new(&parts, &series, linear.layout().divisor, below);
        let precision = [of(below)?, of(switched + parts.placed())?];
        Ok(Exponential { spec, series, linear, key_plans, precision, below, params })
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// What the set was laid out by.
    pub fn spec(&self) -> &ExponentialSpec {
        &self.spec
    }

    /// The evaluation keys of slots-to-coefficients, of the exponential and what is computed with
    /// roots, and of coefficients-to-slots, each for the highest level of its stage.
    pub fn key_plans(&self) -> &[KeyPlan; 3] {
        &self.key_plans
    }

    /// What an exponential takes and gives.
    ///
    /// # Errors
    /// [`Error::Range`] never, for an exponential that was made.
    pub fn plan(&self) -> Result<ExponentialPlan> {
        let LinearPart { slots_to_coefficients, coefficients_to_slots, .. } = &self.linear;
        let transforms = slots_to_coefficients.iter().chain(coefficients_to_slots.iter());
        let tail = failure::tail_log2(TERMS, self.spec.range);
        let rotations = self.key_plans.iter().map(|plan| plan.keys(&self.params)).sum::<usize>();
        let [precision, _] = self.precision;
        Ok(ExponentialPlan {
            level: self.level(),
            lowest_level: self.spec.slots_to_coefficients,
            levels_left: self.spec.levels,
            slots: self.params.max_slots(),
            precision_bits: -precision.deviation().log2(),
            bound_bits: -precision.bound().log2(),
            failure_log2: tail + f64::from(self.spec.log_degree),
            key_bytes: keys::bytes(&self.params, &self.key_plans)?,
            diagonal_bytes: transforms.map(CompactTransform::memory).sum(),
            rotations: rotations - 1,
            relinearisations: self.series.relinearisations(),
        })
    }

    /// The level of the roots.
    pub fn level(&self) -> usize {
        self.spec.slots_to_coefficients + self.spec.levels
    }

    /// q_0: what a coefficient of the number 1 is, and the scale of numbers as coefficients.
    pub fn base_scale(&self) -> f64 {
        self.params.prime(0).value() as f64
    }

    /// The slot of the root of coefficient k, or of coefficient k + N/2: the log2(N/2) bits of k in
    /// reverse.
    pub fn slot_of(&self, coefficient: usize) -> usize {
        let slots = self.params.max_slots();
        (coefficient % slots).reverse_bits() >> (usize::BITS - slots.ilog2())
    }

    /// Of the numbers x_k that are coefficients modulo q_0, coefficient k being x_k q_0, the roots
    /// α_k = exp(2πi x_k) as slots. The first result has those of the coefficients below N/2, the
    /// second, with [`Components::Both`], those of the others, each at [`Self::slot_of`] its
    /// coefficient; both at [`Self::level`] and its canonical scale, with all slots.
    ///
    /// What comes in has the scale [`Self::base_scale`] and may be of any level; what is above
    /// level 0 is dropped. Its error e turns a root by 2π e/q_0, and is counted.
    /// `Exponential::encode` makes plaintexts of this kind.
    ///
    /// # Errors
    /// [`Error::Scale`] for another scale, [`Error::Range`] for degree 2 or beside a bootstrapper,
    /// [`Error::MissingKey`], [`Error::WrongKey`], [`Error::Parameters`].
    pub fn from_coefficients(
        &self,
        a: &Ciphertext,
        components: Components,
        keys: &BootstrappingKeys,
    ) -> Result<Vec<Ciphertext>> {
        keys.check(&self.params, &self.key_plans, a)?;
        if !self.linear.layout().placed {
            return Err(Error::Range {
                what: "what an exponential is of",
                expected: "numbers in slots, beside a bootstrapper".into(),
                actual: "coefficients, which Exponential::new takes".into(),
            });
        }
        if (a.scale() / self.base_scale() - 1.0).abs() > SAME {
            return Err(Error::Scale {
                operation: "an exponential of coefficients",
                expected: format!("2^{:.9}, q_0", self.base_scale().log2()),
                actual: format!("2^{:.9}", a.scale().log2()),
                advice: "encode with Exponential::encode",
            });
        }
        let x = self.linear.place(&Evaluator::new(Arc::clone(&keys.sets()[0])), a)?;
        // Here a number has the error of one coefficient, and not of a slot.
        let noise = self.turned(a.noise().std / self.base_scale());
        self.roots(&x, components, keys, noise, &self.precision[1])
    }

    /// Of the numbers z_j in the slots the roots exp(2πi Re z_j), in the same slots, and with
    /// [`Components::Both`] also exp(2πi Im z_j). Only z modulo 1 counts: numbers of magnitude up to
    /// 256 are taken, so that sums of multiples of 1/p are sums modulo p. Slots that repeat give
    /// roots that do.
    ///
    /// # Errors
    /// [`Error::Level`] below the levels of slots-to-coefficients or if the set has none,
    /// [`Error::Range`] for a declared magnitude over 256 or degree 2, [`Error::MissingKey`],
    /// [`Error::WrongKey`], [`Error::Parameters`].
    pub fn from_slots(
        &self,
        a: &Ciphertext,
        components: Components,
        keys: &BootstrappingKeys,
    ) -> Result<Vec<Ciphertext>> {
        keys.check(&self.params, &self.key_plans, a)?;
        let noise = self.turned_by(&a.expected())?;
        let low = Evaluator::new(Arc::clone(&keys.sets()[0]));
        let x = self.linear.to_coefficients(&low, a)?;
        let roots = self.roots(&x, components, keys, noise, &self.precision[0])?;
        roots.into_iter().map(|root| root.with_slots(a.slots())).collect()
    }

    /// What numbers that are off by a standard deviation of `error` leave in roots.
    fn turned(&self, error: f64) -> Noise {
        let turned = TAU * error * self.params.scale(self.level());
        let spread = self.params.expansion().sqrt();
        Noise { std: turned / spread, bound: TAIL_DEVIATIONS * turned }
    }

    /// The roots of coefficients modulo q_0, which `noise` turns.
    fn roots(
        &self,
        x: &Ciphertext,
        components: Components,
        keys: &BootstrappingKeys,
        noise: Noise,
        precision: &RootPrecision,
    ) -> Result<Vec<Ciphertext>> {
        let [_, middle, high] = keys.sets().each_ref().map(|set| Evaluator::new(Arc::clone(set)));
        let encapsulation = keys.encapsulation();
        let numbers = match components {
            Components::Real => vec![self.linear.to_real_slots(&high, encapsulation, x)?],
            Components::Both => self.linear.to_slots(&high, encapsulation, x)?.into(),
        };
        let root = |number: &Ciphertext| {
            let root = self.series.apply(&middle, number)?;
            let expected = self.root(&root.expected(), noise, precision);
            Ok(root.estimated(&expected))
        };
        numbers.iter().map(root).collect()
    }

    /// What is known of a root that `noise` turns.
    fn root(&self, a: &Expected, noise: Noise, precision: &RootPrecision) -> Expected {
        let (level, scale) = (self.level(), self.params.scale(self.level()));
        let spread = (self.params.expansion() / 2.0).sqrt();
        let added =
            Noise { std: precision.deviation() * scale / spread, bound: precision.bound() * scale };
        Expected { level, scale, noise: noise.plus(added), magnitude: 1.0, ..*a }
    }
}

impl core::fmt::Debug for Exponential {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Exponential").field("spec", &self.spec).finish_non_exhaustive()
    }
}
