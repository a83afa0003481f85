//! Bounds on the error of a score, ring form, by layout and scales.
//!
//! # The noise T of the tree
//!
//! A key switch multiplies a digit of at most q/2 with key noise, divides by P ≈ q and rounds: variance w =
//! Nσ²/12 + (1 + 2N/3)/12. A step maps (e, τe) to e ± τe, which doubles the average energy of noise; the message doubles
//! in *amplitude*. With the noise w_j of step j doubled by those that follow,
//!
//! T² = G (σ² + Σ_j w_j 2^(−1−j)) on average.
//!
//! Seven eighths come from the first three steps. Two digits of 25 bits leave w = (1 + 2N/3)/12 there, cost 2% of
//! an expansion, and take T at level 7 from 61 to 25 per √G. T_max is the same sum over the largest values, 29N/2 +
//! (1 + N)/2 for a whole residue and little more than (1 + N)/2 for two digits.
//!
//! # The sources of error
//!
//! Five sources, in units of 2^k Δq Δx. V_b is the number of vectors of a block, m of its polynomials, G = 2^k.
//!
//! |source|variance (typical)|always at most|
//! |---|---|---|
//! |noise e_r of the vectors, times the query|(σ G Δq)²|29 G (Δq √d + d/2)|
//! |noise T of the tree, times the vectors of the block|V_b Δx² T²|V_b (Δx √d + d/2) T_max|
//! |both noises|m N σ² T²|29 m N T_max|
//! |quantisation of both sides|G² \[ (Δx² + Δq²)/12 + d/144 ]|G \[ ½√d (Δx + Δq) + d/4 ]|
//! |response of version 1, step 2^26, of U and of V times t|2^52 (1 + 2N/3)/12|2^26 (1 + N)/2|
//! |response of version 2, step S = 2^(50−v)|S² (2^12 + 2N/3)/12|S (2^6 + N)/2|
//!
//! The first and third vanish in `sealed-query`.

use super::galois::{DIGIT_BITS, FINE_LEVELS};
use super::{AnswerWords, DEGREE, Layout, PRIME_BITS, Ring};
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

/// The share of an error's variance that rounding an answer may add.
const ROUNDING_SHARE: f64 = 1.0 / 6.0;

/// An error: its variance, and what it is at most.
#[derive(Clone, Copy)]
struct Part {
    variance: f64,
    worst: f64,
}

impl Ring {
    /// The error of a score of two unit vectors whose answer comes in `words`, from the sources above.
    ///
    /// With Σ_r (Δx D_r + e_r)(2^k Δq q_r + e'_r): σ² of e times ‖q‖², the tree's noise times the
    /// energy of all the vectors of a block, the product of both noises, quantisation on both
    /// sides, and the rounded answer.
    pub fn error_bound(
        layout: &Layout,
        vectors: Vectors,
        scales: Scales,
        words: AnswerWords,
    ) -> ErrorBound {
        let (product, answer) = (product(layout, vectors, scales), rounding(words));
        let unit = unit(layout, scales);
        let variance = product.variance + answer.variance;
        ErrorBound::new((product.worst + answer.worst) / unit, variance.sqrt() / unit)
    }

    /// The shortest words whose rounding adds no more than a sixth to the variance of a score at this
    /// level, a twelfth to its deviation; the longest ones where none are long enough.
    pub fn answer_words(layout: &Layout, vectors: Vectors, scales: Scales) -> AnswerWords {
        let allowed = ROUNDING_SHARE * product(layout, vectors, scales).variance;
        let widths = AnswerWords::LINEAR;
        let widths = widths.filter_map(|linear| AnswerWords::new(linear).ok());
        let mut longest = AnswerWords::FIRST;
        for words in widths {
            longest = words;
            if rounding(words).variance <= allowed {
                break;
            }
        }
        longest
    }

    /// What scores of sealed rows at this level say about noise that outlives them, in answers of
    /// these `words`, and what a server may add unseen. Rounding U says nothing: who rounds it knows by
    /// how much.
    pub fn hints(layout: &Layout, scales: Scales, words: AnswerWords) -> Hints {
        let (n, x) = (DEGREE as f64, scales.vector);
        let (tree_variance, _) = tree_noise(layout);
        let key = layout.vectors_per_block() as f64 * x * x * tree_variance
            + layout.nodes() as f64 * n * GAUSSIAN_SIGMA.powi(2) * tree_variance
            + rounding_of_linear(words);
        let key = key * (1.0 + UNSEEN * UNSEEN);
        Hints { row: GAUSSIAN_SIGMA / x, key: key.sqrt() / unit(layout, scales) }
    }
}

/// Deviations of a score's noise by which a server may move scores, by multiples of the query key that it
/// chooses, in query after query: ten such queries pass the check with 2⁻⁴⁰
/// (`docs/sealed.md`, section 4.5).
const UNSEEN: f64 = 3.0;

/// The noise of scores of one level that no sum of rows takes off, as variances of the integers
/// that an answer opens to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScoreNoise {
    /// What a score of one is.
    unit: f64,
    /// Of the tree's noise times one row of the block.
    shared: f64,
    /// Of the tree's noise times that of the rows, of the answer's rounding, and of a fold.
    fixed: f64,
    /// Of a row's own noise times the query.
    own: f64,
    /// Of a query as the nodes hold it, squared.
    asked: f64,
    /// What rounding rows and queries makes scores longer.
    slack: f64,
    /// Whether dimensions have signs.
    signed: bool,
}

impl ScoreNoise {
    /// At this level, of answers in these `words`, to an owner whose mask sums are exact. `signed` says
    /// whether dimensions have signs.
    pub fn of(
        layout: &Layout,
        vectors: Vectors,
        scales: Scales,
        words: AnswerWords,
        signed: bool,
    ) -> Self {
        let (n, d) = (DEGREE as f64, layout.dimension() as f64);
        let growth = f64::exp2(f64::from(layout.level()));
        let sigma = match vectors {
            Vectors::Sealed => GAUSSIAN_SIGMA,
            Vectors::Plain => 0.0,
        };
        let (tree_variance, _) = tree_noise(layout);
        let (x, q, half) = (scales.vector, scales.query, 0.5 * d.sqrt());
        ScoreNoise {
            unit: unit(layout, scales),
            shared: x * x * tree_variance,
            fixed: layout.nodes() as f64 * n * sigma.powi(2) * tree_variance
                + rounding(words).variance,
            own: (sigma * growth * q).powi(2),
            asked: (growth * q).powi(2),
            slack: growth * ((x + half) * (q + half) - x * q),
            signed,
        }
    }

    /// The same of answers that came through something of this variance, such as a fold of clusters.
    pub fn with(self, variance: f64) -> Self {
        ScoreNoise { fixed: self.fixed + variance, ..self }
    }

    /// Whether dimensions have signs.
    #[doc(hidden)]
    pub fn signed(&self) -> bool {
        self.signed
    }

    /// Of a score in a block of so many rows: not the row's own noise.
    #[doc(hidden)]
    pub fn variance(&self, rows: usize) -> f64 {
        self.shared * rows.saturating_sub(1) as f64 + self.fixed
    }

    /// Of a check whose sums were rounded by so many bits, beyond that of the scores it weighs.
    #[doc(hidden)]
    pub fn of_rounding(&self, bits: u8) -> f64 {
        self.asked * f64::exp2(2.0 * f64::from(bits)) / 12.0
    }

    /// The same with the row's own.
    pub(super) fn of_row(&self, rows: usize) -> f64 {
        self.variance(rows) + self.shared + self.own
    }

    /// No score in a block of so many rows is larger, but with so many deviations.
    #[doc(hidden)]
    pub fn largest(&self, rows: usize, deviations: f64) -> f64 {
        self.unit + self.slack + deviations * self.of_row(rows).sqrt()
    }
}

/// What a score of one is at this level.
fn unit(layout: &Layout, scales: Scales) -> f64 {
    f64::exp2(f64::from(layout.level())) * scales.vector * scales.query
}

/// The error of a score before its answer is rounded.
fn product(layout: &Layout, vectors: Vectors, scales: Scales) -> Part {
    let (n, d) = (DEGREE as f64, layout.dimension() as f64);
    let growth = f64::exp2(f64::from(layout.level()));
    let (x, q) = (scales.vector, scales.query);
    let per_block = layout.vectors_per_block() as f64;
    let nodes = layout.nodes() as f64;
    let (sigma, sigma_max) = match vectors {
        Vectors::Sealed => (GAUSSIAN_SIGMA, f64::from(GAUSSIAN_BOUND)),
        Vectors::Plain => (0.0, 0.0),
    };
    let (tree_variance, tree_max) = tree_noise(layout);
    let variance = (sigma * growth * q).powi(2)
        + per_block * x * x * tree_variance
        + nodes * n * sigma.powi(2) * tree_variance
        + growth.powi(2) * ((x * x + q * q) / 12.0 + d / 144.0);
    let worst = growth * (q * d.sqrt() + d / 2.0) * sigma_max
        + per_block * (x * d.sqrt() + d / 2.0) * tree_max
        + nodes * n * sigma_max * tree_max
        + growth * (0.5 * d.sqrt() * (x + q) + 0.25 * d);
    Part { variance, worst }
}

/// Variance of the error of rounding V, times t.
fn rounding_of_linear(words: AnswerWords) -> f64 {
    let step = f64::exp2(f64::from(PRIME_BITS) - f64::from(words.linear()));
    step * step * DEGREE as f64 * 2.0 / 3.0 / 12.0
}

/// The error of rounding U and V times t, whose coefficients have the energy 2N/3 and N at most.
fn rounding(words: AnswerWords) -> Part {
    let n = DEGREE as f64;
    let step = |bits| f64::exp2(f64::from(PRIME_BITS) - f64::from(bits));
    let constant = step(words.constant());
    Part {
        variance: constant.powi(2) / 12.0 + rounding_of_linear(words),
        worst: (constant + n * step(words.linear())) / 2.0,
    }
}

/// Average variance of a coefficient of a node's noise, and its largest value.
fn tree_noise(layout: &Layout) -> (f64, f64) {
    noise_of_tree(layout.level(), FINE_LEVELS)
}

/// The same at a level of a tree whose first `fine` steps take two digits.
pub(in crate::lattice) fn noise_of_tree(levels: u8, fine_levels: u8) -> (f64, f64) {
    let n = DEGREE as f64;
    let growth = f64::exp2(f64::from(levels));
    let bound = f64::from(GAUSSIAN_BOUND);
    // A key switch: Σ digit · e / P, plus rounding times (1, t). A whole residue as digit,
    // |digit| ≤ q/2 and q ≈ P, shows; digits of 25 bits do not.
    let (rounding, rounding_max) = ((1.0 + n * 2.0 / 3.0) / 12.0, (1.0 + n) / 2.0);
    let (whole, whole_max) = (n * GAUSSIAN_SIGMA.powi(2) / 12.0, n * bound / 2.0);
    let small = f64::exp2(f64::from(DIGIT_BITS) - f64::from(PRIME_BITS));
    let (mut switch_variance, mut switch_max) = (0.0, 0.0);
    for level in 0..levels {
        // Step j is followed by k − 1 − j more, each of which doubles its noise like the
        // message.
        let weight = f64::exp2(-1.0 - f64::from(level));
        let fine = level < fine_levels;
        let energy = if fine { 8.0 * whole * small * small } else { whole };
        let peak = if fine { 4.0 * whole_max * small } else { whole_max };
        switch_variance += weight * (energy + rounding);
        switch_max += weight * (peak + rounding_max);
    }
    let tree_variance = growth * (GAUSSIAN_SIGMA.powi(2) + switch_variance);
    let tree_max = growth * (bound + switch_max);
    (tree_variance, tree_max)
}
