//! Looks encrypted integers, or their roots of unity, up in tables. Server only.

use super::super::super::ciphertext::Ciphertext;
use super::super::super::evaluate::Evaluator;
use super::super::super::expected::Expected;
use super::super::super::noise::Noise;
use super::super::keys::BootstrappingKeys;
use super::table::{LookupTable, clean, cleaning_levels, interpolate};
use super::{Components, Exponential};
use crate::error::{Error, Result};
use crate::params::TAIL_DEVIATIONS;
use core::f64::consts::SQRT_2;
use std::sync::Arc;

/// What looking up in a table gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TablePlan {
    /// The level of the values.
    pub level: usize,
    /// −log2 of the standard deviation of the error of a value, of integers that were exact.
    pub precision_bits: f64,
    /// −log2 of a bound on the absolute value of that error in every slot.
    pub bound_bits: f64,
    /// Key switches after the exponential.
    pub relinearisations: usize,
}

/// What the square of a root's error reaches, with the chances that others are counted with, over
/// what a Gaussian error of the same deviation does: 2^-55, for 2^15 numbers off with 2^-40, are 38
/// of its means, and 8.7 deviations of a Gaussian one.
const SQUARE: f64 = 4.5;

/// Which of a table's integers errors are told of.
#[derive(Clone, Copy)]
pub(super) enum Over {
    /// All of them, each as often.
    Average,
    /// The one that errors are largest at.
    Worst,
}

impl Over {
    fn of(self, [mean, most]: [f64; 2]) -> f64 {
        match self {
            Over::Average => mean,
            Over::Worst => most,
        }
    }
}

/// How far a number in a slot is off: the standard deviation of a part, and a bound.
#[derive(Clone, Copy)]
struct Off {
    std: f64,
    bound: f64,
}

impl Exponential {
    /// The numbers x in the slots, integers j over p up to small errors, as `table` has them: T(j),
    /// at the level that [`Self::table_plan`] says. With [`Components::Real`] of the real parts,
    /// otherwise T of the real part + i T of the imaginary one. Only x modulo 1 counts.
    ///
    /// What lies between two integers gets what [`LookupTable::evaluate`] says, and nobody but the
    /// owner can see it: a value between those of its neighbours or beyond them.
    ///
    /// # Errors
    /// As [`Self::from_slots`] and [`Self::look_up`].
    pub fn table(
        &self,
        a: &Ciphertext,
        table: &LookupTable,
        components: Components,
        keys: &BootstrappingKeys,
    ) -> Result<Ciphertext> {
        self.check_levels(self.level(), &[table])?;
        let roots = self.from_slots(a, components, keys)?;
        let values = roots.iter().map(|root| self.look_up(root, table, keys));
        let evaluator = Evaluator::without_keys(self.params.clone());
        match &values.collect::<Result<Vec<_>>>()?[..] {
            [real, imaginary] => evaluator.add(real, &evaluator.multiply_by_i(imaginary)?),
            [real, ..] => Ok(real.clone()),
            [] => Err(no_table()),
        }
    }

    /// T(j) of roots exp(2πi j/p), which lie near the level that roots come at.
    ///
    /// # Errors
    /// [`Error::Level`] if fewer levels than those of the table are left above those of
    /// slots-to-coefficients; [`Error::Range`] if 9.5 standard deviations of the root's error are over
    /// 1/p, where integers are no longer told apart, or for degree 2; [`Error::MissingKey`],
    /// [`Error::WrongKey`], [`Error::Parameters`].
    pub fn look_up(
        &self,
        root: &Ciphertext,
        table: &LookupTable,
        keys: &BootstrappingKeys,
    ) -> Result<Ciphertext> {
        self.look_up_all(root, &[table], keys)?.pop().ok_or_else(no_table)
    }

    /// [`Self::look_up`] in several tables of one p, cleaned equally often, at one level: powers of
    /// the root are made once for all.
    ///
    /// # Errors
    /// As [`Self::look_up`]; [`Error::Range`] for tables that differ in that, or none.
    pub fn look_up_all(
        &self,
        root: &Ciphertext,
        tables: &[&LookupTable],
        keys: &BootstrappingKeys,
    ) -> Result<Vec<Ciphertext>> {
        keys.check(&self.params, &self.key_plans, root)?;
        let first = *tables.first().ok_or_else(no_table)?;
        let like = |table: &&LookupTable| (table.modulus(), table.cleanings());
        if let Some(other) = tables.iter().find(|table| like(table) != like(&first)) {
            let say = |(p, cleanings)| format!("modulo {p}, cleaned {cleanings} times");
            return Err(Error::Range {
                what: "a table beside others",
                expected: say(like(&first)),
                actual: say(like(other)),
            });
        }
        let level = self.check_levels(root.level(), tables)?;
        let known = root.expected();
        let expected = tables.iter().map(|table| self.value(&known, table, level, Over::Average));
        let expected: Vec<Expected> = expected.collect::<Result<_>>()?;
        let [_, middle, high] = keys.sets().each_ref().map(|set| Evaluator::new(Arc::clone(set)));
        let mut clear = root.clone();
        for _ in 0..first.cleanings() {
            clear = clean(&middle, &clear, first.modulus())?;
        }
        let coefficients: Vec<&[_]> = tables.iter().map(|table| table.coefficients()).collect();
        let halves = interpolate(&middle, &clear, &coefficients)?;
        let value = |(half, expected): (&Ciphertext, &Expected)| {
            let sum = high.add(half, &high.conjugate(half)?)?;
            let expected = Expected { scale: sum.scale(), ..*expected };
            Ok(sum.estimated(&expected))
        };
        halves.iter().zip(&expected).map(value).collect()
    }

    /// What is known of a value of `table` at a root, at this level.
    pub(super) fn value(
        &self,
        root: &Expected,
        table: &LookupTable,
        level: usize,
        over: Over,
    ) -> Result<Expected> {
        let (noise, p) = (root.noise, table.modulus());
        let spread = (self.params.expansion() / 2.0).sqrt();
        let mut off = Off { std: noise.std * spread / root.scale, bound: noise.bound / root.scale };
        if SQRT_2 * TAIL_DEVIATIONS * off.std > 1.0 / p as f64 {
            return Err(Error::Range {
                what: "the error of roots to look up",
                expected: format!("at most 1/{p} with 9.5 standard deviations"),
                actual: format!("2^{:.1}", (SQRT_2 * TAIL_DEVIATIONS * off.std).log2()),
            });
        }
        for _ in 0..table.cleanings() {
            off = self.cleaned(table, off, over);
        }
        let off = self.off_by(table, off, level, over);
        let scale = self.params.scale(level);
        let noise = Noise { std: off.std * scale / spread, bound: off.bound * scale };
        let magnitude = table.largest().max(f64::MIN_POSITIVE);
        Ok(Expected { level, scale, noise, magnitude, ..*root })
    }

    /// Where a table's values lie and how precise they are.
    ///
    /// # Errors
    /// [`Error::Level`] for a table that needs more levels than there are.
    pub fn table_plan(&self, table: &LookupTable) -> Result<TablePlan> {
        let level = self.check_levels(self.level(), &[table])?;
        let [precision, _] = self.precision;
        let root = Off { std: precision.deviation(), bound: precision.bound() };
        let over = Over::Average;
        let off = (0..table.cleanings()).fold(root, |off, _| self.cleaned(table, off, over));
        let off = self.off_by(table, off, level, over);
        Ok(TablePlan {
            level,
            precision_bits: -off.std.log2(),
            bound_bits: -off.bound.log2(),
            relinearisations: table.relinearisations(),
        })
    }

    /// What a cleaning leaves of an error.
    fn cleaned(&self, table: &LookupTable, root: Off, over: Over) -> Off {
        let (order, rescale) = (table.modulus() as f64 + 1.0, self.rescale());
        let squared = order * root.std.powi(2) * over.of([1.0, SQUARE]);
        let [mean, most] = table.cleaning_gains().rescales.map(|gain| gain * rescale);
        Off {
            std: over.of([mean, most]).hypot(squared),
            // Higher powers add less than half of the square again, for errors below 1/p.
            bound: SQRT_2 * TAIL_DEVIATIONS * most + 0.75 * order * root.bound.powi(2),
        }
    }

    /// What interpolation makes of an error. The sum with the conjugate is twice the real part, and
    /// has the error of one more key switch.
    fn off_by(&self, table: &LookupTable, root: Off, level: usize, over: Over) -> Off {
        let (gains, rescale) = (table.gains(), self.rescale());
        let chain = self.params.chain();
        let spread = (self.params.expansion() / 2.0).sqrt();
        let switched = chain.switch_noise(level).std * spread / self.params.scale(level);
        let std = |input: f64, rescales: f64| {
            let square = (input * root.std).powi(2) + (rescales * rescale).powi(2);
            (4.0 * square + switched.powi(2)).sqrt()
        };
        let curved = 4.0 * table.curvature() * root.bound.powi(2);
        let own = TAIL_DEVIATIONS * SQRT_2 * std(0.0, gains.rescales[1]);
        Off {
            std: std(over.of(gains.input), over.of(gains.rescales)),
            bound: 2.0 * gains.input[1] * root.bound + own + curved,
        }
    }

    /// The standard deviation of a part of what a rescale adds to a number, at the levels of roots.
    fn rescale(&self) -> f64 {
        let delta = self.params.expansion();
        Noise::rounding(delta, 1).std * (delta / 2.0).sqrt() / self.params.scale(self.level())
    }

    /// The level that tables leave a root of `level` at.
    pub(super) fn check_levels(&self, level: usize, tables: &[&LookupTable]) -> Result<usize> {
        let needed = tables.iter().map(|table| table.levels()).max().unwrap_or(0);
        let left = level.saturating_sub(self.linear.lowest());
        if needed <= left {
            return Ok(level - needed);
        }
        let p = tables.first().map_or(0, |table| table.modulus());
        Err(Error::Level {
            operation: "looking up in a table",
            needed: format!(
                "{needed} levels above those of slots-to-coefficients, each cleaning taking {} of \
                 them,",
                cleaning_levels(p),
            ),
            left: format!("{left} are"),
        })
    }
}

fn no_table() -> Error {
    Error::Range { what: "the number of tables", expected: "at least 1".into(), actual: "0".into() }
}
