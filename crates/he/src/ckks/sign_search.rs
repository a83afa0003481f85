//! Finds the degrees of the shallowest composition of a sign, for a distance from 0, errors, and a
//! closeness to ±1.
//!
//! A dynamic program (docs/ckks.md, section 8.5): for every depth, the furthest from 0 that numbers
//! get for each amount of work.

use super::minimax::Minimax;
use super::operations::Products;
use super::polynomial::Polynomial;
use crate::error::Result;

/// The highest degree of a stage: higher ones gain little per level, and lose precision.
const MAX_DEGREE: usize = 31;
/// Levels at which a composition is given up: more than any chain of primes has.
pub(super) const MOST_LEVELS: usize = 63;
/// What a levelled error may be over what was found, relative to it.
const MARGIN: f64 = 1e-6;
/// The same of a graded sign, relative to what the error is below 1.
const FINE_MARGIN: f64 = 1e-3;
/// What the inputs of a graded sign are off by, in errors of one rescale.
const RESCALES: f64 = 3.0;
/// log2 of the error that a stage of degree 3, 5, … leaves near a small gap, in errors of one
/// rescale. Even elements of the basis are near 1 there, where they are steepest.
const LEFT: [f64; 15] =
    [1.0, 2.5, 4.0, 4.3, 4.5, 5.9, 7.1, 6.7, 6.7, 6.5, 6.5, 8.6, 8.7, 9.2, 10.2];

/// What inputs of stages may be off by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Noises {
    /// Those of stages that end within so many levels, and those of all others.
    Levels {
        /// Levels of the early ones.
        early_levels: usize,
        /// What inputs of the early ones may be off by.
        early: f64,
        /// And those of all others.
        late: f64,
    },
    /// Those of the first; of all others what the stage before leaves.
    Graded(f64),
}

impl Noises {
    /// Of the first stage, if that is an early one.
    pub fn first(&self) -> f64 {
        match *self {
            Noises::Levels { early, .. } => early,
            Noises::Graded(first) => first,
        }
    }

    /// Of a stage of `depth` levels that begins after `before` of them, the last of degree `last`.
    fn at(&self, before: usize, depth: usize, last: Option<usize>) -> f64 {
        match (*self, last) {
            (Noises::Levels { early_levels, early, .. }, _) if before + depth <= early_levels => {
                early
            }
            (Noises::Levels { late, .. }, _) => late,
            (Noises::Graded(first), None) => first,
            (Noises::Graded(first), Some(degree)) => {
                first * LEFT[(degree - 3) / 2].exp2() / RESCALES
            }
        }
    }
}

/// A degree of a stage, its levels and its work.
#[derive(Clone, Copy)]
struct Degree {
    degree: usize,
    depth: usize,
    work: Products,
}

/// A composition that was begun: everything lies in `[reached, 1]`.
#[derive(Clone)]
struct Begun {
    reached: f64,
    /// Of `reached`, what errors leave whatever follows.
    sure: f64,
    work: Products,
    /// Degrees, and what inputs may be off by.
    stages: Vec<(usize, f64)>,
}

/// The best of `degree` on what is left of `[reached, 1]` by errors of `noise`; of graded ones
/// relative to what it leaves near 0.
pub(super) fn stage(degree: usize, reached: f64, noise: f64, noises: Noises) -> Result<Minimax> {
    let (low, high) = (reached - noise, 1.0 + noise);
    if let Noises::Graded(_) = noises {
        let mut minimax = Minimax::fine(degree, low, high)?;
        minimax.error += FINE_MARGIN * (1.0 - minimax.error).min(minimax.error);
        return Ok(minimax);
    }
    let mut minimax = Minimax::new(degree, low, high)?;
    minimax.error *= 1.0 + MARGIN;
    Ok(minimax)
}

/// What a stage takes all of its interval above, once divided by its largest value.
pub(super) fn after(minimax: &Minimax) -> f64 {
    (1.0 - minimax.error) / (1.0 + minimax.error)
}

/// Degrees that no higher one of the same depth makes useless by costing as little.
fn degrees() -> Result<Vec<Degree>> {
    let mut kept: Vec<Degree> = Vec::new();
    for degree in (3..=MAX_DEGREE).rev().step_by(2) {
        let mut coefficients = vec![0.0; degree + 1];
        // Any that do not cancel.
        for (k, c) in coefficients.iter_mut().enumerate().skip(1).step_by(2) {
            *c = 1.0 / (k + 1) as f64;
        }
        let polynomial = Polynomial::chebyshev(-1.0, 1.0, &coefficients)?;
        let (depth, work) = (polynomial.depth(), polynomial.work());
        if kept.last().is_none_or(|last| last.depth != depth || work < last.work) {
            kept.push(Degree { degree, depth, work });
        }
    }
    Ok(kept)
}

/// The degrees of the shallowest composition that leaves an error of `goal`, of equally deep ones
/// that with the least work; and what the inputs of each may be off by.
pub(super) fn shallowest(gap: f64, goal: f64, noises: Noises) -> Result<Option<Vec<(usize, f64)>>> {
    let degrees = degrees()?;
    let start = Begun { reached: gap, sure: gap, work: Products::default(), stages: Vec::new() };
    let mut at: Vec<Vec<Begun>> = vec![vec![start]];
    let mut furthest = gap;
    for depth in 1..=MOST_LEVELS {
        let mut here: Vec<Begun> = Vec::new();
        let mut done: Option<Begun> = None;
        for next in &degrees {
            let Some(before) = depth.checked_sub(next.depth) else { continue };
            for begun in &at[before] {
                let last = begun.stages.last().map(|&(degree, _)| degree);
                let noise = noises.at(before, next.depth, last);
                // Where even double precision cannot tell its errors apart, a lower degree serves.
                let Ok(minimax) = stage(next.degree, begun.reached, noise, noises) else {
                    continue;
                };
                let mut stages = begun.stages.clone();
                stages.push((next.degree, noise));
                let reached = after(&minimax);
                let sure = match noises {
                    Noises::Levels { .. } => reached,
                    Noises::Graded(_) => reached - noises.at(depth, 0, Some(next.degree)),
                };
                let longer = Begun { reached, sure, work: begun.work + next.work, stages };
                if minimax.error <= goal {
                    if done.as_ref().is_none_or(|done| longer.work < done.work) {
                        done = Some(longer);
                    }
                } else if longer.sure - begun.sure > 2.0 * noise {
                    here.push(longer);
                }
            }
        }
        if let Some(done) = done {
            return Ok(Some(done.stages));
        }
        // By falling `sure`, each with less work than all before it. What got no further than
        // others did in fewer levels is part of no shallowest composition.
        here.sort_by(|a, b| b.sure.total_cmp(&a.sure).then(a.work.cmp(&b.work)));
        let mut least: Option<Products> = None;
        here.retain(|begun| {
            let better = begun.sure > furthest && least.is_none_or(|least| begun.work < least);
            if better {
                least = Some(begun.work);
            }
            better
        });
        furthest = here.first().map_or(furthest, |begun| begun.sure);
        at.push(here);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::{Encoding, EncryptionKey, Forecast, ParamsSpec, Ring};
    use super::*;
    use crate::params::Security;

    #[test]
    fn stages_leave_what_is_forecast_of_them() {
        let spec = ParamsSpec {
            log_degree: 16,
            ring: Ring::Standard,
            base_bits: 50,
            scale_bits: 45,
            levels: 8,
            special_primes: 6,
            special_bits: 50,
            digits: 2,
            security: Security::Classical128,
        };
        let forecast = Forecast::of_spec(&spec).unwrap();
        let fresh = forecast.fresh(EncryptionKey::Secret, &Encoding::default()).unwrap();
        let rescaled = forecast.normalise(&forecast.multiply_scalar(&fresh, 0.5).unwrap()).unwrap();
        let mut exact = fresh;
        (exact.noise.std, exact.noise.bound) = (0.0, 0.0);
        for (place, held) in LEFT.iter().enumerate() {
            let degree = 2 * place + 3;
            let minimax = stage(degree, f64::exp2(-20.0), 0.0, Noises::Graded(0.0)).unwrap();
            let mut coefficients = vec![0.0; degree + 1];
            for (k, c) in minimax.coefficients.iter().enumerate() {
                coefficients[2 * k + 1] = c / (1.0 + minimax.error);
            }
            let polynomial = Polynomial::chebyshev(-1.0, 1.0, &coefficients).unwrap();
            let left = forecast.polynomial(&exact, &polynomial).unwrap();
            let left = forecast.error_bits(&left) - forecast.error_bits(&rescaled);
            assert!((held - left).abs() < 0.2, "degree {degree}: {left}");
        }
    }
}
