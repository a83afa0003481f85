//! Plans the steps that take two operands to one level and scale.
//!
//! No step loses a level that the lower operand has not lost already (docs/ckks.md, section 3.2).
//!
//! # Rules
//!
//! |operation|rule|
//! |---|---|
//! |sum of levels l < l'|the operand at l' (scale S') drops to l + 1, is multiplied by the integer round(S q_{l+1}/S') and rescaled to (l, S): a relative error of 2^−b at most|
//! |sum of scales at one level|multiplied where the ratio is an integer, or its fraction is below 2^−34 of it; else an error|
//! |product|factors need one level; those that are products are rescaled first|
//! |product with a real factor c|a level: round(c S), with the S that makes the rescaled product canonical|
//! |product with an integer, or a + bi of integers|no level: a + b X^(N/2)|

use super::expected::Expected;
use super::modulus_chain::ModulusChain;
use crate::error::{Error, Result};

/// Scales that differ by less, relative to them, are one: the result is off by no more.
const SAME: f64 = 1.0 / (1u64 << 42) as f64;
/// How far a ratio of scales may be from an integer, relative to it, for that integer to stand for
/// it.
const NEARLY: f64 = 1.0 / (1u64 << 34) as f64;

/// One step that an operand is taken through.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
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
pub(super) struct Place {
    pub level: usize,
    pub scale: f64,
}

impl Place {
    pub fn of(a: &Expected) -> Self {
        Place { level: a.level, scale: a.scale }
    }

    /// Whether a rescale is due: the scale is that of a product.
    pub fn pending(&self, chain: &ModulusChain) -> bool {
        self.level > 0 && self.scale.log2() > 1.5 * chain.scale(self.level).log2()
    }
}

/// The steps of one operand.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Path {
    pub steps: Vec<Step>,
    pub end: Place,
}

impl Path {
    fn new(start: Place) -> Self {
        Path { steps: Vec::new(), end: start }
    }

    fn rescale(&mut self, chain: &ModulusChain) {
        let prime = chain.prime(self.end.level);
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

    /// A rescale, if one is due.
    pub fn due(chain: &ModulusChain, place: Place) -> Option<Self> {
        let mut path = Path::new(place);
        place.pending(chain).then(|| {
            path.rescale(chain);
            path
        })
    }

    /// To a lower place: a drop to the level above it, a factor, and the rescale that lands on it.
    fn land(&mut self, chain: &ModulusChain, place: Place) {
        if same(self.end.scale, place.scale) {
            self.drop_to(place.level);
            self.end.scale = place.scale;
            return;
        }
        self.drop_to(place.level + 1);
        let scale = place.scale * chain.prime(place.level + 1);
        self.multiply((scale / self.end.scale).round(), scale);
        self.rescale(chain);
        self.end.scale = place.scale;
    }

    /// Whether the operand stays as it is.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub fn describe(&self, name: &str) -> String {
        if self.is_empty() {
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
pub(super) fn meet(
    chain: &ModulusChain,
    operation: &'static str,
    places: [Place; 2],
) -> Result<[Path; 2]> {
    let [mut a, mut b] = places.map(Path::new);
    if a.end.level != b.end.level {
        let (high, low) = if a.end.level > b.end.level { (&mut a, &b) } else { (&mut b, &a) };
        if high.end.pending(chain) && !low.end.pending(chain) {
            high.rescale(chain);
        }
        if high.end.level > low.end.level {
            high.land(chain, low.end);
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
pub(super) fn join(chain: &ModulusChain, places: [Place; 2]) -> [Path; 2] {
    let mut paths = places.map(|place| {
        let mut path = Path::new(place);
        if place.pending(chain) {
            path.rescale(chain);
        }
        path
    });
    let level = paths[0].end.level.min(paths[1].end.level);
    for path in &mut paths {
        if path.end.level > level {
            path.land(chain, Place { level, scale: chain.scale(level) });
        }
    }
    paths
}

/// Brings an operand to a lower level and its canonical scale.
pub(super) fn descend(chain: &ModulusChain, start: Place, level: usize) -> Result<Path> {
    let mut path = Path::new(start);
    let place = Place { level, scale: chain.scale(level.min(chain.max_level())) };
    if path.end.pending(chain) && start.level > level {
        path.rescale(chain);
    }
    if path.end.level > level {
        path.land(chain, place);
    }
    if path.end.level == level && !same(path.end.scale, place.scale) {
        return Err(Error::Scale {
            operation: "a change of level",
            expected: format!("2^{:.9} at level {level}", place.scale.log2()),
            actual: format!("2^{:.9}", path.end.scale.log2()),
            advice: "start from a level above",
        });
    }
    Ok(path)
}
