//! Error bound, compact form: dimension and scales enter, a bound leaves. Both sides.

use super::Width;
use crate::lattice::{ErrorBound, Scales};
use ciphervec_arith::sample::{GAUSSIAN_BOUND, GAUSSIAN_SIGMA};

impl Width {
    /// The error of a score of two unit vectors (`docs/sealed.md`, section 1.3).
    ///
    /// With X = Δx·x + ξ, q' = Δq·q + η, |ξ| ≤ ½/2^drop and |η| ≤ ½ from quantising, ε = e/2^drop +
    /// ρ from noise and stored rounding:
    ///
    /// ```text
    /// Σ q'_i (X_i + ε_i) − ΔqΔx Σ q_i x_i = Δx Σ η x + Δq Σ q ξ + Σ η ξ + Σ q' ε
    /// ```
    pub fn error_bound(self, dimension: usize, scales: Scales) -> ErrorBound {
        let d = dimension as f64;
        let drop = f64::exp2(f64::from(self.dropped_bits()));
        let (rounding, rounding_variance) =
            if self.dropped_bits() == 0 { (0.0, 0.0) } else { (0.5, 1.0 / 12.0) };
        let noise = f64::from(GAUSSIAN_BOUND) / drop + rounding;
        let noise_variance = (GAUSSIAN_SIGMA / drop).powi(2) + rounding_variance;
        let (x, q) = (scales.vector, scales.query);
        let unit = x * q;
        // ‖x‖₁ ≤ √d ‖x‖₂, and ‖q'‖₁ ≤ Δq √d + d/2.
        let worst =
            0.5 * d.sqrt() * (x + q / drop) + 0.25 * d / drop + (q * d.sqrt() + 0.5 * d) * noise;
        let variance = (x * x + (q * q + d / 12.0) / (drop * drop)) / 12.0
            + (q * q + d / 12.0) * noise_variance;
        ErrorBound::new(worst / unit, variance.sqrt() / unit)
    }

    /// The error of Σ ±1 · x with sign vectors and integer queries, in units of one agreeing bit:
    /// below 1 means that the inner product, whose parity is known, is decoded exactly.
    pub fn sign_error_bound(self, dimension: usize, scales: Scales) -> ErrorBound {
        let d = dimension as f64;
        let drop = f64::exp2(f64::from(self.dropped_bits()));
        let (rounding, rounding_variance) =
            if self.dropped_bits() == 0 { (0.0, 0.0) } else { (0.5, 1.0 / 12.0) };
        let worst = d * (f64::from(GAUSSIAN_BOUND) / drop + rounding) / scales.vector;
        let variance = d * ((GAUSSIAN_SIGMA / drop).powi(2) + rounding_variance);
        ErrorBound::new(worst, variance.sqrt() / scales.vector)
    }
}
