//! What a back-end does for each step of a circuit, and how a circuit runs on one.

use super::circuit::{Circuit, Step};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{LookupTable, Polynomial, Sign};

/// A public vector of a circuit, the same in every run.
#[derive(Clone, Copy, Debug)]
pub struct Constant<'a> {
    circuit: &'a Circuit,
    index: u32,
}

impl Constant<'_> {
    /// Its number in the circuit.
    pub fn index(self) -> u32 {
        self.index
    }

    /// A number for every slot.
    pub fn values(self) -> Vec<f64> {
        self.circuit.constant(self.index)
    }
}

/// What computes the steps of a circuit: one implementation a back-end.
///
/// A register may be in a form that saves work until it is needed in another one, as a product is
/// before it is relinearised; [`Machine::settle`] makes the usual form of it, once for all who need
/// that.
pub trait Machine {
    /// A vector of numbers, encrypted or not.
    type Register: Clone;

    /// a + b.
    ///
    /// # Errors
    /// Here and below: what the back-end cannot compute, as a product without a level left.
    fn add(&self, a: &Self::Register, b: &Self::Register) -> Result<Self::Register>;
    /// a − b.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn subtract(&self, a: &Self::Register, b: &Self::Register) -> Result<Self::Register>;
    /// −a.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn negate(&self, a: &Self::Register) -> Result<Self::Register>;
    /// a plus a number in every slot.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn add_number(&self, a: &Self::Register, number: f64) -> Result<Self::Register>;
    /// a times a number.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn multiply_number(&self, a: &Self::Register, number: f64) -> Result<Self::Register>;
    /// a times an integer.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn multiply_integer(&self, a: &Self::Register, factor: i64) -> Result<Self::Register>;
    /// a plus public numbers, one a slot.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn add_vector(&self, a: &Self::Register, values: &[f64]) -> Result<Self::Register>;
    /// a times public numbers, one a slot.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn multiply_vector(&self, a: &Self::Register, values: &[f64]) -> Result<Self::Register>;
    /// a plus a constant, as [`Self::add_vector`] makes it.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn add_constant(&self, a: &Self::Register, constant: Constant<'_>) -> Result<Self::Register> {
        self.add_vector(a, &constant.values())
    }
    /// a times a constant, as [`Self::multiply_vector`] makes it, of a settled register.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn multiply_constant(
        &self,
        a: &Self::Register,
        constant: Constant<'_>,
    ) -> Result<Self::Register> {
        self.multiply_vector(a, &constant.values())
    }
    /// a b, of settled registers.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn multiply(&self, a: &Self::Register, b: &Self::Register) -> Result<Self::Register>;
    /// a², of a settled register.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn square(&self, a: &Self::Register) -> Result<Self::Register>;
    /// a, rotated by each of `steps`; of a settled register.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn rotate(&self, a: &Self::Register, steps: &[i64]) -> Result<Vec<Self::Register>>;
    /// The value of a polynomial, of a settled register.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn polynomial(&self, a: &Self::Register, polynomial: &Polynomial) -> Result<Self::Register>;
    /// About the sign, of a settled register with numbers of [−1, 1].
    ///
    /// # Errors
    /// See [`Self::add`].
    fn sign(&self, a: &Self::Register, sign: &Sign) -> Result<Self::Register>;
    /// One polynomial of a sign, of a settled register.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn sign_stage(&self, a: &Self::Register, sign: &Sign, stage: usize) -> Result<Self::Register>;
    /// a with levels to compute with again, of a settled register with numbers of [−1, 1].
    ///
    /// # Errors
    /// See [`Self::add`].
    fn refresh(&self, a: &Self::Register) -> Result<Self::Register>;
    /// What each of `tables`, all of p values, has for the integers that a settled register is over p.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn look_up(&self, a: &Self::Register, tables: &[&LookupTable]) -> Result<Vec<Self::Register>>;
    /// a, known to be at most `bound` in absolute value in every slot.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn bound(&self, a: Self::Register, bound: f64) -> Result<Self::Register>;
    /// The usual form of a register; `None` if it has that already.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn settle(&self, a: &Self::Register) -> Result<Option<Self::Register>>;
    /// A settled register as it is sent: as small as it may be.
    ///
    /// # Errors
    /// See [`Self::add`].
    fn finish(&self, a: &Self::Register) -> Result<Self::Register>;
}

/// Registers of a run, dropped as soon as nobody reads them any more.
struct Registers<'a, M: Machine> {
    machine: &'a M,
    held: Vec<Option<M::Register>>,
}

impl<M: Machine> Registers<'_, M> {
    fn get(&self, register: u32) -> Result<&M::Register> {
        self.held[register as usize].as_ref().ok_or_else(|| gone(register))
    }

    /// The register itself if nobody reads it any more, a copy otherwise.
    fn taken(&mut self, register: u32, last: bool) -> Result<M::Register> {
        if !last {
            return self.get(register).cloned();
        }
        self.get(register)?;
        self.held[register as usize].take().ok_or_else(|| gone(register))
    }

    fn settled(&mut self, register: u32) -> Result<&M::Register> {
        if let Some(settled) = self.machine.settle(self.get(register)?)? {
            self.held[register as usize] = Some(settled);
        }
        self.get(register)
    }
}

fn gone(register: u32) -> Error {
    Error::Range {
        what: "a register",
        expected: "still held where it is read".into(),
        actual: register.to_string(),
    }
}

/// Runs a checked circuit: registers of the inputs' views, in their order, to those of the outputs.
/// `after` is called with the number of every step that is done, in order, and may end the run.
///
/// # Errors
/// The first step that fails, and those of `after`.
pub fn execute<M: Machine>(
    circuit: &Circuit,
    machine: &M,
    inputs: Vec<M::Register>,
    mut after: impl FnMut(usize, &M::Register) -> Result<()>,
) -> Result<Vec<M::Register>> {
    let last = circuit.last_uses();
    let offset = inputs.len();
    let mut registers =
        Registers { machine, held: inputs.into_iter().map(Some).collect::<Vec<_>>() };
    registers.held.reserve(circuit.steps.len());
    let mut index = 0;
    while index < circuit.steps.len() {
        let done = run(circuit, &last, &mut registers, index)?;
        for (place, register) in done.into_iter().enumerate() {
            after(index + place, &register)?;
            registers.held.push(Some(register));
        }
        let next = registers.held.len() - offset;
        for step in index..next {
            let made = offset + step;
            let read = circuit.steps[step].operands().map(|register| register as usize);
            for register in read.chain([made]) {
                if last[register] == Some(step) {
                    registers.held[register] = None;
                }
            }
        }
        index = next;
    }
    let outputs = circuit.outputs.iter().flat_map(|output| &output.registers);
    outputs
        .map(|&register| {
            registers.settled(register)?;
            machine.finish(registers.get(register)?)
        })
        .collect()
}

/// One step, or those that are done together.
fn run<M: Machine>(
    circuit: &Circuit,
    last: &[Option<usize>],
    registers: &mut Registers<'_, M>,
    index: usize,
) -> Result<Vec<M::Register>> {
    let machine = registers.machine;
    let together = &circuit.steps[index..index + circuit.together(index)];
    let one = match circuit.steps[index] {
        Step::Add(a, b) => machine.add(registers.get(a)?, registers.get(b)?)?,
        Step::Subtract(a, b) => machine.subtract(registers.get(a)?, registers.get(b)?)?,
        Step::Negate(a) => machine.negate(registers.get(a)?)?,
        Step::AddNumber(a, number) => machine.add_number(registers.get(a)?, number)?,
        Step::MultiplyInteger(a, factor) => machine.multiply_integer(registers.get(a)?, factor)?,
        Step::AddVector(a, index) => {
            machine.add_constant(registers.get(a)?, Constant { circuit, index })?
        }
        Step::MultiplyNumber(a, number) => {
            machine.multiply_number(registers.settled(a)?, number)?
        }
        Step::MultiplyVector(a, index) => {
            machine.multiply_constant(registers.settled(a)?, Constant { circuit, index })?
        }
        Step::Multiply(a, b) => {
            registers.settled(a)?;
            registers.settled(b)?;
            machine.multiply(registers.get(a)?, registers.get(b)?)?
        }
        Step::Square(a) => machine.square(registers.settled(a)?)?,
        Step::Rotate(a, _) => {
            let steps = together.iter().filter_map(|step| match step {
                Step::Rotate(_, by) => Some(i64::from(*by)),
                _ => None,
            });
            return machine.rotate(registers.settled(a)?, &steps.collect::<Vec<_>>());
        }
        Step::LookUp(a, _) => {
            let tables = together.iter().filter_map(|step| match step {
                Step::LookUp(_, table) => Some(&circuit.tables[*table as usize]),
                _ => None,
            });
            return machine.look_up(registers.settled(a)?, &tables.collect::<Vec<_>>());
        }
        Step::Polynomial(a, polynomial) => {
            let polynomial = &circuit.polynomials[polynomial as usize];
            machine.polynomial(registers.settled(a)?, polynomial)?
        }
        Step::Sign(a, sign) => {
            machine.sign(registers.settled(a)?, &circuit.signs[sign as usize])?
        }
        Step::SignStage(a, sign, stage) => {
            let sign = &circuit.signs[sign as usize];
            machine.sign_stage(registers.settled(a)?, sign, stage as usize)?
        }
        Step::Refresh(a) => machine.refresh(registers.settled(a)?)?,
        Step::Bound(a, bound) => {
            let a = registers.taken(a, last[a as usize] == Some(index))?;
            machine.bound(a, bound)?
        }
    };
    Ok(vec![one])
}
