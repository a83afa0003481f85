//! The integer grid that coordinates are rounded to, with bounds of scores and of their error.
//!
//! # How far a score may be off
//!
//! With x = X x̂ + e and q = Q q̂ + f, no coordinate of e and f above ½,
//!
//! ```text
//! x·q / XQ − x̂·q̂  =  x̂·f / Q + q̂·e / X + e·f / XQ .
//! ```
//!
//! ||at dimension d|`standard`, d = 512, smallest Q|
//! |---|---|---:|
//! |worst case|√d/2 · (1/X + 1/Q) + d / 4XQ + step/2|1.03 · 10⁻³|
//! |standard deviation|√( (1/X² + 1/Q² + step²)/12 + d/(144 X²Q²) )|2.22 · 10⁻⁵|
//!
//! The step is what cosines are rounded to: 2⁻¹⁴, 2⁻¹⁸ and 2⁻⁴⁴. The deviation takes rounding
//! errors as independent and uniform, which a vector can be chosen against. At `high` the worst
//! case is below 10⁻¹² at every dimension. `Spec::error_bound` returns both figures, and the tail
//! exceeded with probability below 2⁻⁶⁴.

use super::precision::{GridPrecision, GridScales};
use crate::index::metric::Metric;
use ciphervec_he::lattice::ErrorBound;
use core::ops::RangeInclusive;

/// A sub-Gaussian variable exceeds this many standard deviations with probability below 2⁻⁶⁴: √(2 ·
/// 65 · ln 2).
const TAIL_DEVIATIONS: f64 = 9.5;
/// The weights of ±1 probes: 2, so that a result may be one off and still tell the number of
/// differing bits.
const SIGN_WEIGHT: u64 = 2;

/// What vectors and probes must have in common to be compared.
///
/// A unit vector times X, rounded, has a norm of at most X + √d/2, because rounding moves every
/// coordinate by at most ½; the same holds for a probe with Q. By Cauchy–Schwarz no score exceeds
/// (X + √d/2)(Q + √d/2): slots need no room for d products. ±1 vectors are not rounded at all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    dimension: u32,
    metric: Metric,
    precision: GridPrecision,
}

impl Grid {
    /// The caller has checked the dimension.
    pub const fn new(dimension: u32, metric: Metric, precision: GridPrecision) -> Self {
        Grid { dimension, metric, precision }
    }

    pub fn dimension(&self) -> usize {
        self.dimension as usize
    }

    pub fn metric(&self) -> Metric {
        self.metric
    }

    pub fn precision(&self) -> GridPrecision {
        self.precision
    }

    /// Whether coordinates are ±1, taken as they are.
    pub fn signs(&self) -> bool {
        self.metric.compares_signs()
    }

    pub fn scales(&self) -> GridScales {
        self.precision.scales()
    }

    /// What cosines are rounded to; `None` where scores are whole numbers.
    pub fn step(&self) -> Option<f64> {
        (!self.signs()).then(|| self.scales().step)
    }

    /// Every scale a probe may have; under `hamming` it is the weight of a sign.
    pub fn probe_scales(&self) -> RangeInclusive<u64> {
        if self.signs() { SIGN_WEIGHT..=SIGN_WEIGHT } else { self.scales().probe_scales() }
    }

    /// What a score is divided by to get a cosine.
    pub fn divisor(&self, probe_scale: u64) -> f64 {
        if self.signs() {
            (SIGN_WEIGHT * u64::from(self.dimension)) as f64
        } else {
            self.scales().vector as f64 * probe_scale as f64
        }
    }

    /// ⌈√d/2⌉ and one more, which covers what double precision may add.
    fn rounding_norm(&self) -> u64 {
        let root = (f64::from(self.dimension).sqrt() / 2.0).ceil() as u64;
        root + 1
    }

    /// No encrypted vector has a larger square.
    pub fn vector_square(&self) -> u128 {
        if self.signs() {
            u128::from(self.dimension)
        } else {
            u128::from(self.scales().vector + self.rounding_norm()).pow(2)
        }
    }

    /// No probe has a larger square.
    pub fn probe_square(&self) -> u128 {
        if self.signs() {
            u128::from(self.dimension) * u128::from(SIGN_WEIGHT).pow(2)
        } else {
            u128::from(self.scales().probe.1 + self.rounding_norm()).pow(2)
        }
    }

    /// No weight of a probe is larger.
    pub fn largest_weight(&self) -> u64 {
        if self.signs() { SIGN_WEIGHT } else { self.scales().probe.1 }
    }

    /// No score is larger.
    pub fn score_bound(&self) -> u128 {
        if self.signs() {
            u128::from(self.dimension) * u128::from(SIGN_WEIGHT)
        } else {
            let rounding = self.rounding_norm();
            let scales = self.scales();
            u128::from(scales.vector + rounding) * u128::from(scales.probe.1 + rounding)
        }
    }

    /// Bits of a signed score.
    pub fn score_bits(&self) -> u32 {
        u128::BITS - self.score_bound().leading_zeros() + 1
    }

    /// How far a cosine may be from the exact one, for the least favourable probe.
    ///
    /// With x = X x̂ + e and q = Q q̂ + f, where no coordinate of e or f exceeds ½,
    ///
    /// ```text
    /// x·q / XQ − x̂·q̂ = x̂·f / Q + q̂·e / X + e·f / XQ
    /// ```
    ///
    /// so that the worst case is √d/2 · (1/X + 1/Q) + d / 4XQ, and with rounding errors that are
    /// independent and uniform the variance is (1/X² + 1/Q²)/12 + d/(144 X²Q²). Rounding the result
    /// adds half a step or step²/12, double precision at most 2⁻⁴⁸.
    pub fn error_bound(&self) -> ErrorBound {
        let Some(step) = self.step() else {
            return ErrorBound { worst_case: 0.0, tail: 0.0, typical: 0.0 };
        };
        let scales = self.scales();
        let d = f64::from(self.dimension);
        let (x, q) = (1.0 / scales.vector as f64, 1.0 / scales.probe.0 as f64);
        let worst_case = d.sqrt() / 2.0 * (x + q) + d / 4.0 * x * q + step / 2.0 + f64::exp2(-48.0);
        let variance = (x * x + q * q + step * step) / 12.0 + d * (x * q).powi(2) / 144.0;
        let typical = variance.sqrt();
        ErrorBound { worst_case, tail: (TAIL_DEVIATIONS * typical).min(worst_case), typical }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::spec::MAX_DIMENSION;

    const PRECISIONS: [GridPrecision; 3] =
        [GridPrecision::Small, GridPrecision::Standard, GridPrecision::High];

    #[test]
    fn scores_keep_their_bits_at_every_dimension() {
        for (precision, bits) in PRECISIONS.into_iter().zip([25, 31, 95]) {
            for dimension in [1, 2, 512, 4096, MAX_DIMENSION] {
                let grid = Grid::new(dimension, Metric::Cosine, precision);
                assert_eq!(grid.score_bits(), bits, "{precision:?} {dimension}");
                let norms = grid.vector_square().isqrt() * grid.probe_square().isqrt();
                assert_eq!(norms, grid.score_bound());
            }
        }
    }

    #[test]
    fn the_promised_errors_are_kept() {
        for dimension in [1, 2, 3, 128, 512, 4096, MAX_DIMENSION] {
            let bound = |p| Grid::new(dimension, Metric::L2, p).error_bound();
            assert!(bound(GridPrecision::High).worst_case <= 1e-12, "{dimension}");
            assert!(4.4 * bound(GridPrecision::Standard).typical <= 1e-4, "{dimension}");
            assert!(7.2 * bound(GridPrecision::Small).typical <= 1e-3, "{dimension}");
        }
        // At the dimension 512, by hand: √512/2 = 11.314, 1/65000 + 1/13312 = 9.0505e-5.
        let bound = Grid::new(512, Metric::Cosine, GridPrecision::Standard).error_bound();
        assert!((bound.worst_case - 1.0259e-3).abs() < 1e-6, "{bound:?}");
        assert!((bound.typical - 2.2164e-5).abs() < 1e-8, "{bound:?}");
    }

    #[test]
    fn signs_are_exact_and_short() {
        let grid = Grid::new(512, Metric::Hamming, GridPrecision::Standard);
        assert_eq!((grid.score_bound(), grid.score_bits()), (1024, 12));
        assert_eq!((grid.vector_square(), grid.probe_square()), (512, 2048));
        assert_eq!(grid.error_bound().worst_case, 0.0);
    }
}
