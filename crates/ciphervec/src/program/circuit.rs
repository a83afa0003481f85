//! A checked circuit: inputs, steps on registers and outputs. Public numbers only.

use super::arrays::{Decoding, Input, Output, Register, check_array, check_unit};
use super::look_up::check_tables;
use super::numbers::{range, within};
use crate::error::Result;
use crate::refusal::Refusal;
use ciphervec_he::ckks::{LookupTable, Polynomial, Sign};

/// Most slots of a register.
pub const MAX_SLOTS: usize = 1 << 17;
/// Most registers, inputs' and steps' together.
pub const MAX_REGISTERS: usize = 1 << 20;
/// Most slots that inputs stand in, all together: what a client lays out at a time.
const MAX_INPUT_SLOTS: usize = 1 << 27;
/// Most constants.
pub(super) const MAX_CONSTANTS: usize = 1 << 20;
/// Most numbers in all constants.
const MAX_NUMBERS: usize = 1 << 25;
/// Most inputs, outputs and polynomials, each.
pub(super) const MAX_PARTS: usize = 1 << 12;
/// Most ways of taking signs: each takes milliseconds to find.
pub const MAX_SIGNS: usize = 32;
/// Highest degree of a polynomial.
pub const MAX_DEGREE: usize = 1 << 10;

/// Most rotations of one register that are made at once, or tables: what they share is small beside
/// them, and all of them are held.
const MOST_AT_ONCE: usize = 32;

/// One step. All are number by number, over all slots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// a + b.
    Add(Register, Register),
    /// a − b.
    Subtract(Register, Register),
    /// −a.
    Negate(Register),
    /// a plus a number.
    AddNumber(Register, f64),
    /// a times a number: a level.
    MultiplyNumber(Register, f64),
    /// a times an integer: no level.
    MultiplyInteger(Register, i64),
    /// a plus a constant.
    AddVector(Register, u32),
    /// a times a constant: a level.
    MultiplyVector(Register, u32),
    /// a b: a level.
    Multiply(Register, Register),
    /// a²: a level.
    Square(Register),
    /// Slot j is slot j + n of a, cyclically.
    Rotate(Register, i32),
    /// The value of a polynomial.
    Polynomial(Register, u32),
    /// About the sign of numbers of [−1, 1], ±1.
    Sign(Register, u32),
    /// One polynomial of a sign, by its number, of what the one before it has left.
    SignStage(Register, u32, u32),
    /// a with levels to compute with again, of numbers of [−1, 1].
    Refresh(Register),
    /// a, of whose absolute value in any slot this is known to be a bound.
    Bound(Register, f64),
    /// What a table of p values has for the integers that slots are over p, with levels to compute
    /// with.
    LookUp(Register, u32),
}

impl Step {
    /// Whether it may take an evaluation key, of registers that are all encrypted.
    pub(super) fn switches(self) -> bool {
        match self {
            Step::Multiply(..)
            | Step::Square(_)
            | Step::Rotate(..)
            | Step::Polynomial(..)
            | Step::Sign(..)
            | Step::SignStage(..)
            | Step::Refresh(_)
            | Step::LookUp(..) => true,
            Step::Add(..)
            | Step::Subtract(..)
            | Step::Negate(_)
            | Step::AddNumber(..)
            | Step::MultiplyNumber(..)
            | Step::MultiplyInteger(..)
            | Step::AddVector(..)
            | Step::MultiplyVector(..)
            | Step::Bound(..) => false,
        }
    }

    /// The same step, which reads other registers.
    pub(super) fn reading(mut self, other: impl Fn(Register) -> Register) -> Self {
        self.reads().into_iter().flatten().for_each(|register| *register = other(*register));
        self
    }

    /// The registers that it reads.
    pub fn operands(mut self) -> impl Iterator<Item = Register> {
        self.reads().map(|register| register.copied()).into_iter().flatten()
    }

    /// Where it says which registers it reads.
    fn reads(&mut self) -> [Option<&mut Register>; 2] {
        match self {
            Step::Add(a, b) | Step::Subtract(a, b) | Step::Multiply(a, b) => [Some(a), Some(b)],
            Step::Negate(a)
            | Step::AddNumber(a, _)
            | Step::MultiplyNumber(a, _)
            | Step::MultiplyInteger(a, _)
            | Step::AddVector(a, _)
            | Step::MultiplyVector(a, _)
            | Step::Square(a)
            | Step::Rotate(a, _)
            | Step::Polynomial(a, _)
            | Step::Sign(a, _)
            | Step::SignStage(a, ..)
            | Step::Refresh(a)
            | Step::Bound(a, _)
            | Step::LookUp(a, _) => [Some(a), None],
        }
    }
}

/// What is computed, without keys or parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Circuit {
    /// Numbers of a register.
    pub slots: usize,
    /// Arrays that come in.
    pub inputs: Vec<Input>,
    /// Public vectors, each repeated until it fills a register.
    pub constants: Vec<Vec<f64>>,
    /// Public polynomials.
    pub polynomials: Vec<Polynomial>,
    /// How signs are taken.
    pub signs: Vec<Sign>,
    /// Public tables that computed integers are looked up in.
    pub tables: Vec<LookupTable>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Arrays that go out.
    pub outputs: Vec<Output>,
}

impl Circuit {
    /// Registers of the inputs.
    pub fn input_registers(&self) -> usize {
        let views = self.inputs.iter().flat_map(|input| &input.views);
        views.map(|view| view.registers as usize).sum()
    }

    /// For every register whether its numbers are in the clear: those of public inputs, and what is
    /// computed of them alone.
    pub fn public(&self) -> Vec<bool> {
        let mut found = Vec::with_capacity(self.input_registers() + self.steps.len());
        for input in &self.inputs {
            let registers: usize = input.views.iter().map(|view| view.registers as usize).sum();
            found.extend(core::iter::repeat_n(input.public, registers));
        }
        for step in &self.steps {
            found.push(step.operands().all(|register| found[register as usize]));
        }
        found
    }

    /// The steps that may take an evaluation key: none does where an operand is in the clear.
    pub(super) fn switching(&self) -> impl Iterator<Item = Step> {
        let public = self.public();
        let steps = self.steps.iter().copied().filter(|step| step.switches());
        steps.filter(move |step| !step.operands().any(|register| public[register as usize]))
    }

    /// How many registers of inputs are encrypted.
    pub fn sealed_registers(&self) -> usize {
        self.public()[..self.input_registers()].iter().filter(|public| !**public).count()
    }

    /// The constant, repeated until it fills a register.
    pub(super) fn constant(&self, index: u32) -> Vec<f64> {
        let values = &self.constants[index as usize];
        values.iter().copied().cycle().take(self.slots).collect()
    }

    /// For every register the step after which nobody reads it any more; `None` where an output
    /// does.
    pub(super) fn last_uses(&self) -> Vec<Option<usize>> {
        let inputs = self.input_registers();
        // What nobody reads is done with when it is made.
        let mut last: Vec<_> = (0..inputs + self.steps.len())
            .map(|register| Some(register.saturating_sub(inputs)))
            .collect();
        for (index, step) in self.steps.iter().enumerate() {
            step.operands().for_each(|register| last[register as usize] = Some(index));
        }
        let outputs = self.outputs.iter().flat_map(|output| &output.registers);
        outputs.for_each(|&register| last[register as usize] = None);
        last
    }

    /// How many steps refresh a register.
    pub fn refreshes(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Refresh(_))).count()
    }

    /// How many registers tables are looked up for: each takes one bootstrapping, however many tables.
    pub fn look_ups(&self) -> usize {
        let mut count = 0;
        let mut index = 0;
        while index < self.steps.len() {
            count += usize::from(matches!(self.steps[index], Step::LookUp(..)));
            index += self.together(index);
        }
        count
    }

    /// How often integers are cleaned before they are looked up, at most.
    pub fn cleanings(&self) -> usize {
        self.tables.iter().map(LookupTable::cleanings).max().unwrap_or(0)
    }

    /// How many steps are done at once from that one on: rotations of one register, or tables of as
    /// many values that are looked up for one.
    pub(super) fn together(&self, index: usize) -> usize {
        let shape = |table: u32| {
            let table = &self.tables[table as usize];
            (table.modulus(), table.cleanings())
        };
        let same = |step: &&Step| match (self.steps[index], **step) {
            (Step::Rotate(a, _), Step::Rotate(b, _)) => a == b,
            (Step::LookUp(a, one), Step::LookUp(b, other)) => a == b && shape(one) == shape(other),
            _ => false,
        };
        let run = self.steps[index..].iter().take(MOST_AT_ONCE).take_while(same).count();
        run.max(1)
    }

    /// The most encrypted registers that are alive at one time.
    pub fn peak(&self) -> usize {
        let mut ends = vec![0usize; self.steps.len() + 1];
        let public = self.public();
        let sealed = self.last_uses().into_iter().zip(&public).filter(|(_, public)| !**public);
        sealed.filter_map(|(last, _)| last).for_each(|step| ends[step] += 1);
        let mut alive = self.sealed_registers();
        let mut peak = alive;
        for (end, public) in ends.iter().zip(&public[self.input_registers()..]) {
            alive += usize::from(!public);
            peak = peak.max(alive);
            alive -= end;
        }
        peak
    }

    /// Refuses a circuit that cannot be computed: registers that are read before they are written,
    /// constants that are not there, sizes over the limits.
    ///
    /// # Errors
    /// [`crate::Error::Range`], which says what was expected and what came; [`Refusal::Signs`] for
    /// too many signs.
    pub fn check(&self) -> Result<()> {
        within("the number of slots", 1..=MAX_SLOTS, self.slots)?;
        if !self.slots.is_power_of_two() {
            return Err(range("the number of slots", "a power of two", self.slots));
        }
        within("the number of inputs", 1..=MAX_PARTS, self.inputs.len())?;
        within("the number of outputs", 1..=MAX_PARTS, self.outputs.len())?;
        within("the number of polynomials", 0..=MAX_PARTS, self.polynomials.len())?;
        if self.signs.len() > MAX_SIGNS {
            return Err(Refusal::Signs { signs: self.signs.len(), most: MAX_SIGNS }.into());
        }
        let views = self.inputs.iter().flat_map(|input| &input.views);
        let inputs = views.fold(0usize, |sum, view| sum.saturating_add(view.registers as usize));
        let registers = inputs.saturating_add(self.steps.len());
        within("the number of registers", 1..=MAX_REGISTERS, registers)?;
        within("the slots of all inputs", 1..=MAX_INPUT_SLOTS, inputs.saturating_mul(self.slots))?;
        self.check_constants()?;
        check_tables(&self.tables)?;
        self.inputs.iter().try_for_each(|input| self.check_input(input))?;
        for (index, step) in self.steps.iter().enumerate() {
            self.check_step(*step, (inputs + index) as u32)?;
        }
        self.outputs.iter().try_for_each(|output| self.check_output(output, registers))?;
        let names = self.inputs.iter().map(|input| &input.name);
        distinct("inputs", names)?;
        distinct("outputs", self.outputs.iter().map(|output| &output.name))
    }

    fn check_constants(&self) -> Result<()> {
        let numbers = self.constants.iter().map(Vec::len).fold(0, usize::saturating_add);
        within("the number of constants", 0..=MAX_CONSTANTS, self.constants.len())?;
        within("the numbers in constants", 0..=MAX_NUMBERS, numbers)?;
        for constant in &self.constants {
            within("the numbers of a constant", 1..=self.slots, constant.len())?;
            if !constant.len().is_power_of_two() || !constant.iter().all(|x| x.is_finite()) {
                let expected = "a power of two of finite numbers";
                return Err(range("a constant", expected, constant.len()));
            }
        }
        for polynomial in &self.polynomials {
            within("the degree of a polynomial", 1..=MAX_DEGREE, polynomial.degree())?;
        }
        Ok(())
    }

    fn check_input(&self, input: &Input) -> Result<()> {
        let elements = check_array(&input.name, &input.shape, &input.numbers)?;
        for view in &input.views {
            check_unit(view.unit)?;
            within("the registers of a view", 1..=MAX_REGISTERS, view.registers as usize)?;
            view.reading.check(&input.shape, &input.numbers)?;
            let read = view.reading.length(elements);
            let places = u64::from(view.registers) * self.slots as u64;
            view.placement.check(read, places, self.slots)?;
        }
        Ok(())
    }

    fn check_output(&self, output: &Output, registers: usize) -> Result<()> {
        let elements = check_array(&output.name, &output.shape, &output.numbers)?;
        check_unit(output.unit)?;
        within("the registers of an output", 1..=registers, output.registers.len())?;
        for &register in &output.registers {
            within("a register of an output", 0..=registers - 1, register as usize)?;
        }
        let along = !matches!(output.decoding, Decoding::Numbers | Decoding::Booleans);
        if along && output.shape.is_empty() {
            return Err(range("the shape of a one-hot output", "of at least one axis", "none"));
        }
        output.placement.check(elements, (output.registers.len() * self.slots) as u64, self.slots)
    }

    fn check_step(&self, step: Step, next: Register) -> Result<()> {
        if let Some(register) = step.operands().find(|register| *register >= next) {
            let expected = format!("below {next}, written already");
            return Err(range("an operand", expected, register));
        }
        match step {
            Step::AddNumber(_, number) | Step::MultiplyNumber(_, number) if !number.is_finite() => {
                Err(range("a number", "finite", number))
            }
            Step::MultiplyInteger(_, factor) if factor.unsigned_abs() >= 1 << 53 => {
                Err(range("an integer factor", "below 2^53", factor))
            }
            Step::Bound(_, bound) if !(bound.is_finite() && bound > 0.0) => {
                Err(range("a bound", "positive and finite", bound))
            }
            Step::AddVector(_, index) | Step::MultiplyVector(_, index)
                if index as usize >= self.constants.len() =>
            {
                Err(range("a constant", format!("below {}", self.constants.len()), index))
            }
            Step::Polynomial(_, index) if index as usize >= self.polynomials.len() => {
                Err(range("a polynomial", format!("below {}", self.polynomials.len()), index))
            }
            Step::Sign(_, index) | Step::SignStage(_, index, _)
                if index as usize >= self.signs.len() =>
            {
                Err(range("a sign", format!("below {}", self.signs.len()), index))
            }
            Step::SignStage(_, index, stage)
                if stage as usize >= self.signs[index as usize].stages().len() =>
            {
                let stages = self.signs[index as usize].stages().len();
                Err(range("a stage of a sign", format!("below {stages}"), stage))
            }
            Step::LookUp(_, index) if index as usize >= self.tables.len() => {
                Err(range("a table", format!("below {}", self.tables.len()), index))
            }
            Step::Rotate(_, steps) if steps.unsigned_abs() as usize >= self.slots => {
                Err(range("a rotation", format!("by fewer than {} slots", self.slots), steps))
            }
            _ => Ok(()),
        }
    }
}

fn distinct<'a>(what: &'static str, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(range(what, "of different names", format!("{name:?} twice")));
        }
    }
    Ok(())
}
