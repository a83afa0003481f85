//! Bound of the noise of a fetched record, for both sides (`docs/sealed.md`, section 7.4).

use super::answer::ANSWER_BITS;
use super::keys::FINE_LEVELS;
use super::selector::GADGET;
use super::{PAYLOAD_BITS, Shape};
use crate::error::Result;
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
        // A digit's mean square, a twelfth of its range's; q is even less.
        let digit = f64::exp2(2.0 * f64::from(GADGET.bits)) / 12.0;
        let secret = n * 2.0 / 3.0;
        // The key of t² takes the whole residue as its digit.
        let (one_step, _) = noise_of_tree(1, 0);
        let times_secret = secret * tree + one_step / 2.0;
        let rest = |index| f64::exp2(2.0 * f64::from(GADGET.place(index))) / 12.0;
        let count = f64::from(GADGET.count);
        let product =
            n * digit * ((count - 1.0) * tree + count * times_secret) + rest(1) + secret * rest(0);
        let fold = f64::from(shape.column_bits()) * product;
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
