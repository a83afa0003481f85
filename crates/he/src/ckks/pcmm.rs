//! Plaintext matrix times ciphertexts. Ciphertexts and real weights enter, weighted sums of the ciphertexts leave. Server side.
//!
//! The weights are the same in every slot, so a sum is one of integers times residues: no keys, no rotations, and nothing but a
//! matrix product for every prime ([`ciphervec_arith::pcmm`]).

use super::ciphertext::{Ciphertext, Meta};
use super::evaluate::Evaluator;
use super::noise::Noise;
use super::poly::{Ntt, Poly};
use crate::error::{Error, Result};
use ciphervec_arith::pcmm::{self, WEIGHT_BITS, Weights};

/// A matrix of real numbers, as integers and a scale.
#[derive(Clone, Debug)]
pub struct PlainMatrix {
    weights: Weights,
    scale: f64,
}

impl PlainMatrix {
    /// Rounds `rows` to integers below `2^bits` in magnitude: what they are multiplied by first is a power of two, the scale, and
    /// as large as that allows. A weight is off by at most half of its inverse. Up to 22 bits cost nothing on any processor.
    ///
    /// # Errors
    /// [`Error::Range`] for bits outside of 1 to 31, no numbers at all, rows of different lengths, numbers that are not finite,
    /// or none but zeros.
    pub fn new(rows: &[Vec<f64>], bits: u32) -> Result<Self> {
        if !(1..=WEIGHT_BITS).contains(&bits) {
            let expected = format!("from 1 to {WEIGHT_BITS}");
            return Err(Error::Range {
                what: "bits of a weight",
                expected,
                actual: bits.to_string(),
            });
        }
        let columns = rows.first().map_or(0, Vec::len);
        if let Some(row) = rows.iter().find(|row| row.len() != columns) {
            let (expected, actual) = (columns.to_string(), row.len().to_string());
            return Err(Error::Range { what: "numbers in a row", expected, actual });
        }
        let largest = rows.iter().flatten().fold(0.0f64, |largest, w| {
            // A maximum that keeps what is not a number.
            if w.abs() > largest || w.is_nan() { w.abs() } else { largest }
        });
        if !(largest.is_normal() && largest < f64::exp2(900.0)) {
            return Err(Error::Range {
                what: "the largest magnitude of a matrix",
                expected: "positive and finite".into(),
                actual: largest.to_string(),
            });
        }
        let top = f64::exp2(f64::from(bits)) - 1.0;
        let scale = (top / largest).log2().floor().exp2();
        let values: Vec<i64> =
            rows.iter().flatten().map(|w| (w * scale).round_ties_even() as i64).collect();
        Ok(PlainMatrix { weights: Weights::new(rows.len(), columns, &values)?, scale })
    }

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.weights.rows()
    }

    /// Inputs.
    pub fn columns(&self) -> usize {
        self.weights.columns()
    }

    /// What the weights were multiplied by.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

impl Evaluator {
    /// `Σ_i matrix[k][i] inputs[i]` for every row `k`, at the inputs' level and their scale times the matrix's.
    ///
    /// Nothing is rescaled: a result is ready to be decrypted, at whatever low level the inputs were. To go on with it,
    /// [`Self::match_level`] with the level below takes it to the canonical scale, if weights have fewer bits than half a scale.
    ///
    /// # Errors
    /// [`Error::Range`] for another number of inputs than columns, or inputs that differ in level, scale, slots or degree;
    /// [`Error::Level`] if the modulus has no room for the result; [`Error::Parameters`], [`Error::WrongKey`].
    pub fn matrix_product(
        &self,
        matrix: &PlainMatrix,
        inputs: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>> {
        let first = self.alike(matrix, inputs)?;
        let sums: Vec<Sums> =
            (0..matrix.rows()).map(|k| Sums::new(matrix.weights.row(k), inputs)).collect();
        let scale = first.scale() * matrix.scale;
        let largest = sums.iter().map(|sums| sums.magnitude / matrix.scale).fold(0.0, f64::max);
        let needed = scale.log2() + largest.max(1.0).log2() + 1.0;
        let room = self.params().log_modulus(first.level());
        if needed > room {
            return Err(Error::Level {
                operation: "a product with a matrix",
                needed: format!("a modulus of {needed:.0} bits"),
                left: format!("{room:.0} bits at level {} are", first.level()),
            });
        }
        let mut parts: Vec<Vec<Poly<Ntt>>> = vec![Vec::new(); matrix.rows()];
        for index in 0..first.parts().len() {
            for (to, part) in parts.iter_mut().zip(self.products(matrix, inputs, index)) {
                to.push(part);
            }
        }
        let finish = |(parts, sums): (Vec<Poly<Ntt>>, &Sums)| {
            let magnitude = (sums.magnitude / matrix.scale).max(f64::MIN_POSITIVE);
            let noise = sums.noise(self.params().expansion(), first.scale());
            Ciphertext { parts, meta: Meta { scale, noise, magnitude, ..first.meta } }
        };
        Ok(parts.into_iter().zip(&sums).map(finish).collect())
    }

    /// Part `index` of every output.
    fn products(
        &self,
        matrix: &PlainMatrix,
        inputs: &[Ciphertext],
        index: usize,
    ) -> Vec<Poly<Ntt>> {
        let level = inputs[0].level();
        let mut out: Vec<Poly<Ntt>> =
            (0..matrix.rows()).map(|_| Poly::scratch(self.params(), level)).collect();
        for i in 0..=level {
            let rows: Vec<&[u64]> = inputs.iter().map(|x| x.parts()[index].limb(i)).collect();
            let mut sums: Vec<&mut [u64]> = out.iter_mut().map(|poly| poly.limb_mut(i)).collect();
            pcmm::multiply(&matrix.weights, &rows, &mut sums, self.params().prime(i));
        }
        out
    }

    /// The first input, if there are as many as columns and all are of its kind.
    fn alike<'a>(&self, matrix: &PlainMatrix, inputs: &'a [Ciphertext]) -> Result<&'a Ciphertext> {
        let Some(first) = inputs.first().filter(|_| inputs.len() == matrix.columns()) else {
            return Err(Error::Range {
                what: "the number of ciphertexts for a matrix",
                expected: matrix.columns().to_string(),
                actual: inputs.len().to_string(),
            });
        };
        self.params().check_same("a ciphertext", first.params())?;
        let kind = |x: &Ciphertext| (x.level(), x.scale().to_bits(), x.slots(), x.degree());
        for (place, input) in inputs.iter().enumerate() {
            first.check_same(input)?;
            if kind(input) != kind(first) {
                let describe = |x: &Ciphertext| {
                    let (level, slots, degree) = (x.level(), x.slots(), x.degree());
                    let scale = x.scale().log2();
                    format!("level {level}, scale 2^{scale:.9}, {slots} slots, degree {degree}")
                };
                return Err(Error::Range {
                    what: "a ciphertext for a matrix",
                    expected: format!("like the first ({})", describe(first)),
                    actual: format!("{} at place {place}", describe(input)),
                });
            }
        }
        Ok(first)
    }
}

/// What a row of weights does to the estimates of the inputs.
struct Sums {
    /// `Σ w² std²`.
    variance: f64,
    /// `Σ |w| bound`.
    bound: f64,
    /// `Σ |w| M`, `M` the magnitudes.
    magnitude: f64,
    /// `Σ M²` and `Σ M`: what rounding of weights is multiplied by.
    squares: f64,
    inputs: f64,
}

impl Sums {
    fn new(weights: &[i32], inputs: &[Ciphertext]) -> Self {
        let zero = Sums { variance: 0.0, bound: 0.0, magnitude: 0.0, squares: 0.0, inputs: 0.0 };
        weights.iter().zip(inputs).fold(zero, |sums, (&w, x)| {
            let (w, noise, most) = (f64::from(w).abs(), x.noise(), x.magnitude());
            Sums {
                variance: sums.variance + (w * noise.std).powi(2),
                bound: sums.bound + w * noise.bound,
                magnitude: sums.magnitude + w * most,
                squares: sums.squares + most * most,
                inputs: sums.inputs + most,
            }
        })
    }

    /// The noise of the sum; a weight is off by up to 1/2, uniformly.
    fn noise(&self, delta: f64, scale: f64) -> Noise {
        let rounding = self.squares / 12.0 * scale * scale / delta;
        Noise {
            std: (self.variance + rounding).sqrt(),
            bound: self.bound + 0.5 * self.inputs * scale,
        }
    }
}
