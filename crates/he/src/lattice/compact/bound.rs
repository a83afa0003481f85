//! Bounds on the error of a score, compact form, by dimension and scales.
//!
//! # Quantisation
//!
//! With the names of docs/sealed.md, section 1.2, and D_i = Δx x̂_i + ξ_i and q_i = Δq q̂_i + η_i, |ξ_i|, |η_i| ≤
//! ½, quantisation is the only error:
//!
//! ```text
//! D_v − Δq Δx Σ q̂_i x̂_i  =  Δx Σ η_i x̂_i  +  Δq Σ q̂_i ξ_i  +  Σ η_i ξ_i .
//! ```

use super::Width;
use crate::lattice::{ErrorBound, Scales};
use ciphervec_arith::sample::{GAUSSIAN_BOUND, GAUSSIAN_SIGMA};

impl Width {
    /// The error of a score of two unit vectors (`docs/sealed.md`, section 1.3): quantisation alone,
    /// as the noise is taken off.
    ///
    /// With X = Δx·x + ξ and q' = Δq·q + η, |ξ| ≤ ½ and |η| ≤ ½:
    ///
    /// ```text
    /// Σ q'_i X_i − ΔqΔx Σ q_i x_i = Δx Σ η x + Δq Σ q ξ + Σ η ξ
    /// ```
    pub fn error_bound(self, dimension: usize, scales: Scales) -> ErrorBound {
        let d = dimension as f64;
        let (x, q) = (scales.vector, scales.query);
        let worst = 0.5 * d.sqrt() * (x + q) + 0.25 * d;
        let variance = (x * x + q * q + d / 12.0) / 12.0;
        ErrorBound::new(worst / (x * q), variance.sqrt() / (x * q))
    }

    /// The error of a score before its noise is taken off, which is that of segments without a
    /// witness: their vectors were rounded 2^drop finer, X = Δx·x + ξ with |ξ| ≤ ½/2^drop, and ε =
    /// e/2^drop + ρ from noise and stored rounding adds Σ q' ε.
    pub fn noisy_error_bound(self, dimension: usize, scales: Scales) -> ErrorBound {
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

    /// The error, before its noise is taken off, of Σ ±1 · x with sign vectors and integer queries, in units of one agreeing bit:
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

    /// What taking the mask off a sum leaves of Σ q_i D_i is off by no more than this times 2^-drop, for
    /// the query at hand: there is no chance in it.
    pub fn slack(self, query: &[i64]) -> f64 {
        let size: u64 = query.iter().map(|weight| weight.unsigned_abs()).sum();
        let half = f64::from((1u32 << self.dropped_bits()) >> 1);
        size as f64 * (f64::from(GAUSSIAN_BOUND) + half)
    }
}
