//! Error bounds of the ring form. A layout and scales enter; how far a score may be off leaves.

use super::{DEGREE, Layout, PRIME_BITS, RESPONSE_BITS, Ring};
use crate::sealed::{ErrorBound, Scales};
use ciphervec_arith::sample::{GAUSSIAN_BOUND, GAUSSIAN_SIGMA};

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
    /// With Σ_r (Δx D_r + e_r)(2^k Δq q_r + e'_r): σ² of e times ‖q‖², the tree's noise times the energy of all the
    /// vectors of a block, the product of both noises, quantisation on both sides, and the 24-bit answer.
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
        // A key switch: Σ digit · e / P with |digit| ≤ q/2 and q ≈ P, plus rounding times (1, t).
        let switch_variance = n * GAUSSIAN_SIGMA.powi(2) / 12.0 + (1.0 + n * 2.0 / 3.0) / 12.0;
        let switch_max = n * bound / 2.0 + (1.0 + n) / 2.0;
        // Average variance of a node's coefficient, and its largest value.
        let (tree_variance, tree_max) = if layout.level() == 0 {
            (GAUSSIAN_SIGMA.powi(2), bound)
        } else {
            (growth * (GAUSSIAN_SIGMA.powi(2) + switch_variance), growth * (bound + switch_max))
        };
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
}
