//! Local trial: what is known of registers enters; errors slot by slot leave, where a [`TrialMachine`]
//! has one for all slots. Key holder, without a key.
//!
//! A mask takes the errors of what it leaves out with it. A register that is masked, and then added to
//! itself until it stands everywhere, is as far off as it was before; one error for all slots would
//! grow by the root of how often it was added. Over the rounds of a loop that is the difference
//! between errors that stay and errors that grow without end.

use super::circuit::Circuit;
use super::machine::Machine;
use super::plan::Plan;
use super::trial::{Trial, TrialMachine, Tried};
use crate::error::Result;
use ciphervec_he::ckks::{
    Basis, Bootstrapper, Calibration, Expected, LookupTable, Polynomial, Sign,
};
use std::sync::Arc;

/// Places at which the slope of a polynomial is looked at.
const PLACES: usize = 512;
/// Variances whose ratio is below this are one.
const ALIKE: f64 = 1.05;

/// A trial that follows errors slot by slot.
pub(super) struct LocalTrial {
    trial: TrialMachine,
    /// Runs the same steps without the errors that came with operands: what is left is a step's own.
    own: TrialMachine,
    slots: usize,
}

impl Trial {
    /// Tries a circuit out whose steps refresh registers with this bootstrapper.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn refreshing(
        circuit: &Circuit,
        bootstrapper: &Arc<Bootstrapper>,
        calibration: &Calibration,
    ) -> Result<Self> {
        let [trial, own] = [(); 2].map(|()| TrialMachine::refreshing(bootstrapper));
        Self::on(circuit, LocalTrial::new(trial, own, circuit.slots), calibration)
    }

    /// Tries a plan out, and says what it takes on this machine, which is timed for it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn of(plan: &Plan) -> Result<Self> {
        let calibration = Calibration::measure(plan.params().spec().log_degree)?;
        match plan.bootstrapper() {
            Some(bootstrapper) => Self::refreshing(plan.circuit(), bootstrapper, &calibration),
            None => Self::on(plan.circuit(), TrialMachine::of(plan)?, &calibration),
        }
    }
}

/// Squares of standard deviations of errors in slots.
#[derive(Clone)]
enum Variance {
    All(f64),
    Each(Arc<Vec<f64>>),
}

/// A register.
#[derive(Clone)]
pub(super) struct Local {
    expected: Expected,
    variance: Variance,
}

impl Variance {
    fn at(&self, slot: usize) -> f64 {
        match self {
            Variance::All(one) => *one,
            Variance::Each(each) => each[slot],
        }
    }

    fn largest(&self) -> f64 {
        match self {
            Variance::All(one) => *one,
            Variance::Each(each) => each.iter().fold(0.0, |most: f64, one| most.max(*one)),
        }
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        match self {
            Variance::All(one) => Variance::All(f(*one)),
            Variance::Each(each) => Variance::of(each.iter().map(|&one| f(one)).collect()),
        }
    }

    fn zip(&self, other: &Self, slots: usize, f: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Variance::All(a), Variance::All(b)) => Variance::All(f(*a, *b)),
            _ => Variance::of((0..slots).map(|slot| f(self.at(slot), other.at(slot))).collect()),
        }
    }

    fn of(each: Vec<f64>) -> Self {
        let most = each.iter().fold(0.0, |most: f64, one| most.max(*one));
        let least = each.iter().fold(f64::INFINITY, |least: f64, one| least.min(*one));
        if most <= ALIKE * least { Variance::All(most) } else { Variance::Each(Arc::new(each)) }
    }
}

impl LocalTrial {
    /// `own` is another machine of the same kind as `trial`.
    pub fn new(trial: TrialMachine, own: TrialMachine, slots: usize) -> Self {
        LocalTrial { trial, own, slots }
    }

    /// The variance of the errors that are expected.
    fn squared(&self, a: &Expected) -> f64 {
        (2.0 * self.trial.forecast.error_bits(a)).exp2()
    }

    /// A result with the errors that operands brought and the step's own, which is `own`; as small as
    /// either way of counting has it.
    fn made(&self, expected: Expected, own: &Expected, brought: Variance) -> Local {
        let mine = self.squared(own);
        let variance = brought.map(|one| one + mine);
        let (counted, largest) = (self.squared(&expected), variance.largest());
        let mut expected = expected;
        if largest < counted {
            expected.noise.std *= (largest / counted).sqrt();
        }
        Local { expected, variance: variance.map(|one| one.min(counted)) }
    }

    fn one(
        &self,
        a: &Local,
        run: impl Fn(&TrialMachine, &Expected) -> Result<Expected>,
        brought: impl Fn(f64) -> f64,
    ) -> Result<Local> {
        let own = run(&self.own, &silent(&a.expected))?;
        Ok(self.made(run(&self.trial, &a.expected)?, &own, a.variance.map(brought)))
    }

    fn two(
        &self,
        (a, b): (&Local, &Local),
        run: impl Fn(&TrialMachine, &Expected, &Expected) -> Result<Expected>,
        brought: impl Fn(f64, f64) -> f64,
    ) -> Result<Local> {
        let own = run(&self.own, &silent(&a.expected), &silent(&b.expected))?;
        let expected = run(&self.trial, &a.expected, &b.expected)?;
        let brought = a.variance.zip(&b.variance, self.slots, brought);
        Ok(self.made(expected, &own, brought))
    }

    /// A result whose errors are those of its expectation.
    fn plain(&self, expected: Expected) -> Local {
        Local { variance: Variance::All(self.squared(&expected)), expected }
    }
}

/// The same without noise.
fn silent(a: &Expected) -> Expected {
    let mut silent = *a;
    (silent.noise.std, silent.noise.bound) = (0.0, 0.0);
    silent
}

/// The largest slope of a polynomial of numbers up to `most` in absolute value.
fn slope(polynomial: &Polynomial, most: f64) -> f64 {
    let (low, high) = match polynomial.basis() {
        Basis::Chebyshev { low, high } => (low.max(-most), high.min(most)),
        Basis::Power => (-most, most),
    };
    let width = (high - low) / PLACES as f64;
    let value = |place: usize| polynomial.evaluate(low + width * place as f64);
    let rise = (0..PLACES).map(|place| (value(place + 1) - value(place)).abs() / width);
    rise.fold(0.0, f64::max)
}

impl Tried for LocalTrial {
    fn trial(&self) -> &TrialMachine {
        &self.trial
    }

    fn begin(&self, expected: Expected) -> Local {
        self.plain(expected)
    }

    fn expected(register: &Local) -> &Expected {
        &register.expected
    }
}

impl Machine for LocalTrial {
    type Register = Local;

    fn add(&self, a: &Local, b: &Local) -> Result<Local> {
        self.two((a, b), |machine, x, y| machine.add(x, y), |x, y| x + y)
    }

    fn subtract(&self, a: &Local, b: &Local) -> Result<Local> {
        self.two((a, b), |machine, x, y| machine.subtract(x, y), |x, y| x + y)
    }

    fn negate(&self, a: &Local) -> Result<Local> {
        self.one(a, |machine, x| machine.negate(x), |x| x)
    }

    fn add_number(&self, a: &Local, number: f64) -> Result<Local> {
        self.one(a, |machine, x| machine.add_number(x, number), |x| x)
    }

    fn multiply_number(&self, a: &Local, number: f64) -> Result<Local> {
        self.one(a, |machine, x| machine.multiply_number(x, number), |x| x * number * number)
    }

    fn multiply_integer(&self, a: &Local, factor: i64) -> Result<Local> {
        let square = (factor as f64).powi(2);
        self.one(a, |machine, x| machine.multiply_integer(x, factor), |x| x * square)
    }

    fn add_vector(&self, a: &Local, values: &[f64]) -> Result<Local> {
        self.one(a, |machine, x| machine.add_vector(x, values), |x| x)
    }

    fn multiply_vector(&self, a: &Local, values: &[f64]) -> Result<Local> {
        let own = self.own.multiply_vector(&silent(&a.expected), values)?;
        let each = values.iter().enumerate();
        let brought = each.map(|(slot, value)| a.variance.at(slot) * value * value).collect();
        let expected = self.trial.multiply_vector(&a.expected, values)?;
        Ok(self.made(expected, &own, Variance::of(brought)))
    }

    fn multiply(&self, a: &Local, b: &Local) -> Result<Local> {
        let (x, y) = (a.expected.magnitude.powi(2), b.expected.magnitude.powi(2));
        let brought = |u: f64, v: f64| x * v + y * u + u * v;
        self.two((a, b), |machine, x, y| machine.multiply(x, y), brought)
    }

    fn square(&self, a: &Local) -> Result<Local> {
        let x = a.expected.magnitude.powi(2);
        self.one(a, |machine, x| machine.square(x), |u| 4.0 * x * u + 3.0 * u * u)
    }

    fn rotate(&self, a: &Local, steps: &[i64]) -> Result<Vec<Local>> {
        let own = self.own.rotate(&silent(&a.expected), steps)?;
        let expected = self.trial.rotate(&a.expected, steps)?;
        let rotated = steps.iter().zip(expected).zip(&own).map(|((&by, expected), own)| {
            let variance = match &a.variance {
                Variance::All(one) => Variance::All(*one),
                Variance::Each(each) => {
                    let mut each = each.to_vec();
                    each.rotate_left(by.rem_euclid(self.slots as i64) as usize);
                    Variance::Each(Arc::new(each))
                }
            };
            self.made(expected, own, variance)
        });
        Ok(rotated.collect())
    }

    fn polynomial(&self, a: &Local, polynomial: &Polynomial) -> Result<Local> {
        let square = slope(polynomial, a.expected.magnitude).powi(2);
        self.one(a, |machine, x| machine.polynomial(x, polynomial), |x| x * square)
    }

    fn sign(&self, a: &Local, sign: &Sign) -> Result<Local> {
        Ok(self.plain(self.trial.sign(&a.expected, sign)?))
    }

    fn sign_stage(&self, a: &Local, sign: &Sign, stage: usize) -> Result<Local> {
        Ok(self.plain(self.trial.sign_stage(&a.expected, sign, stage)?))
    }

    fn refresh(&self, a: &Local) -> Result<Local> {
        self.one(a, |machine, x| machine.refresh(x), |x| x)
    }

    fn look_up(&self, a: &Local, tables: &[&LookupTable]) -> Result<Vec<Local>> {
        let own = self.own.look_up(&silent(&a.expected), tables)?;
        let found = self.trial.look_up(&a.expected, tables)?.into_iter().zip(own).zip(tables);
        let made = found.map(|((expected, own), table)| match table.cleanings() {
            0 => {
                let square = table.slope().powi(2);
                self.made(expected, &own, a.variance.map(|x| x * square))
            }
            _ => self.plain(expected),
        });
        Ok(made.collect())
    }

    fn bound(&self, a: Local, bound: f64) -> Result<Local> {
        Ok(Local { expected: self.trial.bound(a.expected, bound)?, ..a })
    }

    fn settle(&self, a: &Local) -> Result<Option<Local>> {
        let Some(expected) = self.trial.settle(&a.expected)? else { return Ok(None) };
        let own = self.own.settle(&silent(&a.expected))?.unwrap_or(expected);
        Ok(Some(self.made(expected, &own, a.variance.clone())))
    }

    fn finish(&self, a: &Local) -> Result<Local> {
        Ok(Local { expected: self.trial.finish(&a.expected)?, ..a.clone() })
    }
}
