//! Tail: how far from 0 errors of ciphertexts are found, in their standard deviations. Both sides.
//!
//! A rescale or a key switch adds `r₀ + r₁ s` to a slot: `r₁` is Gaussian there and drawn anew each
//! time, the value of the secret `s` in that slot is Gaussian too and stays. So in one slot errors
//! are Gaussian, and which variance that slot has is the key's: over slots and keys an error is a
//! product of two Gaussian numbers, nine times as often beyond four deviations as one of them.
//!
//! # Tails
//!
//! Given the key, an error in a slot is Gaussian of variance v (1 − k + k ζ), k the part of
//! rescales and key switches, ζ = s(ξ)²/E s(ξ)² of the slot, the square of a Gaussian number (for
//! complex slots half the sum of two). So `Deviation` takes, for all λ,
//!
//! ```text
//! Pr[|e| > tσ] ≤ 2 exp(−λt) E exp(λ²(1 − k + kζ)/2) ,
//! ```
//!
//! with E exp(λ²kζ/2) = (1 − λ²k)^(−1/2), or (1 − λ²k/2)^(−1). That is convex in the variance, and
//! so bounds mixtures of slots. For k = 1 it is 2^-64 at 47.5 deviations, where a Gaussian number
//! takes 9.5. Of slots that repeat R times the mean is read: (1 − λ²k/R)^(−R/2).

use core::f64::consts::LN_2;

use super::spec::Ring;

/// Parts of the key that are told apart.
const STEPS: usize = 32;
/// Places that the bound is minimised over.
const PLACES: usize = 400;

/// An error in a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deviation {
    /// The standard deviation, over slots, keys and randomness.
    pub std: f64,
    /// The part of its variance that a value of the secret key is a factor of.
    pub keyed: f64,
}

/// What errors are within but for a chance, of errors that the key has any part in.
#[derive(Debug)]
pub(super) struct Tail {
    /// Standard deviations for parts of (k/32)².
    table: Vec<f64>,
}

impl Tail {
    /// Beyond which errors are with a chance below `2^-bits`, of slots that are there so many times:
    /// what is read is the mean of their errors.
    pub fn new(bits: f64, ring: Ring, repeats: f64) -> Self {
        let part = |k: usize| (k as f64 / STEPS as f64).powi(2);
        let table = (0..=STEPS).map(|k| deviations(bits, part(k), ring, repeats));
        Tail { table: table.collect() }
    }

    /// What an error does not exceed in absolute value.
    pub fn within(&self, error: Deviation) -> f64 {
        let place = (STEPS as f64 * error.keyed.clamp(0.0, 1.0).sqrt()).ceil() as usize;
        let last = self.table.last().copied().unwrap_or(f64::INFINITY);
        error.std * self.table.get(place).copied().unwrap_or(last)
    }
}

/// Standard deviations that errors are within but for a chance of `2^-bits`, `keyed` being the part of
/// their variance that values of the key are a factor of, of as many slots as each is there times.
///
/// Chernoff's bound: `exp(−λt)` times the mean of `exp(λx)`, which is that of `exp(λ² v/2)` over the
/// variances `v`; convex in `v`, so that slots whose errors were moved together from others, and are
/// mixtures, are within it too.
pub fn deviations(bits: f64, keyed: f64, ring: Ring, repeats: f64) -> f64 {
    let keyed = keyed.clamp(0.0, 1.0);
    let chance = (bits + 1.0) * LN_2;
    // log of the mean of exp(λx): squares of values of a secret are those of one Gaussian number in
    // the conjugate-invariant ring, and the half of those of two in the other.
    let log_mean = |lambda: f64| {
        let [square, fixed] = [lambda * lambda * keyed, lambda * lambda * (1.0 - keyed)];
        let square = square / repeats;
        let moved = match ring {
            Ring::ConjugateInvariant => -0.5 * (-square).ln_1p(),
            Ring::Standard => -(-0.5 * square).ln_1p(),
        };
        0.5 * fixed + repeats * moved
    };
    let pole = match ring {
        Ring::ConjugateInvariant => keyed / repeats,
        Ring::Standard => 0.5 * keyed / repeats,
    };
    // Without a pole the best λ is that of a Gaussian number.
    let most = (2.0 * chance).sqrt().min(1.0 / pole.sqrt());
    let bound = |place: usize| {
        // Denser towards the pole.
        let part = (PLACES - place) as f64 / PLACES as f64;
        let lambda = most * (1.0 - 0.999_999 * part * part * part);
        (chance + log_mean(lambda)) / lambda
    };
    (1..PLACES).map(bound).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance that a Gaussian number times √(1 − k + k s) is beyond t, for s a square of the
    /// ring, by adding up over s.
    fn chance(t: f64, keyed: f64, ring: Ring) -> f64 {
        let beyond = |x: f64| {
            // 2 Q(x), by the continued fraction for what is far and by adding up for what is near.
            let steps = 4000;
            let width = 14.0 / f64::from(steps);
            let density = |u: f64| (-0.5 * u * u).exp();
            let sum: f64 = (0..steps).map(|k| density(x + width * (f64::from(k) + 0.5))).sum();
            sum * width * (2.0 / core::f64::consts::PI).sqrt()
        };
        let (steps, width) = (3000, 0.005);
        let (mut whole, mut out) = (0.0, 0.0);
        for k in 0..steps {
            let z = width * (f64::from(k) + 0.5);
            let weight = match ring {
                Ring::ConjugateInvariant => (-0.5 * z * z).exp(),
                Ring::Standard => z * (-z * z).exp(),
            };
            whole += weight;
            out += weight * beyond(t / (1.0 - keyed + keyed * z * z).sqrt());
        }
        out / whole
    }

    #[test]
    fn no_error_is_beyond_more_often() {
        for ring in [Ring::ConjugateInvariant, Ring::Standard] {
            for keyed in [0.0, 0.2, 0.8, 1.0] {
                for bits in [10.0, 20.0, 40.0] {
                    let t = deviations(bits, keyed, ring, 1.0);
                    let found = chance(t, keyed, ring).log2();
                    let within = (-bits - 8.0..=-bits).contains(&found);
                    assert!(within, "{ring:?} {keyed} {bits}: 2^{found:.1} at {t:.1}");
                }
            }
        }
    }

    #[test]
    fn gaussian_errors_have_the_tail_of_one() {
        for bits in [10.0, 40.0, 128.0] {
            let exact = (2.0 * (bits + 1.0) * LN_2).sqrt();
            let found = deviations(bits, 0.0, Ring::Standard, 1.0);
            assert!((exact..exact * 1.001).contains(&found), "{bits}: {found} and {exact}");
            // As of the mean of many.
            let found = deviations(bits, 1.0, Ring::ConjugateInvariant, 4096.0);
            assert!((exact..exact * 1.03).contains(&found), "{bits}: {found} and {exact}");
        }
        // And products of two fall off as exp(-t).
        let found = deviations(128.0, 1.0, Ring::ConjugateInvariant, 1.0);
        assert!((89.0..94.0).contains(&found), "{found}");
    }
}
