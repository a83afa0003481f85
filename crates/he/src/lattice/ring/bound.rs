//! Error bound, ring form: a layout and scales enter, a bound leaves. Both sides.

use super::galois::{DIGIT_BITS, FINE_LEVELS};
use super::{DEGREE, Layout, PRIME_BITS, RESPONSE_BITS, Ring};
use crate::lattice::{ErrorBound, Scales};
use ciphervec_arith::sample::{GAUSSIAN_BOUND, GAUSSIAN_SIGMA};

/// How much of a score of two unit vectors is noise that outlives it: standard deviations, as
/// cosines. They say what a flooded score still tells (`docs/sealed.md`, section 4.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hints {
    /// From the noise of the row's own words, fixed when it was sealed.
    pub row: f64,
    /// From the noise of the query, of the evaluation keys of its epoch, and of the query key.
    pub key: f64,
}

/// Whether the vectors are sealed or lie in the clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vectors {
    /// Mode `sealed`.
    Sealed,
    /// Mode `sealed-query`.
    Plain,
}

impl Ring {
    /// The error of a score of two unit vectors (`docs/sealed.md`, section 2.4).
    ///
    /// With Σ_r (Δx D_r + e_r)(2^k Δq q_r + e'_r): σ² of e times ‖q‖², the tree's noise times the
    /// energy of all the vectors of a block, the product of both noises, quantisation on both
    /// sides, and the 24-bit answer.
    pub fn error_bound(layout: &Layout, vectors: Vectors, scales: Scales) -> ErrorBound {
        let (n, d) = (DEGREE as f64, layout.dimension() as f64);
        let growth = f64::exp2(f64::from(layout.level()));
        let (x, q) = (scales.vector, scales.query);
        let unit = growth * x * q;
        let per_block = layout.vectors_per_block() as f64;
        let nodes = layout.nodes() as f64;
        let bound = f64::from(GAUSSIAN_BOUND);
        let (sigma, sigma_max) = match vectors {
            Vectors::Sealed => (GAUSSIAN_SIGMA, bound),
            Vectors::Plain => (0.0, 0.0),
        };
        let (tree_variance, tree_max) = tree_noise(layout);
        // One step of the 24-bit answer in units of q: rounding of U and of V times t.
        let step = f64::exp2(f64::from(PRIME_BITS) - f64::from(RESPONSE_BITS));
        let variance = (sigma * growth * q).powi(2)
            + per_block * x * x * tree_variance
            + nodes * n * sigma.powi(2) * tree_variance
            + growth.powi(2) * ((x * x + q * q) / 12.0 + d / 144.0)
            + step * step * (1.0 + n * 2.0 / 3.0) / 12.0;
        let worst = growth * (q * d.sqrt() + d / 2.0) * sigma_max
            + per_block * (x * d.sqrt() + d / 2.0) * tree_max
            + nodes * n * sigma_max * tree_max
            + growth * (0.5 * d.sqrt() * (x + q) + 0.25 * d)
            + step * (1.0 + n) / 2.0;
        ErrorBound::new(worst / unit, variance.sqrt() / unit)
    }

    /// What scores of sealed rows at this level say about noise that outlives them.
    pub fn hints(layout: &Layout, scales: Scales) -> Hints {
        let (n, growth) = (DEGREE as f64, f64::exp2(f64::from(layout.level())));
        let (x, q) = (scales.vector, scales.query);
        let unit = growth * x * q;
        let (tree_variance, _) = tree_noise(layout);
        let step = f64::exp2(f64::from(PRIME_BITS) - f64::from(RESPONSE_BITS));
        let key = layout.vectors_per_block() as f64 * x * x * tree_variance
            + layout.nodes() as f64 * n * GAUSSIAN_SIGMA.powi(2) * tree_variance
            + step * step * (1.0 + n * 2.0 / 3.0) / 12.0;
        Hints { row: GAUSSIAN_SIGMA / x, key: key.sqrt() / unit }
    }
}

/// Average variance of a coefficient of a node's noise, and its largest value.
fn tree_noise(layout: &Layout) -> (f64, f64) {
    let n = DEGREE as f64;
    let growth = f64::exp2(f64::from(layout.level()));
    let bound = f64::from(GAUSSIAN_BOUND);
    // A key switch: Σ digit · e / P, plus rounding times (1, t). A whole residue as digit,
    // |digit| ≤ q/2 and q ≈ P, shows; digits of 25 bits do not.
    let (rounding, rounding_max) = ((1.0 + n * 2.0 / 3.0) / 12.0, (1.0 + n) / 2.0);
    let (whole, whole_max) = (n * GAUSSIAN_SIGMA.powi(2) / 12.0, n * bound / 2.0);
    let small = f64::exp2(f64::from(DIGIT_BITS) - f64::from(PRIME_BITS));
    let (mut switch_variance, mut switch_max) = (0.0, 0.0);
    for level in 0..layout.level() {
        // Step j is followed by k − 1 − j more, each of which doubles its noise like the
        // message.
        let weight = f64::exp2(-1.0 - f64::from(level));
        let fine = level < FINE_LEVELS;
        let energy = if fine { 8.0 * whole * small * small } else { whole };
        let peak = if fine { 4.0 * whole_max * small } else { whole_max };
        switch_variance += weight * (energy + rounding);
        switch_max += weight * (peak + rounding_max);
    }
    let tree_variance = growth * (GAUSSIAN_SIGMA.powi(2) + switch_variance);
    let tree_max = growth * (bound + switch_max);
    (tree_variance, tree_max)
}
