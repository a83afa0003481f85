//! Forecast of looking up: errors of a table's values, and the work that they take, from what is
//! known of integers over p.

use super::super::super::expected::Expected;
use super::super::super::forecast::Forecast;
use super::super::super::noise::Noise;
use super::super::super::work::Work;
use super::super::forecast::linear_work;
use super::look_up::Over;
use super::table::{LookupTable, clean, interpolate};
use super::{Exponential, MAGNITUDE};
use crate::error::{Error, Result};
use core::f64::consts::TAU;

impl Exponential {
    /// What is known of the values of [`Self::look_up_all`] at the roots of real parts, from what
    /// is known of the numbers: for each table of the integer that its error is largest at, where a
    /// ciphertext's own estimate is an average.
    ///
    /// # Errors
    /// [`Error::Level`] below the levels of slots-to-coefficients and for tables that take more than
    /// there are; [`Error::Range`] for a declared magnitude over 256, degree 2, or numbers so far off
    /// that integers are not told apart.
    pub fn looked_up(&self, a: &Expected, tables: &[&LookupTable]) -> Result<Vec<Expected>> {
        let brought = self.turned_by(a)?;
        let root = self.root(a, brought, &self.precision[0]);
        let level = self.check_levels(root.level, tables)?;
        tables.iter().map(|table| self.value(&root, table, level, Over::Worst)).collect()
    }

    /// What looking up in tables of one p takes, of real parts: one exponential, the powers of its
    /// roots once, and each of the tables.
    ///
    /// # Errors
    /// [`Error::Level`] for tables that need more levels than there are.
    pub fn work(&self, tables: &[&LookupTable]) -> Result<Work> {
        let forecast = Forecast::new(&self.params);
        let end = self.linear.end();
        let number = Expected {
            level: end,
            degree: 1,
            scale: self.params.scale(end),
            slots: self.params.max_slots(),
            noise: Noise::rounding(self.params.expansion(), 1),
            magnitude: 1.0,
        };
        let root = self.series.apply(&forecast, &number)?;
        let mut root = Expected { scale: self.params.scale(root.level), magnitude: 1.0, ..root };
        if let Some(first) = tables.first() {
            self.check_levels(root.level, tables)?;
            for _ in 0..first.cleanings() {
                root = clean(&forecast, &root, first.modulus())?;
            }
            let coefficients: Vec<&[_]> = tables.iter().map(|table| table.coefficients()).collect();
            for half in interpolate(&forecast, &root, &coefficients)? {
                forecast.add(&half, &forecast.conjugate(&half)?)?;
            }
        }
        let mut work = forecast.take_work();
        let diagonals = self.plan()?.diagonal_bytes;
        linear_work(&self.params, &self.key_plans, &self.linear, diagonals, &mut work);
        Ok(work)
    }

    /// What the error of numbers in slots leaves in roots; or why there are none of them.
    pub(super) fn turned_by(&self, a: &Expected) -> Result<Noise> {
        a.linear("numbers to make roots of")?;
        let needed = self.linear.lowest();
        if needed == 0 || a.level < needed {
            return Err(Error::Level {
                operation: "an exponential of slots",
                needed: match needed {
                    0 => "a set with slots-to-coefficients".into(),
                    _ => format!("{needed} levels, for slots-to-coefficients,"),
                },
                left: format!("{} are", a.level),
            });
        }
        if a.magnitude > MAGNITUDE {
            return Err(Error::Range {
                what: "the magnitude of numbers to take modulo 1",
                expected: format!("at most {MAGNITUDE} (declare what they are known to be)"),
                actual: a.magnitude.to_string(),
            });
        }
        let noise = a.noise.times(TAU * self.params.scale(self.level()) / a.scale);
        // What rounded diagonals take from numbers grows with them.
        Ok(noise.plus(self.turned((a.magnitude - 1.0).max(0.0) * self.below.sqrt())))
    }
}
