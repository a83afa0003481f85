//! Forecast: levels, scales, errors and work of operations, without any ciphertext.
//!
//! An [`Evaluator`](super::Evaluator) without polynomials and without keys: the same rules bring
//! operands together, and the same formulas give what is known of a result, to the last bit. A
//! program is tried out on it before any key is made.

mod course;
mod functions;
mod names;
mod origins;
mod traced;

pub use traced::{Traced, TracedForecast, Tracing};

use std::sync::{Arc, Mutex, PoisonError};

use super::Complex;
use super::align::{Path, Place, Step, descend, join, meet};
use super::calibration::Calibration;
use super::expected::{Expected, check_count, check_scale, declared};
use super::modulus_chain::ModulusChain;
use super::noise::Noise;
use super::params::Params;
use super::plaintext::Encoding;
use super::spec::ParamsSpec;
use super::widths::Widths;
use super::work::{LevelWork, Work, encode, passes, rescale};
use crate::error::{Error, Result};

/// The key that a fresh ciphertext is under, which decides its noise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncryptionKey {
    /// The owner's: less noise.
    Secret,
    /// The one that anybody encrypts with.
    Public,
}

/// Computes what is known of results, and counts what computing them takes.
#[derive(Debug)]
pub struct Forecast {
    chain: Arc<ModulusChain>,
    work: Mutex<Work>,
}

impl Forecast {
    /// For ciphertexts under `params`.
    pub fn new(params: &Params) -> Self {
        Forecast { chain: params.chain().clone(), work: Mutex::default() }
    }

    /// For ciphertexts under the parameters that [`Params::new`] would make: only the primes are
    /// found.
    ///
    /// # Errors
    /// As [`Params::new`].
    pub fn of_spec(spec: &ParamsSpec) -> Result<Self> {
        let chain = Arc::new(ModulusChain::checked(spec, Widths::Even, false)?);
        Ok(Forecast { chain, work: Mutex::default() })
    }

    /// What was asked for.
    pub fn spec(&self) -> &ParamsSpec {
        &self.chain.spec
    }

    /// The level of a fresh ciphertext.
    pub fn max_level(&self) -> usize {
        self.chain.max_level()
    }

    /// The most slots.
    pub fn max_slots(&self) -> usize {
        self.chain.max_slots()
    }

    /// log2 of the modulus of `level`.
    ///
    /// # Panics
    /// Above [`Self::max_level`].
    pub fn log_modulus(&self, level: usize) -> f64 {
        self.chain.log_modulus(level)
    }

    /// Δ_l, the canonical scale of `level`.
    ///
    /// # Panics
    /// Above [`Self::max_level`].
    pub fn scale(&self, level: usize) -> f64 {
        self.chain.scale(level)
    }

    /// log2(QP), rounded up: what the security table is asked about.
    pub fn log_key_modulus(&self) -> u32 {
        let all = self.chain.primes.iter().chain(&self.chain.special);
        all.map(|&prime| (prime as f64).log2()).sum::<f64>().ceil() as u32
    }

    /// What was counted so far.
    pub fn work(&self) -> Work {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was counted so far; counting begins anew.
    pub fn take_work(&self) -> Work {
        core::mem::take(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Milliseconds that it takes one thread.
    pub fn milliseconds(&self, calibration: &Calibration) -> f64 {
        self.work().milliseconds(calibration)
    }

    /// log2 of the standard deviation of the error of a slot's real part.
    pub fn error_bits(&self, a: &Expected) -> f64 {
        self.chain.error_bits(a)
    }

    /// A ciphertext of numbers encoded as `encoding` says; of all slots and up to 1 by default.
    /// Counts no work, which is the owner's.
    ///
    /// # Errors
    /// [`Error::Range`] for a level, scale, number of slots or magnitude that cannot be encoded.
    pub fn fresh(&self, key: EncryptionKey, encoding: &Encoding) -> Result<Expected> {
        let level = encoding.level.unwrap_or(self.max_level());
        self.chain.check_level(level)?;
        let slots = encoding.slots.unwrap_or(self.max_slots());
        self.chain.check_slots(slots)?;
        let (scale, delta) = (encoding.scale.unwrap_or(self.scale(level)), self.chain.expansion());
        let noise = match key {
            EncryptionKey::Secret => Noise::secret_key(delta),
            EncryptionKey::Public => Noise::public_key(delta),
        };
        check_scale(scale)?;
        let fresh = Expected { level, degree: 1, scale, slots, noise, magnitude: 1.0 };
        let fresh = fresh.with_magnitude(encoding.magnitude.unwrap_or(1.0))?;
        self.chain.check_encoded(fresh.magnitude, level, scale)?;
        Ok(fresh)
    }

    /// Whether the scale is that of a product, so that a rescale is due.
    pub fn is_pending(&self, a: &Expected) -> bool {
        Place::of(a).pending(&self.chain)
    }

    /// `a + b`.
    ///
    /// # Errors
    /// As `Evaluator::add`.
    pub fn add(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        self.combine("addition", a, b, 2)
    }

    /// `a + b` in the place of `a`: a copy less.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_to(&self, a: Expected, b: &Expected) -> Result<Expected> {
        self.combine("addition", &a, b, 1)
    }

    /// `a − b`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        self.combine("subtraction", a, b, 2)
    }

    fn combine(
        &self,
        operation: &'static str,
        a: &Expected,
        b: &Expected,
        count: usize,
    ) -> Result<Expected> {
        let [path_a, path_b] = meet(&self.chain, operation, [Place::of(a), Place::of(b)])?;
        let (a, b) = (self.follow(a, &path_a)?, self.follow(b, &path_b)?);
        let sum = self.chain.sum(&a, &b);
        self.count(a.level, passes(a.level, count * (sum.degree + 1)));
        Ok(sum)
    }

    /// `−a`.
    pub fn negate(&self, a: &Expected) -> Expected {
        self.count(a.level, passes(a.level, 2 * (a.degree + 1)));
        *a
    }

    /// `a + values`, the largest of which is `largest`.
    ///
    /// # Errors
    /// As `Evaluator::add_values`.
    pub fn add_values(&self, a: &Expected, largest: f64) -> Result<Expected> {
        check_scale(a.scale)?;
        self.chain.check_encoded(largest, a.level, a.scale)?;
        self.count(a.level, encode(a.level));
        self.count(a.level, passes(a.level, a.degree + 2));
        Ok(self.chain.sum_with_plain(a, a.slots, declared(largest)))
    }

    /// `a` times `values`, the largest of which is `largest`; not rescaled.
    ///
    /// # Errors
    /// As `Evaluator::multiply_values`.
    pub fn multiply_values(&self, a: &Expected, largest: f64) -> Result<Expected> {
        let a = self.due(a)?;
        let scale = self.chain.factor_scale(&a)?;
        check_scale(scale)?;
        self.chain.check_encoded(largest, a.level, scale)?;
        self.count(a.level, encode(a.level));
        self.count(a.level, passes(a.level, a.degree + 1));
        self.chain.product_with_plain(&a, scale, a.slots, declared(largest))
    }

    /// [`Self::multiply_values`], rescaled.
    ///
    /// # Errors
    /// As [`Self::multiply_values`].
    pub fn mul_values(&self, a: &Expected, largest: f64) -> Result<Expected> {
        self.rescale(&self.multiply_values(a, largest)?)
    }

    /// `a + number`.
    ///
    /// # Errors
    /// As `Evaluator::add_scalar`.
    pub fn add_scalar(&self, a: &Expected, number: impl Into<Complex>) -> Result<Expected> {
        self.count(a.level, passes(a.level, a.degree + 2));
        self.chain.sum_with_scalar(a, number.into())
    }

    /// `a` times a number; not rescaled.
    ///
    /// # Errors
    /// As `Evaluator::multiply_scalar`.
    pub fn multiply_scalar(&self, a: &Expected, number: impl Into<Complex>) -> Result<Expected> {
        let number = number.into();
        self.chain.finite(number)?;
        let a = self.due(a)?;
        self.count(a.level, passes(a.level, 2 * (a.degree + 1)));
        Ok(self.chain.product_with_scalar(&a, number)?.1)
    }

    /// [`Self::multiply_scalar`], rescaled.
    ///
    /// # Errors
    /// As [`Self::multiply_scalar`].
    pub fn mul_scalar(&self, a: &Expected, number: impl Into<Complex>) -> Result<Expected> {
        self.rescale(&self.multiply_scalar(a, number)?)
    }

    /// `a` times an integer.
    ///
    /// # Errors
    /// As `Evaluator::multiply_integer`.
    pub fn multiply_integer(&self, a: &Expected, factor: i64) -> Result<Expected> {
        self.count(a.level, passes(a.level, 2 * (a.degree + 1)));
        self.chain.product_with_integer(a, factor, 0)
    }

    /// `a b`, of degree 2 and not rescaled.
    ///
    /// # Errors
    /// As `Evaluator::multiply`.
    pub fn multiply(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        a.linear("a factor")?;
        b.linear("a factor")?;
        let [path_a, path_b] = join(&self.chain, [Place::of(a), Place::of(b)]);
        let (a, b) = (self.follow(a, &path_a)?, self.follow(b, &path_b)?);
        self.count(a.level, passes(a.level, 4));
        self.chain.product("a product", &a, &b)
    }

    /// `2 a b − c`, or `2 a b − 1` without a `c`: of degree 2 and not rescaled.
    ///
    /// # Errors
    /// As `Evaluator::double_product`.
    pub fn double_product(
        &self,
        a: &Expected,
        b: &Expected,
        c: Option<&Expected>,
    ) -> Result<Expected> {
        a.linear("a factor")?;
        b.linear("a factor")?;
        let [path_a, path_b] = join(&self.chain, [Place::of(a), Place::of(b)]);
        let (a, b) = (self.follow(a, &path_a)?, self.follow(b, &path_b)?);
        self.count(a.level, passes(a.level, if c.is_some() { 11 } else { 8 }));
        Ok(self.chain.doubled(&a, &b, c)?.1)
    }

    /// `a²`, likewise.
    ///
    /// # Errors
    /// As [`Self::multiply`].
    pub fn square(&self, a: &Expected) -> Result<Expected> {
        a.linear("a factor")?;
        let a = self.due(a)?;
        self.count(a.level, passes(a.level, 4));
        self.chain.dependent_product("a square", &a, &a)
    }

    /// `Σ_i a_i b_i`, of degree 2 and not rescaled, at most `magnitude`.
    ///
    /// # Errors
    /// As `Evaluator::inner_product`.
    pub fn inner_product(
        &self,
        a: &[Expected],
        b: &[Expected],
        magnitude: f64,
    ) -> Result<Expected> {
        let sum = self.chain.inner_product(a, b, magnitude)?;
        self.count(sum.level, passes(sum.level, 4 * a.len()));
        Ok(sum)
    }

    /// Back to degree 1; what is of degree 1 as it is.
    ///
    /// # Errors
    /// [`Error::Range`] without special primes.
    pub fn relinearise(&self, a: &Expected) -> Result<Expected> {
        if a.degree == 1 {
            return Ok(*a);
        }
        self.switch(a.level, LevelWork { relinearisations: 1, ..LevelWork::default() })?;
        Ok(self.chain.switched(a))
    }

    /// `a b`, relinearised and rescaled.
    ///
    /// # Errors
    /// As [`Self::multiply`] and [`Self::relinearise`].
    pub fn mul(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        self.normalise(&self.multiply(a, b)?)
    }

    /// Relinearises what is of degree 2 and rescales what is due, both in one pass.
    ///
    /// # Errors
    /// As [`Self::relinearise`].
    pub fn normalise(&self, a: &Expected) -> Result<Expected> {
        match (a.degree, self.is_pending(a)) {
            (1, true) => self.rescale(a),
            (1, false) => Ok(*a),
            (_, false) => self.relinearise(a),
            (_, true) => {
                self.switch(a.level, LevelWork { relinearisations: 1, ..LevelWork::default() })?;
                Ok(self.chain.switched_and_rescaled(a))
            }
        }
    }

    /// Divided by the last prime.
    ///
    /// # Errors
    /// [`Error::Level`] at level 0.
    pub fn rescale(&self, a: &Expected) -> Result<Expected> {
        let rescaled = self.chain.rescaled(a)?;
        self.count(a.level, rescale(a.level, a.degree + 1));
        Ok(rescaled)
    }

    /// Without the limbs above `level`.
    ///
    /// # Errors
    /// [`Error::Range`] for a level above its own.
    pub fn drop_to(&self, a: &Expected, level: usize) -> Result<Expected> {
        self.count(a.level, passes(level, a.degree + 1));
        self.chain.dropped(a, level)
    }

    /// At a lower level and its canonical scale.
    ///
    /// # Errors
    /// As `Evaluator::match_level`.
    pub fn match_level(&self, a: &Expected, level: usize) -> Result<Expected> {
        let result = self.follow(a, &descend(&self.chain, Place::of(a), level)?)?;
        if result.level == level { Ok(result) } else { self.drop_to(&result, level) }
    }

    /// The slots of `a` from `steps` on, cyclically.
    ///
    /// # Errors
    /// [`Error::Range`] for degree 2 or without special primes.
    pub fn rotate(&self, a: &Expected, steps: i64) -> Result<Expected> {
        a.linear("a ciphertext to rotate")?;
        if steps.rem_euclid(a.slots as i64) == 0 {
            return Ok(*a);
        }
        self.switch(a.level, LevelWork { rotations: 1, ..LevelWork::default() })?;
        Ok(self.chain.switched(a))
    }

    /// [`Self::rotate`] by each of `steps`, from one decomposition.
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn rotate_hoisted(&self, a: &Expected, steps: &[i64]) -> Result<Vec<Expected>> {
        self.decompose(a)?;
        Ok(steps.iter().map(|&steps| self.rotate_decomposed(a, steps)).collect())
    }

    /// Cuts a polynomial into digits, as rotations of one ciphertext do together.
    fn decompose(&self, a: &Expected) -> Result<()> {
        a.linear("a ciphertext to rotate")?;
        self.switchable()?;
        self.count(a.level, self.chain.decomposition(a.level));
        Ok(())
    }

    fn rotate_decomposed(&self, a: &Expected, steps: i64) -> Expected {
        if steps.rem_euclid(a.slots as i64) == 0 {
            return *a;
        }
        self.count(a.level, self.chain.switch_of_digits(a.level));
        self.count(a.level, LevelWork { rotations: 1, ..LevelWork::default() });
        self.chain.switched(a)
    }

    /// The complex conjugate of every slot.
    ///
    /// # Errors
    /// As [`Self::rotate`]; [`Error::Range`] in the conjugate-invariant ring.
    pub fn conjugate(&self, a: &Expected) -> Result<Expected> {
        a.linear("a ciphertext to conjugate")?;
        self.chain.spec.ring.check_conjugation()?;
        self.switch(a.level, LevelWork { rotations: 1, ..LevelWork::default() })?;
        Ok(self.chain.switched(a))
    }

    /// In every slot the sum over `count` slots from it on.
    ///
    /// # Errors
    /// As `Evaluator::inner_sum`.
    pub fn inner_sum(&self, a: &Expected, count: usize) -> Result<Expected> {
        check_count(count, a.slots)?;
        (0..count.ilog2()).try_fold(*a, |sum, bit| self.add(&sum, &self.rotate(&sum, 1 << bit)?))
    }

    /// The operand of a product, rescaled if that is due.
    fn due(&self, a: &Expected) -> Result<Expected> {
        if self.is_pending(a) { self.rescale(a) } else { Ok(*a) }
    }

    fn follow(&self, a: &Expected, path: &Path) -> Result<Expected> {
        let mut result = *a;
        for step in &path.steps {
            result = match *step {
                Step::Rescale => self.rescale(&result)?,
                Step::Drop(level) => self.drop_to(&result, level)?,
                Step::Multiply { factor, scale } => {
                    self.count(result.level, passes(result.level, result.degree + 1));
                    self.chain.scaled_up(&result, factor, scale)
                }
            };
        }
        if !path.is_empty() {
            result.scale = path.end.scale;
        }
        Ok(result)
    }

    fn switch(&self, level: usize, kind: LevelWork) -> Result<()> {
        self.switchable()?;
        self.count(level, self.chain.decomposition(level));
        self.count(level, self.chain.switch_of_digits(level));
        self.count(level, kind);
        Ok(())
    }

    /// Refuses to switch keys that there are none of.
    fn switchable(&self) -> Result<()> {
        if !self.chain.special.is_empty() {
            return Ok(());
        }
        Err(Error::Range {
            what: "the number of special primes",
            expected: "at least 1, to switch keys with".into(),
            actual: "0".into(),
        })
    }

    fn count(&self, level: usize, work: LevelWork) {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).count(level, work);
    }
}
