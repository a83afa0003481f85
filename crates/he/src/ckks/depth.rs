//! Chooses the smallest parameter set for a depth and a precision, and says why.

use super::noise::Noise;
use super::spec::{LOG_DEGREES, MAX_DIGIT_PRIMES, ParamsSpec, Ring};
use super::widths::SCALE_BITS;
use crate::error::{Error, Result};
use crate::params::{Security, max_log_modulus};

/// Bits of the base prime above the scale where there is room for them: results up to 2^9.
const HEADROOM: u32 = 10;
/// Widest scale under a base prime of 50 bits that leaves room for results up to 2.
const MAX_SCALE_BITS: u32 = 48;
/// Bits of a special prime: the most that the arithmetic takes, as fewer of them are faster.
const SPECIAL_BITS: u32 = 50;

/// The smallest set that serves, and why it is the one.
pub(super) fn choose(
    ring: Ring,
    depth: usize,
    precision_bits: u32,
    security: Security,
) -> Result<(ParamsSpec, String)> {
    let mut widest = 0;
    for log_degree in LOG_DEGREES {
        let noise_bits = noise_bits(ring, log_degree, depth);
        let scale_bits = (precision_bits + noise_bits).max(*SCALE_BITS.start() + 5);
        if scale_bits > MAX_SCALE_BITS {
            break;
        }
        widest = log_degree;
        let limit = max_log_modulus(1 << log_degree, security).unwrap_or(0);
        let Some((spec, bits)) = cheapest(ring, log_degree, scale_bits, depth, security, limit)
        else {
            continue;
        };
        let why = format!(
            "{depth} levels at {precision_bits} bits of precision: an error of {noise_bits} bits \
             in a slot at degree 2^{log_degree} asks for a scale of 2^{scale_bits}; log2(QP) = \
             {bits} is under the limit of {limit} for {}, and no smaller ring has room for \
             {depth} levels; {} digit(s) with {} special prime(s) take the fewest transforms",
            security.as_str(),
            spec.digits,
            spec.special_primes,
        );
        return Ok((spec, why));
    }
    if widest == 0 || widest < *LOG_DEGREES.end() {
        let most = MAX_SCALE_BITS - noise_bits(ring, widest.max(*LOG_DEGREES.start()), depth);
        return Err(Error::Range {
            what: "the precision",
            expected: format!(
                "at most {most} bits at depth {depth}, as primes have at most 50 bits"
            ),
            actual: format!("{precision_bits} bits"),
        });
    }
    Err(Error::Range {
        what: "the depth",
        expected: format!(
            "at most what a ring of degree 2^17 has room for at {precision_bits} bits of precision"
        ),
        actual: depth.to_string(),
    })
}

/// log2 of the error in a slot, times the scale: a fresh ciphertext's, once more for every level,
/// with a margin of a bit (docs/ckks.md, section 5).
fn noise_bits(ring: Ring, log_degree: u32, depth: usize) -> u32 {
    let delta = ring.expansion(log_degree);
    let slot = Noise::public_key(delta).std * delta.sqrt();
    (slot.log2() + ((depth + 1) as f64).log2() + 1.0).ceil() as u32
}

/// The number of digits that takes the fewest transforms among those under the limit, with
/// log2(QP).
fn cheapest(
    ring: Ring,
    log_degree: u32,
    scale_bits: u32,
    levels: usize,
    security: Security,
    limit: u32,
) -> Option<(ParamsSpec, u32)> {
    let base_bits = (scale_bits + HEADROOM).min(50);
    let sets = (1..=levels + 1).map(|digits| {
        let mut spec = ParamsSpec {
            log_degree,
            ring,
            base_bits,
            scale_bits,
            levels,
            special_primes: 1,
            special_bits: SPECIAL_BITS,
            digits,
            security,
        };
        let width = scale_bits * (spec.digit_primes() as u32 - 1) + base_bits;
        spec.special_primes = width.div_ceil(SPECIAL_BITS) as usize;
        // As narrow as it may be: bits that are left belong to smaller rings.
        spec.special_bits = width.div_ceil(spec.special_primes as u32).max(25);
        let bits = base_bits
            + scale_bits * levels as u32
            + spec.special_bits * spec.special_primes as u32
            + 1;
        (spec, bits)
    });
    let fits = |(spec, bits): &(ParamsSpec, u32)| {
        *bits <= limit && spec.digit_primes().max(spec.special_primes) <= MAX_DIGIT_PRIMES
    };
    sets.filter(fits).min_by_key(|(spec, _)| transforms(spec))
}

/// Transforms of a rotation at the top level (`key_switch.rs`).
pub(super) fn transforms(spec: &ParamsSpec) -> usize {
    let (primes, special) = (spec.primes(), spec.special_primes);
    // Inverse ones of the input; forward ones of what each digit is extended to; then both sums,
    // down from QP to Q.
    let digits = primes.div_ceil(spec.digit_primes());
    primes + digits * (primes + special) - primes + 2 * (special + primes)
}
