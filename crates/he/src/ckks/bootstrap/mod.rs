//! Bootstrapping: gives a ciphertext that has no levels left new ones, for the same numbers. Server
//! only.
//!
//! Slots to coefficients at the lowest levels; the modulus raised under a sparse secret, which
//! leaves a multiple of q_0 in every coefficient; coefficients to slots; and the multiples reduced
//! away (docs/ckks.md, section 10).
//!
//! # The way
//!
//! From the bottom, a chain has the levels of *slots-to-coefficients*, those to compute with, those
//! of the *reduction*, those of *coefficients-to-slots*. With U the matrix that takes w_k = m_k + i
//! m_(k+N/2) to slots:
//!
//! 1. *Slots to coefficients*: U makes the slots z the coefficients of the message, at a scale Δ'
//!    modulo q_0.
//! 2. *Raising* (docs/ckks.md, 10.2): the coefficients are read as integers modulo all primes. They
//!    are q_0 x with x = ε + I, ε = Δ' z/q_0, I an integer.
//! 3. *Coefficients to slots*: a multiplication by U^−1 leaves x of both halves in the real and
//!    imaginary parts of slots; a conjugation takes them apart, before the last rescale.
//! 4. *Reduction* (docs/ckks.md, 10.4): f(x) = g sin(2πx)/2π or close to it, of slope g at the
//!    integers, on both ciphertexts.
//!
//! What comes out is z at the scale S g Δ'/q_0, S the scale that the ladder of the reduction
//! leaves. Δ' makes this exactly the canonical scale of the level below. `key_plans()` lists the
//! keys, each only as high as its stage.

mod dft;
mod encapsulation;
mod exponential;
mod failure;
mod forecast;
mod interpolation;
mod key_stream;
mod keys;
mod linear;
mod precision;
mod real_dft;
mod reduction;
mod spec;
mod trace;
mod transform;

/// The transforms, for tests that run each on what a secret key encrypted.
#[cfg(feature = "hazmat")]
pub mod transforms {
    pub use super::dft::{Diagonals, Direction, matrices};
    pub use super::linear::routes;
    pub use super::real_dft::matrices as real_matrices;
    pub use super::transform::CompactTransform;
}

pub use encapsulation::Encapsulation;
pub use exponential::{
    Components, Exponential, ExponentialPlan, ExponentialSpec, LookupTable, TablePlan,
};
pub use keys::BootstrappingKeys;
pub use spec::{BootstrapSpec, WEIGHT};

use super::Complex;
use super::ciphertext::Ciphertext;
use super::evaluate::Evaluator;
use super::keys::KeyPlan;
use super::params::Params;
use super::spec::Ring;
use crate::error::Result;
use linear::{LinearLayout, LinearPart};
use precision::{Iterations, Parts, Precision};
use reduction::Reduction;
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
    /// Key switches that a reduction relinearises with.
    pub relinearisations: usize,
    /// Reductions: in each iteration of real and of imaginary parts, or of both in one where slots
    /// repeat, or of real slots.
    pub reductions: usize,
    /// Iterations, each with both transforms: what is left of numbers is refreshed after them.
    pub iterations: usize,
}

/// Refreshes ciphertexts of one parameter set.
pub struct Bootstrapper {
    params: Arc<Params>,
    spec: BootstrapSpec,
    reduction: Reduction,
    linear: LinearPart,
    key_plans: [KeyPlan; 3],
    precision: Precision,
}

impl Bootstrapper {
    /// Makes the parameters of `spec` and all that is computed from them.
    ///
    /// # Errors
    /// [`crate::Error::Insecure`] for a modulus over the table's limit, [`crate::Error::Range`] for
    /// sizes that no chain of primes is found for.
    pub fn new(spec: BootstrapSpec) -> Result<Self> {
        Self::build(spec, false)
    }

    /// [`Self::new`] of a set that the security table is not asked about, for tests.
    ///
    /// # Errors
    /// [`crate::Error::Range`] as for [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_new(spec: BootstrapSpec) -> Result<Self> {
        Self::build(spec, true)
    }

    fn build(spec: BootstrapSpec, insecure: bool) -> Result<Self> {
        spec.check()?;
        let reduction = spec.reduction()?;
        let params = spec.build(&reduction, insecure)?;
        let prime = |level: usize| params.prime(level).value() as f64;
        let lowest = spec.slots_to_coefficients;
        let left = spec.reduced_level();
        // What a reduction at this scale makes of numbers is what they are at the scale of the
        // level that it ends on, over what residuals are multiplied by.
        let last = params.scale(left + 1).powi(2) / prime(left + 1);
        let shift = f64::exp2(f64::from(spec.residual_shift()));
        let base_scale = params.scale(left) / shift * prime(0) / (reduction.slope() * last);
        let slots = 1 << spec.log_slots;
        let layout = LinearLayout {
            slots,
            slots_to_coefficients: lowest,
            base_scale,
            coefficients_to_slots: spec.coefficients_to_slots,
            divisor: reduction.divisor(),
            range: spec.range,
            key_cost: spec.key_cost,
            placed: false,
        };
        let linear = LinearPart::new(&params, &layout)?;
        let [low, high] = linear.key_plans();
        let key_plans = [low, KeyPlan::new().relinearise().at_level(linear.end()), high];
        let parts = Parts {
            params: &params,
            slots_to_coefficients: &linear.slots_to_coefficients,
            coefficients_to_slots: &linear.coefficients_to_slots,
            repeats: (params.max_slots() / slots) as f64,
            base_scale,
            end: (left, last),
        };
        let iterations =
            Iterations { count: spec.iterations, factor: f64::exp2(f64::from(spec.residual_bits)) };
        let precision = parts.iterated(&reduction, params.scale(lowest), iterations)?;
        Ok(Bootstrapper { spec, reduction, linear, key_plans, precision, params })
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
    /// [`crate::Error::Range`] never, for a bootstrapper that was made.
    pub fn plan(&self) -> Result<BootstrapPlan> {
        let LinearPart { slots_to_coefficients, coefficients_to_slots, .. } = &self.linear;
        let transforms = || slots_to_coefficients.iter().chain(coefficients_to_slots.iter());
        let (ring, parts) = (self.spec.ring, self.spec.ring.parts());
        let coefficients = self.spec.log_slots + parts.ilog2();
        // Of as many slots as there are parts, in which they lay apart.
        let repeats = (self.params.max_slots() / parts / self.slots()).max(1);
        let precision = self.precision.read(repeats as f64);
        let keys = self.key_plans.iter().map(|plan| plan.keys(&self.params)).sum::<usize>();
        Ok(BootstrapPlan {
            level: self.level(),
            lowest_level: self.spec.slots_to_coefficients,
            levels_left: self.spec.levels,
            slots: self.slots(),
            precision_bits: -precision.deviation().log2(),
            bound_bits: -precision.bound().log2(),
            failure_log2: failure::lost_log2(ring, self.spec.range, coefficients)
                + (self.spec.iterations as f64).log2(),
            key_bytes: keys::bytes(&self.params, &self.key_plans)?,
            diagonal_bytes: transforms().map(CompactTransform::memory).sum(),
            rotations: keys - 1,
            relinearisations: self.reduction.relinearisations(),
            reductions: if self.spec.repeats() { 1 } else { parts * self.spec.iterations },
            iterations: self.spec.iterations,
        })
    }

    /// The most slots.
    fn slots(&self) -> usize {
        1 << self.spec.log_slots
    }

    /// The level of a refreshed ciphertext: the one to encrypt at.
    pub fn level(&self) -> usize {
        self.spec.slots_to_coefficients + self.spec.levels
    }

    /// The numbers of `a`, real and imaginary parts or real slots of magnitude at most 1, at
    /// [`Self::level`].
    /// Numbers beyond that come out wrong, each by the cube of its size; only the owner can see it.
    ///
    /// # Errors
    /// [`crate::Error::Level`] below the levels of slots-to-coefficients, [`crate::Error::Range`] for a
    /// declared magnitude over 1 or degree 2, [`crate::Error::MissingKey`],
    /// [`crate::Error::WrongKey`], [`crate::Error::Parameters`].
    pub fn bootstrap(&self, a: &Ciphertext, keys: &BootstrappingKeys) -> Result<Ciphertext> {
        self.check(a, keys)?;
        let stages = keys.sets().each_ref().map(|set| Evaluator::new(Arc::clone(set)));
        let [low, ..] = &stages;
        // Whoever read it may have parameters of their own, equal to these, with another pool.
        let spent = under(low.match_level(a, self.spec.slots_to_coefficients)?, &self.params);
        let mut shift = self.spec.residual_shift();
        let mut sum = self.iteration(&stages, keys, &spent, shift)?;
        for iteration in 1..self.spec.iterations as u32 {
            let residual = low.sub(&spent, &low.match_level(&sum, spent.level())?)?;
            let factor = 1i64 << (self.spec.residual_bits * iteration);
            let residual = low.multiply_integer(&residual, factor)?.with_magnitude(1.0)?;
            shift -= self.spec.residual_bits;
            sum = low.add(&sum, &self.iteration(&stages, keys, &residual, shift)?)?;
        }
        let expected = self.refreshed(&a.expected())?;
        let sum = Ciphertext { parts: sum.parts, meta: a.meta }.estimated(&expected);
        Ok(under(sum, a.params()))
    }

    /// The numbers of `spent`, which is where slots-to-coefficients begins, refreshed and times
    /// 2^`shift` over what residuals are multiplied by in all.
    fn iteration(
        &self,
        stages: &[Evaluator; 3],
        keys: &BootstrappingKeys,
        spent: &Ciphertext,
        shift: u32,
    ) -> Result<Ciphertext> {
        let [low, middle, high] = stages;
        let x = self.linear.to_coefficients(low, spent)?;
        let sum = if self.spec.ring == Ring::ConjugateInvariant {
            let all = self.linear.to_all_slots(high, keys.encapsulation(), &x)?;
            shifted(middle, self.reduction.apply(middle, &all)?, shift)?
        } else if self.spec.repeats() {
            let parts = self.linear.to_split_slots(high, keys.encapsulation(), &x)?;
            self.joined(high, self.reduction.apply(middle, &parts)?)?
        } else {
            // What a reduction was of goes when it is made: these are the most that memory holds.
            let [mut real, mut imaginary] = self.linear.to_slots(high, keys.encapsulation(), &x)?;
            real = self.reduction.apply(middle, &real)?;
            imaginary = self.reduction.apply(middle, &imaginary)?;
            shifted(middle, middle.add_to(real, &middle.multiply_by_i(&imaginary)?)?, shift)?
        };
        let expected = self.refreshed(&spent.expected())?;
        Ok(Ciphertext { parts: sum.parts, meta: spent.meta }.estimated(&expected))
    }

    /// From the real parts in the first half of the slots and the imaginary ones in the second the
    /// numbers, in both: the second times i, and both halves added up.
    fn joined(&self, high: &Evaluator, mut parts: Ciphertext) -> Result<Ciphertext> {
        let (slots, level) = (self.slots(), parts.level());
        parts.meta.scale = self.params.scale(level);
        let parts = parts.with_magnitude(1.0)?;
        let mut factors = vec![Complex::from(1.0); slots];
        factors.resize(2 * slots, Complex::i());
        let parts = high.rescale(&high.multiply_complex_values(&parts, &factors)?)?;
        high.add(&parts, &high.rotate(&parts, slots as i64)?)
    }

    /// Whether `keys` are all that a bootstrapping takes.
    ///
    /// # Errors
    /// [`crate::Error::Parameters`] for keys of other parameters; [`crate::Error::MissingKey`], as of another
    /// number of slots.
    pub fn check_keys(&self, keys: &BootstrappingKeys) -> Result<()> {
        keys.complete(&self.params, &self.key_plans)
    }

    fn check(&self, a: &Ciphertext, keys: &BootstrappingKeys) -> Result<()> {
        keys.check(&self.params, &self.key_plans, a)?;
        self.refreshed(&a.expected())?;
        Ok(())
    }
}

/// `a` with all parts under `params`.
fn under(a: Ciphertext, params: &Arc<Params>) -> Ciphertext {
    let parts = a.parts.into_iter().map(|part| part.under(params)).collect();
    Ciphertext { parts, meta: a.meta }
}

/// `a` times 2^`shift`.
fn shifted(evaluator: &Evaluator, a: Ciphertext, shift: u32) -> Result<Ciphertext> {
    if shift == 0 { Ok(a) } else { evaluator.multiply_integer(&a, 1 << shift) }
}

impl core::fmt::Debug for Bootstrapper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bootstrapper").field("spec", &self.spec).finish_non_exhaustive()
    }
}
