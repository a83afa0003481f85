//! Chebyshev polynomials: the server makes all cos nθ for n below a size from cos θ; the client
//! writes the nodes.
//!
//! At the nodes θ_j = π(2j + 1)/2m the values T_n(cos θ_j) = cos nθ_j, n < m, are the rows of the
//! discrete cosine transform (type II): independent, and but for scale orthogonal. T_{a+b} = 2 T_a
//! T_b − T_{|a−b|} makes T_n from the two halves of n in ⌈log2 n⌉ levels, and slots stay real:
//! nothing is conjugated.

use super::sink::{Sink, settle};
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, Evaluator};
use core::f64::consts::PI;

/// cos nθ_j among `size` nodes.
pub(in crate::lookup::tokens) fn value(n: usize, index: usize, size: usize) -> f64 {
    // The angle modulo a turn, exactly.
    let quarter = n * (2 * index + 1) % (4 * size);
    (PI * quarter as f64 / (2 * size) as f64).cos()
}

/// What the client writes.
pub(super) fn node(index: usize, size: usize) -> f64 {
    value(1, index, size)
}

/// T_1 … T_{size−1} of `x`.
pub(super) fn generate(
    evaluator: &Evaluator,
    x: &Ciphertext,
    size: usize,
    level: usize,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let x = x.clone().with_magnitude(1.0)?;
    // Only halves are factors of later ones.
    let last_factor = (size - 1).div_ceil(2);
    sink(0, settle(evaluator, &x, level)?)?;
    let mut factors = vec![x];
    for n in 2..size {
        let polynomial = next(evaluator, &factors, n)?;
        if n <= last_factor {
            sink(n - 1, settle(evaluator, &polynomial, level)?)?;
            factors.push(polynomial);
        } else if polynomial.level() == level {
            sink(n - 1, polynomial)?;
        } else {
            sink(n - 1, settle(evaluator, &polynomial, level)?)?;
        }
    }
    Ok(())
}

/// T_n from `factors`, T_1 on: T_1 or 1 is subtracted at the scale of the product, so that one
/// rescale serves both.
fn next(evaluator: &Evaluator, factors: &[Ciphertext], n: usize) -> Result<Ciphertext> {
    let [large, small] = [n.div_ceil(2), n / 2].map(|half| &factors[half - 1]);
    let subtrahend = (!n.is_multiple_of(2)).then_some(&factors[0]);
    let difference = evaluator.double_product(large, small, subtrahend)?;
    Ok(evaluator.normalise(&difference)?.with_magnitude(1.0)?)
}
