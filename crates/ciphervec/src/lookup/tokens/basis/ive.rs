//! Independent vector evaluation: the server makes the real and imaginary parts of powers of a root
//! of unity, which the client writes (IVE-PEL, arXiv 2606.03191, section 4.2 and algorithm 1).
//!
//! α_j = exp(2πi J_j) with J_j = (−1)^j (2j + 1)/4p. Re α_j^k for k = 1 … p/2 and Im α_j^k for k =
//! 1 … p/2 − 1 are, with the constant, the p rows of the discrete cosine transform: Im α_j^k =
//! cos(π (p − k)(2j + 1)/2p).

use super::sink::{Sink, settle};
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, Complex, Evaluator};
use core::f64::consts::PI;

/// Where a power and its conjugate become parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// Each power's own: twice its real and its imaginary part.
    Apart,
    /// After sums with weights: of α^k and −i α^k, whose sums plus their conjugates are those of
    /// the parts. One conjugation a sum in place of one a power.
    Deferred,
}

/// The turns that α_j is exp(2πi …) of.
pub(super) fn turns(index: usize, size: usize) -> f64 {
    let turns = (2 * index + 1) as f64 / (4 * size) as f64;
    if index.is_multiple_of(2) { turns } else { -turns }
}

/// α_j among `size` roots.
pub(super) fn root(index: usize, size: usize) -> Complex {
    let angle = PI * (2 * index + 1) as f64 / (2 * size) as f64;
    Complex::from_polar(1.0, if index.is_multiple_of(2) { angle } else { -angle })
}

/// The parts of α^1 … α^(size/2): a power is the product of its two halves, which keeps factors at
/// one level, and a conjugation splits it at the lowest level, where that is cheapest.
pub(super) fn generate(
    evaluator: &Evaluator,
    alpha: &Ciphertext,
    (size, parts): (usize, Parts),
    level: usize,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let half = size / 2;
    let alpha = alpha.clone().with_magnitude(1.0)?;
    let mut factors = vec![alpha.clone()];
    let last_factor = half.div_ceil(2);
    for k in 1..=half {
        let power = if k == 1 {
            alpha.clone()
        } else {
            let [large, small] = [k.div_ceil(2), k / 2].map(|half| &factors[half - 1]);
            evaluator.mul(large, small)?.with_magnitude(1.0)?
        };
        let low = settle(evaluator, &power, level)?;
        if 1 < k && k <= last_factor {
            factors.push(power);
        }
        if parts == Parts::Deferred {
            if k < half {
                sink(half + k - 1, evaluator.multiply_gaussian(&low, 0, -1)?)?;
            }
            sink(k - 1, low)?;
            continue;
        }
        let conjugate = evaluator.conjugate(&low)?;
        sink(k - 1, evaluator.add(&low, &conjugate)?)?;
        if k < half {
            let imaginary = evaluator.sub(&low, &conjugate)?;
            sink(half + k - 1, evaluator.multiply_gaussian(&imaginary, 0, -1)?)?;
        }
    }
    Ok(())
}
