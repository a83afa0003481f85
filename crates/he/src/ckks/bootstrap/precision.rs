//! How far a refreshed number is off, from the errors of transforms and of the reduction.
//!
//! docs/ckks.md, sections 10.5 to 10.7, has the results.
//!
//! # The terms
//!
//! Let ρ = √((1 + 2N/3)/12 · N/2), the standard deviation of the real part of a slot of a rounded
//! ciphertext. The real part of z is off by:
//!
//! |term|standard deviation|
//! |---|---|
//! |slots-to-coefficients: each product switches keys of its operand, for which ρ is that of docs/ckks.md, section 5, and rounds its result, at scale s, after products of gain G|ρ/(s G)|
//! |its diagonals, count c, of d coefficients, mean square of a row's norm a, plaintext scale t|√(c d/(12 a))/t|
//! |the key to the sparse secret|(√(N/12) σ q_0/p, and √(33/12))/Δ'|
//! |the key back from it|√((1 + 2N/3)/12)/Δ'|
//! |coefficients-to-slots|as above with the gain still to come, diagonals times √(33/12); all times 1/ε(1) = q_0/Δ'|
//! |the reduction: a rescale to the scale S_i is off by ρ/S_i|√2 q_0/(g Δ') · √(Σ_i (∂f/∂e_i · ρ/S_i)²)|
//!
//! The derivatives ∂f/∂e_i of the result by the error of each rescale come from one evaluation on
//! values with derivatives (`trace.rs`), at each integer from −K to K, averaged with the weights of
//! I. √2, because the second result's imaginary part counts too. The curvature and the polynomial's
//! error are added.
//!
//! # Few slots
//!
//! n ≤ N/4 slots that repeat are a message in Y = X^(N/2n). After raising, the sum over log2(N/2n)
//! rotations by multiples of n leaves the coefficients of powers of Y, each N/2n times. The last
//! product leaves (w, −iw) in 2n slots: with its conjugate added, twice the real parts in the first
//! half and the imaginary ones in the second, so that one reduction serves both; one more level
//! adds them up. Only 2n coefficients can fail. `precision_bits` counts errors of the reduction
//! over √(N/4n), as reading takes the mean of repetitions.
//!
//! # Twice, for more precision
//!
//! Let m = t (k − 1) for k iterations. Δ' is chosen such that the reduction ends at 2^−m times the
//! canonical scale of the level below. The first result is multiplied by the integer 2^m, the next
//! by 2^(m − t), the last by 1: sums are exact and no iteration takes a level. With δ_i the error
//! of iteration i alone, as above, and d that of the rescale which takes x' down,
//!
//! ```text
//! δ = 2^−m δ_k + d ,        std(d) = ρ/Δ .
//! ```
//!
//! d is −31.6 bits at N = 2^16 and Δ = 2^45. The reduction's last rescale counts as one at Δ; one
//! to S_i counts by ∂f/∂e_i · √2 q_0/(g Δ' 2^m) = ∂f/∂e_i · √2 S/Δ. So precision depends on S, the
//! lowest scale of the reduction, here 2^40. A set needs 2^t (√2 (9.5 σ + curvature) + 9.5 √2
//! std(d) 2^(m−t)) ≤ 1.

use super::super::params::Params;
use super::super::spec::Ring;
use super::failure::{self, terms, weight};
use super::reduction::Reduction;
use super::transform::CompactTransform;
use crate::error::{Error, Result};
use crate::params::TAIL_DEVIATIONS;
use ciphervec_arith::sample::GAUSSIAN_SIGMA;

/// What x is the sum of in the standard ring.
pub(super) const TERMS: u32 = terms(Ring::Standard);

/// log2 of the chance in a bootstrapping below which a multiple is not counted in a bound.
const UNSEEN_LOG2: f64 = -64.0;

/// How far the real part of a refreshed number of magnitude 1 is off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Precision {
    /// The standard deviation, the multiples of q_0 distributed as they are.
    pub std: f64,
    /// The standard deviation at the worst multiple.
    pub worst: f64,
    /// What the series and the curvature of the sine leave of a number 1: the root of the mean of
    /// squares over the multiples, and the most.
    pub curvature: [f64; 2],
    /// What rounded diagonals have in `std` and in `worst`: alike wherever slots repeat.
    rounded: [f64; 2],
    /// The real numbers of a slot.
    parts: f64,
}

/// How large the numbers are that are refreshed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Magnitudes {
    /// Parts spread as numbers that are uniform in ± this.
    pub uniform: f64,
    /// No number is larger.
    pub most: f64,
}

impl Magnitudes {
    /// Parts uniform in [−1, 1].
    pub const UNIT: Self = Magnitudes { uniform: 1.0, most: 1.0 };
}

/// What comes before a reduction, or another function of period 1.
pub(super) struct Parts<'a> {
    pub params: &'a Params,
    pub slots_to_coefficients: &'a [CompactTransform],
    pub coefficients_to_slots: &'a [CompactTransform],
    /// How often slots repeat.
    pub repeats: f64,
    /// The scale of the numbers modulo q_0.
    pub base_scale: f64,
    /// The level that what follows ends on, and the scale that its result has there.
    pub end: (usize, f64),
}

impl Parts<'_> {
    /// The standard deviation of a coefficient of a rounded ciphertext under the dense secret.
    fn rounding(&self) -> f64 {
        ((1.0 + self.params.expansion() * 2.0 / 3.0) / 12.0).sqrt()
    }

    /// That of the real part of its slots.
    fn slot_rounding(&self) -> f64 {
        self.rounding() * self.params.part_expansion().sqrt()
    }

    /// The variance that the products of a transform add to the real part of what comes out, for
    /// vectors of `rms` there: `scales` are those of the operands and of the result.
    ///
    /// An error that is there before product t is multiplied by all products from t on, each a
    /// multiple of a unitary matrix: by `gain`. The hoisted rotations of an operand switch keys, and
    /// each rescale rounds the result.
    fn transform(
        &self,
        transforms: &[CompactTransform],
        scales: &[f64],
        rms: f64,
        whole: f64,
    ) -> f64 {
        let rounding = self.slot_rounding();
        let spread = self.params.part_expansion().sqrt();
        let mut gain = whole;
        let mut variance = 0.0;
        for (t, transform) in transforms.iter().enumerate() {
            let switched = spread * self.params.chain().switch_noise(transform.level()).std;
            variance += (switched * gain / scales[t]).powi(2);
            gain /= transform.gain();
            variance += (rounding * gain / scales[t + 1]).powi(2);
        }
        variance + self.rounded(transforms, rms)
    }

    /// What rounded diagonals add of that.
    fn rounded(&self, transforms: &[CompactTransform], rms: f64) -> f64 {
        let (expansion, degree) = (self.params.expansion(), self.params.degree());
        transforms.iter().map(|t| (t.rounding(expansion, degree) * rms).powi(2)).sum()
    }

    /// The scales of the operands and of the last result, from `first` on.
    fn scales(&self, transforms: &[CompactTransform], first: f64) -> Vec<f64> {
        let mut scales = vec![first];
        for transform in transforms {
            let prime = self.params.prime(transform.level()).value() as f64;
            scales.push(scales[scales.len() - 1] * transform.scale() / prime);
        }
        scales
    }

    /// The variance of the real part of a number as it comes to be a coefficient modulo q_0, relative
    /// to 1: slots-to-coefficients, from numbers of magnitude `uniform` at the scale `spent`, and the
    /// keys to the sparse secret and back.
    pub fn below(&self, spent: f64, uniform: f64) -> f64 {
        // For coefficients the product of all gains is 1.
        let scales = self.scales(self.slots_to_coefficients, spent);
        self.transform(self.slots_to_coefficients, &scales, uniform, 1.0) + self.switched()
    }

    /// The part of [`Self::below`] that numbers have which are coefficients modulo q_0 already.
    pub fn switched(&self) -> f64 {
        let params = self.params;
        let q = params.prime(0).value() as f64;
        let p = params.special_tables()[0].modulus().value() as f64;
        // Under the sparse secret: the key's error times a digit, divided by p, and a rounding.
        let switched = params.expansion() * (GAUSSIAN_SIGMA * q / p).powi(2) / 12.0;
        let rounded = failure::deviation(params.ring()).powi(2);
        (switched + rounded + self.rounding().powi(2)) / self.base_scale.powi(2)
    }

    /// What a rotation of coefficients modulo q_0 adds to their variance.
    pub fn placed(&self) -> f64 {
        (self.params.chain().switch_noise(0).std / self.base_scale).powi(2)
    }

    /// The variance of x as coefficients-to-slots leaves it, before its last rescale.
    pub fn above(&self) -> f64 {
        let rms = failure::deviation(self.params.ring());
        let transforms = self.coefficients_to_slots;
        let base = self.params.prime(0).value() as f64;
        // A trace makes x larger, and so in effect its scale; its key switches leave at most 1/√3 of
        // what one leaves on a number that large.
        let mut scales = self.scales(transforms, base * self.repeats);
        // The last rescale is that of u, which counts with the function that follows.
        if let Some(last) = scales.last_mut() {
            *last = f64::INFINITY;
        }
        let whole: f64 = transforms.iter().map(CompactTransform::gain).product();
        let traced = if self.repeats > 1.0 {
            let spread = self.params.part_expansion().sqrt();
            let switched = self.params.chain().switch_noise(self.params.max_level()).std;
            (spread * switched * whole / base).powi(2) / 3.0
        } else {
            0.0
        };
        traced + self.transform(transforms, &scales, rms, whole)
    }

    /// The level of u, and the standard deviation of a part of what rescales add there.
    pub fn rescale(&self) -> (usize, f64) {
        let levels = self.coefficients_to_slots.iter().map(CompactTransform::level);
        let top = levels.min().unwrap_or(1) - 1;
        (top, self.slot_rounding() / self.params.scale(top))
    }

    /// The standard deviations of a part of what rescales add at these levels.
    pub fn sizes(&self, levels: &[usize]) -> Vec<f64> {
        let (end, last) = self.end;
        let scale = |level: usize| if level == end { last } else { self.params.scale(level) };
        levels.iter().map(|&level| self.slot_rounding() / scale(level)).collect()
    }

    /// How far numbers of these magnitudes, at the scale `spent`, are off when `reduction` has
    /// refreshed them.
    pub fn precision(
        &self,
        reduction: &Reduction,
        spent: f64,
        magnitudes: Magnitudes,
    ) -> Result<Precision> {
        let Magnitudes { uniform, most: largest } = magnitudes;
        // ε of a number 1.
        let unit = self.base_scale / self.params.prime(0).value() as f64;
        let (below, x) = (self.below(spent, uniform), self.above());

        // x over its divisor with a rescale, and the reduction.
        let (top, rescale) = self.rescale();
        let input = (rescale.powi(2) + x / reduction.divisor().powi(2)).sqrt();
        let (points, traced, levels) = reduction.at_integers(top)?;
        let sizes = self.sizes(&levels);
        let back = 1.0 / (reduction.slope() * unit);
        // Both results are complex numbers, of which one part is read and one is not; the sum of
        // the one and i times the other has an error of each. Where slots are real there is one.
        let ring = self.params.ring();
        let parts = ring.parts() as f64;
        let variance = |point: usize| {
            let (by_input, rescales) =
                (traced.by_input(point).norm(), traced.by_sizes(point, &sizes));
            parts * back.powi(2) * ((by_input * input).powi(2) + rescales.powi(2))
        };
        let weights: Vec<f64> = points.iter().map(|&x| weight(terms(ring), x)).collect();
        let mean = |value: &dyn Fn(usize) -> f64| -> f64 {
            weights.iter().enumerate().map(|(point, w)| w * value(point)).sum()
        };
        // Multiples that no coefficient has but with a chance far below that of 9.5 deviations.
        let coefficients = self.params.spec().log_degree;
        let seen = |x: f64| failure::lost_log2(ring, x.abs() - 0.5, coefficients) > UNSEEN_LOG2;
        let most = |value: &dyn Fn(usize) -> f64| {
            (0..points.len()).filter(|&point| seen(points[point])).map(value).fold(0.0, f64::max)
        };
        let [first, second] = [
            self.rounded(self.slots_to_coefficients, uniform),
            self.rounded(self.coefficients_to_slots, failure::deviation(ring))
                / reduction.divisor().powi(2),
        ];
        let rounded =
            |point: usize| first + parts * (back * traced.by_input(point).norm()).powi(2) * second;
        let curvature = |point: usize, size: f64| {
            let series = back * traced.values[point].norm();
            series + reduction.curvature(points[point], unit * size) / unit
        };
        Ok(Precision {
            std: (below + mean(&variance)).sqrt(),
            worst: (below + most(&variance)).sqrt(),
            curvature: [
                mean(&|point| curvature(point, uniform).powi(2)).sqrt(),
                most(&|point| curvature(point, largest)),
            ],
            rounded: [mean(&rounded).sqrt(), most(&rounded).sqrt()],
            parts,
        })
    }
}

/// What the absolute value of a slot of so many parts stays within, in their standard deviations.
fn slot_deviations(parts: f64) -> f64 {
    parts.sqrt() * TAIL_DEVIATIONS
}

/// Iterations of a bootstrapping.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Iterations {
    pub count: usize,
    /// What a residual is multiplied by.
    pub factor: f64,
}

impl Parts<'_> {
    /// [`Self::precision`] of numbers whose parts are uniform in [−1, 1], refreshed so often: each
    /// iteration after the first refreshes what the one before left (docs/ckks.md, section 10.7).
    ///
    /// # Errors
    /// [`Error::Range`] where what is left may be more than 1 when it is multiplied.
    pub fn iterated(
        &self,
        reduction: &Reduction,
        spent: f64,
        iterations: Iterations,
    ) -> Result<Precision> {
        let Iterations { count, factor } = iterations;
        let parts = self.params.ring().parts() as f64;
        // What is refreshed is taken down to `spent` by a rescale, to be subtracted there.
        let formed = self.slot_rounding() / spent;
        let mut precision = self.precision(reduction, spent, Magnitudes::UNIT)?;
        let mut shift = 1.0;
        for _ in 1..count {
            shift *= factor;
            let formed = formed * shift;
            let std = (precision.deviation() * factor).hypot(formed);
            let most = precision.bound() * factor + slot_deviations(parts) * formed;
            if most > 1.0 {
                return Err(Error::Range {
                    what: "log2 of what a residual is multiplied by",
                    expected: format!("less by {:.2}, for residuals within ±1", most.log2()),
                    actual: factor.log2().to_string(),
                });
            }
            let magnitudes = Magnitudes { uniform: 3f64.sqrt() * std, most };
            precision = self.precision(reduction, spent, magnitudes)?;
        }
        Ok(precision.reduced(shift, if count > 1 { formed } else { 0.0 }))
    }
}

impl Precision {
    /// Of numbers that are divided by `shift`, with another error of this standard deviation.
    fn reduced(self, shift: f64, added: f64) -> Self {
        let [curvature, rounded] = [self.curvature, self.rounded].map(|two| two.map(|x| x / shift));
        let [std, worst] = [self.std, self.worst].map(|std| (std / shift).hypot(added));
        Precision { std, worst, curvature, rounded, parts: self.parts }
    }

    /// As it is read of slots that repeat so often: what is off in each of them on its own is
    /// averaged.
    pub fn read(mut self, repeats: f64) -> Self {
        let [mean, most] = self.rounded;
        let read =
            |all: f64, alike: f64| ((all.powi(2) - alike.powi(2)) / repeats + alike.powi(2)).sqrt();
        (self.std, self.worst) = (read(self.std, mean), read(self.worst, most));
        self
    }

    /// The root mean square of the error of a part, for parts uniform in [−1, 1]: of what the
    /// curvature leaves, which grows with the cube of the number or faster, that is 1/√7 of the
    /// largest or less.
    pub fn deviation(&self) -> f64 {
        let [mean, _] = self.curvature;
        (self.std.powi(2) + mean.powi(2) / 7.0).sqrt()
    }

    /// A bound on the absolute value of the error of a number.
    pub fn bound(&self) -> f64 {
        let [_, most] = self.curvature;
        slot_deviations(self.parts) * self.worst + self.parts.sqrt() * most
    }
}
