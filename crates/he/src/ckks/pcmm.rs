//! Plaintext-ciphertext matrix product: weighted sums of ciphertexts. Server only.
//!
//! The weights are the same in every slot, so a sum is one of integers times residues: no keys, no
//! rotations, and nothing but a matrix product for every prime ([`ciphervec_arith::pcmm`]).

use super::ciphertext::{Ciphertext, Meta};
use super::evaluate::Evaluator;
use super::noise::Noise;
use super::poly::{Ntt, Poly};
use crate::error::{Error, Result};
use ciphervec_arith::pcmm::{self, WEIGHT_BITS, Weights};

/// A matrix of real numbers, as integers and a scale for every row.
#[derive(Clone, Debug)]
pub struct PlainMatrix {
    weights: Weights,
    scales: Vec<f64>,
}

impl PlainMatrix {
    /// Rounds `rows` to integers below `2^bits` in magnitude: what they are multiplied by first is
    /// a power of two, the scale, and as large as that allows. A weight is off by at most half of
    /// its inverse. Up to 22 bits cost nothing on any processor.
    ///
    /// # Errors
    /// [`Error::Range`] for bits outside of 1 to 31, no numbers at all, rows of different lengths,
    /// numbers that are not finite, or none but zeros.
    pub fn new(rows: &[Vec<f64>], bits: u32) -> Result<Self> {
        if !(1..=WEIGHT_BITS).contains(&bits) {
            let expected = format!("from 1 to {WEIGHT_BITS}");
            return Err(Error::Range {
                what: "bits of a weight",
                expected,
                actual: bits.to_string(),
            });
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
        Self::with_scales(rows, &vec![scale; rows.len()])
    }

    /// Rounds row `k` times `scales[k]` to integers: where one knows what the sums may reach, each
    /// can have all of the room that the modulus leaves it.
    ///
    /// # Errors
    /// [`Error::Range`] for rows of different lengths or another number of scales, scales that are
    /// not positive and finite; [`Error::Arith`] for a weight that is not below 2^31 then.
    pub fn with_scales(rows: &[Vec<f64>], scales: &[f64]) -> Result<Self> {
        let columns = rows.first().map_or(0, Vec::len);
        if let Some(row) = rows.iter().find(|row| row.len() != columns) {
            let (expected, actual) = (columns.to_string(), row.len().to_string());
            return Err(Error::Range { what: "numbers in a row", expected, actual });
        }
        if scales.len() != rows.len() {
            let (expected, actual) = (rows.len().to_string(), scales.len().to_string());
            return Err(Error::Range { what: "scales of a matrix", expected, actual });
        }
        if let Some(scale) = scales.iter().find(|scale| !(scale.is_finite() && **scale > 0.0)) {
            return Err(Error::Range {
                what: "the scale of a row",
                expected: "positive and finite".into(),
                actual: scale.to_string(),
            });
        }
        let round = |(row, scale): (&Vec<f64>, &f64)| -> Vec<i64> {
            row.iter().map(|w| (w * scale).round_ties_even() as i64).collect()
        };
        let values: Vec<i64> = rows.iter().zip(scales).flat_map(round).collect();
        Ok(PlainMatrix {
            weights: Weights::new(rows.len(), columns, &values)?,
            scales: scales.to_vec(),
        })
    }

    pub(super) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The noise of a row's sum, in units of the sum's coefficients, and a bound on its values.
    pub(super) fn estimate(&self, row: usize, inputs: &[Ciphertext], delta: f64) -> (Noise, f64) {
        let sums = Sums::new(self.weights.row(row), inputs);
        let scale = inputs.first().map_or(1.0, Ciphertext::scale);
        (sums.noise(delta, scale), sums.magnitude / self.scales[row])
    }

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.weights.rows()
    }

    /// Inputs.
    pub fn columns(&self) -> usize {
        self.weights.columns()
    }

    /// What the weights of a row were multiplied by.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn scale(&self, row: usize) -> f64 {
        self.scales[row]
    }
}

impl Evaluator {
    /// `Σ_i matrix[k][i] inputs[i]` for every row `k`, at the inputs' level and their scale times
    /// the matrix's.
    ///
    /// Nothing is rescaled: a result is ready to be decrypted, at whatever low level the inputs
    /// were. To go on with it, [`Self::match_level`] with the level below takes it to the canonical
    /// scale, if weights have fewer bits than half a scale.
    ///
    /// # Errors
    /// [`Error::Range`] for another number of inputs than columns, or inputs that differ in level,
    /// scale, slots or degree; [`Error::Level`] if the modulus has no room for the result;
    /// [`Error::Parameters`], [`Error::WrongKey`].
    pub fn matrix_product(
        &self,
        matrix: &PlainMatrix,
        inputs: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>> {
        let mut outputs = Vec::new();
        self.add_matrix_product(&mut outputs, matrix, inputs, None)?;
        Ok(outputs)
    }

    /// Adds [`Self::matrix_product`] to `outputs`, which may be empty: for sums over more inputs
    /// than are held at a time. With `magnitudes`, bounds on the values of the whole sums that the
    /// caller knows, these are what has to fit the modulus: sums of absolute values say more than
    /// is needed.
    ///
    /// # Errors
    /// As [`Self::matrix_product`]; [`Error::Range`] for another number of outputs or magnitudes
    /// than rows, or outputs of another level, scale or degree.
    pub fn add_matrix_product(
        &self,
        outputs: &mut Vec<Ciphertext>,
        matrix: &PlainMatrix,
        inputs: &[Ciphertext],
        magnitudes: Option<&[f64]>,
    ) -> Result<()> {
        let first = self.alike(matrix, inputs)?;
        let rows = matrix.rows();
        if outputs.iter().any(|_| outputs.len() != rows)
            || magnitudes.is_some_and(|magnitudes| magnitudes.len() != rows)
        {
            let (expected, actual) = (rows.to_string(), outputs.len().to_string());
            return Err(Error::Range {
                what: "outputs or magnitudes of a matrix",
                expected,
                actual,
            });
        }
        let sums: Vec<Sums> = (0..rows).map(|k| Sums::new(matrix.weights.row(k), inputs)).collect();
        let room = self.params().log_modulus(first.level());
        let mut metas = Vec::with_capacity(rows);
        for (k, sums) in sums.iter().enumerate() {
            let own = (sums.magnitude / matrix.scales[k]).max(f64::MIN_POSITIVE);
            let magnitude = magnitudes.map_or(own, |magnitudes| magnitudes[k]);
            let scale = first.scale() * matrix.scales[k];
            let needed = scale.log2() + magnitude.max(1.0 / scale).log2() + 1.0;
            if needed > room {
                return Err(Error::Level {
                    operation: "a product with a matrix",
                    needed: format!("a modulus of {needed:.0} bits"),
                    left: format!("{room:.0} bits at level {} are", first.level()),
                });
            }
            let noise = sums.noise(self.params().expansion(), first.scale());
            metas.push(Meta { scale, noise, magnitude, ..first.meta });
        }
        for (output, meta) in outputs.iter().zip(&metas) {
            let same = output.level() == first.level()
                && output.degree() == first.degree()
                && output.scale().to_bits() == meta.scale.to_bits();
            if !same {
                return Err(Error::Range {
                    what: "a sum to add to",
                    expected: format!("at level {} and scale {}", first.level(), meta.scale),
                    actual: format!("level {}, scale {}", output.level(), output.scale()),
                });
            }
            output.check_same(first)?;
        }
        let fresh = outputs.is_empty();
        if fresh {
            let empty = |meta| Ciphertext { parts: Vec::new(), meta };
            outputs.extend(metas.iter().copied().map(empty));
        }
        for index in 0..first.parts().len() {
            let parts = self.products(matrix, inputs, index);
            for (output, part) in outputs.iter_mut().zip(parts) {
                match output.parts.get_mut(index) {
                    Some(sum) => sum.add_assign(&part),
                    None => output.parts.push(part),
                }
            }
        }
        if !fresh {
            for (output, meta) in outputs.iter_mut().zip(metas) {
                output.meta.noise = output.meta.noise.plus(meta.noise);
                output.meta.magnitude = match magnitudes {
                    Some(_) => meta.magnitude,
                    None => output.meta.magnitude + meta.magnitude,
                };
            }
        }
        Ok(())
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
