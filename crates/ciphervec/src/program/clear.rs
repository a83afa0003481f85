//! Computes a plan on numbers without encryption: for tests and dry runs of the key holder.

use super::arrays::Answer;
use super::circuit::Circuit;
use super::machine::{Machine, execute};
use super::mixed::{Held, Mixed, Open};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{LookupTable, Polynomial, Sign};

/// A machine on plain numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clear;

impl Clear {
    /// The values of a circuit's outputs, in slots, for the values of its inputs, each as
    /// [`super::Input::shape`] says in row-major order; and the largest absolute value in any slot
    /// of every step.
    ///
    /// # Errors
    /// [`Error::Range`] for another number of inputs or of their elements.
    pub fn run(circuit: &Circuit, inputs: &[Vec<f64>]) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
        let mut largest = vec![0.0; circuit.steps.len()];
        let machine = Mixed { sealed: &Clear, open: Clear };
        let outputs = execute(circuit, &machine, placed(circuit, inputs)?, |step, held| {
            largest[step] = shown(held).iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            Ok(())
        })?;
        Ok((outputs.iter().map(|held| shown(held).clone()).collect(), largest))
    }
}

impl Clear {
    /// The outputs that [`Self::run`] makes, as a key holder would decode them, and its largest
    /// values.
    ///
    /// # Errors
    /// As [`Self::run`] and [`super::Output::gather`].
    pub fn answers(circuit: &Circuit, inputs: &[Vec<f64>]) -> Result<(Vec<Answer>, Vec<f64>)> {
        let (registers, largest) = Clear::run(circuit, inputs)?;
        Ok((decoded(circuit, &registers)?, largest))
    }
}

/// Numbers, in place of encrypted ones or in the clear.
type Shown = Held<Vec<f64>, Vec<f64>>;

fn shown(held: &Shown) -> &Vec<f64> {
    match held {
        Held::Sealed(values) | Held::Public(values) => values,
    }
}

/// The registers of a circuit's inputs.
pub fn placed(circuit: &Circuit, inputs: &[Vec<f64>]) -> Result<Vec<Shown>> {
    circuit.check()?;
    if inputs.len() != circuit.inputs.len() {
        let (expected, actual) = (circuit.inputs.len().to_string(), inputs.len().to_string());
        return Err(Error::Range { what: "the number of inputs", expected, actual });
    }
    let mut registers = Vec::new();
    for (input, values) in circuit.inputs.iter().zip(inputs) {
        let held = if input.public { Held::Public } else { Held::Sealed };
        registers.extend(input.scatter(values, circuit.slots)?.into_iter().map(held));
    }
    Ok(registers)
}

/// The outputs that stand in these registers, one after the other.
pub fn decoded(circuit: &Circuit, registers: &[Vec<f64>]) -> Result<Vec<Answer>> {
    let mut rest = registers;
    let answers = circuit.outputs.iter().map(|output| {
        let (held, after) = rest.split_at(output.registers.len());
        rest = after;
        output.answer(held, circuit.slots)
    });
    answers.collect()
}

fn map(a: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    a.iter().map(|&x| f(x)).collect()
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect()
}

impl Open for Clear {
    fn numbers(a: &Vec<f64>) -> &[f64] {
        a
    }

    fn signs(a: &Vec<f64>) -> Vec<f64> {
        map(a, |x| if x > 0.0 { 1.0 } else { -1.0 })
    }
}

impl Machine for Clear {
    type Register = Vec<f64>;

    fn add(&self, a: &Vec<f64>, b: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(zip(a, b, |x, y| x + y))
    }

    fn subtract(&self, a: &Vec<f64>, b: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(zip(a, b, |x, y| x - y))
    }

    fn negate(&self, a: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(map(a, |x| -x))
    }

    fn add_number(&self, a: &Vec<f64>, number: f64) -> Result<Vec<f64>> {
        Ok(map(a, |x| x + number))
    }

    fn multiply_number(&self, a: &Vec<f64>, number: f64) -> Result<Vec<f64>> {
        Ok(map(a, |x| x * number))
    }

    fn multiply_integer(&self, a: &Vec<f64>, factor: i64) -> Result<Vec<f64>> {
        Ok(map(a, |x| x * factor as f64))
    }

    fn add_vector(&self, a: &Vec<f64>, values: &[f64]) -> Result<Vec<f64>> {
        Ok(zip(a, values, |x, y| x + y))
    }

    fn multiply_vector(&self, a: &Vec<f64>, values: &[f64]) -> Result<Vec<f64>> {
        Ok(zip(a, values, |x, y| x * y))
    }

    fn multiply(&self, a: &Vec<f64>, b: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(zip(a, b, |x, y| x * y))
    }

    fn square(&self, a: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(map(a, |x| x * x))
    }

    fn rotate(&self, a: &Vec<f64>, steps: &[i64]) -> Result<Vec<Vec<f64>>> {
        let rotate = |&steps: &i64| {
            let mut out = a.clone();
            out.rotate_left(steps.rem_euclid(a.len() as i64) as usize);
            out
        };
        Ok(steps.iter().map(rotate).collect())
    }

    fn polynomial(&self, a: &Vec<f64>, polynomial: &Polynomial) -> Result<Vec<f64>> {
        Ok(map(a, |x| polynomial.evaluate(x)))
    }

    fn sign(&self, a: &Vec<f64>, sign: &Sign) -> Result<Vec<f64>> {
        Ok(map(&self.bound(a.clone(), 1.0)?, |x| sign.evaluate(x)))
    }

    fn sign_stage(&self, a: &Vec<f64>, sign: &Sign, stage: usize) -> Result<Vec<f64>> {
        let a = self.bound(a.clone(), 1.0)?;
        let polynomial = sign.stages().get(stage);
        Ok(polynomial.map_or_else(|| a.clone(), |one| map(&a, |x| one.evaluate(x))))
    }

    fn refresh(&self, a: &Vec<f64>) -> Result<Vec<f64>> {
        self.bound(a.clone(), 1.0)
    }

    fn look_up(&self, a: &Vec<f64>, tables: &[&LookupTable]) -> Result<Vec<Vec<f64>>> {
        Ok(tables.iter().map(|table| map(a, |x| table.evaluate(x))).collect())
    }

    fn bound(&self, a: Vec<f64>, bound: f64) -> Result<Vec<f64>> {
        let largest = a.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        // A little over it is what polynomials close to a step leave.
        if largest > bound * (1.0 + 1e-3) {
            return Err(Error::Range {
                what: "a value in a slot",
                expected: format!("at most {bound}, as the plan says"),
                actual: largest.to_string(),
            });
        }
        Ok(a)
    }

    fn settle(&self, _: &Vec<f64>) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    fn finish(&self, a: &Vec<f64>) -> Result<Vec<f64>> {
        Ok(a.clone())
    }
}
