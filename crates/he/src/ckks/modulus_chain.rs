//! Modulus chain: the public primes of a parameter set, chosen so that scales stay where they are.
//!
//! # Stages
//!
//! - **p = b**: a ladder as above.
//! - **p ≠ b**: for products with plaintexts, which are encoded at Δ_{l−1} q_l/Δ_l; the scale
//!   stays.
//! - **One level, p = 2b − b'**, leads to a stage of scale 2^b' below; q_l is the prime closest to
//!   Δ_l²/2^b'.
//! - **Elsewhere** a stage with another b than the one above has 2^b exactly at its top; with the
//!   same b the scale goes on.
//! - **At the lowest level of a ladder above another scale** a product with a number has the scale
//!   Δ_l², like one of ciphertexts; `match_level` lands on the canonical scale.

use super::spec::{ALL_LOG_DEGREES, LOG_DEGREES, ParamsSpec};
use super::widths::Widths;
use crate::error::{Error, Result};
use crate::params;
use ciphervec_arith::{is_prime, ntt_primes};
use core::ops::Range;

/// How far a prime of the chain may lie from the scale, relative to it.
const SPREAD: f64 = 1.0 / 16.0;

/// The primes of a parameter set and the scale of every level: all that levels, scales and errors
/// depend on. Found in milliseconds, where the transforms of a set take a second.
#[derive(Debug)]
pub(super) struct ModulusChain {
    pub spec: ParamsSpec,
    pub widths: Widths,
    /// q_0 … q_L.
    pub primes: Vec<u64>,
    /// The special primes.
    pub special: Vec<u64>,
    /// Δ_0 … Δ_L.
    pub scales: Vec<f64>,
    /// log2 of Q_0 … Q_L.
    pub log_moduli: Vec<f64>,
    /// Where the digits of key switching end.
    digit_ends: Vec<usize>,
}

impl ModulusChain {
    /// Picks primes congruent to 1 modulo the order of the ring's roots of unity, all different.
    ///
    /// From the top down every prime is the free one closest to Δ²/2^s: since Δ_{l−1} = Δ_l²/q_l,
    /// it takes back what the scale has drifted from 2^s, and the next scale is off by this prime's
    /// distance only (docs/ckks.md, section 3). Where the level below has another scale to be led to,
    /// q_l is the one closest to Δ² over that. A prime of level 1 with bits of its own leaves
    /// another scale at level 0. A stage that has another scale than the one above begins at it
    /// exactly, and levels for products with plaintexts leave it as it is.
    pub fn find(spec: &ParamsSpec, widths: Widths) -> Result<Self> {
        let order = spec.ring.root_order(spec.log_degree);
        let half = (order / 2) as usize;
        let base = ntt_primes(spec.base_bits, half, 1)?;
        let mut special = ntt_primes(spec.special_bits, half, spec.special_primes + 1)?;
        special.retain(|prime| !base.contains(prime));
        special.truncate(spec.special_primes);
        let unit = f64::exp2(f64::from(spec.scale_bits));
        let mut taken = [base.clone(), special.clone()].concat();
        let (mut primes, mut scales) = (Vec::new(), Vec::new());
        let mut scale = unit;
        for level in (1..=spec.levels).rev() {
            let width = widths.at(spec.levels, spec.scale_bits, level);
            let unit = f64::exp2(f64::from(width.scale_bits));
            if width.begins {
                scale = unit;
            }
            scales.push(scale);
            let wider = f64::exp2(f64::from(width.prime_bits) - f64::from(width.scale_bits));
            let target = match width.next_bits {
                Some(bits) => scale * scale / f64::exp2(f64::from(bits)),
                None if width.plain => unit * wider,
                None => scale * scale / unit * wider,
            };
            let prime = closest(target, order, &taken).ok_or_else(|| Error::Range {
                what: "the scale",
                expected: format!(
                    "wide enough for {} primes that are 1 modulo {order}",
                    spec.levels
                ),
                actual: format!("{} bits", width.prime_bits),
            })?;
            taken.push(prime);
            primes.push(prime);
            if !width.plain {
                scale = scale * scale / prime as f64;
            }
        }
        scales.push(scale);
        primes.extend(base);
        primes.reverse();
        scales.reverse();
        let log_moduli = primes.iter().scan(0.0, |sum, &q| {
            *sum += (q as f64).log2();
            Some(*sum)
        });
        let log_moduli = log_moduli.collect();
        let digit_ends = spec.digit_ends(&widths);
        Ok(ModulusChain { spec: *spec, widths, primes, special, scales, log_moduli, digit_ends })
    }

    /// [`Self::find`], refusing what the security table has no room for and what no transform
    /// serves.
    pub fn checked(spec: &ParamsSpec, widths: Widths, insecure: bool) -> Result<Self> {
        let log_degrees = if insecure { ALL_LOG_DEGREES } else { LOG_DEGREES };
        spec.check(log_degrees, &widths)?;
        let degree = 1usize << spec.log_degree;
        // Checked once on the sizes asked for, before any prime is looked for, and once on the
        // primes themselves.
        let asked = (0..spec.primes()).map(|index| spec.prime_bits(&widths, index)).sum::<u32>()
            + spec.special_bits * spec.special_primes as u32;
        if !insecure {
            let slack = spec.levels as u32 + 1;
            params::check(degree, asked.saturating_sub(slack), spec.security)?;
        }
        let chain = Self::find(spec, widths)?;
        if !insecure {
            let all = chain.primes.iter().chain(&chain.special);
            let log_modulus: f64 = all.map(|&q| (q as f64).log2()).sum();
            params::check(degree, log_modulus.ceil() as u32, spec.security)?;
        }
        Ok(chain)
    }

    /// The level of a fresh ciphertext.
    pub fn max_level(&self) -> usize {
        self.spec.levels
    }

    /// Δ_l, the canonical scale of `level`.
    pub fn scale(&self, level: usize) -> f64 {
        self.scales[level]
    }

    /// The scale of a product at the lowest level of a stage, where a rescale leaves another one than
    /// the stage below begins with.
    pub fn left_by(&self, level: usize) -> Option<f64> {
        let product = self.scale(level) * self.scale(level);
        let seam = product / self.prime(level) != self.scale(level - 1);
        let width = self.widths.at(self.spec.levels, self.spec.scale_bits, level);
        (seam && !width.plain).then_some(product)
    }

    /// q_`index`, which a rescale at that level divides by.
    pub fn prime(&self, index: usize) -> f64 {
        self.primes[index] as f64
    }

    /// log2 of Q_`level`.
    pub fn log_modulus(&self, level: usize) -> f64 {
        self.log_moduli[level]
    }

    /// log2 of P.
    pub fn log_special(&self) -> f64 {
        self.special.iter().map(|&prime| (prime as f64).log2()).sum()
    }

    /// δ: the mean square of a value over that of a coefficient.
    pub fn expansion(&self) -> f64 {
        self.spec.ring.expansion(self.spec.log_degree)
    }

    /// The mean square of a real part of a value over that of a coefficient.
    pub fn part_expansion(&self) -> f64 {
        self.expansion() / self.spec.ring.parts() as f64
    }

    /// The most slots.
    pub fn max_slots(&self) -> usize {
        1 << self.spec.ring.log_slots(self.spec.log_degree)
    }

    /// The number of digits at `level`.
    pub fn digits(&self, level: usize) -> usize {
        1 + self.digit_ends.iter().filter(|&&end| end <= level).count()
    }

    /// The primes of a digit at `level`.
    pub fn digit_range(&self, level: usize, digit: usize) -> Range<usize> {
        let start = digit.checked_sub(1).map_or(0, |before| self.digit_ends[before]);
        start..self.digit_ends[digit].min(level + 1)
    }

    /// Refuses a level that the parameters do not have.
    pub fn check_level(&self, level: usize) -> Result<()> {
        if level <= self.max_level() {
            return Ok(());
        }
        Err(Error::Range {
            what: "a level",
            expected: format!("at most {}", self.max_level()),
            actual: level.to_string(),
        })
    }

    /// Refuses a number of slots that the parameters do not have.
    pub fn check_slots(&self, slots: usize) -> Result<()> {
        if slots.is_power_of_two() && slots <= self.max_slots() {
            return Ok(());
        }
        Err(Error::Range {
            what: "the number of slots",
            expected: format!("a power of two up to {}", self.max_slots()),
            actual: slots.to_string(),
        })
    }
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
            let chain = ModulusChain::find(&spec, Widths::Even).unwrap();
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
