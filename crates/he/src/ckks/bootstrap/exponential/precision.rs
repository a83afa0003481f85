//! How far roots of unity are off, from the errors of transforms and of the series.
//!
//! As for bootstrapping (docs/ckks.md, section 11.3), of complex numbers.
//!
//! # The terms
//!
//! The terms of `super::super::precision` up to u, then the series on values with derivatives: a
//! complex error e of a rescale leaves d e. With ρ as there, S the scale of each level (for the lowest that of the one
//! below), x of variance v_x before the last rescale of coefficients-to-slots, and v_0 that of x
//! modulo q_0, each part of a root has the variance
//!
//! ```text
//! (2π)² v_0/2 + |∂α/∂u|² (ρ²/S² + v_x/(2K²)) + Σ_i |d_i|² ρ²/S² ,        |∂α/∂u| = 2πK .
//! ```
//!
//! Averages are over x at quarters with the weights of I. The ciphertext's own error is added,
//! times 2π: noise e of a coefficient that was sent turns the root by 2π e/q_0. To v_0 add the key
//! to the sparse secret and the one back, the products of slots-to-coefficients, or for
//! coefficients the rotation that places them.

use super::super::failure::weight;
use super::super::precision::{Parts, TERMS};
use super::series::ExponentialSeries;
use crate::error::Result;
use crate::params::TAIL_DEVIATIONS;
use core::f64::consts::{SQRT_2, TAU};

/// How far a part of a root is off, of a number that is not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct RootPrecision {
    /// The standard deviation of either part, on average over x.
    pub std: f64,
    /// The same where x is worst.
    worst: f64,
    /// What the series leaves, whatever x is.
    systematic: f64,
}

impl RootPrecision {
    /// Of numbers of which the variance `below` is the error as coefficients modulo q_0.
    pub fn new(
        parts: &Parts<'_>,
        series: &ExponentialSeries,
        range: f64,
        below: f64,
    ) -> Result<Self> {
        let (top, rescale) = parts.rescale();
        let x = parts.above() / range.powi(2);
        let (points, traced, levels) = series.at_points(top)?;
        let sizes = parts.sizes(&levels);
        // An error of x turns the root: half of its square is in either part. That of a rescale has
        // two parts.
        let variance = |point: usize| {
            let (by_input, rescales) =
                (traced.by_input(point).norm(), traced.by_sizes(point, &sizes));
            by_input.powi(2) * (rescale.powi(2) + x / 2.0) + rescales.powi(2)
        };
        let weights: Vec<f64> = points.iter().map(|&x| weight(TERMS, x)).collect();
        let whole: f64 = weights.iter().sum();
        let mean = weights.iter().enumerate().map(|(point, w)| w / whole * variance(point));
        let worst = (0..points.len()).map(variance).fold(0.0, f64::max);
        let below = TAU.powi(2) * below / 2.0;
        Ok(RootPrecision {
            std: (below + mean.sum::<f64>()).sqrt(),
            worst: (below + worst).sqrt(),
            systematic: traced.values.iter().fold(0.0, |most, value| value.norm().max(most)),
        })
    }

    /// The root mean square of the error of a part.
    pub fn deviation(&self) -> f64 {
        (self.std.powi(2) + self.systematic.powi(2) / 2.0).sqrt()
    }

    /// A bound on the absolute value of the error of a root.
    pub fn bound(&self) -> f64 {
        SQRT_2 * TAIL_DEVIATIONS * self.worst + self.systematic
    }
}
