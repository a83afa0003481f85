//! Encrypted indicator function: the server makes, from x/p, 1 at the index that equals x and 0 at
//! all others (Kim et al., ICML 2024).
//!
//! For the index a: t = (x − a)/p, y = 2t² − 1, which is −1 where x = a and at least 2/p² less than
//! 1 in absolute value elsewhere; r times y ← y², which keeps the 1 and brings the rest to e^−8; s
//! times y ← 3y² − 2y³, which squares what is off. x = p would be a second −1 · −1: the client
//! writes indices below p only.

use super::sink::{Sink, ceil_log2, settle};
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, Evaluator};

/// r and s: 2^r is 4p², so that what is not the index ends below e^−8 before the last steps.
pub(in crate::lookup::tokens) fn steps(size: usize) -> (usize, usize) {
    match ceil_log2(size) {
        log @ 0..=4 => (2 * log + 3, 1),
        log => (2 * log + 2, 2),
    }
}

/// Levels: one for 2t² − 1, one a squaring, two a cleaning. The client's division by p saves the
/// one of t.
pub(super) fn depth(size: usize) -> usize {
    let (squarings, cleanings) = steps(size);
    1 + squarings + 2 * cleanings
}

/// The indicators of 0 … size − 1.
pub(super) fn generate(
    evaluator: &Evaluator,
    x: &Ciphertext,
    size: usize,
    level: usize,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let x = x.clone().with_magnitude(1.0)?;
    for index in 0..size {
        let y = one(evaluator, &x, index as f64 / size as f64, steps(size))?;
        sink(index, settle(evaluator, &y, level)?)?;
    }
    Ok(())
}

fn one(
    evaluator: &Evaluator,
    x: &Ciphertext,
    target: f64,
    (squarings, cleanings): (usize, usize),
) -> Result<Ciphertext> {
    let bounded = |y: Ciphertext| y.with_magnitude(1.0);
    let t = evaluator.add_scalar(x, -target)?;
    let product = evaluator.multiply(&evaluator.multiply_integer(&t, 2)?, &t)?;
    let mut y = bounded(evaluator.normalise(&evaluator.add_scalar(&product, -1.0)?)?)?;
    for _ in 0..squarings {
        y = bounded(evaluator.normalise(&evaluator.square(&y)?)?)?;
    }
    for _ in 0..cleanings {
        let square = bounded(evaluator.normalise(&evaluator.square(&y)?)?)?;
        let line = evaluator.add_scalar(&evaluator.multiply_integer(&y, -2)?, 3.0)?;
        y = bounded(evaluator.mul(&square, &line)?)?;
    }
    Ok(y)
}
