//! Bounds on the error of a lookup, from a design and parameters. Public numbers only.
//!
//! Theorem 5.1 of the paper (arXiv 2606.03191): with an error ε in the inputs, functions of
//! Lipschitz constant L (C_V (p + 2)/√12 for the powers of a root of unity) and a table M, the
//! root-mean-square error of a row is at most C_PCMM/Δ + (‖M‖₂/√d) L ε, and ‖M‖₂ ≤ C_T (√d + √p).
//! Here ε and the roundings on the way are taken through each strategy's own recurrence, which
//! gives the mean square error of a function in place of L ε.
//!
//! # Recurrences
//!
//! The planner takes the mean square error of a function through each strategy's recurrence. For
//! powers of a root of unity e_{a+b} = e_a + e_b up to a rotation; for Chebyshev polynomials
//! e_{a+b} = 2(T_a e_b + T_b e_a) − e_{|a−b|}, which grows as n^{3/2}. Squarings of `indicator`
//! multiply an error in the 1 by 2^r, and its cleanings square it. With E the mean square error of
//! a function where weights meet it, the root mean square error of a looked-up number is
//!
//! ```text
//! √(msq⁻¹ E) · rms(M)          on average over tables,
//! √(msq⁻¹ E) · ‖M‖₂/√d         at most over a row; a margin of 2 is added: `Recipe::bound`,
//! ```
//!
//! the second as in Theorem 5.1 of the paper; `ScaleSelection` is its condition (13). The rounding
//! of weights adds variance p·msq/(12 w²) at weight scale w.
//!
//! `error_bound` holds for every single number: the same with the largest column's root mean square
//! where that is more than ‖M‖₂/√d, with the rounding of these weights, and times 49 in the
//! conjugate-invariant ring, 36 in the other. Parameters are the smallest ring of the security
//! table for which the average is below 0.8 · 2^−b.

use super::basis::{Basis, Kind, chebyshev, indicator};
use super::candidate::Candidate;
use super::design::Design;
use ciphervec_he::ckks::Ring;

/// −log2 of the chance that a number is off by more than its bound says, before it is rounded.
pub(super) const CHANCE_BITS: f64 = 66.0;
/// A Gaussian exceeds this many standard deviations with probability below 2^-64.
pub(in crate::lookup) const TAIL_DEVIATIONS: f64 = 9.5;
/// σ, σ² of fresh noise with the rounding of the message, the variance of a rounding, and that of a
/// ternary coefficient.
const SIGMA: f64 = 3.2;
const FRESH: f64 = SIGMA * SIGMA + 1.0 / 12.0;
const ROUNDING: f64 = 1.0 / 12.0;
const TERNARY: f64 = 2.0 / 3.0;
/// The largest sum of looked-up numbers, in root mean squares, that parameters leave room for
/// without losing precision.
const PEAK: f64 = 16.0;
/// The largest of many weights, in root mean squares.
const LARGEST: f64 = 5.0;
/// Room that a modulus has for the sign and the error.
pub(super) const ROOM: f64 = 2.1;
/// Most bits of a weight: what processors of all kinds multiply in one go.
pub(super) const WEIGHT_BITS: u32 = 22;
/// Digits up to which errors are taken through the recurrence number by number.
const EXACT: usize = 64;
/// The same for powers.
const EXACT_POWERS: usize = 512;
/// How many times the estimated error the bound is: estimates are averages over noise and indices.
pub(super) const MARGIN: f64 = 2.0;

/// Mean squares of errors, as multiples of what a fresh number and a rescale are off.
#[derive(Clone, Copy)]
struct Growth {
    fresh: f64,
    rounding: f64,
}

/// The errors of a design in a ring.
pub(super) struct Errors<'a> {
    design: &'a Design<'a>,
    growth: Vec<Growth>,
    /// Standard deviations of a slot's real part, in units of 1 over the scale.
    fresh: f64,
    rounding: f64,
    /// The same of a root that the server made, whatever the scale.
    input: Option<f64>,
    /// Of a key switch at level 0 whose special primes are as wide as the base prime.
    switch: f64,
}

impl<'a> Errors<'a> {
    pub fn new(design: &'a Design<'a>, log_degree: u32) -> Self {
        let degree = f64::exp2(f64::from(log_degree));
        let ring = design.bases.first().map_or(Ring::ConjugateInvariant, Basis::ring);
        // δ of docs/ckks.md, and the half of it that is in the real part of a complex slot.
        let (delta, real) = match ring {
            Ring::Standard => (degree, degree / 2.0),
            _ => (2.0 * degree, 2.0 * degree),
        };
        Errors {
            design,
            growth: design.bases.iter().map(growth).collect(),
            input: None,
            fresh: (FRESH * real).sqrt(),
            rounding: (ROUNDING * (1.0 + TERNARY * delta) * real).sqrt(),
            switch: (ROUNDING * delta * SIGMA * SIGMA * real).sqrt(),
        }
    }

    /// Of roots that are off by this standard deviation, in place of fresh ciphertexts.
    pub fn with_input(self, deviation: f64) -> Self {
        Errors { input: Some(deviation), ..self }
    }

    /// The root mean square error of a result over that of the table's numbers.
    pub fn relative(&self, candidate: &Candidate) -> f64 {
        // Weights have what room the modulus leaves them.
        let spec = &candidate.spec;
        let [bottom, scale] = candidate.scales().map(|bits| f64::exp2(f64::from(bits)));
        let sums = if self.design.sum_level() == 0 { bottom } else { scale };
        let modulus = match self.design.sum_level() {
            0 => f64::exp2(f64::from(spec.base_bits)),
            level => {
                f64::exp2(f64::from(spec.base_bits) + level as f64 * f64::from(spec.scale_bits))
            }
        };
        // And few enough bits: the largest of weights that are spread as evenly as functions are.
        let orthogonal = self.orthogonal();
        let most = f64::exp2(f64::from(WEIGHT_BITS)) * orthogonal / LARGEST;
        let weight = (modulus / (ROOM * PEAK * sums)).min(most);
        let rounded = ROUNDING * (orthogonal / weight).powi(2);
        (self.parts(candidate)[0].powi(2) + rounded).sqrt()
    }

    /// The root mean square of the error that weights rounded at a scale of 1 have.
    pub fn rounded_weights(&self) -> f64 {
        ROUNDING.sqrt() * self.orthogonal()
    }

    /// The root of the sum of the mean squares of all functions.
    fn orthogonal(&self) -> f64 {
        let bases = self.design.bases.iter();
        bases.map(|basis| basis.size() as f64 * basis.mean_square()).product::<f64>().sqrt()
    }

    /// The same of the real and of the imaginary part of a result, but for the rounding of weights.
    pub fn parts(&self, candidate: &Candidate) -> [f64; 2] {
        let [bottom, scale] = candidate.scales().map(|bits| f64::exp2(f64::from(bits)));
        let sums = if self.design.sum_level() == 0 { bottom } else { scale };
        let (mut square, mut imaginary) = (0.0, 0.0);
        for (basis, growth) in self.design.bases.iter().zip(&self.growth) {
            let basis_error = self.basis(basis, growth, candidate, [scale, sums]);
            square += basis_error / basis.mean_square();
            // A power and its conjugate are real together, but for the key switch of the latter.
            if basis.kind() == Kind::Powers {
                imaginary += self.switched(candidate, [scale, sums]) / basis.mean_square();
            }
        }
        let mean_square: f64 = self.design.bases.iter().map(Basis::mean_square).product();
        if self.design.multiplies() && !self.design.folded {
            square += (self.rounding / sums).powi(2) / mean_square;
            imaginary += (self.rounding / sums).powi(2) / mean_square;
        }
        [square.sqrt(), imaginary.sqrt()]
    }

    /// The mean square error of a function where weights or another digit's functions meet it.
    fn basis(
        &self,
        basis: &Basis,
        growth: &Growth,
        candidate: &Candidate,
        [scale, sums]: [f64; 2],
    ) -> f64 {
        let landed = self.landed([scale, sums]);
        let rounding = (self.rounding / scale).powi(2);
        if basis.kind() == Kind::Indicator {
            return indicator_error(basis.size(), rounding) + (self.rounding / landed).powi(2);
        }
        let given = if basis.kind() == Kind::Given { landed } else { scale };
        let fresh = self.input.unwrap_or(self.fresh / given);
        let made = growth.fresh * fresh.powi(2) + growth.rounding * rounding;
        // The last step lands at the level of the sums. There powers are conjugated, which nothing
        // divides afterwards: of a part, doubled, the landing counts four times.
        let landing = (self.rounding / landed).powi(2);
        match basis.kind() {
            Kind::Given => made,
            Kind::Powers => made + 5.0 * landing + self.switched(candidate, [scale, sums]),
            _ => made + landing,
        }
    }

    /// The scale at which functions are made.
    fn landed(&self, [scale, sums]: [f64; 2]) -> f64 {
        if self.design.multiplies() { scale } else { sums }
    }

    /// The mean square error of the key switch of a conjugation.
    fn switched(&self, candidate: &Candidate, scales: [f64; 2]) -> f64 {
        let spec = &candidate.spec;
        let narrow =
            spec.base_bits as i32 - (spec.special_bits * spec.special_primes as u32) as i32;
        (self.switch / self.landed(scales) * f64::exp2(f64::from(narrow))).powi(2)
    }
}

/// After r squarings an error in the 1 is 2^r times as large; cleaning squares it.
fn indicator_error(size: usize, rounding: f64) -> f64 {
    let (squarings, cleanings) = indicator::steps(size);
    let mut error = f64::exp2(squarings as f64) * (1.4 * rounding).sqrt();
    for _ in 0..cleanings {
        error = 3.0 * error * error;
    }
    // One function in `size` is the 1; the others are off by the last two products.
    error * error / size as f64 + 2.0 * rounding
}

fn growth(basis: &Basis) -> Growth {
    match basis.kind() {
        Kind::Given | Kind::Indicator => Growth { fresh: 1.0, rounding: 0.0 },
        Kind::Chebyshev => {
            let small = basis.size().min(EXACT);
            // Errors of T_n grow as n^1.5.
            let ratio = (basis.size() as f64 / small as f64).powi(3);
            let growth = chebyshev_growth(small);
            Growth { fresh: growth.fresh * ratio, rounding: growth.rounding * ratio }
        }
        Kind::Powers => {
            let half = basis.size() / 2;
            let small = half.min(EXACT_POWERS);
            // Errors of the k-th power grow as k.
            let ratio = (half as f64 / small as f64).powi(2);
            let growth = powers_growth(small);
            Growth { fresh: growth.fresh * ratio, rounding: growth.rounding * ratio }
        }
    }
}

/// e_n = 2 (T_a e_b + T_b e_a) − e_1, the last for odd n = a + b only, plus the rounding of the
/// step.
fn chebyshev_growth(size: usize) -> Growth {
    let (mut fresh, mut rounding) = (0.0, 0.0);
    for index in 0..size {
        // `[n − 1][source]`: source 0 is the input, source n − 1 the step that made T_n.
        let mut errors: Vec<Vec<f64>> = Vec::with_capacity(size);
        for n in 1..size {
            let [a, b] = [n.div_ceil(2), n / 2];
            let mut error = vec![0.0; size];
            if n > 1 {
                let [value_a, value_b] = [a, b].map(|n| chebyshev::value(n, index, size));
                let odd = f64::from(u8::from(n % 2 == 1));
                for (source, error) in error.iter_mut().enumerate() {
                    *error = 2.0
                        * (value_a * errors[b - 1][source] + value_b * errors[a - 1][source])
                        - odd * errors[0][source];
                }
            }
            error[n - 1] += 1.0;
            fresh += error[0].powi(2);
            rounding += error[1..].iter().map(|error| error * error).sum::<f64>();
            errors.push(error);
        }
    }
    let count = (size * (size - 1)) as f64;
    Growth { fresh: fresh / count, rounding: rounding / count }
}

/// e_k/α^k is the sum of those of the two halves of k, and the rounding of the step: no angle
/// matters. Both parts are doubled.
fn powers_growth(half: usize) -> Growth {
    let (mut fresh, mut rounding) = (0.0, 0.0);
    let mut errors: Vec<Vec<f64>> = Vec::with_capacity(half);
    for k in 1..=half {
        let mut error = vec![0.0; half];
        if k > 1 {
            let [a, b] = [&errors[k.div_ceil(2) - 1], &errors[k / 2 - 1]];
            error.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum = a + b);
        }
        error[k - 1] += 1.0;
        fresh += error[0].powi(2);
        rounding += error[1..].iter().map(|error| error * error).sum::<f64>();
        errors.push(error);
    }
    let count = half as f64 / 4.0;
    Growth { fresh: fresh / count, rounding: rounding / count }
}

/// ‖M‖₂ by power iteration, from below by less than a hundredth in all but contrived cases.
pub(super) fn spectral_norm(table: &[f64], columns: usize) -> f64 {
    let mut vector: Vec<f64> = (0..columns).map(|i| 1.0 + (i % 7) as f64 / 8.0).collect();
    let mut norm = 0.0;
    for _ in 0..50 {
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length == 0.0 {
            return norm;
        }
        vector.iter_mut().for_each(|x| *x /= length);
        let mut next = vec![0.0; columns];
        let mut square = 0.0;
        for row in table.chunks_exact(columns) {
            let dot: f64 = row.iter().zip(&vector).map(|(a, b)| a * b).sum();
            square += dot * dot;
            next.iter_mut().zip(row).for_each(|(sum, value)| *sum += dot * value);
        }
        norm = square.sqrt();
        vector = next;
    }
    norm
}

/// Condition (13) of the paper, corollary C.3: the scale that suffices for an error of
/// 1/`inverse_error` in every row, with C_PCMM of the sums, C_V of the functions, C_T of the table,
/// and C_0 of the inputs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScaleSelection {
    /// p.
    pub rows: usize,
    /// d.
    pub columns: usize,
    /// u.
    pub inverse_error: f64,
    /// C_PCMM.
    pub sums: f64,
    /// C_V.
    pub functions: f64,
    /// C_T.
    pub table: f64,
    /// C_0 = 19.2 √N for a fresh ciphertext.
    pub input: f64,
}

impl ScaleSelection {
    /// Δ.
    pub fn scale(&self) -> f64 {
        let (p, d) = (self.rows as f64, self.columns as f64);
        let table = self.functions * self.table * (d.sqrt() + p.sqrt()) / d.sqrt();
        self.inverse_error * (self.sums + table * (p + 2.0) / 12f64.sqrt() * self.input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Condition (3) of the paper, with equality.
    #[test]
    fn the_selected_scale_spends_the_whole_error() {
        let choice = ScaleSelection {
            rows: 1024,
            columns: 300,
            inverse_error: 1e4,
            sums: 3.0,
            functions: 1.5,
            table: 0.7,
            input: 19.2 * f64::exp2(7.0),
        };
        let delta = choice.scale();
        let (p, d) = (1024.0f64, 300.0f64);
        let table = 0.7 * (d.sqrt() + p.sqrt()) / d.sqrt();
        let error = 3.0 / delta + table * 1.5 * (p + 2.0) / 12f64.sqrt() * choice.input / delta;
        assert!((error * 1e4 - 1.0).abs() < 1e-12);
        // Twice the precision is one bit of scale.
        let finer = ScaleSelection { inverse_error: 2e4, ..choice };
        assert!((finer.scale() / delta - 2.0).abs() < 1e-12);
    }

    #[test]
    fn spectral_norms_are_those_of_known_matrices() {
        // An outer product has one singular value, the product of two lengths; a diagonal matrix
        // has its largest entry.
        let product: Vec<f64> =
            (1..=6).flat_map(|i| (1..=4).map(move |j| (i * j) as f64)).collect();
        let expected = (91.0f64 * 30.0).sqrt();
        assert!((spectral_norm(&product, 4) / expected - 1.0).abs() < 1e-12);
        let diagonal: Vec<f64> =
            (0..25).map(|i| if i % 6 == 0 { 1.0 + (i / 6) as f64 } else { 0.0 }).collect();
        assert!((spectral_norm(&diagonal, 5) / 5.0 - 1.0).abs() < 1e-3);
        assert_eq!(spectral_norm(&[0.0; 12], 3), 0.0);
    }

    /// The derivative of α^k is k α^(k−1), that of T_n at cos θ is n sin nθ / sin θ.
    #[test]
    fn fresh_errors_grow_as_derivatives_do() {
        let half = 16;
        let squares: f64 = (1..=half).map(|k| (k * k) as f64).sum();
        assert!((powers_growth(half).fresh - 4.0 * squares / half as f64).abs() < 1e-9);
        for size in [3, 8, 32] {
            let mut expected = 0.0;
            for index in 0..size {
                let angle = core::f64::consts::PI * (2 * index + 1) as f64 / (2 * size) as f64;
                for n in 1..size {
                    expected += (n as f64 * (n as f64 * angle).sin() / angle.sin()).powi(2);
                }
            }
            expected /= (size * (size - 1)) as f64;
            let fresh = chebyshev_growth(size).fresh;
            assert!((fresh / expected - 1.0).abs() < 1e-9, "{size}: {fresh}, {expected}");
        }
    }
}
