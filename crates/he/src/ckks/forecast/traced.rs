//! Traced forecast: operations on ciphertexts that nobody has enter; what a [`Forecast`] says of them
//! leaves, and how far off they are with what depends on what. Both sides.
//!
//! Two figures of [`super::super::noise::Noise`] travel with a ciphertext, and cannot say which other
//! ciphertexts have the same error in them. Where exact answers rest on it, this says more: the
//! errors of a product's factors, of powers of one number, of what is added to itself, are those of
//! common [`Origins`].

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::super::Complex;
use super::super::expected::Expected;
use super::super::modulus_chain::ModulusChain;
use super::super::noise::Noise;
use super::super::operations::Operations;
use super::super::params::Params;
use super::super::plaintext::Encoding;
use super::super::polynomial::Polynomial;
use super::super::polynomial_evaluation::evaluate;
use super::super::sign::Sign;
use super::super::spec::ParamsSpec;
use super::super::tail::Deviation;
use super::origins::{Maker, Origin, Origins};
use super::{EncryptionKey, Forecast};
use crate::error::{Error, Result};

/// What errors may be over their forecast: those of one key are, by some hundredths.
const MARGIN: f64 = 1.1;
/// What a rescale before relinearising counts for: there the square of the secret is a factor.
const UNRELINEARISED: f64 = 16.0;

/// How errors are traced.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tracing {
    /// log2 of one over the chance that any one error may be larger than is said.
    pub bits: f64,
    /// Slot by slot: a mask takes the errors of what it leaves out with it.
    pub local: bool,
    /// Whether operands whose errors have common origins are told from others.
    pub dependent: bool,
}

/// What is known of a ciphertext, and what its error is made of.
#[derive(Clone, Debug)]
pub struct Traced {
    expected: Expected,
    error: Rc<RefCell<Origins>>,
}

impl Traced {
    /// What is known of it.
    pub fn expected(&self) -> &Expected {
        &self.expected
    }

    /// The same with a bound that the caller knows to hold.
    ///
    /// # Errors
    /// As [`Expected::with_magnitude`].
    pub fn with_magnitude(self, magnitude: f64) -> Result<Self> {
        Ok(Traced { expected: self.expected.with_magnitude(magnitude)?, ..self })
    }

    /// The same without an error: what an operation makes of it has the operation's own.
    pub fn silent(&self) -> Self {
        Traced { expected: silent(&self.expected), error: Rc::new(RefCell::new(Origins::none())) }
    }

    /// The error in the slot where it is largest.
    pub fn deviation(&self) -> Deviation {
        self.error.borrow().deviation()
    }

    fn level(&self) -> usize {
        self.expected.level
    }
}

fn silent(a: &Expected) -> Expected {
    let mut silent = *a;
    (silent.noise.std, silent.noise.bound) = (0.0, 0.0);
    silent
}

/// Where a step's own error is from.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    /// Rescales and key switches: another one each time.
    Fresh,
    /// What is encoded, which is rounded as it was wherever else it stands.
    Encoded,
}

/// A [`Forecast`] that traces errors.
#[derive(Debug)]
pub struct TracedForecast {
    forecast: Forecast,
    /// Runs the same without the errors that came with operands: what is left is a step's own.
    own: Forecast,
    maker: Maker,
    encoded: Rc<Origin>,
    tracing: Tracing,
    /// The same, whose work is nobody's: for what goes on within one step.
    within: Option<Box<TracedForecast>>,
}

impl TracedForecast {
    /// For ciphertexts under `params`.
    pub fn new(params: &Params, tracing: Tracing) -> Self {
        Self::of(params.chain(), tracing)
    }

    /// For ciphertexts under the parameters that [`Params::new`] would make.
    ///
    /// # Errors
    /// As [`Params::new`].
    pub fn of_spec(spec: &ParamsSpec, tracing: Tracing) -> Result<Self> {
        Ok(Self::of(&Forecast::of_spec(spec)?.chain, tracing))
    }

    fn of(chain: &Arc<ModulusChain>, tracing: Tracing) -> Self {
        let within = Self::without(chain, Tracing { local: false, dependent: true, ..tracing });
        TracedForecast { within: Some(Box::new(within)), ..Self::without(chain, tracing) }
    }

    fn without(chain: &Arc<ModulusChain>, tracing: Tracing) -> Self {
        let maker = Maker::default();
        let encoded = maker.origin(0.0);
        let [forecast, own] =
            [(); 2].map(|()| Forecast { chain: chain.clone(), work: Mutex::default() });
        TracedForecast { forecast, own, maker, encoded, tracing, within: None }
    }

    /// What counts levels, scales and work.
    pub fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    /// What the error of any slot is within, but for the chance that was asked for.
    pub fn within(&self, a: &Traced) -> f64 {
        self.beyond(a.deviation())
    }

    /// [`Self::within`] of an error.
    pub fn beyond(&self, error: Deviation) -> f64 {
        MARGIN * error.within(self.tracing.bits, self.forecast.chain.spec.ring)
    }

    /// A ciphertext of numbers encoded as `encoding` says.
    ///
    /// # Errors
    /// As [`Forecast::fresh`].
    pub fn fresh(&self, key: EncryptionKey, encoding: &Encoding) -> Result<Traced> {
        let expected = self.forecast.fresh(key, encoding)?;
        let keyed = match key {
            EncryptionKey::Secret => 0.0,
            EncryptionKey::Public => 1.0,
        };
        let origin = self.maker.origin(keyed);
        Ok(self.made(expected, Origins::new(origin, self.std(&expected))))
    }

    /// `a + b`.
    ///
    /// # Errors
    /// As [`Forecast::add`].
    pub fn add(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.two((a, b), Forecast::add, Origins::plus)
    }

    /// `a − b`.
    ///
    /// # Errors
    /// As [`Forecast::sub`].
    pub fn sub(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.two((a, b), Forecast::sub, Origins::plus)
    }

    /// `−a`.
    pub fn negate(&self, a: &Traced) -> Traced {
        Traced { expected: self.forecast.negate(&a.expected), ..a.clone() }
    }

    /// `a + values`.
    ///
    /// # Errors
    /// As [`Forecast::add_values`].
    pub fn add_values(&self, a: &Traced, values: &[f64]) -> Result<Traced> {
        let most = largest(values);
        self.one(a, Own::Encoded, |forecast, x| forecast.add_values(x, most), Origins::clone)
    }

    /// `a` times `values`; not rescaled.
    ///
    /// # Errors
    /// As [`Forecast::multiply_values`].
    pub fn multiply_values(&self, a: &Traced, values: &[f64]) -> Result<Traced> {
        let (a, most) = (self.due(a)?, largest(values));
        let brought = |error: &Origins| match self.tracing.local {
            true => error.times_each(values),
            false => error.times(most),
        };
        self.one(&a, Own::Encoded, |forecast, x| forecast.multiply_values(x, most), brought)
    }

    /// `a + number`.
    ///
    /// # Errors
    /// As [`Forecast::add_scalar`].
    pub fn add_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        let expected = self.forecast.add_scalar(&a.expected, number)?;
        Ok(Traced { expected, ..a.clone() })
    }

    /// `a` times a number; not rescaled.
    ///
    /// # Errors
    /// As [`Forecast::multiply_scalar`].
    pub fn multiply_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        let (a, number) = (self.due(a)?, number.into());
        // What is below half a unit of the factor's scale is rounded to 0, or to one.
        let least = 1.0 / self.forecast.chain.factor_scale(&a.expected)?;
        let brought = |error: &Origins| error.times(number.norm().max(least));
        self.one(&a, Own::Encoded, |forecast, x| forecast.multiply_scalar(x, number), brought)
    }

    /// `a` times an integer.
    ///
    /// # Errors
    /// As [`Forecast::multiply_integer`].
    pub fn multiply_integer(&self, a: &Traced, factor: i64) -> Result<Traced> {
        let run = |forecast: &Forecast, x: &Expected| forecast.multiply_integer(x, factor);
        self.one(a, Own::Fresh, run, |error| error.times(factor as f64))
    }

    /// `a b`, of degree 2 and not rescaled.
    ///
    /// # Errors
    /// As [`Forecast::multiply`].
    pub fn multiply(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        let [x, y] = [a, b].map(|one| self.most(one));
        self.two((a, b), Forecast::multiply, |a, b| a.times(y).plus(&b.times(x)))
    }

    /// `a²`, likewise.
    ///
    /// # Errors
    /// As [`Forecast::square`].
    pub fn square(&self, a: &Traced) -> Result<Traced> {
        let a = self.due(a)?;
        let most = self.most(&a);
        self.one(&a, Own::Fresh, Forecast::square, |error| error.times(2.0 * most))
    }

    /// Relinearises what is of degree 2 and rescales what is due.
    ///
    /// # Errors
    /// As [`Forecast::normalise`].
    pub fn normalise(&self, a: &Traced) -> Result<Traced> {
        if a.expected.degree == 1 && !self.forecast.is_pending(&a.expected) {
            return Ok(a.clone());
        }
        self.one(a, Own::Fresh, Forecast::normalise, Origins::clone)
    }

    /// Without the limbs above `level`.
    ///
    /// # Errors
    /// As [`Forecast::drop_to`].
    pub fn drop_to(&self, a: &Traced, level: usize) -> Result<Traced> {
        Ok(Traced { expected: self.forecast.drop_to(&a.expected, level)?, ..a.clone() })
    }

    /// At a lower level and its canonical scale.
    ///
    /// # Errors
    /// As [`Forecast::match_level`].
    pub fn match_level(&self, a: &Traced, level: usize) -> Result<Traced> {
        let run = |forecast: &Forecast, x: &Expected| forecast.match_level(x, level);
        self.one(a, Own::Fresh, run, Origins::clone)
    }

    /// The slots of `a` from `steps` on, cyclically.
    ///
    /// # Errors
    /// As [`Forecast::rotate`].
    pub fn rotate(&self, a: &Traced, steps: i64) -> Result<Traced> {
        let run = |forecast: &Forecast, x: &Expected| forecast.rotate(x, steps);
        self.one(a, Own::Fresh, run, |error| error.rotated(steps, a.expected.slots))
    }

    /// A polynomial of every slot.
    ///
    /// # Errors
    /// As [`Forecast::polynomial`].
    pub fn polynomial(&self, x: &Traced, polynomial: &Polynomial) -> Result<Traced> {
        let expected = self.forecast.polynomial(&x.expected, polynomial)?;
        let own = evaluate(self.inner(), &x.silent(), polynomial)?.deviation();
        let most = polynomial.steepest(x.expected.magnitude, self.within(x));
        let [error] = self.read([x]);
        let brought = error.times(most);
        Ok(self.made(expected, brought.plus(&self.fresh_error(own))))
    }

    /// About the sign of every slot.
    ///
    /// # Errors
    /// As [`Forecast::sign`], and [`Error::Range`] for what is off by more than the sign was built
    /// for, with the chance that was asked for.
    pub fn sign(&self, x: &Traced, sign: &Sign) -> Result<Traced> {
        (0..sign.stages().len()).try_fold(x.clone(), |x, stage| self.sign_stage(&x, sign, stage))
    }

    /// One polynomial of a sign.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub fn sign_stage(&self, x: &Traced, sign: &Sign, stage: usize) -> Result<Traced> {
        let x = self.normalise(x)?;
        let expected = self.forecast.sign_stage(&x.expected, sign, stage)?;
        let (off, most) = (self.within(&x), sign.stands()[stage]);
        if off > most {
            return Err(Error::Range {
                what: "the error in a slot before a stage of a sign",
                expected: format!("at most 2^{:.1}, which it was built for", most.log2()),
                actual: format!("2^{:.1} with a chance of 2^-{:.0}", off.log2(), self.tracing.bits),
            });
        }
        let own = evaluate(self.inner(), &x.silent(), &sign.stages()[stage])?.deviation();
        Ok(self.made(expected, self.fresh_error(own)))
    }

    /// What another operation makes of it, `run` on what is expected, which makes the error that is
    /// there at most `steepest` times as large.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn through(
        &self,
        a: &Traced,
        steepest: f64,
        run: impl Fn(&Expected) -> Result<Expected>,
    ) -> Result<Traced> {
        self.one(a, Own::Fresh, |_, x| run(x), |error| error.times(steepest))
    }

    /// What another operation makes of it that reads from the noise how far its operand is off, and
    /// makes an error of its own of that.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn anew(&self, a: &Traced, run: impl Fn(&Expected) -> Result<Expected>) -> Result<Traced> {
        let mut noisy = a.expected;
        noisy.noise.std = noisy.noise.std.max(self.noise(&noisy, a.deviation().std));
        let expected = run(&noisy)?;
        let own = Deviation { std: self.std(&expected), keyed: 1.0 };
        Ok(self.made(expected, self.fresh_error(own)))
    }

    fn inner(&self) -> &Self {
        self.within.as_deref().unwrap_or(self)
    }

    fn due(&self, a: &Traced) -> Result<Traced> {
        if !self.forecast.is_pending(&a.expected) {
            return Ok(a.clone());
        }
        self.one(a, Own::Fresh, Forecast::rescale, Origins::clone)
    }

    /// What a factor's error is multiplied by: the largest that it can be, and half of its own error,
    /// the other half of the product of both errors being the other's.
    fn most(&self, a: &Traced) -> f64 {
        a.expected.magnitude + 0.5 * self.within(a)
    }

    /// The standard deviation in a slot that its noise says.
    fn std(&self, a: &Expected) -> f64 {
        self.forecast.error_bits(a).exp2()
    }

    /// The noise of so large an error.
    fn noise(&self, a: &Expected, std: f64) -> f64 {
        let unit = Expected { noise: Noise { std: 1.0, ..a.noise }, ..*a };
        std / self.std(&unit)
    }

    fn fresh_error(&self, own: Deviation) -> Origins {
        match own.std {
            0.0 => Origins::none(),
            std => Origins::new(self.maker.origin(own.keyed), std),
        }
    }

    /// The errors of operands, which from now on are no longer than they have to be.
    fn read<'a, const COUNT: usize>(&self, all: [&'a Traced; COUNT]) -> [Ref<'a, Origins>; COUNT] {
        all.iter().for_each(|one| one.error.borrow_mut().condense(&self.maker));
        all.map(|one| one.error.borrow())
    }

    fn one(
        &self,
        a: &Traced,
        from: Own,
        run: impl Fn(&Forecast, &Expected) -> Result<Expected>,
        brought: impl Fn(&Origins) -> Origins,
    ) -> Result<Traced> {
        let expected = run(&self.forecast, &a.expected)?;
        let own = self.std(&run(&self.own, &silent(&a.expected))?);
        let [error] = self.read([a]);
        let brought = brought(&error);
        Ok(self.made(expected, brought.plus(&self.of_step(from, own))))
    }

    fn two(
        &self,
        (a, b): (&Traced, &Traced),
        run: impl Fn(&Forecast, &Expected, &Expected) -> Result<Expected>,
        brought: impl Fn(&Origins, &Origins) -> Origins,
    ) -> Result<Traced> {
        let expected = run(&self.forecast, &a.expected, &b.expected)?;
        let mut own = self.std(&run(&self.own, &silent(&a.expected), &silent(&b.expected))?);
        let lowered = |one: &Traced| one.expected.degree > 1 && one.level() > expected.level;
        if lowered(a) || lowered(b) {
            own *= UNRELINEARISED;
        }
        let [mine, theirs] = self.read([a, b]);
        let brought = brought(&mine, &theirs);
        Ok(self.made(expected, brought.plus(&self.of_step(Own::Fresh, own))))
    }

    fn of_step(&self, from: Own, std: f64) -> Origins {
        match from {
            _ if std == 0.0 => Origins::none(),
            Own::Fresh => Origins::new(self.maker.origin(1.0), std),
            Own::Encoded => Origins::everywhere(self.encoded.clone(), std),
        }
    }

    fn made(&self, mut expected: Expected, mut error: Origins) -> Traced {
        if !self.tracing.dependent {
            error.forget(&self.maker);
        }
        if self.tracing.local {
            let noise = self.noise(&expected, error.deviation().std);
            expected.noise.std = expected.noise.std.min(noise);
        }
        Traced { expected, error: Rc::new(RefCell::new(error)) }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

impl Operations for TracedForecast {
    type Value = Traced;

    fn level(&self, a: &Traced) -> usize {
        a.level()
    }

    fn with_magnitude(&self, a: Traced, magnitude: f64) -> Result<Traced> {
        a.with_magnitude(magnitude)
    }

    fn add(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.add(a, b)
    }

    fn add_to(&self, a: Traced, b: &Traced) -> Result<Traced> {
        self.add(&a, b)
    }

    fn sub(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.sub(a, b)
    }

    fn add_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        self.add_scalar(a, number)
    }

    fn multiply_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        self.multiply_scalar(a, number)
    }

    fn mul_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        self.due(&self.multiply_scalar(a, number)?)
    }

    fn multiply_integer(&self, a: &Traced, factor: i64) -> Result<Traced> {
        self.multiply_integer(a, factor)
    }

    fn multiply(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.multiply(a, b)
    }

    fn double_product(&self, a: &Traced, b: &Traced, c: Option<&Traced>) -> Result<Traced> {
        let [x, y] = [a, b].map(|one| 2.0 * self.most(one));
        let known = c.map(|c| c.expected);
        let run = |forecast: &Forecast, x: &Expected, y: &Expected| {
            let silenced = known.map(|c| if x.noise.std == 0.0 { silent(&c) } else { c });
            forecast.double_product(x, y, silenced.as_ref())
        };
        let product = self.two((a, b), run, |a, b| a.times(y).plus(&b.times(x)))?;
        let Some(c) = c else { return Ok(product) };
        let [first, second] = self.read([&product, c]);
        let error = first.plus(&second);
        Ok(self.made(product.expected, error))
    }

    fn square(&self, a: &Traced) -> Result<Traced> {
        self.square(a)
    }

    fn normalise(&self, a: &Traced) -> Result<Traced> {
        self.normalise(a)
    }

    fn drop_to(&self, a: &Traced, level: usize) -> Result<Traced> {
        self.drop_to(a, level)
    }

    fn match_level(&self, a: &Traced, level: usize) -> Result<Traced> {
        self.match_level(a, level)
    }
}
