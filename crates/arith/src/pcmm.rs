//! Product of a small-integer matrix with rows of residues modulo `q`. For the server.
//!
//! With the polynomials of many ciphertexts as rows, in either form, weighted sums of ciphertexts
//! are one integer matrix product for each prime and each part, without keys or rotations.

use rayon::prelude::*;

use crate::backend::dispatch;
use crate::modulus::Modulus;

pub use crate::backend::operands::pcmm::{WEIGHT_BITS, Weights};

/// Coefficients that a parallel task takes at least, so that it re-uses its copy of the weights
/// often enough.
const TASK: usize = 1024;

/// `outputs[k][j] = Σ_i weights[k][i] inputs[i][j] mod q`, on the current rayon pool.
///
/// # Panics
/// When there are not `columns` inputs and `rows` outputs, all of one length.
pub fn multiply(weights: &Weights, inputs: &[&[u64]], outputs: &mut [&mut [u64]], m: &Modulus) {
    assert_eq!(inputs.len(), weights.columns(), "inputs");
    assert_eq!(outputs.len(), weights.rows(), "outputs");
    let Some(length) = outputs.first().map(|row| row.len()) else { return };
    outputs.iter().for_each(|row| assert_eq!(row.len(), length, "residues of an output"));
    inputs.iter().for_each(|row| assert_eq!(row.len(), length, "residues of an input"));
    let threads = rayon::current_num_threads();
    if threads == 1 || length <= TASK {
        return dispatch::pcmm::multiply(weights, inputs, outputs, m);
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
        dispatch::pcmm::multiply(weights, &inputs, &mut part, m);
    });
}
