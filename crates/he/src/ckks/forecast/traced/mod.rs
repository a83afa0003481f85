//! A [`Forecast`] that follows which ciphertexts have an error in common. Both sides.
//!
//! Two figures of [`super::super::noise::Noise`] travel with a ciphertext, and cannot say which other
//! ciphertexts have the same error in them. Where exact answers rest on it, this says more: the
//! errors of a product's factors, of powers of one number, of what is added to itself, are those of
//! common [`Origins`].

mod polynomials;

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::super::Complex;
use super::super::align::{Path, Place, Step, descend, join, meet};
use super::super::expected::Expected;
use super::super::modulus_chain::ModulusChain;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::plaintext::Encoding;
use super::super::spec::ParamsSpec;
use super::super::tail::{Deviation, Tail};
use super::names::{did, hashed, named};
use super::origins::{Maker, Origin, Origins};
use super::{EncryptionKey, Forecast};
use crate::error::Result;

/// What errors may be over their forecast: those of one key are, by some hundredths.
const MARGIN: f64 = 1.1;
/// What a rescale before relinearising counts for: there the square of the secret is a factor.
const UNRELINEARISED: f64 = 16.0;

/// How errors are traced.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tracing {
    /// log2 of one over the chance that any one error may be larger than is said.
    pub bits: f64,
    /// The slots that numbers stand in.
    pub slots: usize,
    /// Slot by slot: a mask takes the errors of what it leaves out with it.
    pub local: bool,
    /// Whether operands whose errors have common origins are told from others.
    pub dependent: bool,
}

/// What is known of a ciphertext, and what its error is made of.
#[derive(Clone, Debug)]
pub struct Traced {
    expected: Expected,
    name: Name,
    error: Rc<RefCell<Origins>>,
}

/// Which ciphertexts are the same. A rescale or a key switch adds the same error again if it is done
/// to the same again, and what it adds most of depends on all parts of a ciphertext but the first,
/// which public numbers are added to.
#[derive(Clone, Copy, Debug)]
struct Name {
    whole: u64,
    /// Without what was added to the first part, and without a small factor.
    body: u64,
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
        let error = Rc::new(RefCell::new(Origins::none()));
        Traced { expected: silent(&self.expected), error, ..*self }
    }

    /// A name for its error: the same for what is certain to have the same.
    pub fn stream(&self) -> u64 {
        self.name.body
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
    /// A rescale or a key switch: what has the result's name has it.
    Step,
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
    tail: Tail,
    /// How many were encrypted.
    drawn: Cell<u64>,
    /// What polynomials add, which were looked at.
    added: RefCell<HashMap<u64, f64>>,
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
        let maker = Maker::default();
        let encoded = maker.origin(0.0);
        let [forecast, own] =
            [(); 2].map(|()| Forecast { chain: chain.clone(), work: Mutex::default() });
        let repeats = chain.max_slots() as f64 / tracing.slots as f64;
        let tail = Tail::new(tracing.bits, chain.spec.ring, repeats.max(1.0));
        let drawn = Cell::new(0);
        let added = RefCell::default();
        TracedForecast { forecast, own, maker, encoded, tracing, tail, drawn, added }
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
        MARGIN * self.tail.within(error)
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
        self.drawn.set(self.drawn.get() + 1);
        let whole = hashed(&[did::FRESH, self.drawn.get()]);
        let name = Name { whole, body: whole };
        Ok(self.made(expected, name, Origins::new(origin, self.std(&expected))))
    }

    /// `a + b`.
    ///
    /// # Errors
    /// As [`Forecast::add`].
    pub fn add(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.sum("addition", [a, b], [0, 0], Forecast::add)
    }

    /// `a − b`.
    ///
    /// # Errors
    /// As [`Forecast::sub`].
    pub fn sub(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.sum("subtraction", [a, b], [0, did::NEGATE], Forecast::sub)
    }

    /// A sum, of which `signs` say which is which. Where only these differ, rescales may round alike.
    fn sum(
        &self,
        operation: &'static str,
        [a, b]: [&Traced; 2],
        signs: [u64; 2],
        run: impl Fn(&Forecast, &Expected, &Expected) -> Result<Expected>,
    ) -> Result<Traced> {
        let paths = meet(&self.forecast.chain, operation, [a, b].map(|x| Place::of(&x.expected)))?;
        let (a, b) = (self.follow(a, &paths[0])?, self.follow(b, &paths[1])?);
        let expected = run(&self.forecast, &a.expected, &b.expected)?;
        let [x, y] = sorted([a.name.body, b.name.body]);
        let sign = hashed(&signs);
        let [first, second] = [a.name.whole, b.name.whole];
        let [first, second] =
            if signs == [0, 0] { sorted([first, second]) } else { [first, second] };
        let name = Name {
            whole: hashed(&[did::ADD, sign, first, second]),
            body: hashed(&[did::ADD, sign, x, y]),
        };
        let [mine, theirs] = self.read([&a, &b]);
        Ok(self.made(expected, name, mine.plus(&theirs)))
    }

    /// `−a`.
    pub fn negate(&self, a: &Traced) -> Traced {
        let whole = hashed(&[did::NEGATE, a.name.whole]);
        let name = Name { whole, ..a.name };
        Traced { expected: self.forecast.negate(&a.expected), name, ..a.clone() }
    }

    /// `a + values`.
    ///
    /// # Errors
    /// As [`Forecast::add_values`].
    pub fn add_values(&self, a: &Traced, values: &[f64]) -> Result<Traced> {
        let (most, values) = (largest(values), named(values));
        let name = Name { whole: hashed(&[did::ADD_VALUES, a.name.whole, values]), ..a.name };
        let run = |forecast: &Forecast, x: &Expected| forecast.add_values(x, most);
        self.one(a, (name, Own::Encoded), run, Origins::clone)
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
        let name = a.name.mapped(&[did::MULTIPLY_VALUES, named(values)]);
        let run = |forecast: &Forecast, x: &Expected| forecast.multiply_values(x, most);
        self.one(&a, (name, Own::Encoded), run, brought)
    }

    /// `a + number`.
    ///
    /// # Errors
    /// As [`Forecast::add_scalar`].
    pub fn add_scalar(&self, a: &Traced, number: impl Into<Complex>) -> Result<Traced> {
        let number = number.into();
        let expected = self.forecast.add_scalar(&a.expected, number)?;
        let whole = hashed(&[did::ADD_VALUES, a.name.whole, named(&[number.re, number.im])]);
        Ok(Traced { expected, name: Name { whole, ..a.name }, ..a.clone() })
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
        let name = a.name.mapped(&[did::MULTIPLY_VALUES, named(&[number.re, number.im])]);
        let run = |forecast: &Forecast, x: &Expected| forecast.multiply_scalar(x, number);
        self.one(&a, (name, Own::Encoded), run, brought)
    }

    /// `a` times an integer.
    ///
    /// # Errors
    /// As [`Forecast::multiply_integer`].
    pub fn multiply_integer(&self, a: &Traced, factor: i64) -> Result<Traced> {
        let expected = self.forecast.multiply_integer(&a.expected, factor)?;
        let whole = hashed(&[did::MULTIPLY_INTEGER, a.name.whole, factor as u64]);
        let [error] = self.read([a]);
        // Of x and of 2x rescales round alike half of the time.
        Ok(self.made(expected, Name { whole, ..a.name }, error.times(factor as f64)))
    }

    /// `a b`, of degree 2 and not rescaled.
    ///
    /// # Errors
    /// As [`Forecast::multiply`].
    pub fn multiply(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        self.product(a, b, 1.0, Forecast::multiply)
    }

    /// `factor` times a product.
    fn product(
        &self,
        a: &Traced,
        b: &Traced,
        factor: f64,
        run: impl Fn(&Forecast, &Expected, &Expected) -> Result<Expected>,
    ) -> Result<Traced> {
        let paths = join(&self.forecast.chain, [a, b].map(|x| Place::of(&x.expected)));
        let (a, b) = (self.follow(a, &paths[0])?, self.follow(b, &paths[1])?);
        let expected = run(&self.forecast, &a.expected, &b.expected)?;
        let [x, y] = sorted([a.name.whole, b.name.whole]);
        let whole = hashed(&[did::MULTIPLY, x, y, factor.to_bits()]);
        let [x, y] = [&a, &b].map(|one| factor * self.most(one));
        let [mine, theirs] = self.read([&a, &b]);
        let error = mine.times(y).plus(&theirs.times(x));
        Ok(self.made(expected, Name { whole, body: whole }, error))
    }

    /// `a²`, likewise.
    ///
    /// # Errors
    /// As [`Forecast::square`].
    pub fn square(&self, a: &Traced) -> Result<Traced> {
        self.product(a, a, 1.0, |forecast, a, _| forecast.square(a))
    }

    /// Relinearises what is of degree 2 and rescales what is due.
    ///
    /// # Errors
    /// As [`Forecast::normalise`].
    pub fn normalise(&self, a: &Traced) -> Result<Traced> {
        if a.expected.degree == 1 {
            return self.due(a);
        }
        let name = a.name.mapped(&[did::NORMALISE, a.expected.level as u64]);
        self.one(a, (name, Own::Step), Forecast::normalise, Origins::clone)
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
        let path = descend(&self.forecast.chain, Place::of(&a.expected), level)?;
        let result = self.follow(a, &path)?;
        if result.level() == level { Ok(result) } else { self.drop_to(&result, level) }
    }

    /// The slots of `a` from `steps` on, cyclically.
    ///
    /// # Errors
    /// As [`Forecast::rotate`].
    pub fn rotate(&self, a: &Traced, steps: i64) -> Result<Traced> {
        self.rotated(a, steps, |forecast, x| forecast.rotate(x, steps))
    }

    /// [`Self::rotate`] by each of `steps`, from one decomposition.
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn rotate_hoisted(&self, a: &Traced, steps: &[i64]) -> Result<Vec<Traced>> {
        self.forecast.decompose(&a.expected)?;
        let rotate = |&steps: &i64| {
            self.rotated(a, steps, |forecast, x| Ok(forecast.rotate_decomposed(x, steps)))
        };
        steps.iter().map(rotate).collect()
    }

    fn rotated(
        &self,
        a: &Traced,
        steps: i64,
        run: impl Fn(&Forecast, &Expected) -> Result<Expected>,
    ) -> Result<Traced> {
        let slots = a.expected.slots;
        let by = steps.rem_euclid(slots as i64);
        if by == 0 {
            return Ok(a.clone());
        }
        let name = a.name.mapped(&[did::ROTATE, by as u64, a.expected.level as u64]);
        self.one(a, (name, Own::Step), run, |error| error.rotated(by, slots))
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
        // Several functions of one ciphertext may begin with the same: all have one name.
        let name = (a.name.function(0), Own::Step);
        self.one(a, name, |_, x| run(x), |error| error.times(steepest))
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
        let name = a.name.function(0);
        Ok(self.made(expected, name, self.of_step((name, Own::Step), own)))
    }

    /// A rescale, where one is due.
    fn due(&self, a: &Traced) -> Result<Traced> {
        match Path::due(&self.forecast.chain, Place::of(&a.expected)) {
            Some(path) => self.follow(a, &path),
            None => Ok(a.clone()),
        }
    }

    /// At the end of a path, which lowers the level and changes the scale.
    fn follow(&self, a: &Traced, path: &Path) -> Result<Traced> {
        if path.is_empty() {
            return Ok(a.clone());
        }
        let Place { level, scale } = path.end;
        let name = a.name.mapped(&[did::FOLLOW, level as u64, scale.to_bits()]);
        let expected = self.forecast.follow(&a.expected, path)?;
        let mut own = self.std(&self.own.follow(&silent(&a.expected), path)?);
        if a.expected.degree > 1 && path.steps.contains(&Step::Rescale) {
            own *= UNRELINEARISED;
        }
        let [error] = self.read([a]);
        let own = self.of_step((name, Own::Step), Deviation { std: own, keyed: 1.0 });
        Ok(self.made(expected, name, error.plus(&own)))
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

    /// The errors of operands, which from now on are no longer than they have to be.
    fn read<'a, const COUNT: usize>(&self, all: [&'a Traced; COUNT]) -> [Ref<'a, Origins>; COUNT] {
        all.iter().for_each(|one| one.error.borrow_mut().condense(&self.maker));
        all.map(|one| one.error.borrow())
    }

    fn one(
        &self,
        a: &Traced,
        name: (Name, Own),
        run: impl Fn(&Forecast, &Expected) -> Result<Expected>,
        brought: impl Fn(&Origins) -> Origins,
    ) -> Result<Traced> {
        let expected = run(&self.forecast, &a.expected)?;
        let std = self.std(&run(&self.own, &silent(&a.expected))?);
        let [error] = self.read([a]);
        let own = self.of_step(name, Deviation { std, keyed: 1.0 });
        Ok(self.made(expected, name.0, brought(&error).plus(&own)))
    }

    /// The error that a step adds, whose result has this name.
    fn of_step(&self, (name, from): (Name, Own), Deviation { std, keyed }: Deviation) -> Origins {
        if std == 0.0 {
            return Origins::none();
        }
        if from == Own::Encoded {
            return Origins::everywhere(self.encoded.clone(), std);
        }
        if !self.tracing.dependent {
            return Origins::new(self.maker.origin(keyed), std);
        }
        match self.maker.named(name.body, keyed) {
            Some(origin) => Origins::new(origin, std),
            None => Origins::unknown(std),
        }
    }

    fn made(&self, mut expected: Expected, name: Name, mut error: Origins) -> Traced {
        if !self.tracing.dependent {
            error.forget(&self.maker);
        }
        if self.tracing.local {
            let noise = self.noise(&expected, error.deviation().std);
            expected.noise.std = expected.noise.std.min(noise);
        }
        Traced { expected, name, error: Rc::new(RefCell::new(error)) }
    }
}

impl Name {
    /// Of what is done to all parts alike.
    fn mapped(self, did: &[u64]) -> Self {
        let did = hashed(did);
        Name { whole: hashed(&[did, self.whole]), body: hashed(&[did, self.body]) }
    }

    /// Of what depends on all that a ciphertext holds.
    fn function(self, which: u64) -> Self {
        let whole = hashed(&[did::FUNCTION, self.whole, which]);
        Name { whole, body: whole }
    }
}

fn sorted([a, b]: [u64; 2]) -> [u64; 2] {
    [a.min(b), a.max(b)]
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}
