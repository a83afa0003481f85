//! What plans are compared by, in time and keys: the same on every machine.
//!
//! Keys are made, sent, loaded and held, so that time alone does not choose: a plan with half the keys may
//! take a tenth longer.

use super::plan::KeySet;
use ciphervec_he::ckks::ParamsSpec;

/// The power of keys in a weight: with half of them 2^0.15 times as long, 1.11, weighs as much.
const OF_KEYS: f64 = 0.15;
/// Bytes of keys below which fewer do not matter.
const FEW: f64 = 1e6;

/// What plans are compared by; the least is taken.
pub(super) fn weight(milliseconds: f64, key_bytes: f64) -> f64 {
    milliseconds * key_bytes.max(FEW).powf(OF_KEYS)
}

/// Bytes of keys under parameters that nobody has made, about.
pub(super) fn key_bytes(spec: &ParamsSpec, keys: &[KeySet]) -> f64 {
    let each = |set: &KeySet| {
        let digits = (set.level + 1).div_ceil(spec.digit_primes());
        let bits = spec.base_bits as usize
            + set.level * spec.scale_bits as usize
            + spec.special_primes * spec.special_bits as usize;
        let count = set.rotations.len() + usize::from(set.relinearise);
        (count * digits * bits) as f64
    };
    keys.iter().map(each).sum::<f64>() * f64::from(spec.log_degree).exp2() / 8.0
}
