//! The bytes that a server holds while it runs a plan, from the plan's trial.
//!
//! It bounds what a run takes, for whoever has to say beforehand whether there is room: registers
//! by their levels and for as long as somebody reads them, and what one step needs beside them.

use super::arrays::Input;
use super::circuit::{Circuit, Step};
use super::encoded::Encoded;
use super::plan::Plan;
use super::trial::Trial;
use crate::error::Result;
use ciphervec_he::ckks::{LookupTable, Params, ParamsSpec, Polynomial};

/// What a register's buffer may be larger than it needs to be: it was another's before.
const REUSED: f64 = 1.25;

/// Ciphertexts that are held while one is refreshed: rotations of the baby steps, and the powers of
/// the reduction.
const REFRESHING: u64 = 40;

/// Bytes in a server's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// The plan with the tables of its parameters: once, however many keys there are.
    pub plan: u64,
    /// Evaluation keys, decoded.
    pub keys: u64,
    /// What a run holds at most beside them and its inputs.
    pub run: u64,
}

impl Footprint {
    /// What a plan takes, by its trial.
    ///
    /// # Errors
    /// As [`Plan::key_bytes`].
    pub fn of(plan: &Plan, trial: &Trial) -> Result<Self> {
        let (circuit, spec) = (plan.circuit(), plan.params().spec());
        let constants: usize = circuit.constants.iter().map(|values| 8 * values.len() + 24).sum();
        let steps = circuit.steps.len() * size_of::<Step>();
        let last_uses = (circuit.input_registers() + circuit.steps.len()) * 32;
        let parts = (constants + steps + last_uses) as u64;
        let encodes = |step: &&Step| matches!(step, Step::AddVector(..) | Step::MultiplyVector(..));
        let encoded = Encoded::most(spec, circuit.steps.iter().filter(encodes).count());
        Ok(Footprint {
            plan: Params::memory(spec) + parts + plan.diagonal_bytes()? + encoded,
            // Permutations of the slots, one a rotation, stay with the parameters.
            keys: plan.key_memory()? / 8 * 9,
            run: scaled(Run { circuit, spec, trial, public: circuit.public() }.peak() + parts),
        })
    }

    /// What an input takes, decoded.
    pub fn input(plan: &Plan, input: &Input) -> u64 {
        let registers: u64 = input.views.iter().map(|view| u64::from(view.registers)).sum();
        let spec = plan.params().spec();
        if input.public {
            return registers.saturating_mul(in_the_clear(plan.circuit()));
        }
        registers.saturating_mul(scaled(register(spec, spec.levels, 2)))
    }

    /// What all inputs take.
    pub fn inputs(plan: &Plan) -> u64 {
        plan.circuit().inputs.iter().map(|input| Self::input(plan, input)).sum()
    }
}

fn scaled(bytes: u64) -> u64 {
    (bytes as f64 * REUSED) as u64
}

/// A ciphertext of so many polynomials.
fn register(spec: &ParamsSpec, level: usize, polys: u64) -> u64 {
    Params::poly_memory(spec, level + 1).saturating_mul(polys)
}

/// A register of numbers in the clear.
fn in_the_clear(circuit: &Circuit) -> u64 {
    (circuit.slots * size_of::<f64>()) as u64
}

struct Run<'a> {
    circuit: &'a Circuit,
    /// Which registers are in the clear.
    public: Vec<bool>,
    spec: &'a ParamsSpec,
    trial: &'a Trial,
}

impl Run<'_> {
    /// The most that registers of steps and one step's work take together.
    fn peak(&self) -> u64 {
        let circuit = self.circuit;
        let (inputs, last) = (circuit.input_registers(), circuit.last_uses());
        let size = |step: usize| self.result(step);
        let (mut alive, mut peak, mut index) = (0u64, 0u64, 0);
        while index < circuit.steps.len() {
            let next = index + circuit.together(index);
            alive += (index..next).map(size).sum::<u64>();
            peak = peak.max(alive + self.work(index));
            for step in index..next {
                let read = circuit.steps[step].operands().map(|register| register as usize);
                let mut done: Vec<usize> = read.chain([inputs + step]).collect();
                done.sort_unstable();
                done.dedup();
                // Inputs are held by whoever sent them.
                let steps =
                    done.into_iter().filter(|&one| one >= inputs && last[one] == Some(step));
                alive = alive.saturating_sub(steps.map(|one| size(one - inputs)).sum());
            }
            index = next;
        }
        peak
    }

    /// What the result of a step takes, products before they are relinearised.
    fn result(&self, step: usize) -> u64 {
        if self.public[self.circuit.input_registers() + step] {
            return in_the_clear(self.circuit);
        }
        let polys = match self.circuit.steps[step] {
            Step::Multiply(..) | Step::Square(_) | Step::Add(..) | Step::Subtract(..) => 3,
            _ => 2,
        };
        register(self.spec, self.level(step), polys)
    }

    fn level(&self, step: usize) -> usize {
        self.trial.steps.get(step).map_or(self.spec.levels, |step| step.level)
    }

    /// What a step takes beside its operands and its result.
    fn work(&self, step: usize) -> u64 {
        let polynomials = &self.circuit.polynomials;
        let ciphertexts = match self.circuit.steps[step] {
            Step::Polynomial(_, index) => held(&polynomials[index as usize]),
            Step::Sign(_, index) => {
                let stages = self.circuit.signs[index as usize].stages();
                stages.iter().map(held).max().unwrap_or(0)
            }
            Step::SignStage(_, index, stage) => {
                held(&self.circuit.signs[index as usize].stages()[stage as usize])
            }
            Step::Refresh(_) => REFRESHING,
            Step::LookUp(_, table) => looking_up(&self.circuit.tables[table as usize]),
            _ => 1,
        };
        // Digits of what is switched, each over all primes and the special ones.
        let primes = self.spec.primes() + self.spec.special_primes;
        let digits = (self.spec.digits as u64 + 3) * Params::poly_memory(self.spec, primes);
        register(self.spec, self.spec.levels, 3).saturating_mul(ciphertexts) + digits
    }
}

/// Ciphertexts that are held while a table is looked up: those of an exponential, or the powers of its
/// roots.
fn looking_up(table: &LookupTable) -> u64 {
    REFRESHING.max(2 * ((table.modulus() as u64).isqrt() + 16))
}

/// Ciphertexts that are held while a polynomial is evaluated: its powers, small and large.
fn held(polynomial: &Polynomial) -> u64 {
    let degree = polynomial.degree() as u64;
    2 * (degree.isqrt() + 1) + u64::from(degree.max(1).ilog2()) + 2
}
