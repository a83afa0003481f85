//! Modulus chain: sizes enter; public primes whose scales stay where they are leave. Both sides.

use super::spec::ParamsSpec;
use crate::error::{Error, Result};
use ciphervec_arith::{is_prime, ntt_primes};

/// How far a prime of the chain may lie from the scale, relative to it.
const SPREAD: f64 = 1.0 / 16.0;

/// The primes of a parameter set and the scale of every level.
pub(super) struct ModulusChain {
    /// q_0 … q_L.
    pub primes: Vec<u64>,
    /// The special primes.
    pub special: Vec<u64>,
    /// Δ_0 … Δ_L.
    pub scales: Vec<f64>,
}

/// Picks primes congruent to 1 modulo the order of the ring's roots of unity, all different.
///
/// From the top down every prime is the free one closest to Δ²/2^s: since Δ_{l−1} = Δ_l²/q_l, it
/// takes back what the scale has drifted from 2^s, and the next scale is off by this prime's
/// distance only (docs/ckks.md, section 3). With `last_bits` the prime of level 1 has that many
/// instead, which leaves another scale at level 0.
pub(super) fn modulus_chain(spec: &ParamsSpec, last_bits: Option<u32>) -> Result<ModulusChain> {
    let order = spec.ring.root_order(spec.log_degree);
    let half = (order / 2) as usize;
    let base = ntt_primes(spec.base_bits, half, 1)?;
    let mut special = ntt_primes(spec.special_bits, half, spec.special_primes + 1)?;
    special.retain(|prime| !base.contains(prime));
    special.truncate(spec.special_primes);
    let unit = f64::exp2(f64::from(spec.scale_bits));
    let mut taken = [base.clone(), special.clone()].concat();
    let (mut primes, mut scales) = (Vec::new(), vec![unit]);
    let mut scale = unit;
    for level in (1..=spec.levels).rev() {
        let bits = last_bits.filter(|_| level == 1).unwrap_or(spec.scale_bits);
        let target = scale * scale / unit * f64::exp2(f64::from(bits) - f64::from(spec.scale_bits));
        let prime = closest(target, order, &taken).ok_or_else(|| Error::Range {
            what: "the scale",
            expected: format!("wide enough for {} primes that are 1 modulo {order}", spec.levels),
            actual: format!("{} bits", spec.scale_bits),
        })?;
        taken.push(prime);
        primes.push(prime);
        scale = scale * scale / prime as f64;
        scales.push(scale);
    }
    primes.extend(base);
    primes.reverse();
    scales.reverse();
    Ok(ModulusChain { primes, special, scales })
}

/// The prime closest to `target` that is 1 modulo `order`, below 2^50 and not taken.
fn closest(target: f64, order: u64, taken: &[u64]) -> Option<u64> {
    let below = (target as u64) / order * order + 1;
    let reach = ((target * SPREAD) as u64) / order;
    let free = |q: &u64| *q < 1 << 50 && !taken.contains(q) && is_prime(*q);
    let down = (0..reach).map(|k| below - k * order).find(free);
    // Nothing above the limit is free.
    let up = (1..reach).map(|k| below + k * order).take_while(|q| *q < 1 << 50).find(free);
    let distance = |q: &u64| (*q as f64 - target).abs();
    [down, up].into_iter().flatten().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ckks::Ring;
    use crate::params::Security;

    #[test]
    fn scales_stay_within_the_gaps_between_primes() {
        for (ring, log_degree, scale_bits, levels) in [
            (Ring::Standard, 15, 49, 11),
            (Ring::Standard, 16, 40, 30),
            (Ring::ConjugateInvariant, 15, 45, 14),
            (Ring::Standard, 17, 30, 10),
        ] {
            let spec = ParamsSpec {
                log_degree,
                ring,
                base_bits: 50,
                scale_bits,
                levels,
                special_primes: 4,
                special_bits: 50,
                digits: 3,
                security: Security::Classical128,
            };
            let chain = modulus_chain(&spec, None).unwrap();
            let order = ring.root_order(log_degree);
            let mut all = [chain.primes.clone(), chain.special.clone()].concat();
            assert!(all.iter().all(|&q| q < 1 << 50 && q % order == 1 && is_prime(q)));
            assert_eq!((chain.primes.len(), chain.special.len()), (levels + 1, 4));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), levels + 5);
            // A prime lies within some dozen average gaps for each one taken before it.
            let gap = order as f64 * f64::from(scale_bits);
            let unit = f64::exp2(f64::from(scale_bits));
            for (level, scale) in chain.scales.iter().enumerate() {
                assert!((scale - unit).abs() <= gap * 4.0 * levels as f64, "level {level}");
            }
            for level in 1..=levels {
                let next = chain.scales[level].powi(2) / chain.primes[level] as f64;
                assert_eq!(next, chain.scales[level - 1]);
            }
        }
    }
}
