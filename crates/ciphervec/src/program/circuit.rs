//! Circuit: inputs, steps on registers and outputs enter; a checked circuit leaves. Both sides,
//! public numbers only.

use super::placement::Placement;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Polynomial, Sign};
use zeroize::Zeroizing;

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
/// Most elements of an array.
const MAX_ELEMENTS: u64 = 1 << 26;
/// Most inputs, outputs and polynomials, each.
pub(super) const MAX_PARTS: usize = 1 << 12;
/// Most ways of taking signs: each takes milliseconds to find.
pub const MAX_SIGNS: usize = 32;
/// Longest name, in bytes.
pub const MAX_NAME: usize = 64;
/// Most dimensions of an array.
pub const MAX_DIMENSIONS: usize = 16;
/// Highest degree of a polynomial.
pub const MAX_DEGREE: usize = 1 << 10;

/// A register's number: those of the inputs' views come first, then every step has the next one.
pub type Register = u32;

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
    /// a, of whose absolute value in any slot this is known to be a bound.
    Bound(Register, f64),
}

impl Step {
    /// The registers that it reads.
    pub fn operands(self) -> impl Iterator<Item = Register> {
        let (a, b) = match self {
            Step::Add(a, b) | Step::Subtract(a, b) | Step::Multiply(a, b) => (a, Some(b)),
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
            | Step::Bound(a, _) => (a, None),
        };
        [Some(a), b].into_iter().flatten()
    }
}

/// What numbers an array may have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Numbers {
    /// All are multiples of it: 1 for integers; 0 for any real number.
    pub step: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Numbers {
    /// The largest absolute value.
    pub fn magnitude(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    fn check(&self) -> Result<()> {
        let finite = self.low.is_finite() && self.high.is_finite() && self.low <= self.high;
        if finite && self.step.is_finite() && self.step >= 0.0 {
            return Ok(());
        }
        Err(Error::Range {
            what: "the numbers of an array",
            expected: "a step of 0 or more and a finite interval".into(),
            actual: format!("step {}, {} to {}", self.step, self.low, self.high),
        })
    }
}

/// One way in which an input stands in registers.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// How many registers it takes.
    pub registers: u32,
    /// Slots hold the input's numbers divided by this.
    pub unit: f64,
    /// Where its elements stand.
    pub placement: Placement,
}

/// An array that the key holder encrypts.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u32>,
    /// What it may hold.
    pub numbers: Numbers,
    /// How it stands in registers.
    pub views: Vec<View>,
}

impl Input {
    /// Its registers, view after view, for its values in row-major order.
    ///
    /// # Errors
    /// [`Error::Program`] for another number of values, and for one that the input was not declared
    /// to hold: which, and what was declared.
    pub fn scatter(&self, values: &[f64], slots: usize) -> Result<Vec<Vec<f64>>> {
        let refuse = |detail: String| Error::Program { operation: "an input", detail };
        let expected = elements(&self.shape).unwrap_or(0);
        if values.len() as u64 != expected {
            return Err(refuse(format!(
                "{:?} has the shape {:?}, {expected} numbers, got {}",
                self.name,
                self.shape,
                values.len()
            )));
        }
        let Numbers { step, low, high } = self.numbers;
        for (index, &value) in values.iter().enumerate() {
            // A grid that is no power of two is met as closely as doubles meet it.
            let off = if step > 0.0 { (value / step - (value / step).round()).abs() } else { 0.0 };
            if !(low <= value && value <= high && off <= 1e-6) {
                let grid =
                    if step > 0.0 { format!(", multiples of {step}") } else { String::new() };
                return Err(refuse(format!(
                    "{:?} was declared with numbers from {low} to {high}{grid}; element {index} is \
                     {value}. Declare what it may hold and compile again",
                    self.name
                )));
            }
        }
        let mut registers = Vec::new();
        for view in &self.views {
            let scaled = Zeroizing::new(values.iter().map(|x| x / view.unit).collect::<Vec<_>>());
            registers.extend(view.placement.scatter(&scaled, view.registers as usize, slots));
        }
        Ok(registers)
    }

    /// A bound on the absolute value in the slots of a view.
    pub fn magnitude(&self, view: &View) -> f64 {
        (self.numbers.magnitude() / view.unit).max(f64::MIN_POSITIVE)
    }
}

/// What the key holder makes of the numbers in the slots of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Decoding {
    /// The numbers themselves, integers rounded.
    Numbers = 0,
    /// True or false.
    Booleans = 1,
    /// The index, along the last axis, of the one that is true.
    OneHot = 2,
    /// The index, along the last axis, of the largest, where several may be true in part: of numbers
    /// closer than the gap that was declared either may be named.
    Largest = 3,
}

/// An array that the key holder decrypts.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The shape that its slots are read as.
    pub shape: Vec<u32>,
    /// What it may hold.
    pub numbers: Numbers,
    /// Its numbers are those in slots times this.
    pub unit: f64,
    /// The registers that it stands in.
    pub registers: Vec<Register>,
    /// Where its elements stand in them.
    pub placement: Placement,
    /// What is made of them.
    pub decoding: Decoding,
}

/// The values of an output.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Its name.
    pub name: String,
    /// Its shape: that of a one-hot output without its last axis.
    pub shape: Vec<u32>,
    /// What was made of it.
    pub decoding: Decoding,
    /// The values in row-major order.
    pub values: Vec<f64>,
}

/// How far a decrypted integer may be from an integer before it is refused.
const FARTHEST: f64 = 0.45;
/// What the largest of truths in part has to be above.
const LEAST: f64 = 0.25;

impl Output {
    /// Its values in row-major order, for the numbers in the slots of its registers. Those of a
    /// one-hot output have lost the last axis.
    ///
    /// # Errors
    /// [`Error::Program`] where a number is not near one that the output can hold: the noise was
    /// larger than the plan allows for, or the server computed something else.
    pub fn gather(&self, registers: &[Vec<f64>], slots: usize) -> Result<Vec<f64>> {
        let count = elements(&self.shape).unwrap_or(0) as usize;
        let mut values = self.placement.gather(registers, count, slots);
        let step = match self.decoding {
            Decoding::Numbers => self.numbers.step,
            Decoding::Largest => 0.0,
            Decoding::Booleans | Decoding::OneHot => 1.0,
        };
        for (index, value) in values.iter_mut().enumerate() {
            let exact = *value * self.unit;
            if step == 0.0 {
                *value = exact;
            } else {
                let rounded = (exact / step).round();
                if (exact / step - rounded).abs() > FARTHEST || !exact.is_finite() {
                    return Err(self.refuse(format!(
                        "a multiple of {step} was expected at element {index}, got {exact}"
                    )));
                }
                *value = rounded * step;
            }
            if self.decoding == Decoding::Numbers && !self.within(*value) {
                let Numbers { low, high, .. } = self.numbers;
                return Err(self.refuse(format!(
                    "a number from {low} to {high} was expected at element {index}, got {exact}"
                )));
            }
        }
        match self.decoding {
            Decoding::Numbers => Ok(values),
            Decoding::Booleans => match values.iter().position(|x| *x != 0.0 && *x != 1.0) {
                None => Ok(values),
                Some(index) => Err(self.refuse(format!(
                    "0 or 1 was expected at element {index}, got {}",
                    values[index]
                ))),
            },
            Decoding::OneHot => {
                let extent = self.shape.last().map_or(1, |extent| *extent as usize);
                values.chunks(extent).map(|row| self.hot(row)).collect()
            }
            Decoding::Largest => {
                let extent = self.shape.last().map_or(1, |extent| *extent as usize);
                values.chunks(extent).map(|row| self.largest(row)).collect()
            }
        }
    }

    /// [`Self::gather`], with the shape that the values have.
    ///
    /// # Errors
    /// As [`Self::gather`].
    pub fn answer(&self, registers: &[Vec<f64>], slots: usize) -> Result<Answer> {
        let values = self.gather(registers, slots)?;
        let extents = match self.decoding {
            Decoding::OneHot | Decoding::Largest => self.shape.len() - 1,
            _ => self.shape.len(),
        };
        let (name, shape) = (self.name.clone(), self.shape[..extents].to_vec());
        Ok(Answer { name, shape, decoding: self.decoding, values })
    }

    /// Whether a number is one that the output can hold. Real ones may be off by what the plan allows
    /// for, which is less than half of what they range over.
    fn within(&self, value: f64) -> bool {
        let Numbers { step, low, high } = self.numbers;
        let range = high - low;
        let slack = if step > 0.0 { 0.5 * step } else { 0.5 * range + f64::MIN_POSITIVE };
        (low - slack..=high + slack).contains(&value)
    }

    /// The place of the one that is 1 among zeros.
    fn hot(&self, row: &[f64]) -> Result<f64> {
        let ones: Vec<usize> = (0..row.len()).filter(|&index| row[index] == 1.0).collect();
        match ones[..] {
            [one] if row.iter().all(|x| *x == 0.0 || *x == 1.0) => Ok(one as f64),
            _ => Err(self.refuse(format!("a single 1 was expected, got {} of them", ones.len()))),
        }
    }

    /// The place of the largest, which has to stand out from zeros.
    fn largest(&self, row: &[f64]) -> Result<f64> {
        let places = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        match places {
            Some(place) if row[place] > LEAST && row[place].is_finite() => Ok(place as f64),
            _ => Err(self.refuse(format!("a number above {LEAST} was expected, there is none"))),
        }
    }

    fn refuse(&self, detail: String) -> Error {
        let detail = format!(
            "{:?}: {detail}. The noise was larger than planned for, or the server computed \
             something else; the answer is not used",
            self.name
        );
        Error::Program { operation: "an output", detail }
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

    /// The most registers that are alive at one time.
    pub fn peak(&self) -> usize {
        let mut ends = vec![0usize; self.steps.len() + 1];
        let last = self.last_uses();
        last.iter().flatten().for_each(|&step| ends[step] += 1);
        let mut alive = self.input_registers();
        let mut peak = alive;
        for end in &ends[..self.steps.len()] {
            alive += 1;
            peak = peak.max(alive);
            alive -= end;
        }
        peak
    }

    /// Refuses a circuit that cannot be computed: registers that are read before they are written,
    /// constants that are not there, sizes over the limits.
    ///
    /// # Errors
    /// [`Error::Range`], which says what was expected and what came.
    pub fn check(&self) -> Result<()> {
        within("the number of slots", 1..=MAX_SLOTS, self.slots)?;
        if !self.slots.is_power_of_two() {
            return Err(range("the number of slots", "a power of two", self.slots));
        }
        within("the number of inputs", 1..=MAX_PARTS, self.inputs.len())?;
        within("the number of outputs", 1..=MAX_PARTS, self.outputs.len())?;
        within("the number of polynomials", 0..=MAX_PARTS, self.polynomials.len())?;
        within("the number of signs", 0..=MAX_SIGNS, self.signs.len())?;
        let views = self.inputs.iter().flat_map(|input| &input.views);
        let inputs = views.fold(0usize, |sum, view| sum.saturating_add(view.registers as usize));
        let registers = inputs.saturating_add(self.steps.len());
        within("the number of registers", 1..=MAX_REGISTERS, registers)?;
        within("the slots of all inputs", 1..=MAX_INPUT_SLOTS, inputs.saturating_mul(self.slots))?;
        self.check_constants()?;
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
            view.placement.check(elements, u64::from(view.registers) * self.slots as u64)?;
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
        let named = matches!(output.decoding, Decoding::OneHot | Decoding::Largest);
        if named && output.shape.is_empty() {
            return Err(range("the shape of a one-hot output", "of at least one axis", "none"));
        }
        output.placement.check(elements, (output.registers.len() * self.slots) as u64)
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
            Step::Sign(_, index) if index as usize >= self.signs.len() => {
                Err(range("a sign", format!("below {}", self.signs.len()), index))
            }
            Step::Rotate(_, steps) if steps.unsigned_abs() as usize >= self.slots => {
                Err(range("a rotation", format!("by fewer than {} slots", self.slots), steps))
            }
            _ => Ok(()),
        }
    }
}

fn check_unit(unit: f64) -> Result<()> {
    if unit.is_finite() && unit > 0.0 {
        return Ok(());
    }
    Err(range("a unit", "positive and finite", unit))
}

fn check_array(name: &str, shape: &[u32], numbers: &Numbers) -> Result<u64> {
    within("the length of a name", 1..=MAX_NAME, name.len())?;
    within("the dimensions of an array", 0..=MAX_DIMENSIONS, shape.len())?;
    numbers.check()?;
    elements(shape).filter(|count| (1..=MAX_ELEMENTS).contains(count)).ok_or_else(|| {
        range("the elements of an array", format!("1 to {MAX_ELEMENTS}"), format!("{shape:?}"))
    })
}

/// How many elements an array of a shape has.
pub(super) fn elements(shape: &[u32]) -> Option<u64> {
    shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(u64::from(extent)))
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

fn range(what: &'static str, expected: impl ToString, actual: impl ToString) -> Error {
    Error::Range { what, expected: expected.to_string(), actual: actual.to_string() }
}

fn within(
    what: &'static str,
    allowed: core::ops::RangeInclusive<usize>,
    actual: usize,
) -> Result<()> {
    if allowed.contains(&actual) {
        return Ok(());
    }
    Err(range(what, format!("{} to {}", allowed.start(), allowed.end()), actual))
}
