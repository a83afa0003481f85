//! A matrix of small integers and rows of residues enter, their product modulo `q` leaves. The server's side.
//!
//! Plaintext matrix times ciphertexts: with the polynomials of many ciphertexts as rows, in either form, weighted sums of
//! ciphertexts are one integer matrix product for each prime and each part, without keys or rotations.

use rayon::prelude::*;

use crate::backend::dispatch;
use crate::error::ArithError;
use crate::modulus::Modulus;

/// Weights are below `2^WEIGHT_BITS` in magnitude.
pub const WEIGHT_BITS: u32 = 31;

/// Coefficients that a parallel task takes at least, so that it re-uses its copy of the weights often enough.
const TASK: usize = 1024;

/// A matrix of signed weights, checked once and used for every prime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    rows: usize,
    columns: usize,
    values: Vec<i32>,
    bits: u32,
}

impl Weights {
    /// `values` are row-major: row `k` says how much of each input goes into output `k`.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there are `rows columns` values, [`ArithError::Weight`] when one is not below `2^31` in
    /// magnitude.
    pub fn new(rows: usize, columns: usize, values: &[i64]) -> Result<Self, ArithError> {
        if rows.checked_mul(columns) != Some(values.len()) {
            let expected = rows.saturating_mul(columns);
            return Err(ArithError::Length { expected, actual: values.len() });
        }
        let limit = 1u64 << WEIGHT_BITS;
        if let Some(index) = values.iter().position(|w| w.unsigned_abs() >= limit) {
            return Err(ArithError::Weight { index, value: values[index] });
        }
        let most = values.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0);
        Ok(Weights {
            rows,
            columns,
            values: values.iter().map(|&w| w as i32).collect(),
            bits: u64::BITS - most.leading_zeros(),
        })
    }

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The least `b` with every magnitude below `2^b`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The weights of output `k`.
    ///
    /// # Panics
    /// When there is no such output.
    pub fn row(&self, k: usize) -> &[i32] {
        assert!(k < self.rows, "row {k} of {}", self.rows);
        &self.values[k * self.columns..][..self.columns]
    }
}

/// `outputs[k][j] = Σ_i weights[k][i] inputs[i][j] mod q`, on the current rayon pool.
///
/// # Panics
/// When there are not `columns` inputs and `rows` outputs, all of one length.
pub fn multiply(weights: &Weights, inputs: &[&[u64]], outputs: &mut [&mut [u64]], m: &Modulus) {
    assert_eq!(inputs.len(), weights.columns, "inputs");
    assert_eq!(outputs.len(), weights.rows, "outputs");
    let Some(length) = outputs.first().map(|row| row.len()) else { return };
    outputs.iter().for_each(|row| assert_eq!(row.len(), length, "residues of an output"));
    inputs.iter().for_each(|row| assert_eq!(row.len(), length, "residues of an input"));
    let threads = rayon::current_num_threads();
    if threads == 1 || length <= TASK {
        return dispatch::pcmm(weights, inputs, outputs, m);
    }
    let span = length.div_ceil(threads).next_multiple_of(TASK);
    let mut tasks: Vec<Vec<&mut [u64]>> = (0..length.div_ceil(span)).map(|_| Vec::new()).collect();
    for row in outputs {
        for (task, part) in tasks.iter_mut().zip(row.chunks_mut(span)) {
            task.push(part);
        }
    }
    tasks.into_par_iter().enumerate().for_each(|(t, mut part)| {
        let range = t * span..(t * span + span).min(length);
        let inputs: Vec<&[u64]> = inputs.iter().map(|row| &row[range.clone()]).collect();
        dispatch::pcmm(weights, &inputs, &mut part, m);
    });
}
