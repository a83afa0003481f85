//! Number-theoretic transform by Harvey's butterflies, one word at a time.

use crate::backend::operands::ntt::NttPlan;
use crate::modulus::{Modulus, Shoup};

/// Powers of psi in tree order, each with its quotient.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    forward: Vec<Shoup>,
    inverse: Vec<Shoup>,
    /// `N^-1`, or `(2N)^-1` before an unfolding, and that times the twiddle of the last inverse
    /// stage, which absorbs the scaling.
    scale: Shoup,
    scaled_last: Shoup,
}

pub(crate) fn roots(plan: &NttPlan) -> Roots {
    let (forward, inverse) = plan.powers();
    let (q, scale) = (&plan.modulus, plan.scale());
    Roots {
        scaled_last: q.shoup(q.mul(scale, inverse[1])),
        scale: q.shoup(scale),
        forward: forward.into_iter().map(|w| q.shoup(w)).collect(),
        inverse: inverse.into_iter().map(|w| q.shoup(w)).collect(),
    }
}

/// `[0, 4q)` to `[0, 4q)` if `LAZY`, else to `[0, q)`.
pub(crate) fn forward<const LAZY: bool>(plan: &NttPlan, roots: &Roots, data: &mut [u64]) {
    let modulus = &plan.modulus;
    let double = 2 * modulus.value();
    if let Some(fold) = &plan.fold {
        fold_halves(modulus, data, &fold.forward);
    }
    let (mut blocks, mut half) = (1, data.len() / 2);
    while half > 0 {
        for (block, w) in data.chunks_exact_mut(2 * half).zip(&roots.forward[blocks..]) {
            let (left, right) = block.split_at_mut(half);
            for (x, y) in left.iter_mut().zip(right) {
                let u = (*x).min(x.wrapping_sub(double));
                let v = modulus.mul_shoup_lazy(*y, w);
                *x = u + v;
                *y = u + double - v;
            }
        }
        blocks *= 2;
        half /= 2;
    }
    if !LAZY {
        canonical(modulus, data);
    }
}

/// `[0, 2q)` to `[0, 2q)` if `LAZY`, else to `[0, q)`, scaled by `N^-1`.
pub(crate) fn inverse<const LAZY: bool>(plan: &NttPlan, roots: &Roots, data: &mut [u64]) {
    let modulus = &plan.modulus;
    let double = 2 * modulus.value();
    let (mut blocks, mut half) = (data.len() / 2, 1);
    while blocks > 1 {
        for (block, w) in data.chunks_exact_mut(2 * half).zip(&roots.inverse[blocks..]) {
            let (left, right) = block.split_at_mut(half);
            for (x, y) in left.iter_mut().zip(right) {
                let sum = *x + *y;
                let difference = *x + double - *y;
                *x = sum.min(sum.wrapping_sub(double));
                *y = modulus.mul_shoup_lazy(difference, w);
            }
        }
        blocks /= 2;
        half *= 2;
    }
    let (left, right) = data.split_at_mut(half);
    for (x, y) in left.iter_mut().zip(right) {
        let (sum, difference) = (*x + *y, *x + double - *y);
        *x = modulus.mul_shoup_lazy(sum, &roots.scale);
        *y = modulus.mul_shoup_lazy(difference, &roots.scaled_last);
    }
    if let Some(fold) = &plan.fold {
        fold_halves(modulus, data, &fold.inverse);
        data[0] += data[0];
    }
    if !LAZY || plan.fold.is_some() {
        canonical(modulus, data);
    }
}

/// `x_j + w x_(N-j)` for `0 < j < N`, between a conjugate-invariant polynomial and its residue;
/// `[0, 4q)` to `[0, 4q)`.
pub(crate) fn fold_halves(modulus: &Modulus, data: &mut [u64], w: &Shoup) {
    let half = data.len() / 2;
    let (low, high) = data.split_at_mut(half);
    fold_pairs(modulus, &mut low[1..], &mut high[1..], w);
    high[0] = fold_one(modulus, high[0], high[0], w);
}

/// The first of `low` with the last of `high`, and so on.
pub(crate) fn fold_pairs(modulus: &Modulus, low: &mut [u64], high: &mut [u64], w: &Shoup) {
    for (x, y) in low.iter_mut().zip(high.iter_mut().rev()) {
        (*x, *y) = (fold_one(modulus, *x, *y, w), fold_one(modulus, *y, *x, w));
    }
}

/// `x + w y`, `[0, 4q)` to `[0, 4q)`.
#[inline(always)]
pub(crate) fn fold_one(modulus: &Modulus, x: u64, y: u64, w: &Shoup) -> u64 {
    let double = 2 * modulus.value();
    x.min(x.wrapping_sub(double)) + modulus.mul_shoup_lazy(y, w)
}

/// `[0, 4q)` to `[0, q)`.
pub(crate) fn canonical(modulus: &Modulus, data: &mut [u64]) {
    let q = modulus.value();
    for x in data {
        let half = (*x).min(x.wrapping_sub(2 * q));
        *x = half.min(half.wrapping_sub(q));
    }
}
