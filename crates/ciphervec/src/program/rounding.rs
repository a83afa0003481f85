//! Rounding: what inputs may hold enters; how far the doubles that they are encoded and decoded with
//! may take an answer's numbers off leaves. Key holder, public numbers only.
//!
//! A transform rounds by a part of the root mean square of all slots, [`transform_rounding`], which is
//! more than half a step of integers of 49 bits and more. Nothing of it depends on the ring: no wider
//! scale helps.

use super::circuit::Circuit;
use super::machine::{Machine, execute};
use super::numbers::elements;
use super::placement::{Domain, Placement};
use super::reach::{Reach, largest};
use crate::error::Result;
use ciphervec_he::ckks::{
    LookupTable, Polynomial, Ring, Sign, deviations, transform_rounding,
};

/// What a double is rounded by at most, relative to it.
const HALF_A_BIT: f64 = f64::EPSILON / 2.0;
/// How often the scale of a product is rounded: when it is made, rescaled, and brought to another's.
const OF_A_SCALE: f64 = 3.0;
/// How often a number is rounded between a caller and a transform: divided by a unit, by a scale, and
/// the same on the way back.
const OF_A_NUMBER: f64 = 4.0;

/// A bound on a register and its errors.
#[derive(Clone, Copy, Debug)]
struct Rounded {
    /// What slots hold at most; of polynomials the root of its mean square.
    size: f64,
    /// The standard deviation of what transforms have rounded, in any slot. Adds up by absolute
    /// values, as the same register may come in several ways.
    off: f64,
    /// How far scales that are not quite what they are said to be take numbers, relative to `size`.
    scaled: f64,
}

/// A machine on such bounds.
struct Rounding {
    /// What one transform rounds, of the root mean square of slots.
    transform: f64,
    /// Whether registers are polynomials throughout, whose slots nobody reads one by one: a mean over
    /// them is what counts.
    polynomials: bool,
}

impl Circuit {
    /// How far the rounding of doubles may take the numbers of each output off, but for a chance of
    /// `2^-failure`, if nothing else did.
    ///
    /// # Errors
    /// As [`Circuit::check`].
    pub fn rounding(&self, failure: u8) -> Result<Vec<f64>> {
        self.check()?;
        let polynomials = self.in_polynomials();
        // Coefficients go through slots: two transforms for one.
        let times = if polynomials { core::f64::consts::SQRT_2 } else { 1.0 };
        let machine = Rounding { transform: times * transform_rounding(self.slots), polynomials };
        let mut registers = Vec::new();
        for input in &self.inputs {
            for view in &input.views {
                let size = if polynomials {
                    let largest = view.reading.magnitude(&input.numbers) / view.unit;
                    let count = view.reading.length(elements(&input.shape).unwrap_or(0));
                    let filled = filled(&view.placement, count, view.registers, self.slots);
                    // The values of Σ a_k (X^k + X^-k) have a mean square of 2 Σ a_k².
                    largest * (2.0 * filled as f64).sqrt()
                } else {
                    input.magnitude(view)
                };
                let one = Rounded { size, off: machine.transform * size, scaled: 0.0 };
                registers.extend((0..view.registers).map(|_| one));
            }
        }
        let arrived = execute(self, &machine, registers, |_, _| Ok(()))?;
        let numbers = self.outputs.iter().filter_map(|output| elements(&output.shape));
        let numbers = numbers.fold(0u64, u64::saturating_add).max(1) as f64;
        let bits = f64::from(failure) + numbers.log2();
        let tail = deviations(bits, 0.0, Ring::ConjugateInvariant, 1.0);
        let mut rest = arrived.iter();
        let outputs = self.outputs.iter().map(|output| {
            let unit = output.unit * output.placement.error(self.slots);
            let each = rest.by_ref().take(output.registers.len()).map(|one| {
                let decoded = machine.transform * one.size;
                let largest =
                    if polynomials { output.numbers.magnitude() } else { one.size * output.unit };
                let relative = one.scaled + OF_A_NUMBER * HALF_A_BIT;
                tail * unit * (one.off * one.off + decoded * decoded).sqrt() + relative * largest
            });
            each.fold(0.0, f64::max)
        });
        Ok(outputs.collect())
    }

    /// Whether all arrays stand in coefficients, and all steps do with public numbers.
    fn in_polynomials(&self) -> bool {
        let inputs = self.inputs.iter().flat_map(|input| &input.views).map(|view| &view.placement);
        let placements = inputs.chain(self.outputs.iter().map(|output| &output.placement));
        placements.map(|one| one.domain).all(|domain| domain == Domain::Coefficients)
            && !self.steps.iter().any(|step| step.switches())
    }
}

/// How many places of the fullest register hold something.
fn filled(placement: &Placement, elements: u64, registers: u32, slots: usize) -> usize {
    let places = Placement { domain: Domain::Slots, blocks: placement.blocks.clone() };
    let ones = vec![1.0; elements as usize];
    let registers = places.scatter(&ones, registers as usize, slots);
    let filled = |register: &Vec<f64>| register.iter().filter(|&&place| place != 0.0).count();
    registers.iter().map(filled).max().unwrap_or(0)
}

fn root_mean_square(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

impl Rounding {
    fn sum(a: &Rounded, b: &Rounded) -> Rounded {
        let (size, off) = (a.size + b.size, a.off + b.off);
        Rounded { size, off, scaled: a.scaled.max(b.scaled) }
    }

    fn times(a: &Rounded, factor: f64) -> Rounded {
        Rounded { size: a.size * factor, off: a.off * factor, ..*a }
    }

    fn product(a: &Rounded, b: &Rounded) -> Rounded {
        Rounded {
            size: a.size * b.size,
            off: a.off * b.size + a.size * b.off,
            scaled: a.scaled + b.scaled + OF_A_SCALE * HALF_A_BIT,
        }
    }

    /// Of what stands in for numbers, and is off by far more.
    fn anew(size: f64) -> Rounded {
        Rounded { size, off: 0.0, scaled: 0.0 }
    }
}

impl Machine for Rounding {
    type Register = Rounded;

    fn add(&self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        Ok(Self::sum(a, b))
    }

    fn subtract(&self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        Ok(Self::sum(a, b))
    }

    fn negate(&self, a: &Rounded) -> Result<Rounded> {
        Ok(*a)
    }

    fn add_number(&self, a: &Rounded, number: f64) -> Result<Rounded> {
        Ok(Rounded { size: a.size + number.abs(), ..*a })
    }

    fn multiply_number(&self, a: &Rounded, number: f64) -> Result<Rounded> {
        Ok(Self::product(a, &Self::anew(number.abs())))
    }

    fn multiply_integer(&self, a: &Rounded, factor: i64) -> Result<Rounded> {
        Ok(Self::times(a, factor.unsigned_abs() as f64))
    }

    fn add_vector(&self, a: &Rounded, values: &[f64]) -> Result<Rounded> {
        let mean = root_mean_square(values);
        let size = if self.polynomials { mean } else { largest(values) };
        Ok(Self::sum(a, &Rounded { size, off: self.transform * mean, scaled: 0.0 }))
    }

    fn multiply_vector(&self, a: &Rounded, values: &[f64]) -> Result<Rounded> {
        let off = self.transform * root_mean_square(values);
        Ok(Self::product(a, &Rounded { size: largest(values), off, scaled: 0.0 }))
    }

    fn multiply(&self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        Ok(Self::product(a, b))
    }

    fn square(&self, a: &Rounded) -> Result<Rounded> {
        Ok(Self::product(a, a))
    }

    fn rotate(&self, a: &Rounded, steps: &[i64]) -> Result<Vec<Rounded>> {
        Ok(vec![*a; steps.len()])
    }

    fn polynomial(&self, a: &Rounded, polynomial: &Polynomial) -> Result<Rounded> {
        Ok(Self::anew(Reach.polynomial(&a.size, polynomial)?))
    }

    fn sign(&self, _: &Rounded, sign: &Sign) -> Result<Rounded> {
        Ok(Self::anew(1.0 + sign.error()))
    }

    fn sign_stage(&self, _: &Rounded, sign: &Sign, _: usize) -> Result<Rounded> {
        Ok(Self::anew(1.0 + sign.error()))
    }

    fn refresh(&self, a: &Rounded) -> Result<Rounded> {
        Ok(Self::anew(a.size))
    }

    fn look_up(&self, _: &Rounded, tables: &[&LookupTable]) -> Result<Vec<Rounded>> {
        Ok(tables.iter().map(|table| Self::anew(table.largest())).collect())
    }

    fn bound(&self, a: Rounded, bound: f64) -> Result<Rounded> {
        Ok(Rounded { size: a.size.min(bound), ..a })
    }

    fn settle(&self, _: &Rounded) -> Result<Option<Rounded>> {
        Ok(None)
    }

    fn finish(&self, a: &Rounded) -> Result<Rounded> {
        Ok(*a)
    }
}
