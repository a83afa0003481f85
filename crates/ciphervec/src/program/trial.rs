//! Trial machine: what is known of registers enters; levels, errors and milliseconds of every step
//! leave. Key holder, without a key.

use super::circuit::{Circuit, Step};
use super::look_up::{beside, nothing_to_look_up_with};
use super::machine::{Machine, execute};
use super::plan::{KeySet, Plan};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{
    Bootstrapper, Calibration, Encoding, EncryptionKey, Expected, Forecast, LookupTable,
    ParamsSpec, Polynomial, Sign, Work,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bits that a modulus has beyond the numbers under it: the sign, and room for noise.
pub(super) const SPARE_BITS: f64 = 3.0;

/// What a step leads to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepForecast {
    /// Levels that its result has left, before what is due is rescaled.
    pub level: usize,
    /// log2 of the standard deviation of the error in a slot.
    pub error_bits: f64,
    /// Milliseconds on one thread.
    pub milliseconds: f64,
}

/// What an output is like when it arrives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OutputForecast {
    /// The standard deviation of a number's error.
    pub error: f64,
}

/// A circuit tried out.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Every step.
    pub steps: Vec<StepForecast>,
    /// Every output.
    pub outputs: Vec<OutputForecast>,
    /// The level that each register of the outputs is sent at, in their order.
    pub levels_sent: Vec<usize>,
    /// The keys that it took, each for the highest level it was needed at.
    pub keys: Vec<KeySet>,
    /// Levels that the output with the fewest has left.
    pub left: usize,
    /// A bound on what slots of outputs hold.
    pub largest: f64,
}

impl Trial {
    /// Milliseconds of all steps.
    pub fn milliseconds(&self) -> f64 {
        self.steps.iter().map(|step| step.milliseconds).sum()
    }

    /// Tries a circuit out under parameters that nobody has made.
    ///
    /// # Errors
    /// Parameters that cannot be made; levels that are missing, numbers that leave the modulus, a
    /// sign of numbers with too much noise.
    pub fn run(circuit: &Circuit, spec: &ParamsSpec, calibration: &Calibration) -> Result<Self> {
        Self::on(circuit, TrialMachine::new(spec, true)?, calibration)
    }

    /// Levels and bounds alone, as if there were no noise.
    pub(super) fn levels(circuit: &Circuit, spec: &ParamsSpec) -> Result<Self> {
        let log_degree = spec.log_degree;
        let calibration = Calibration { log_degree, transform_ms: 0.0, product_ms: 0.0 };
        Self::on(circuit, TrialMachine::new(spec, false)?, &calibration)
    }

    pub(super) fn on<M: Tried>(
        circuit: &Circuit,
        tried: M,
        calibration: &Calibration,
    ) -> Result<Self> {
        let machine = tried.trial();
        let refresh_ms = match &machine.bootstrapper {
            Some(bootstrapper) => bootstrapper.work()?.milliseconds(calibration),
            None => 0.0,
        };
        let inputs = machine.inputs(circuit)?;
        let registers = inputs.into_iter().map(|one| tried.begin(one)).collect();
        let mut steps = Vec::with_capacity(circuit.steps.len());
        let outputs = execute(circuit, &tried, registers, |step, register: &M::Register| {
            let register = M::expected(register);
            let work = machine.forecast.take_work();
            for (level, done) in work.levels().iter().enumerate() {
                if done.relinearisations > 0 {
                    machine.needs.borrow_mut().relinearise(level);
                }
            }
            machine.room(register)?;
            if let Step::Rotate(_, by) = circuit.steps[step] {
                let by = i64::from(by).rem_euclid(circuit.slots as i64);
                machine.needs.borrow_mut().rotate(by, register.level);
            }
            machine.above(register)?;
            let more = match circuit.steps[step] {
                Step::Refresh(_) => refresh_ms,
                // All that are looked up together, with the first of them.
                Step::LookUp(..) => machine.looked_up.take().milliseconds(calibration),
                _ => 0.0,
            };
            steps.push(StepForecast {
                level: register.level,
                error_bits: machine.forecast.error_bits(register),
                milliseconds: work.milliseconds(calibration) + more,
            });
            Ok(())
        })?;
        // What outputs still needed is part of the last step's time.
        let rest = machine.forecast.take_work();
        for (level, done) in rest.levels().iter().enumerate() {
            if done.relinearisations > 0 {
                machine.needs.borrow_mut().relinearise(level);
            }
        }
        if let Some(last) = steps.last_mut() {
            last.milliseconds += rest.milliseconds(calibration);
        }
        let outputs: Vec<Expected> = outputs.iter().map(|one| *M::expected(one)).collect();
        let left = machine.left.get();
        let largest = outputs.iter().fold(0.0, |most: f64, register| most.max(register.magnitude));
        let levels_sent = outputs.iter().map(|register| register.level).collect();
        let mut held = outputs.into_iter();
        let mut arrived = Vec::new();
        for output in &circuit.outputs {
            let mut worst = OutputForecast { error: 0.0 };
            for register in held.by_ref().take(output.registers.len()) {
                machine.room(&register)?;
                let error = machine.forecast.error_bits(&register).exp2() * output.unit;
                worst.error = worst.error.max(error * output.placement.error(circuit.slots));
            }
            arrived.push(worst);
        }
        let keys = machine.needs.take().sets();
        Ok(Trial { steps, outputs: arrived, levels_sent, keys, left, largest })
    }
}

/// Keys that were needed, and the highest level of each.
#[derive(Default)]
struct Needs {
    relinearise: Option<usize>,
    rotations: BTreeMap<i64, usize>,
}

impl Needs {
    fn relinearise(&mut self, level: usize) {
        self.relinearise = self.relinearise.max(Some(level));
    }

    fn rotate(&mut self, steps: i64, level: usize) {
        let held = self.rotations.entry(steps).or_default();
        *held = level.max(*held);
    }

    fn sets(self) -> Vec<KeySet> {
        let empty = |level| KeySet { level, relinearise: false, rotations: BTreeSet::new() };
        let mut sets: BTreeMap<usize, KeySet> = BTreeMap::new();
        if let Some(level) = self.relinearise {
            sets.entry(level).or_insert_with(|| empty(level)).relinearise = true;
        }
        for (steps, level) in self.rotations.into_iter().filter(|(steps, _)| *steps != 0) {
            sets.entry(level).or_insert_with(|| empty(level)).rotations.insert(steps);
        }
        sets.into_values().collect()
    }
}

/// A machine that tries steps out.
pub(super) trait Tried: Machine {
    /// Where keys, levels and work are counted.
    fn trial(&self) -> &TrialMachine;
    /// The register of an input of which this is known.
    fn begin(&self, expected: Expected) -> Self::Register;
    /// What is known of a register.
    fn expected(register: &Self::Register) -> &Expected;
}

impl Tried for TrialMachine {
    fn trial(&self) -> &TrialMachine {
        self
    }

    fn begin(&self, expected: Expected) -> Expected {
        expected
    }

    fn expected(register: &Expected) -> &Expected {
        register
    }
}

/// Forecasts in place of ciphertexts.
pub(super) struct TrialMachine {
    pub(super) forecast: Forecast,
    /// Whether errors are looked at.
    noisy: bool,
    needs: RefCell<Needs>,
    /// The fewest levels of an output before it is made small.
    left: Cell<usize>,
    /// Of inputs.
    level: usize,
    /// Where levels to compute with end.
    lowest: usize,
    bootstrapper: Option<Arc<Bootstrapper>>,
    /// What the last look-up took.
    looked_up: RefCell<Work>,
}

impl TrialMachine {
    /// `noisy`: whether errors are looked at.
    pub(super) fn new(spec: &ParamsSpec, noisy: bool) -> Result<Self> {
        Ok(TrialMachine {
            forecast: Forecast::of_spec(spec)?,
            noisy,
            needs: RefCell::default(),
            left: Cell::new(spec.levels),
            level: spec.levels,
            lowest: 0,
            bootstrapper: None,
            looked_up: RefCell::default(),
        })
    }

    /// One that refreshes registers.
    pub(super) fn refreshing(bootstrapper: &Arc<Bootstrapper>) -> Self {
        let level = bootstrapper.level();
        TrialMachine {
            forecast: Forecast::new(bootstrapper.params()),
            noisy: true,
            needs: RefCell::default(),
            left: Cell::new(level),
            level,
            lowest: bootstrapper.spec().slots_to_coefficients,
            bootstrapper: Some(bootstrapper.clone()),
            looked_up: RefCell::default(),
        }
    }

    /// The one that a plan is run by.
    pub(super) fn of(plan: &Plan) -> Result<Self> {
        match plan.bootstrapper() {
            Some(bootstrapper) => Ok(Self::refreshing(bootstrapper)),
            None => Self::new(plan.params().spec(), true),
        }
    }

    /// Whether registers are refreshed.
    #[cfg(feature = "client")]
    pub(super) fn refreshes(&self) -> bool {
        self.bootstrapper.is_some()
    }

    /// Refuses what computing has taken below the levels that it is for.
    fn above(&self, a: &Expected) -> Result<()> {
        let due = usize::from(self.forecast.is_pending(a));
        if a.level >= self.lowest + due {
            return Ok(());
        }
        Err(ciphervec_he::Error::Level {
            operation: "a step between two refreshes",
            needed: format!("{} levels when it is done", self.lowest),
            left: format!("{} are", a.level.saturating_sub(due)),
        }
        .into())
    }

    /// The registers of a circuit's inputs, as a client encrypts them.
    pub(super) fn inputs(&self, circuit: &Circuit) -> Result<Vec<Expected>> {
        let mut registers = Vec::new();
        for input in &circuit.inputs {
            for view in &input.views {
                let encoding = Encoding {
                    level: Some(self.level),
                    slots: Some(circuit.slots),
                    magnitude: Some(input.magnitude(view)),
                    ..Encoding::default()
                };
                let fresh = self.forecast.fresh(EncryptionKey::Secret, &encoding)?;
                registers.extend((0..view.registers).map(|_| fresh));
            }
        }
        Ok(registers)
    }

    /// Refuses numbers that the modulus has no room for.
    fn room(&self, a: &Expected) -> Result<()> {
        let needed = (a.scale * a.magnitude).log2() + SPARE_BITS;
        let room = self.forecast.log_modulus(a.level);
        if needed <= room {
            return Ok(());
        }
        let detail =
            format!("numbers up to {:.3e} need {needed:.0} bits, {room:.0} are left", a.magnitude);
        Err(Error::Program { operation: "a trial", detail })
    }
}

impl Machine for TrialMachine {
    type Register = Expected;

    fn add(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        Ok(self.forecast.add(a, b)?)
    }

    fn subtract(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        Ok(self.forecast.sub(a, b)?)
    }

    fn negate(&self, a: &Expected) -> Result<Expected> {
        Ok(self.forecast.negate(a))
    }

    fn add_number(&self, a: &Expected, number: f64) -> Result<Expected> {
        Ok(self.forecast.add_scalar(a, number)?)
    }

    fn multiply_number(&self, a: &Expected, number: f64) -> Result<Expected> {
        Ok(self.forecast.multiply_scalar(a, number)?)
    }

    fn multiply_integer(&self, a: &Expected, factor: i64) -> Result<Expected> {
        Ok(self.forecast.multiply_integer(a, factor)?)
    }

    fn add_vector(&self, a: &Expected, values: &[f64]) -> Result<Expected> {
        Ok(self.forecast.add_values(a, largest(values))?)
    }

    fn multiply_vector(&self, a: &Expected, values: &[f64]) -> Result<Expected> {
        Ok(self.forecast.multiply_values(a, largest(values))?)
    }

    fn multiply(&self, a: &Expected, b: &Expected) -> Result<Expected> {
        Ok(self.forecast.multiply(a, b)?)
    }

    fn square(&self, a: &Expected) -> Result<Expected> {
        Ok(self.forecast.square(a)?)
    }

    fn rotate(&self, a: &Expected, steps: &[i64]) -> Result<Vec<Expected>> {
        steps.iter().map(|&steps| Ok(self.forecast.rotate(a, steps)?)).collect()
    }

    fn polynomial(&self, a: &Expected, polynomial: &Polynomial) -> Result<Expected> {
        Ok(self.forecast.polynomial(a, polynomial)?)
    }

    fn sign(&self, a: &Expected, sign: &Sign) -> Result<Expected> {
        if self.noisy {
            return Ok(self.forecast.sign(a, sign)?);
        }
        let left = a.level.checked_sub(sign.depth()).ok_or_else(|| {
            let (needed, left) = (format!("{} levels", sign.depth()), format!("{} are", a.level));
            ciphervec_he::Error::Level { operation: "a sign", needed, left }
        })?;
        let taken = self.forecast.drop_to(a, left)?;
        Ok(Expected { scale: self.forecast.scale(left), ..taken }
            .with_magnitude(1.0 + sign.error())?)
    }

    fn sign_stage(&self, a: &Expected, sign: &Sign, stage: usize) -> Result<Expected> {
        Ok(self.forecast.sign_stage(a, sign, stage)?)
    }

    fn refresh(&self, a: &Expected) -> Result<Expected> {
        let Some(bootstrapper) = &self.bootstrapper else {
            let detail = "these parameters refresh no register".into();
            return Err(Error::Program { operation: "a trial", detail });
        };
        Ok(bootstrapper.refreshed(a)?)
    }

    fn look_up(&self, a: &Expected, tables: &[&LookupTable]) -> Result<Vec<Expected>> {
        let Some(bootstrapper) = &self.bootstrapper else {
            return Err(nothing_to_look_up_with("a trial"));
        };
        let exponential = beside(bootstrapper)?;
        self.looked_up.replace(exponential.work(tables)?);
        Ok(exponential.looked_up(a, tables)?)
    }

    fn bound(&self, a: Expected, bound: f64) -> Result<Expected> {
        Ok(a.with_magnitude(bound)?)
    }

    fn settle(&self, a: &Expected) -> Result<Option<Expected>> {
        if a.degree == 1 && !self.forecast.is_pending(a) {
            return Ok(None);
        }
        Ok(Some(self.forecast.normalise(a)?))
    }

    fn finish(&self, a: &Expected) -> Result<Expected> {
        self.left.set(self.left.get().min(a.level));
        let needed = (a.scale * a.magnitude).log2() + SPARE_BITS;
        let fits = |level: &usize| self.forecast.log_modulus(*level) >= needed;
        match (0..a.level).find(fits) {
            Some(level) => Ok(self.forecast.drop_to(a, level)?),
            None => Ok(*a),
        }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}
