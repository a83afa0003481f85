//! Hint: what the masks of a client weigh in each sum of given weights.

use super::{DEGREE, HINT_BITS, Histogram};
use ciphervec_arith::parallel::*;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{convert, poly};

/// The masks a_1, a_2, … of one client in NTT form, one for every [`DEGREE`] counts.
pub struct Masks {
    dimension: usize,
    polys: Vec<Vec<u64>>,
}

impl Masks {
    /// The masks of documents of `dimension` counts.
    pub fn new(scheme: &Histogram, seed: &[u8; 32], dimension: usize) -> Self {
        let modulus = scheme.table.modulus();
        let one = |index| {
            // Uniform values are as good as uniform coefficients: the transform is a bijection.
            let mut values = vec![0; DEGREE];
            Stream::new(seed, index as u64).uniform(modulus, &mut values);
            values
        };
        Masks { dimension, polys: (0..dimension.div_ceil(DEGREE)).map(one).collect() }
    }

    /// Counts masked.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The masks.
    #[doc(hidden)]
    pub fn polys(&self) -> &[Vec<u64>] {
        &self.polys
    }
}

/// What the secret of a document is multiplied by to give the masks of its sums: [`DEGREE`] numbers
/// an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// Output-major, the top [`HINT_BITS`] bits.
    values: Vec<u32>,
}

impl Hint {
    /// The hint of `weights`, rows of as many integers below q in magnitude as there are counts.
    ///
    /// # Panics
    /// When the weights are no whole number of rows.
    pub fn new(scheme: &Histogram, masks: &Masks, weights: &[i64]) -> Self {
        assert!(weights.len().is_multiple_of(masks.dimension.max(1)), "rows of weights");
        let rows = weights.par_chunks_exact(masks.dimension.max(1));
        let values = rows.flat_map_iter(|row| output(scheme, masks, row)).collect();
        Hint { values }
    }

    /// A hint of `outputs` outputs from its numbers; `None` for another number of them.
    pub fn from_values(values: Vec<u32>, outputs: usize) -> Option<Self> {
        (Some(values.len()) == outputs.checked_mul(DEGREE)).then_some(Hint { values })
    }

    /// The numbers, output-major.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Rows of [`DEGREE`] numbers.
    pub fn outputs(&self) -> usize {
        self.values.len() / DEGREE
    }
}

/// `h_j = Σ_m Σ_i w_{m,i} a_{m,i−j}` with the sign of the wrap-around, rounded to its top bits.
fn output(scheme: &Histogram, masks: &Masks, weights: &[i64]) -> Vec<u32> {
    let modulus = scheme.table.modulus();
    let mut sum = vec![0u64; DEGREE];
    let (mut reversed, mut values) = (vec![0i64; DEGREE], vec![0u64; DEGREE]);
    for (mask, weights) in masks.polys.iter().zip(weights.chunks(DEGREE)) {
        // w(1/X), where X^-i = −X^(N−i).
        reversed.fill(0);
        reversed[0] = weights[0];
        for (i, weight) in weights.iter().enumerate().skip(1) {
            reversed[DEGREE - i] = -weight;
        }
        convert::lift(&mut values, &reversed, modulus);
        scheme.table.forward(&mut values);
        poly::mul_add_assign(&mut sum, mask, &values, modulus);
    }
    scheme.table.inverse(&mut sum);
    // Coefficient −j of the product is what meets s_j.
    poly::neg_assign(&mut sum[1..], modulus);
    sum[1..].reverse();
    let switch = f64::exp2(f64::from(HINT_BITS)) / modulus.value() as f64;
    sum.iter().map(|&value| (value as f64 * switch).round_ties_even() as u64 as u32).collect()
}
