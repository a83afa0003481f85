//! How far the rounding of doubles, in encoding and decoding, may take an answer's numbers off. The key holder runs it, on
//! public numbers only.
//!
//! A transform rounds each slot by about half a bit of the root mean square of all, times the root of
//! its passes: more than half a step of integers of 48 bits and more. Nothing of it depends on the
//! ring, so that no wider scale helps.

use super::arrays::{Input, View};
use super::circuit::Circuit;
use super::machine::{Machine, execute};
use super::numbers::elements;
use super::placement::{Domain, Placement};
use super::reach::Reach;
use crate::error::Result;
use ciphervec_he::ckks::{LookupTable, Polynomial, Ring, Sign, deviations};

/// What a double is rounded by at most, relative to it.
const HALF_A_BIT: f64 = f64::EPSILON / 2.0;
/// What each pass of a transform rounds, in half bits of numbers that are spread around 0 by 1, and of
/// the 1 that all are off 0: standard deviations over slots, and for powers of two of them.
const OF_A_SPREAD: f64 = 0.75;
const OF_A_MEAN: f64 = 0.35;
/// How often the scale of a product is rounded: when it is made, rescaled, and brought to another's.
const OF_A_SCALE: f64 = 3.0;
/// How often a number is rounded between a caller and a transform: divided by a unit, by a scale, and
/// the same on the way back.
const OF_A_NUMBER: f64 = 4.0;

/// Bounds on a register and its errors.
#[derive(Clone, Copy, Debug)]
struct Rounded {
    /// What slots hold; of polynomials the root of its mean square, either sign.
    low: f64,
    high: f64,
    /// The standard deviation of what transforms have rounded, in any slot. Adds up by absolute
    /// values, as the same register may come in several ways.
    off: f64,
    /// How far scales that are not quite what they are said to be take numbers, relative to them.
    scaled: f64,
}

/// A machine on such bounds.
struct Rounding {
    /// What a transform rounds of numbers spread by 1.
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
        let times: f64 = if polynomials { 2.0 } else { 1.0 };
        let passes = times * f64::from(self.slots.max(2).ilog2());
        let machine = Rounding { transform: HALF_A_BIT * passes.sqrt(), polynomials };
        let mut registers = Vec::new();
        for input in &self.inputs {
            for view in &input.views {
                let one = machine.encoded(input, view, self.slots);
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
                let decoded = machine.rounds(one.low, one.high);
                let largest = match polynomials {
                    true => output.numbers.magnitude(),
                    false => one.size() * output.unit,
                };
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

impl Rounded {
    /// Of what stands in for numbers, and is off by far more, and of what no transform has rounded.
    fn within(low: f64, high: f64) -> Self {
        Rounded { low, high, off: 0.0, scaled: 0.0 }
    }

    fn size(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    fn sum(&self, other: &Rounded) -> Self {
        Rounded {
            low: self.low + other.low,
            high: self.high + other.high,
            off: self.off + other.off,
            scaled: self.scaled.max(other.scaled),
        }
    }

    fn negative(&self) -> Self {
        Rounded { low: -self.high, high: -self.low, ..*self }
    }

    fn times(&self, factor: f64) -> Self {
        let ends = [self.low * factor, self.high * factor];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        Rounded { low, high, off: self.off * factor.abs(), ..*self }
    }

    fn product(&self, other: &Rounded) -> Self {
        let [one, two] = [self.times(other.low), self.times(other.high)];
        Rounded {
            low: one.low.min(two.low),
            high: one.high.max(two.high),
            off: self.off * other.size() + self.size() * other.off,
            scaled: self.scaled + other.scaled + OF_A_SCALE * HALF_A_BIT,
        }
    }
}

impl Rounding {
    /// What a transform rounds of numbers between two.
    fn rounds(&self, low: f64, high: f64) -> f64 {
        let (spread, mean) = (0.5 * (high - low), 0.5 * (high + low).abs());
        let [spread, mean] = [OF_A_SPREAD * spread, OF_A_MEAN * mean];
        self.transform * (spread * spread + mean * mean).sqrt()
    }

    /// An input as a client encodes it.
    fn encoded(&self, input: &Input, view: &View, slots: usize) -> Rounded {
        let (low, high) = if self.polynomials {
            let largest = view.reading.magnitude(&input.numbers) / view.unit;
            let count = view.reading.length(elements(&input.shape).unwrap_or(0));
            let filled = filled(&view.placement, count, view.registers, slots);
            // The values of Σ a_k (X^k + X^-k) have a mean square of 2 Σ a_k².
            let mean = largest * (2.0 * filled as f64).sqrt();
            (-mean, mean)
        } else {
            // Where nothing stands there is a 0.
            let most = input.magnitude(view);
            let low = if input.numbers.low < 0.0 { -most } else { 0.0 };
            (low, if input.numbers.high > 0.0 { most } else { 0.0 })
        };
        Rounded { off: self.rounds(low, high), ..Rounded::within(low, high) }
    }

    /// A constant as a server encodes it, and what is made of its slots where polynomials are
    /// multiplied.
    fn constant(&self, values: &[f64]) -> Rounded {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = root_mean_square(values);
        let off = match self.polynomials {
            true => self.rounds(-mean, mean),
            false => self.rounds(least.min(0.0), most.max(0.0)),
        };
        Rounded { off, ..Rounded::within(least, most) }
    }
}

impl Machine for Rounding {
    type Register = Rounded;

    fn add(&self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        Ok(a.sum(b))
    }

    fn subtract(&self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        Ok(a.sum(&b.negative()))
    }

    fn negate(&self, a: &Rounded) -> Result<Rounded> {
        Ok(a.negative())
    }

    fn add_number(&self, a: &Rounded, number: f64) -> Result<Rounded> {
        Ok(a.sum(&Rounded::within(number, number)))
    }

    fn multiply_number(&self, a: &Rounded, number: f64) -> Result<Rounded> {
        Ok(a.product(&Rounded::within(number, number)))
    }

    fn multiply_integer(&self, a: &Rounded, factor: i64) -> Result<Rounded> {
        Ok(a.times(factor as f64))
    }

    fn add_vector(&self, a: &Rounded, values: &[f64]) -> Result<Rounded> {
        let constant = self.constant(values);
        if self.polynomials {
            let mean = root_mean_square(values);
            return Ok(a.sum(&Rounded { low: -mean, high: mean, ..constant }));
        }
        Ok(a.sum(&constant))
    }

    fn multiply_vector(&self, a: &Rounded, values: &[f64]) -> Result<Rounded> {
        Ok(a.product(&self.constant(values)))
    }

    fn multiply(&self, a: &Rounded, b: &Rounded) -> Result<Rounded> {
        Ok(a.product(b))
    }

    fn square(&self, a: &Rounded) -> Result<Rounded> {
        let square = a.product(a);
        Ok(Rounded { low: square.low.max(0.0), ..square })
    }

    fn rotate(&self, a: &Rounded, steps: &[i64]) -> Result<Vec<Rounded>> {
        Ok(vec![*a; steps.len()])
    }

    fn polynomial(&self, a: &Rounded, polynomial: &Polynomial) -> Result<Rounded> {
        let most = Reach.polynomial(&a.size(), polynomial)?;
        Ok(Rounded::within(-most, most))
    }

    fn sign(&self, _: &Rounded, sign: &Sign) -> Result<Rounded> {
        let most = 1.0 + sign.error();
        Ok(Rounded::within(-most, most))
    }

    fn sign_stage(&self, a: &Rounded, sign: &Sign, _: usize) -> Result<Rounded> {
        self.sign(a, sign)
    }

    fn refresh(&self, a: &Rounded) -> Result<Rounded> {
        Ok(Rounded::within(a.low, a.high))
    }

    fn look_up(&self, _: &Rounded, tables: &[&LookupTable]) -> Result<Vec<Rounded>> {
        let within = |table: &&LookupTable| Rounded::within(-table.largest(), table.largest());
        Ok(tables.iter().map(within).collect())
    }

    fn bound(&self, a: Rounded, bound: f64) -> Result<Rounded> {
        Ok(Rounded { low: a.low.max(-bound), high: a.high.min(bound), ..a })
    }

    fn settle(&self, _: &Rounded) -> Result<Option<Rounded>> {
        Ok(None)
    }

    fn finish(&self, a: &Rounded) -> Result<Rounded> {
        Ok(*a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphervec_he::ckks::RealEmbedding;
    use ciphervec_he_secret::gaussian;

    /// Of slots as integers stand in them, alike or not, of few, and of polynomials of few coefficients:
    /// there and back, which two transforms round.
    #[test]
    fn no_transform_rounds_by_more() {
        for log in [2, 5, 9, 12] {
            let slots = 1usize << log;
            let embedding = RealEmbedding::new(log);
            let transform = HALF_A_BIT * f64::from(log).sqrt();
            let machine = Rounding { transform, polynomials: false };
            let (mut worst, mut deviation) = (0.0f64, 0.0f64);
            for draw in 0..1u64 << (13 - log) {
                let drawn = gaussian::pairs(&[3; 32], draw, slots / 2);
                let random: Vec<f64> = drawn.iter().flatten().map(|x| x.clamp(-1.0, 1.0)).collect();
                let each = |f: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
                    random.iter().enumerate().map(|(place, &x)| f(place, x)).collect()
                };
                let few = each(&|place, x| if place < 3 { x } else { 0.0 });
                let mut cosines = vec![0.0; slots];
                embedding.to_slots(&few, &mut cosines);
                let patterns = [
                    few,
                    cosines,
                    random.clone(),
                    each(&|_, x| 0.5 + 0.5 * x),
                    each(&|_, x| 0.99 + 0.01 * x),
                    each(&|_, x| x.signum()),
                    each(&|_, x| f64::from(u8::from(x > 0.0))),
                    each(&|place, _| (place & 1) as f64),
                    vec![0.77; slots],
                ];
                for values in &patterns {
                    let (mut coefficients, mut back) = (vec![0.0; slots], vec![0.0; slots]);
                    embedding.to_coefficients(values, &mut coefficients);
                    embedding.to_slots(&coefficients, &mut back);
                    let low = values.iter().copied().fold(0.0, f64::min);
                    let high = values.iter().copied().fold(0.0, f64::max);
                    let said = core::f64::consts::SQRT_2 * machine.rounds(low, high);
                    let off = values.iter().zip(&back).map(|(a, b)| (a - b).abs() / said);
                    let squares: f64 = off.clone().map(|one| one * one).sum();
                    deviation = deviation.max((squares / slots as f64).sqrt());
                    worst = off.fold(worst, f64::max);
                }
            }
            // The chance of six deviations is one in 500 million; of few slots all may be off alike.
            assert!(worst < 6.0, "{slots} slots: {worst}");
            assert!(log < 9 || deviation < 1.1, "{slots} slots: {deviation}");
        }
    }
}
