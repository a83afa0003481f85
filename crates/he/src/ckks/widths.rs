//! Bits of the primes and scales of every level.

use crate::error::{Error, Result};
use core::fmt::Write;

/// Bits of the base prime and of the special primes: the arithmetic takes primes below 2^50.
pub(super) const PRIME_BITS: core::ops::RangeInclusive<u32> = 20..=50;
/// Bits of a scale: its primes lie on both sides of it, and below 2^50.
pub(super) const SCALE_BITS: core::ops::RangeInclusive<u32> = 20..=49;
/// Most stages of a chain.
pub(super) const MAX_STAGES: usize = 16;

/// A run of levels whose primes are equally wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// The number of levels, and so of primes.
    pub levels: usize,
    /// Bits of their primes.
    pub prime_bits: u32,
    /// log2 of the scale s. Where it is `prime_bits` products of ciphertexts keep it. A stage of one
    /// level with primes of 2s − t bits above one of scale t leads from s to t. Any other is for
    /// products with plaintexts, whose own scale is what a rescale divides by.
    pub scale_bits: u32,
}

/// The widths of all primes above the base prime.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Widths {
    /// All as wide as the scale.
    #[default]
    Even,
    /// But for the prime of level 1, which has so many bits.
    Last(u32),
    /// Stages, from level 1 upwards.
    Stages(Vec<Stage>),
}

/// How the prime of one level is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Width {
    pub prime_bits: u32,
    pub scale_bits: u32,
    /// Whether the scale begins anew here, at a power of two.
    pub begins: bool,
    /// Whether the scale stays, as only products with plaintexts are rescaled.
    pub plain: bool,
    /// log2 of the scale that products have below, if that is another one.
    pub next_bits: Option<u32>,
}

impl Widths {
    /// The bits of the prime of level 1, if they are its own.
    pub fn last(&self) -> Option<u32> {
        match self {
            Widths::Last(bits) => Some(*bits),
            _ => None,
        }
    }

    /// The stages, if there are any.
    pub fn stages(&self) -> &[Stage] {
        match self {
            Widths::Stages(stages) => stages,
            _ => &[],
        }
    }

    /// Level `level`, at least 1, of `levels` whose scale has so many bits where they are even.
    pub fn at(&self, levels: usize, scale_bits: u32, level: usize) -> Width {
        let begins = level == levels;
        let even =
            Width { prime_bits: scale_bits, scale_bits, begins, plain: false, next_bits: None };
        match self {
            Widths::Even => even,
            Widths::Last(bits) if level == 1 => Width { prime_bits: *bits, ..even },
            Widths::Last(_) => even,
            Widths::Stages(stages) => {
                let Some(Stage { prime_bits, scale_bits, .. }) = stage_of(stages, level).copied()
                else {
                    return even;
                };
                let next_bits = led_to(stages, level);
                let plain = prime_bits != scale_bits && next_bits.is_none();
                let above = stage_of(stages, level + 1);
                let begins = above.is_none_or(|above| above.scale_bits != scale_bits)
                    && led_to(stages, level + 1).is_none();
                Width { prime_bits, scale_bits, begins, plain, next_bits }
            }
        }
    }

    /// Refuses stages that do not make up `levels` or that no primes are found for.
    pub fn check(&self, levels: usize) -> Result<()> {
        let Widths::Stages(stages) = self else { return Ok(()) };
        within("the number of stages", 1..=MAX_STAGES, (stages.len(), ""))?;
        let sum = stages.iter().fold(0usize, |sum, stage| sum.saturating_add(stage.levels));
        if sum != levels {
            return Err(Error::Range {
                what: "the levels of all stages",
                expected: format!("{levels}, those of the set"),
                actual: sum.to_string(),
            });
        }
        for stage in stages {
            within("the levels of a stage", 1..=levels, (stage.levels, ""))?;
            within("the primes of a stage", PRIME_BITS, (stage.prime_bits, "bits"))?;
            within("the scale of a stage", SCALE_BITS, (stage.scale_bits, "bits"))?;
        }
        Ok(())
    }

    /// What the description of a set says of them.
    pub fn describe(&self) -> String {
        match self {
            Widths::Even => String::new(),
            Widths::Last(bits) => format!(" last={bits}"),
            Widths::Stages(stages) => stages.iter().fold(" stages=".into(), |mut text, stage| {
                let comma = if text.ends_with('=') { "" } else { "," };
                let Stage { levels, prime_bits, scale_bits } = stage;
                // Writing to a string cannot fail.
                let _ = write!(text, "{comma}{levels}x{prime_bits}@{scale_bits}");
                text
            }),
        }
    }
}

/// log2 of the scale that `level` leads to, if it is there to lead to another.
fn led_to(stages: &[Stage], level: usize) -> Option<u32> {
    let stage = stage_of(stages, level)?;
    let below = stage_of(stages, level.checked_sub(1).filter(|&below| below > 0)?)?;
    let leads = stage.levels == 1
        && stage.prime_bits != stage.scale_bits
        && stage.prime_bits + below.scale_bits == 2 * stage.scale_bits;
    leads.then_some(below.scale_bits)
}

fn stage_of(stages: &[Stage], level: usize) -> Option<&Stage> {
    let mut top = 0;
    stages.iter().find(|stage| {
        top += stage.levels;
        level <= top
    })
}

/// Refuses what is not in a range.
pub(super) fn within<T>(
    what: &'static str,
    range: core::ops::RangeInclusive<T>,
    (actual, unit): (T, &str),
) -> Result<()>
where
    T: PartialOrd + core::fmt::Display,
{
    if range.contains(&actual) {
        return Ok(());
    }
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    Err(Error::Range {
        what,
        expected: format!("{} to {}{unit}", range.start(), range.end()),
        actual: format!("{actual}{unit}"),
    })
}
