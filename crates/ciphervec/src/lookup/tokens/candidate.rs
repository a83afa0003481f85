//! Parameter sets that a design may use in a ring of a given degree. Public numbers only.

use super::basis::Basis;
use super::design::Design;
use crate::error::Result;
use ciphervec_he::ckks::{Params, ParamsSpec, Ring};
use ciphervec_he::params::Security;
use std::sync::Arc;

/// Bits of the base prime and, at most, of any other.
const PRIME_BITS: u32 = 50;
/// Scales at level 0 to try, in bits: the smaller, the more bits weights have; the larger, the less
/// the last rescale is off.
const FINAL_BITS: core::ops::RangeInclusive<u32> = 26..=32;
/// Scales to try: a sum of a product and a single factor needs a ratio of scales that is an integer
/// but for 2^-34 of it.
const SCALE_BITS: core::ops::RangeInclusive<u32> = 36..=46;
/// What a pass over a polynomial takes, in transforms.
const PASS: f64 = 0.15;
/// Primes of a key-switching digit to try.
const DIGIT_PRIMES: core::ops::RangeInclusive<usize> = 1..=8;

/// A set of parameters to be: what [`Params::with_last_prime`] takes.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub spec: ParamsSpec,
    pub last_bits: Option<u32>,
}

impl Candidate {
    pub fn build(&self) -> Result<Arc<Params>> {
        Ok(match self.last_bits {
            Some(last) => Params::with_last_prime(self.spec, last)?,
            None => Params::new(self.spec)?,
        })
    }

    /// Bits of Q P, rounded up for primes a little off.
    pub fn bits(&self) -> u32 {
        let spec = &self.spec;
        let special = spec.special_bits * spec.special_primes as u32;
        let chain = match self.last_bits {
            Some(last) => last + spec.scale_bits * (spec.levels as u32 - 1),
            None => spec.scale_bits * spec.levels as u32,
        };
        spec.base_bits + chain + special + 1
    }

    /// log2 of the scale at level 0, and at all others.
    pub fn scales(&self) -> [u32; 2] {
        let scale = self.spec.scale_bits;
        [self.last_bits.map_or(scale, |last| 2 * scale - last), scale]
    }

    /// What the key switches of a design take, in transforms: by this candidates are compared.
    pub fn work(&self, switches: &[(usize, usize)]) -> f64 {
        let special = self.spec.special_primes;
        let one = |level: usize| {
            let primes = level + 1;
            let digits = primes.div_ceil(self.spec.digit_primes());
            let extended = digits * (primes + special);
            let passes = extended + 2 * primes * special + 2 * extended;
            (extended + 2 * (primes + special)) as f64 + passes as f64 * PASS
        };
        switches.iter().map(|(level, count)| one(*level) * *count as f64).sum()
    }
}

/// The sets for a ring of this degree, whatever their security and precision.
pub(super) fn candidates(design: &Design<'_>, log_degree: u32) -> impl Iterator<Item = Candidate> {
    let ring = design.bases.first().map_or(Ring::ConjugateInvariant, Basis::ring);
    let (levels, terminal) = (design.top_level(), design.sum_level() == 0);
    let switches = design.relinearises();
    let sets = move |scale_bits: u32, last_bits: Option<u32>| {
        let most = if switches { (*DIGIT_PRIMES.end()).min(levels + 1) } else { 1 };
        (*DIGIT_PRIMES.start()..=most).map(move |digit_primes| {
            let widths = [PRIME_BITS, last_bits.unwrap_or(scale_bits)].into_iter();
            let widths = widths.chain(core::iter::repeat(scale_bits));
            let width: u32 = widths.take(digit_primes).sum();
            let special_primes = if switches { width.div_ceil(PRIME_BITS) as usize } else { 0 };
            let spec = ParamsSpec {
                log_degree,
                ring,
                base_bits: if levels == 0 || terminal {
                    PRIME_BITS
                } else {
                    PRIME_BITS.max(scale_bits)
                },
                scale_bits,
                levels,
                special_primes,
                special_bits: width.div_ceil(special_primes.max(1) as u32).min(PRIME_BITS),
                digits: if switches { (levels + 1).div_ceil(digit_primes) } else { 1 },
                security: Security::Classical128,
            };
            Candidate { spec, last_bits }
        })
    };
    let shapes: Vec<(u32, Option<u32>)> = if terminal && levels == 0 {
        FINAL_BITS.map(|bits| (bits, None)).collect()
    } else if terminal {
        let scales = SCALE_BITS
            .flat_map(|scale| FINAL_BITS.map(move |last| (scale, (2 * scale).checked_sub(last))));
        scales.filter_map(|(scale, last)| Some((scale, Some(last?)))).collect()
    } else {
        SCALE_BITS.map(|scale| (scale, None)).collect()
    };
    let prime = 20..=PRIME_BITS;
    shapes
        .into_iter()
        .filter(move |(_, last)| last.is_none_or(|last| prime.contains(&last)))
        .flat_map(move |(scale, last)| sets(scale, last))
}
