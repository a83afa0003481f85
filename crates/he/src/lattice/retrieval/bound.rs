//! Bound of the noise of a fetched record, for both sides (`docs/sealed.md`, section 7.4).
//!
//! # The noise
//!
//! T² is the average energy of a leaf's noise (`ring/bound.rs`); the first five steps of the tree take
//! two digits. t has the energy 2N/3.
//!
//! |source|variance of a coefficient|
//! |---|---|
//! |scan: a leaf's noise times D|G N T² 2^28/12|
//! |fold, for each bit: rows of m|3 N T² 2^14/12|
//! |rows of m t: t times a leaf's noise, and the switch from t², w = Nσ²/12 + (1 + 2N/3)/12|4 N (2N/3 T² + w) 2^14/12|
//! |what the digits leave out of u, and of v times t|2^58/12 + 2N/3 · 2^44/12|
//! |words of u, and of v times t|2^62/12 + 2N/3 · 2^50/12|
//!
//! A record is read wrongly where noise exceeds q/2^15 = 2^35. As log2 of standard deviations:
//!
//! |nodes, fetches a ciphertext, bits of a column|scan|fold|words|all|deviations to 2^35|chance of a wrong record|
//! |---|---:|---:|---:|---:|---:|---:|
//! |228, one, 7 (1 KB of 200,000)|30.3|28.8|29.6|30.6|21.1|2⁻³⁰⁸|
//! |228, four, 7 (ten of them)|31.3|29.1|29.6|31.4|11.9|2⁻⁸⁹|
//! |216, one, 10 (1 KB of a million)|30.3|29.1|29.6|30.6|21.1|2⁻³⁰⁷|
//! |256, three, 12 (most that a shape may be made to have)|31.4|29.5|29.6|31.5|11.2|2⁻⁷⁶|
//!
//! **2⁻⁶⁴ an answer is what every shape keeps** (a test enumerates them). The chance is 2 · 4,096 exp(−z²/2) a
//! layer: D is uniform and independent of the leaves' noise, and a sum of uniform numbers has the tail of a
//! Gaussian of its variance. That digits are uniform and independent of the rows' noise, and that a leaf's energy
//! is its average, are heuristics; the tests find deviations within a tenth of these, at the extremes.
//! `RetrievalNoise` in `crates/he/src/lattice/retrieval/bound.rs` computes them.

use super::answer::ANSWER_BITS;
use super::keys::FINE_LEVELS;
use super::selector::GADGET;
use super::{ChoiceShape, PAYLOAD_BITS, Shape};
use crate::error::Result;
use crate::lattice::ring::inner::FINE_LEVELS as SEARCH_FINE_LEVELS;
use crate::lattice::ring::{DEGREE, PRIME_BITS, noise_of_tree};

/// Standard deviations of the noise of one coefficient of an answer, where half of q is one half.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetrievalNoise {
    /// Of the nodes' noise times the column.
    pub scan: f64,
    /// Of the selectors' noise, and what the digits leave out.
    pub fold: f64,
    /// Of rounding the answer.
    pub rounding: f64,
}

impl RetrievalNoise {
    /// Of so many fetches in one query. Ciphertexts with most fetches have most noise.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for no fetches.
    pub fn of(shape: &Shape, fetches: usize) -> Result<Self> {
        let (n, q) = (DEGREE as f64, f64::exp2(f64::from(PRIME_BITS)));
        let layout = shape.layout(fetches.min(shape.fetches_per_ciphertext()))?;
        let (tree, _) = noise_of_tree(layout.level(), FINE_LEVELS);
        let payload = f64::exp2(2.0 * f64::from(PAYLOAD_BITS)) / 12.0;
        let scan = shape.nodes() as f64 * n * payload * tree;
        let secret = n * 2.0 / 3.0;
        let fold =
            FoldNoise::of_tree(shape.column_bits() as usize, layout.level(), FINE_LEVELS).variance;
        let step = |bits| f64::exp2(2.0 * (f64::from(PRIME_BITS) - f64::from(bits))) / 12.0;
        let rounding = step(ANSWER_BITS[0]) + secret * step(ANSWER_BITS[1]);
        let [scan, fold, rounding] = [scan, fold, rounding].map(|part: f64| part.sqrt() / q);
        Ok(RetrievalNoise { scan, fold, rounding })
    }

    /// Of all together.
    pub fn total(&self) -> f64 {
        (self.scan.powi(2) + self.fold.powi(2) + self.rounding.powi(2)).sqrt()
    }

    /// Deviations from which a coefficient is read wrongly.
    pub fn deviations(&self) -> f64 {
        f64::exp2(-1.0 - f64::from(PAYLOAD_BITS)) / self.total()
    }

    /// log2 of the chance that any coefficient of an answer of so many layers is read wrongly, at most.
    pub fn failure(&self, layers: usize) -> f64 {
        // P(|x| > z) <= 2 exp(-z²/2).
        let coefficients = (2 * layers * DEGREE) as f64;
        coefficients.log2() - self.deviations().powi(2) / 2.0 * core::f64::consts::LOG2_E
    }
}

/// What a fold by some bits adds to a coefficient of the integers that an answer opens to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FoldNoise {
    /// On average.
    pub variance: f64,
    /// Its largest value.
    pub worst: f64,
}

impl FoldNoise {
    /// Of clusters folded by a choice of this shape, which the trees of a search's query keys carry.
    pub fn of_choice(shape: &ChoiceShape) -> Self {
        Self::of_tree(shape.bits(), shape.level(), SEARCH_FINE_LEVELS)
    }

    /// By so many bits, whose digits are leaves of a tree of this level.
    fn of_tree(bits: usize, level: u8, fine_levels: u8) -> Self {
        let (n, bits, count) = (DEGREE as f64, bits as f64, f64::from(GADGET.count));
        let (tree, tree_max) = noise_of_tree(level, fine_levels);
        // The key of t² takes the whole residue as its digit.
        let (one_step, one_step_max) = noise_of_tree(1, 0);
        // A digit's mean square, a twelfth of its range's; q is even less.
        let digit = f64::exp2(2.0 * f64::from(GADGET.bits)) / 12.0;
        let digit_max = f64::exp2(f64::from(GADGET.bits) - 1.0);
        let secret = n * 2.0 / 3.0;
        let times_secret = secret * tree + one_step / 2.0;
        let rest = |index| f64::exp2(2.0 * f64::from(GADGET.place(index))) / 12.0;
        let rest_max = |index| f64::exp2(f64::from(GADGET.place(index)) - 1.0);
        let variance =
            n * digit * ((count - 1.0) * tree + count * times_secret) + rest(1) + secret * rest(0);
        let worst =
            n * digit_max * ((count - 1.0) * tree_max + count * (n * tree_max + one_step_max))
                + rest_max(1)
                + n * rest_max(0);
        FoldNoise { variance: bits * variance, worst: bits * worst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::retrieval::{MAX_NODES, MAX_POLYNOMIALS, MAX_RECORD, PAYLOAD_BYTES};

    #[test]
    fn every_shape_fails_with_two_to_the_minus_64_at_most() {
        let mut worst = f64::NEG_INFINITY;
        for record_len in [1, 1024, PAYLOAD_BYTES, MAX_RECORD] {
            for polynomials in (0..=20).map(|exponent| 1usize << exponent) {
                assert!(polynomials <= MAX_POLYNOMIALS);
                let records = polynomials * (PAYLOAD_BYTES / record_len).max(1);
                let nodes = (0..=MAX_NODES.ilog2()).map(|bits| 1usize << bits);
                let nodes = nodes.filter(|nodes| polynomials / nodes <= 1 << 12);
                let mut shapes: Vec<Shape> = nodes
                    .map(|nodes| Shape::with_nodes([0; 16], records, record_len, nodes).unwrap())
                    .collect();
                shapes.push(Shape::new([0; 16], records, record_len).unwrap());
                for (shape, fetches) in
                    shapes.iter().flat_map(|shape| (1..=16).map(move |fetches| (shape, fetches)))
                {
                    let noise = RetrievalNoise::of(shape, fetches).unwrap();
                    worst = worst.max(noise.failure(16 * shape.layers()));
                }
            }
        }
        assert!(worst < -64.0, "{worst}");
    }
}
