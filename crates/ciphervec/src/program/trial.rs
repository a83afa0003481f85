//! Tries a circuit without data: levels, errors and milliseconds of every step. The key holder runs it, without a key.

use super::circuit::{Circuit, Step};
use super::look_up::{beside, nothing_to_look_up_with};
use super::machine::{Machine, execute};
use super::mixed::{Held, Mixed};
use super::plan::{KeySet, Plan};
use super::reach::Reach;
use super::tolerance::{FAILURE_BITS, OutputForecast, traced};
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use ciphervec_he::ckks::{
    Bootstrapper, Calibration, Encoding, EncryptionKey, Expected, Forecast, LevelWork, LookupTable,
    ParamsSpec, Polynomial, Ring, Sign, Traced, TracedForecast, Tracing, Work,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bits that a modulus has beyond the numbers under it: the sign, and room for noise.
pub(super) const SPARE_BITS: f64 = 3.0;

/// With a chance of one in two a trial's own look at errors refuses nothing that a server's does not.
const UNTRACED: Tracing = Tracing { bits: 0.0, slots: usize::MAX, local: false, dependent: false };

/// What a step leads to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepForecast {
    /// Levels that its result has left, before what is due is rescaled.
    pub level: usize,
    /// log2 of the standard deviation of the error in a slot.
    pub error_bits: f64,
    /// What it takes, of all levels together.
    pub work: LevelWork,
    /// Milliseconds on one thread.
    pub milliseconds: f64,
}

impl StepForecast {
    /// Of numbers in the clear, which have all levels and no noise.
    fn in_the_clear(level: usize) -> Self {
        let work = LevelWork::default();
        StepForecast { level, error_bits: f64::NEG_INFINITY, work, milliseconds: 0.0 }
    }
}

/// A circuit tried out.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Every step.
    pub steps: Vec<StepForecast>,
    /// Every output.
    pub outputs: Vec<OutputForecast>,
    /// The level that each encrypted register of the outputs is sent at, in their order.
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

    /// The same, timed by another calibration.
    pub(super) fn timed(mut self, calibration: &Calibration) -> Self {
        for step in &mut self.steps {
            step.milliseconds = step.work.milliseconds(calibration);
        }
        self
    }

    /// Tries a circuit out under parameters that nobody has made. Errors are looked for beyond what
    /// an answer is within but for a chance of `2^-failure`.
    ///
    /// # Errors
    /// Parameters that cannot be made; levels that are missing, numbers that leave the modulus, a
    /// sign of numbers with too much noise.
    pub fn run(
        circuit: &Circuit,
        spec: &ParamsSpec,
        calibration: &Calibration,
        failure: u8,
        local: bool,
    ) -> Result<Self> {
        let machine = TrialMachine::new(spec, Some(traced(circuit, failure, false, local)))?;
        if local {
            // Before stages of signs a server looks at errors that no mask takes away.
            Self::stopped(circuit, &TrialMachine::new(spec, Some(UNTRACED))?)?;
        }
        Self::on(circuit, &machine, calibration)
    }

    /// Levels and bounds alone, as if there were no noise.
    pub(super) fn levels(circuit: &Circuit, spec: &ParamsSpec) -> Result<Self> {
        let log_degree = spec.log_degree;
        let calibration = Calibration { log_degree, transform_ms: 0.0, product_ms: 0.0 };
        Self::on(circuit, &TrialMachine::new(spec, None)?, &calibration)
    }

    /// Tries a circuit out whose steps refresh registers with this bootstrapper.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn refreshing(
        circuit: &Circuit,
        bootstrapper: &Arc<Bootstrapper>,
        calibration: &Calibration,
        failure: u8,
    ) -> Result<Self> {
        let tracing = traced(circuit, failure, true, true);
        Self::on(circuit, &TrialMachine::refreshing(bootstrapper, tracing), calibration)
    }

    /// Refuses a circuit that a server with this bootstrapper would stop at: it follows errors less
    /// closely than a trial does, and looks at them before each stage of a sign.
    ///
    /// # Errors
    /// As the server's.
    #[doc(hidden)]
    pub fn served(circuit: &Circuit, bootstrapper: &Arc<Bootstrapper>) -> Result<()> {
        Self::stopped(circuit, &TrialMachine::refreshing(bootstrapper, UNTRACED))
    }

    fn stopped(circuit: &Circuit, machine: &TrialMachine) -> Result<()> {
        let (registers, machine) = (machine.inputs(circuit)?, machine.mixed());
        execute(circuit, &machine, registers, |_, _| Ok(())).map(|_| ())
    }

    /// Tries a plan out, and says what it takes on this machine, which is timed for it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn of(plan: &Plan) -> Result<Self> {
        Self::traced(plan, tracing(plan))
    }

    /// The same of a stranger's plan: which errors depend on which is not looked at, as that takes time
    /// and memory of its own, and so errors may be larger than it says.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn costs(plan: &Plan) -> Result<Self> {
        Self::traced(plan, Tracing { dependent: false, ..tracing(plan) })
    }

    fn traced(plan: &Plan, tracing: Tracing) -> Result<Self> {
        let calibration = Calibration::measure(plan.params().spec().log_degree)?;
        Self::on(plan.circuit(), &TrialMachine::of(plan, tracing), &calibration)
    }

    fn on(circuit: &Circuit, machine: &TrialMachine, calibration: &Calibration) -> Result<Self> {
        let refresh = match &machine.bootstrapper {
            Some(bootstrapper) => bootstrapper.work()?.total(),
            None => LevelWork::default(),
        };
        let registers = machine.inputs(circuit)?;
        let forecast = machine.traced.forecast();
        let mut steps = Vec::with_capacity(circuit.steps.len());
        let outputs = execute(circuit, &machine.mixed(), registers, |step, held| {
            let Held::Sealed(traced) = held else {
                steps.push(StepForecast::in_the_clear(machine.level));
                return Ok(());
            };
            let register = traced.expected();
            let work = forecast.take_work();
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
            let mut work = work.total();
            work += match circuit.steps[step] {
                Step::Refresh(_) => refresh,
                // All that are looked up together, with the first of them.
                Step::LookUp(..) => machine.looked_up.take().total(),
                _ => LevelWork::default(),
            };
            steps.push(StepForecast {
                level: register.level,
                error_bits: traced.deviation().std.log2(),
                work,
                milliseconds: 0.0,
            });
            Ok(())
        })?;
        // What outputs still needed is part of the last encrypted step's time.
        let rest = forecast.take_work();
        for (level, done) in rest.levels().iter().enumerate() {
            if done.relinearisations > 0 {
                machine.needs.borrow_mut().relinearise(level);
            }
        }
        let sealed = |step: &&mut StepForecast| step.error_bits > f64::NEG_INFINITY;
        if let Some(last) = steps.iter_mut().rev().find(sealed) {
            last.work += rest.total();
        }
        let left = machine.left.get();
        let sealed = outputs.iter().filter_map(|held| match held {
            Held::Sealed(traced) => Some(traced),
            Held::Public(_) => None,
        });
        let expected = sealed.map(Traced::expected);
        let largest = expected.clone().fold(0.0, |most: f64, one| most.max(one.magnitude));
        let levels_sent = expected.map(|one| one.level).collect();
        let mut held = outputs.iter();
        let mut arrived = Vec::new();
        for output in &circuit.outputs {
            let mut worst = OutputForecast { error: 0.0, within: 0.0 };
            for register in held.by_ref().take(output.registers.len()) {
                let Held::Sealed(register) = register else { continue };
                machine.room(register.expected())?;
                let one = output.forecast(circuit.slots, &machine.traced, register);
                worst.error = worst.error.max(one.error);
                worst.within = worst.within.max(one.within);
            }
            arrived.push(worst);
        }
        let keys = machine.needs.take().sets();
        let tried = Trial { steps, outputs: arrived, levels_sent, keys, left, largest };
        Ok(tried.timed(calibration))
    }
}

/// How the errors of a plan are traced.
fn tracing(plan: &Plan) -> Tracing {
    let failure = if plan.failure() > 0 { plan.failure() } else { FAILURE_BITS };
    traced(plan.circuit(), failure, plan.bootstrapper().is_some(), true)
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

/// Forecasts in place of ciphertexts.
pub struct TrialMachine {
    pub(super) traced: TracedForecast,
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
    /// Without a `tracing` errors are not looked at.
    #[doc(hidden)]
    pub fn new(spec: &ParamsSpec, tracing: Option<Tracing>) -> Result<Self> {
        let none = Tracing { bits: 0.0, slots: 1, local: false, dependent: false };
        let traced = TracedForecast::of_spec(spec, tracing.unwrap_or(none))?;
        Ok(Self::with(traced, tracing.is_some()))
    }

    fn with(traced: TracedForecast, noisy: bool) -> Self {
        let level = traced.forecast().max_level();
        TrialMachine {
            traced,
            noisy,
            needs: RefCell::default(),
            left: Cell::new(level),
            level,
            lowest: 0,
            bootstrapper: None,
            looked_up: RefCell::default(),
        }
    }

    /// One that refreshes registers.
    pub(super) fn refreshing(bootstrapper: &Arc<Bootstrapper>, tracing: Tracing) -> Self {
        let level = bootstrapper.level();
        TrialMachine {
            left: Cell::new(level),
            level,
            lowest: bootstrapper.spec().slots_to_coefficients,
            bootstrapper: Some(bootstrapper.clone()),
            ..Self::with(TracedForecast::new(bootstrapper.params(), tracing), true)
        }
    }

    /// The one that a plan is run by.
    fn of(plan: &Plan, tracing: Tracing) -> Self {
        match plan.bootstrapper() {
            Some(bootstrapper) => Self::refreshing(bootstrapper, tracing),
            None => Self::with(TracedForecast::new(plan.params(), tracing), true),
        }
    }

    /// The one that a plan is simulated by.
    #[doc(hidden)]
    pub fn simulating(plan: &Plan) -> Self {
        Self::of(plan, tracing(plan))
    }

    /// Whether registers are refreshed.
    #[doc(hidden)]
    pub fn refreshes(&self) -> bool {
        self.bootstrapper.is_some()
    }

    /// The most slots.
    #[doc(hidden)]
    pub fn max_slots(&self) -> usize {
        self.forecast().max_slots()
    }

    /// The ring that it is under.
    #[doc(hidden)]
    pub fn ring(&self) -> Ring {
        self.forecast().spec().ring
    }

    fn forecast(&self) -> &Forecast {
        self.traced.forecast()
    }

    /// Refuses what computing has taken below the levels that it is for.
    fn above(&self, a: &Expected) -> Result<()> {
        let due = usize::from(self.forecast().is_pending(a));
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

    /// With bounds on public numbers, which are as large as they may be.
    fn mixed(&self) -> Mixed<'_, Self, Reach> {
        Mixed { sealed: self, open: Reach }
    }

    /// The registers of a circuit's inputs, as a client encrypts them, and bounds on public ones.
    #[doc(hidden)]
    pub fn inputs(&self, circuit: &Circuit) -> Result<Vec<Held<Traced, f64>>> {
        let mut registers = Vec::new();
        for input in &circuit.inputs {
            for view in &input.views {
                if input.public {
                    let bound = Held::Public(input.magnitude(view));
                    registers.extend(core::iter::repeat_n(bound, view.registers as usize));
                    continue;
                }
                let encoding = Encoding {
                    level: Some(self.level),
                    slots: Some(circuit.slots),
                    magnitude: Some(input.magnitude(view)),
                    ..Encoding::default()
                };
                for _ in 0..view.registers {
                    let fresh = self.traced.fresh(EncryptionKey::Secret, &encoding)?;
                    registers.push(Held::Sealed(fresh));
                }
            }
        }
        Ok(registers)
    }

    /// Refuses numbers that the modulus has no room for.
    fn room(&self, a: &Expected) -> Result<()> {
        let needed = (a.scale * a.magnitude).log2() + SPARE_BITS;
        let room = self.forecast().log_modulus(a.level);
        if needed <= room {
            return Ok(());
        }
        Err(Refusal::TooLarge { magnitude: a.magnitude, needed, left: room }.into())
    }
}

impl Machine for TrialMachine {
    type Register = Traced;

    fn add(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        Ok(self.traced.add(a, b)?)
    }

    fn subtract(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        Ok(self.traced.sub(a, b)?)
    }

    fn negate(&self, a: &Traced) -> Result<Traced> {
        Ok(self.traced.negate(a))
    }

    fn add_number(&self, a: &Traced, number: f64) -> Result<Traced> {
        Ok(self.traced.add_scalar(a, number)?)
    }

    fn multiply_number(&self, a: &Traced, number: f64) -> Result<Traced> {
        Ok(self.traced.multiply_scalar(a, number)?)
    }

    fn multiply_integer(&self, a: &Traced, factor: i64) -> Result<Traced> {
        Ok(self.traced.multiply_integer(a, factor)?)
    }

    fn add_vector(&self, a: &Traced, values: &[f64]) -> Result<Traced> {
        Ok(self.traced.add_values(a, values)?)
    }

    fn multiply_vector(&self, a: &Traced, values: &[f64]) -> Result<Traced> {
        Ok(self.traced.multiply_values(a, values)?)
    }

    fn multiply(&self, a: &Traced, b: &Traced) -> Result<Traced> {
        Ok(self.traced.multiply(a, b)?)
    }

    fn square(&self, a: &Traced) -> Result<Traced> {
        Ok(self.traced.square(a)?)
    }

    fn rotate(&self, a: &Traced, steps: &[i64]) -> Result<Vec<Traced>> {
        match steps {
            [steps] => Ok(vec![self.traced.rotate(a, *steps)?]),
            _ => Ok(self.traced.rotate_hoisted(a, steps)?),
        }
    }

    fn polynomial(&self, a: &Traced, polynomial: &Polynomial) -> Result<Traced> {
        Ok(self.traced.polynomial(a, polynomial)?)
    }

    fn sign(&self, a: &Traced, sign: &Sign) -> Result<Traced> {
        if self.noisy {
            return Ok(self.traced.sign(a, sign)?);
        }
        let level = a.expected().level;
        let left = level.checked_sub(sign.depth()).ok_or_else(|| {
            let (needed, left) = (format!("{} levels", sign.depth()), format!("{level} are"));
            ciphervec_he::Error::Level { operation: "a sign", needed, left }
        })?;
        let taken = |x: &Expected| {
            let taken = self.forecast().drop_to(x, left)?;
            Expected { scale: self.forecast().scale(left), ..taken }
                .with_magnitude(1.0 + sign.error())
        };
        Ok(self.traced.through(a, 0.0, taken)?)
    }

    fn sign_stage(&self, a: &Traced, sign: &Sign, stage: usize) -> Result<Traced> {
        Ok(self.traced.sign_stage(a, sign, stage)?)
    }

    fn refresh(&self, a: &Traced) -> Result<Traced> {
        let Some(bootstrapper) = &self.bootstrapper else {
            let detail = "these parameters refresh no register".into();
            return Err(Error::Program { operation: "a trial", detail });
        };
        Ok(self.traced.through(a, 1.0, |x| bootstrapper.refreshed(x))?)
    }

    fn look_up(&self, a: &Traced, tables: &[&LookupTable]) -> Result<Vec<Traced>> {
        let Some(bootstrapper) = &self.bootstrapper else {
            return Err(nothing_to_look_up_with("a trial"));
        };
        let exponential = beside(bootstrapper)?;
        self.looked_up.replace(exponential.work(tables)?);
        let looked_up = |table: &&LookupTable| {
            let run = |x: &Expected| {
                let mut found = exponential.looked_up(x, &[*table])?;
                Ok(found.swap_remove(0))
            };
            match table.cleanings() {
                0 => Ok(self.traced.through(a, table.slope(), run)?),
                _ => Ok(self.traced.anew(a, run)?),
            }
        };
        tables.iter().map(looked_up).collect()
    }

    fn bound(&self, a: Traced, bound: f64) -> Result<Traced> {
        Ok(a.with_magnitude(bound)?)
    }

    fn settle(&self, a: &Traced) -> Result<Option<Traced>> {
        if a.expected().degree == 1 && !self.forecast().is_pending(a.expected()) {
            return Ok(None);
        }
        Ok(Some(self.traced.normalise(a)?))
    }

    fn finish(&self, a: &Traced) -> Result<Traced> {
        let expected = a.expected();
        self.left.set(self.left.get().min(expected.level));
        let needed = (expected.scale * expected.magnitude).log2() + SPARE_BITS;
        let fits = |level: &usize| self.forecast().log_modulus(*level) >= needed;
        match (0..expected.level).find(fits) {
            Some(level) => Ok(self.traced.drop_to(a, level)?),
            None => Ok(a.clone()),
        }
    }
}
