//! Bounds on the numbers of every register, from bounds on those of the inputs. Public numbers
//! only.

use super::circuit::Circuit;
use super::machine::{Machine, execute};
use super::mixed::Open;
use crate::error::Result;
use ciphervec_he::ckks::{Basis, LookupTable, Polynomial, Sign};

/// A machine on bounds of absolute values.
pub(super) struct Reach;

/// A bound for every register, those of inputs first.
///
/// # Errors
/// None that a checked circuit has.
pub(super) fn reaches(circuit: &Circuit) -> Result<Vec<f64>> {
    let mut found = Vec::with_capacity(circuit.input_registers() + circuit.steps.len());
    for input in &circuit.inputs {
        for view in &input.views {
            let most = input.magnitude(view);
            found.extend((0..view.registers).map(|_| most));
        }
    }
    let inputs = found.clone();
    execute(circuit, &Reach, inputs, |_, register: &f64| {
        found.push(*register);
        Ok(())
    })?;
    Ok(found)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

impl Open for Reach {
    fn numbers(a: &f64) -> &[f64] {
        core::slice::from_ref(a)
    }

    fn signs(_: &f64) -> f64 {
        1.0
    }
}

impl Machine for Reach {
    type Register = f64;

    fn add(&self, a: &f64, b: &f64) -> Result<f64> {
        Ok(a + b)
    }

    fn subtract(&self, a: &f64, b: &f64) -> Result<f64> {
        Ok(a + b)
    }

    fn negate(&self, a: &f64) -> Result<f64> {
        Ok(*a)
    }

    fn add_number(&self, a: &f64, number: f64) -> Result<f64> {
        Ok(a + number.abs())
    }

    fn multiply_number(&self, a: &f64, number: f64) -> Result<f64> {
        Ok(a * number.abs())
    }

    fn multiply_integer(&self, a: &f64, factor: i64) -> Result<f64> {
        Ok(a * factor.unsigned_abs() as f64)
    }

    fn add_vector(&self, a: &f64, values: &[f64]) -> Result<f64> {
        Ok(a + largest(values))
    }

    fn multiply_vector(&self, a: &f64, values: &[f64]) -> Result<f64> {
        Ok(a * largest(values))
    }

    fn multiply(&self, a: &f64, b: &f64) -> Result<f64> {
        Ok(a * b)
    }

    fn square(&self, a: &f64) -> Result<f64> {
        Ok(a * a)
    }

    fn rotate(&self, a: &f64, steps: &[i64]) -> Result<Vec<f64>> {
        Ok(vec![*a; steps.len()])
    }

    fn polynomial(&self, a: &f64, polynomial: &Polynomial) -> Result<f64> {
        let coefficients = polynomial.coefficients().iter();
        Ok(match polynomial.basis() {
            // Each of the basis is at most 1 where the polynomial is made for.
            Basis::Chebyshev { .. } => coefficients.map(|c| c.abs()).sum(),
            Basis::Power => coefficients.rev().fold(0.0, |sum, c| sum * a + c.abs()),
        })
    }

    fn sign(&self, _: &f64, sign: &Sign) -> Result<f64> {
        Ok(1.0 + sign.error())
    }

    fn sign_stage(&self, _: &f64, sign: &Sign, stage: usize) -> Result<f64> {
        Ok(if stage + 1 == sign.stages().len() { 1.0 + sign.error() } else { 1.0 })
    }

    fn refresh(&self, a: &f64) -> Result<f64> {
        Ok(*a)
    }

    fn look_up(&self, _: &f64, tables: &[&LookupTable]) -> Result<Vec<f64>> {
        Ok(tables.iter().map(|table| table.largest().max(f64::MIN_POSITIVE)).collect())
    }

    fn bound(&self, a: f64, bound: f64) -> Result<f64> {
        Ok(a.min(bound))
    }

    fn settle(&self, _: &f64) -> Result<Option<f64>> {
        Ok(None)
    }

    fn finish(&self, a: &f64) -> Result<f64> {
        Ok(*a)
    }
}
