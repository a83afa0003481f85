//! Modular reduction: 2π times how far x is from the nearest integer. Server only.
//!
//! sin 2πx vanishes at the integers and has slope 2π there. It is a Chebyshev series on [−K, K], or
//! the polynomial of half the length that is like it near the integers; or, with r double angles,
//! cos(2π(x − 1/4)/2^r) is a series of a lower degree, and r times 2c² − 1 follow. What the curvature
//! leaves, of order ε³, an inverse sine takes back: y (6 + y²) is six times arcsin y up to y⁵
//! (docs/ckks.md, section 10.4).
//!
//! # The polynomials
//!
//! A polynomial must be right within ε of the integers, and there only (so do Jutla & Manohar, IACR
//! ePrint 2020/1355, with other conditions). For K = 16 an odd one of degree 2m − 1 has:
//!
//! ||conditions at 0 … K|m, degree|what is left|
//! |---|---|---|---|
//! |*like a sine*: value 0, slope 2π, curvature 0|3K + 1 = 49|64, 127|of order ε³, (2π)² ε³/6 as for the sine where coefficients are few|
//! |*straight*: third and fourth derivative 0 too|82|128, 255|2^−22 ε at ε = 2^−7|
//!
//! Of all solutions the one with the smallest sum of squares of Chebyshev coefficients is taken.
//! u = x/(K + 1/2), and |x| is at most (h + 1)/2 = 16.5: nothing leaves the interval.
//!
//! *r > 0 double angles:* cos(2π(x − 1/4)/2^r) on \[−K, K] as an even Chebyshev series up to
//! coefficients of 2^−42, then r times c ↦ 2c² − 1. An inverse sine may follow, y ↦ y (6 + y²),
//! which is 6 arcsin y up to 9 y⁵/20: g = 12π instead of 2π, and 3 (2πε)⁵/(40 · 2π) is left. For
//! K = 16:
//!
//! ||degree|levels|relinearisations|effect of a rescale's error, mean, at one scale|
//! |---|---|---|---|---|
//! |like a sine|127|7|19|300|
//! |straight|255|8|25|300|
//! |r = 2|54|8|11|910|
//! |r = 2, inverse sine|54|10|13|910|
//!
//! The set at 2^16 takes the last row (docs/decisions/0029). A
//! rescale's error has 104 (u), 290, 75, 21, 10, 5, 2 times its size in the result, by depth. So
//! scales fall by a bit a level, from 2^49 or 2^44 to S.

use super::super::operations::Operations;
use super::super::polynomial::{Polynomial, depth_of};
use super::super::polynomial_evaluation::evaluate;
use super::interpolation::{Contact, odd_polynomial};
use super::trace::{Trace, Traced};
use crate::error::Result;
use core::f64::consts::TAU;

/// The largest error of the series.
const TOLERANCE: f64 = 1.0 / (1u64 << 42) as f64;
/// Points that a series is interpolated at: well beyond any degree that comes out.
const NODES: usize = 1024;
/// Coefficients for each condition that they are to meet: with as many as there are conditions they
/// would be large.
const SPARE: f64 = 1.25;
/// What an angle is short of a cosine's before it is doubled, in turns.
const QUARTER: f64 = 0.25;

/// How x is brought back to how far it is from the next integer.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    /// K: the largest integer that is taken away.
    range: f64,
    divisor: f64,
    doublings: u32,
    /// Of u in [−1, 1].
    series: Polynomial,
    inverse_sine: bool,
}

impl Reduction {
    /// The reduction on [−`range`, `range`]; without double angles `straight` if asked for, so that
    /// no curvature is left to take back.
    pub fn new(range: f64, doublings: u32, straight: bool, inverse_sine: bool) -> Result<Self> {
        let last = range.floor() as usize;
        let room = |contact: Contact| {
            ((SPARE * contact.conditions(last) as f64).ceil() as usize).next_power_of_two()
        };
        let interpolated = |contact| {
            // Room for what lies beyond the last integer.
            let divisor = range + 0.5;
            let coefficients = odd_polynomial(contact, last, divisor, TAU, room(contact));
            let series = Polynomial::chebyshev(-1.0, 1.0, &coefficients)?;
            Ok(Reduction { range, divisor, doublings, series, inverse_sine })
        };
        if doublings == 0 && straight {
            return interpolated(Contact::Straight);
        }
        let divisor = if doublings == 0 { range } else { range + QUARTER };
        let series = series(divisor, doublings)?;
        if doublings == 0 && depth_of(2 * room(Contact::Sine)) < depth_of(series.degree() + 1) {
            return interpolated(Contact::Sine);
        }
        Ok(Reduction { range, divisor, doublings, series, inverse_sine })
    }

    /// What u is x divided by: with double angles a quarter is taken off x first.
    pub fn divisor(&self) -> f64 {
        self.divisor
    }

    /// The levels that it spends.
    pub fn levels(&self) -> usize {
        let inverse = if self.inverse_sine { 2 } else { 0 };
        depth_of(self.series.degree() + 1) + self.doublings as usize + inverse
    }

    /// How often it switches keys.
    pub fn relinearisations(&self) -> usize {
        let inverse = if self.inverse_sine { 2 } else { 0 };
        self.series.relinearisations() + self.doublings as usize + inverse
    }

    /// The slope at the integers: what the result is, divided by how far x is from one.
    pub fn slope(&self) -> f64 {
        if self.inverse_sine { 6.0 * TAU } else { TAU }
    }

    /// How far the result, divided by the slope, is from ε at most for ε = ±`largest` from `integer`.
    pub fn curvature(&self, integer: f64, largest: f64) -> f64 {
        let quarter = if self.doublings == 0 { 0.0 } else { QUARTER };
        let off = |distance: f64| {
            let u = (integer + distance - quarter) / self.divisor;
            let doubled = |c: f64, _| 2.0 * c * c - 1.0;
            let y = (0..self.doublings).fold(self.series.evaluate(u), doubled);
            let value = if self.inverse_sine { y * (6.0 + y * y) } else { y };
            (value / self.slope() - distance).abs()
        };
        off(largest).max(off(-largest))
    }

    /// The integers in the range, what errors do to the result at each, and the levels of the errors.
    pub fn at_integers(&self, level: usize) -> Result<(Vec<f64>, Traced, Vec<usize>)> {
        let last = self.range.floor() as i32;
        let points: Vec<f64> = (-last..=last).map(f64::from).collect();
        let values = points.iter().map(|x| (x / self.divisor()).into()).collect();
        let trace = Trace::default();
        let traced = self.apply(&trace, &trace.input(level, values))?;
        Ok((points, traced, trace.levels()))
    }

    /// From x divided by the divisor to the result; of degree 1 and rescaled.
    pub fn apply<O: Operations>(&self, operations: &O, x: &O::Value) -> Result<O::Value> {
        let mut value = if self.doublings == 0 {
            evaluate(operations, x, &self.series)?
        } else {
            let u = operations.add_scalar(x, -QUARTER / self.divisor())?;
            evaluate(operations, &operations.with_magnitude(u, 1.0)?, &self.series)?
        };
        value = operations.with_magnitude(value, 1.0)?;
        for _ in 0..self.doublings {
            value = operations.normalise(&operations.double_product(&value, &value, None)?)?;
            value = operations.with_magnitude(value, 1.0)?;
        }
        if !self.inverse_sine {
            return Ok(value);
        }
        let square = operations.normalise(&operations.square(&value)?)?;
        let factor = operations.add_scalar(&square, 6.0)?;
        let lower = operations.match_level(&value, operations.level(&square))?;
        operations.normalise(&operations.multiply(&lower, &factor)?)
    }
}

/// The shortest series within the tolerance: an odd one of the sine, an even one of a cosine.
fn series(divisor: f64, doublings: u32) -> Result<Polynomial> {
    let turns = divisor / f64::exp2(f64::from(doublings));
    let odd = doublings == 0;
    let function = |u: f64| {
        let angle = TAU * turns * u;
        if odd { angle.sin() } else { angle.cos() }
    };
    let angle = |j: usize| (j as f64 + 0.5) * core::f64::consts::PI / NODES as f64;
    let values: Vec<f64> = (0..NODES).map(|j| function(angle(j).cos())).collect();
    let coefficient = |k: usize| {
        if (k % 2 == 1) != odd {
            return 0.0;
        }
        let terms = values.iter().enumerate().map(|(j, value)| value * (k as f64 * angle(j)).cos());
        terms.sum::<f64>() * if k == 0 { 1.0 } else { 2.0 } / NODES as f64
    };
    let mut coefficients: Vec<f64> = (0..NODES / 2).map(coefficient).collect();
    let mut left = 0.0;
    while let Some(last) = coefficients.last() {
        left += last.abs();
        if left > TOLERANCE {
            break;
        }
        coefficients.pop();
    }
    Polynomial::chebyshev(-1.0, 1.0, &coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is like a sine near integers takes a level less than two double angles and is more
    /// precise, but takes more products.
    #[test]
    fn double_angles_save_products_and_cost_precision() {
        let figures = |doublings| {
            let reduction = Reduction::new(16.0, doublings, false, false).unwrap();
            let (points, traced, _) = reduction.at_integers(20).unwrap();
            let largest = traced.values.iter().fold(0.0f64, |most, y| most.max(y.norm()));
            assert!(largest < f64::exp2(-38.0), "{doublings}: {largest:e}");
            let worst = (0..points.len()).map(|point| {
                // Slope 2π in x, so 2πK in u.
                let slope = traced.by_input(point).re / (TAU * reduction.divisor());
                assert!((slope - 1.0).abs() < 1e-9, "{doublings}: slope {slope}");
                traced.by_rescales(point)
            });
            (reduction.levels(), reduction.relinearisations(), worst.fold(0.0, f64::max))
        };
        let [sine, doubled] = [0, 2].map(figures);
        assert_eq!((sine.0, doubled.0), (7, 8));
        assert!(doubled.1 + 5 <= sine.1, "{} and {}", doubled.1, sine.1);
        assert!(sine.2 * 2.0 < doubled.2, "{} and {}", sine.2, doubled.2);
        assert_eq!(Reduction::new(16.0, 0, false, true).unwrap().levels(), 9);
        assert_eq!(Reduction::new(16.0, 0, true, false).unwrap().levels(), 8);
    }
}
