//! Products of rows of residues with signed weights, one word at a time.

use crate::backend::operands::pcmm::Weights;
use crate::modulus::Modulus;

/// Coefficients whose sums are kept at a time: 1 KiB.
const SPAN: usize = 64;

/// Products are below `2^93` for any modulus, so `2^34` of them fit 128 bits.
pub(crate) fn multiply(
    weights: &Weights,
    inputs: &[&[u64]],
    outputs: &mut [&mut [u64]],
    m: &Modulus,
) {
    for (k, output) in outputs.iter_mut().enumerate() {
        for (c, out) in output.chunks_mut(SPAN).enumerate() {
            let mut sums = [0i128; SPAN];
            for (&w, input) in weights.row(k).iter().zip(inputs) {
                let x = &input[c * SPAN..][..out.len()];
                for (sum, &x) in sums.iter_mut().zip(x) {
                    *sum += i128::from(w) * i128::from(x);
                }
            }
            for (out, &sum) in out.iter_mut().zip(&sums) {
                let residue = m.reduce_u128(sum.unsigned_abs());
                *out = if sum < 0 { m.neg(residue) } else { residue };
            }
        }
    }
}
