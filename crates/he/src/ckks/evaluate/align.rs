//! Alignment: two levels and scales enter, the steps that make them one leave. Server only.
//!
//! No step loses a level that the lower operand has not lost already (docs/ckks.md, section 3.2).

use super::super::ciphertext::Ciphertext;
use super::super::key_switch;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::plaintext::residue;
use super::Evaluator;
use crate::error::{Error, Result};
use std::borrow::Cow;

/// Scales that differ by less, relative to them, are one: the result is off by no more.
const SAME: f64 = 1.0 / (1u64 << 42) as f64;
/// How far a ratio of scales may be from an integer, relative to it, for that integer to stand for
/// it.
const NEARLY: f64 = 1.0 / (1u64 << 34) as f64;

/// One step that an operand is taken through.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    /// Divide by the last prime.
    Rescale,
    /// Leave out the limbs above a level.
    Drop(usize),
    /// Multiply by an integer, which makes the scale that.
    Multiply { factor: f64, scale: f64 },
}

impl core::fmt::Display for Step {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Step::Rescale => write!(f, "rescale"),
            Step::Drop(level) => write!(f, "drop to level {level}"),
            Step::Multiply { factor, scale } => {
                write!(f, "multiply by {factor:.0} to the scale 2^{:.3}", scale.log2())
            }
        }
    }
}

/// Level and scale of an operand on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Place {
    level: usize,
    scale: f64,
}

impl Place {
    fn of(ciphertext: &Ciphertext) -> Self {
        Place { level: ciphertext.level(), scale: ciphertext.scale() }
    }

    /// Whether a rescale is due: the scale is that of a product.
    fn pending(&self, params: &Params) -> bool {
        self.level > 0 && self.scale.log2() > 1.5 * params.scale(self.level).log2()
    }
}

/// The steps of one operand.
#[derive(Clone, PartialEq, Debug)]
struct Path {
    steps: Vec<Step>,
    end: Place,
}

impl Path {
    fn new(start: Place) -> Self {
        Path { steps: Vec::new(), end: start }
    }

    fn rescale(&mut self, params: &Params) {
        let prime = params.prime(self.end.level).value() as f64;
        self.end = Place { level: self.end.level - 1, scale: self.end.scale / prime };
        self.steps.push(Step::Rescale);
    }

    fn drop_to(&mut self, level: usize) {
        if level < self.end.level {
            self.end.level = level;
            self.steps.push(Step::Drop(level));
        }
    }

    fn multiply(&mut self, factor: f64, scale: f64) {
        self.end.scale = scale;
        self.steps.push(Step::Multiply { factor, scale });
    }

    /// To a lower place: a drop to the level above it, a factor, and the rescale that lands on it.
    fn land(&mut self, params: &Params, place: Place) {
        if same(self.end.scale, place.scale) {
            self.drop_to(place.level);
            self.end.scale = place.scale;
            return;
        }
        self.drop_to(place.level + 1);
        let scale = place.scale * params.prime(place.level + 1).value() as f64;
        self.multiply((scale / self.end.scale).round(), scale);
        self.rescale(params);
        self.end.scale = place.scale;
    }

    fn describe(&self, name: &str) -> String {
        if self.steps.is_empty() {
            return format!("{name}: as it is");
        }
        let steps: Vec<String> = self.steps.iter().map(Step::to_string).collect();
        format!("{name}: {}", steps.join(", "))
    }
}

fn same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= SAME
}

/// The integer that `ratio` stands for, if it is one or as large that its fraction does not matter.
fn integer(ratio: f64) -> Option<f64> {
    let rounded = ratio.round();
    (rounded >= 1.0 && (rounded / ratio - 1.0).abs() <= NEARLY).then_some(rounded)
}

/// Brings two operands to one level and one scale.
fn meet(params: &Params, operation: &'static str, places: [Place; 2]) -> Result<[Path; 2]> {
    let [mut a, mut b] = places.map(Path::new);
    if a.end.level != b.end.level {
        let (high, low) = if a.end.level > b.end.level { (&mut a, &b) } else { (&mut b, &a) };
        if high.end.pending(params) && !low.end.pending(params) {
            high.rescale(params);
        }
        if high.end.level > low.end.level {
            high.land(params, low.end);
            return Ok([a, b]);
        }
    }
    if same(a.end.scale, b.end.scale) {
        return Ok([a, b]);
    }
    let ratio = a.end.scale / b.end.scale;
    let (small, large, ratio) =
        if ratio < 1.0 { (&mut a, b.end.scale, 1.0 / ratio) } else { (&mut b, a.end.scale, ratio) };
    let Some(factor) = integer(ratio) else {
        return Err(Error::Scale {
            operation,
            expected: format!("2^{:.9} at level {}", large.log2(), small.end.level),
            actual: format!("2^{:.9}", small.end.scale.log2()),
            advice: "encode at the scale of the level, or rescale both operands first",
        });
    };
    small.multiply(factor, large);
    Ok([a, b])
}

/// Brings two operands of a product to one level, rescaling those that are due.
fn join(params: &Params, places: [Place; 2]) -> [Path; 2] {
    let mut paths = places.map(|place| {
        let mut path = Path::new(place);
        if place.pending(params) {
            path.rescale(params);
        }
        path
    });
    let level = paths[0].end.level.min(paths[1].end.level);
    for path in &mut paths {
        if path.end.level > level {
            path.land(params, Place { level, scale: params.scale(level) });
        }
    }
    paths
}

impl Evaluator {
    /// What [`Self::add`] and [`Self::sub`] would do to their operands first, in words.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn explain_add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<String> {
        let [a, b] = meet(&self.params, "addition", [Place::of(a), Place::of(b)])?;
        Ok(format!("{}; {}", a.describe("first"), b.describe("second")))
    }

    /// What [`Self::multiply`] would do to its operands first, in words.
    pub fn explain_multiply(&self, a: &Ciphertext, b: &Ciphertext) -> String {
        let [a, b] = join(&self.params, [Place::of(a), Place::of(b)]);
        format!("{}; {}", a.describe("first"), b.describe("second"))
    }

    /// Whether the scale is that of a product, so that a rescale is due.
    pub fn is_pending(&self, a: &Ciphertext) -> bool {
        Place::of(a).pending(&self.params)
    }

    /// Divides by the last prime and rounds: one level lower, at a scale smaller by that prime.
    ///
    /// # Errors
    /// [`Error::Level`] at level 0.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext> {
        self.check(a)?;
        if a.level() == 0 {
            return Err(Error::Level {
                operation: "a rescale",
                needed: "1 level".into(),
                left: "none is".into(),
            });
        }
        let prime = self.params.prime(a.level()).value() as f64;
        let parts = key_switch::rescale(a.parts());
        let rounding = Noise::rounding(self.params.expansion(), a.degree());
        let noise = a.noise().times(1.0 / prime).plus(rounding);
        Ok(a.with_parts(parts, a.scale() / prime, noise, a.magnitude()))
    }

    /// The same ciphertext without the limbs above `level`, at the scale that it has.
    ///
    /// # Errors
    /// [`Error::Range`] for a level above its own.
    pub fn drop_to(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext> {
        self.check(a)?;
        if level > a.level() {
            return Err(Error::Range {
                what: "the level to drop to",
                expected: format!("at most {}, the ciphertext's own", a.level()),
                actual: level.to_string(),
            });
        }
        let parts = a.parts().iter().map(|part| part.at_level(level)).collect();
        Ok(a.with_parts(parts, a.scale(), *a.noise(), a.magnitude()))
    }

    /// The same numbers at a lower level and at its canonical scale.
    ///
    /// # Errors
    /// [`Error::Range`] for a level above its own, [`Error::Scale`] if it is at that level with
    /// another scale.
    pub fn match_level(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext> {
        let mut path = Path::new(Place::of(a));
        let place = Place { level, scale: self.params.scale(level.min(self.params.max_level())) };
        if path.end.pending(&self.params) && a.level() > level {
            path.rescale(&self.params);
        }
        if path.end.level > level {
            path.land(&self.params, place);
        }
        if path.end.level == level && !same(path.end.scale, place.scale) {
            return Err(Error::Scale {
                operation: "a change of level",
                expected: format!("2^{:.9} at level {level}", place.scale.log2()),
                actual: format!("2^{:.9}", path.end.scale.log2()),
                advice: "start from a level above",
            });
        }
        let result = self.follow(a, &path)?.into_owned();
        if result.level() == level { Ok(result) } else { self.drop_to(&result, level) }
    }

    /// Both operands of a sum at one level and scale.
    pub(super) fn meet<'a>(
        &self,
        operation: &'static str,
        a: &'a Ciphertext,
        b: &'a Ciphertext,
    ) -> Result<[Cow<'a, Ciphertext>; 2]> {
        self.check(a)?;
        a.check_same(b)?;
        let [path_a, path_b] = meet(&self.params, operation, [Place::of(a), Place::of(b)])?;
        Ok([self.follow(a, &path_a)?, self.follow(b, &path_b)?])
    }

    /// Both operands of a product at one level.
    pub(super) fn join<'a>(
        &self,
        a: &'a Ciphertext,
        b: &'a Ciphertext,
    ) -> Result<[Cow<'a, Ciphertext>; 2]> {
        self.check(a)?;
        a.check_same(b)?;
        let [path_a, path_b] = join(&self.params, [Place::of(a), Place::of(b)]);
        Ok([self.follow(a, &path_a)?, self.follow(b, &path_b)?])
    }

    fn follow<'a>(&self, a: &'a Ciphertext, path: &Path) -> Result<Cow<'a, Ciphertext>> {
        let mut result = Cow::Borrowed(a);
        for step in &path.steps {
            result = Cow::Owned(match *step {
                Step::Rescale => self.rescale(&result)?,
                Step::Drop(level) => self.drop_to(&result, level)?,
                Step::Multiply { factor, scale } => {
                    self.scale_up(result.into_owned(), factor, scale)
                }
            });
        }
        if let Cow::Owned(result) = &mut result {
            // What the steps computed is this, up to the last bit of a double.
            result.meta.scale = path.end.scale;
        }
        Ok(result)
    }

    /// Multiplies by an integer that takes the scale to `scale`, up to its own rounding.
    fn scale_up(&self, a: Ciphertext, factor: f64, scale: f64) -> Ciphertext {
        let rounding = (factor * a.scale() - scale).abs() * a.magnitude();
        let delta = self.params.expansion();
        let error = Noise { std: rounding / delta.sqrt(), bound: rounding };
        let noise = a.noise().times(factor).plus(error);
        let magnitude = a.magnitude();
        let Ciphertext { mut parts, meta } = a;
        parts.iter_mut().for_each(|part| part.scale_limbs(|m| residue(factor, m)));
        Ciphertext { parts, meta }.with_estimates(scale, noise, magnitude)
    }
}
