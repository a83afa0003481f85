//! Sizes of a parameter set, their limits and its name.

use super::widths::{PRIME_BITS, SCALE_BITS, Widths, within};
use crate::error::{Error, Result};
use crate::params::{ParamId, Security};

/// Degrees of secure parameter sets.
pub(super) const LOG_DEGREES: core::ops::RangeInclusive<u32> = 12..=17;
/// Degrees that a transform serves: those of insecure test sets.
pub(super) const ALL_LOG_DEGREES: core::ops::RangeInclusive<u32> = 10..=17;
/// Bits of the scale at level 0 where the prime of level 1 was chosen for it.
const FINAL_SCALE_BITS: core::ops::RangeInclusive<u32> = 10..=49;
/// Most levels of a chain.
pub(super) const MAX_LEVELS: usize = 63;
/// Most primes of a digit, and most special primes.
pub(super) const MAX_DIGIT_PRIMES: usize = 16;

/// The ring that polynomials live in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Ring {
    /// `Z[X]/(X^N + 1)`: N/2 complex slots.
    Standard,
    /// The subring of `Z[X]/(X^2N + 1)` fixed by `X ↦ 1/X`: N real slots (Kim & Song 2018, IACR
    /// ePrint 2018/952).
    ConjugateInvariant,
}

impl Ring {
    /// The ring in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Ring::Standard => "standard",
            Ring::ConjugateInvariant => "conjugate-invariant",
        }
    }

    /// Refuses to conjugate where slots are real.
    pub(super) fn check_conjugation(self) -> Result<()> {
        match self {
            Ring::Standard => Ok(()),
            Ring::ConjugateInvariant => Err(Error::Range {
                what: "conjugation",
                expected: "in the standard ring: slots of the conjugate-invariant ring are real"
                    .into(),
                actual: self.as_str().into(),
            }),
        }
    }

    /// log2 of the number of slots in degree 2^`log_degree`.
    pub(super) fn log_slots(self, log_degree: u32) -> u32 {
        match self {
            Ring::Standard => log_degree - 1,
            Ring::ConjugateInvariant => log_degree,
        }
    }

    /// The real numbers of a slot: both parts of a complex one, or one.
    pub(super) fn parts(self) -> usize {
        match self {
            Ring::Standard => 2,
            Ring::ConjugateInvariant => 1,
        }
    }

    /// The order of the roots of unity that slots are values at: 2N or 4N. Primes are 1 modulo it.
    #[doc(hidden)]
    pub fn root_order(self, log_degree: u32) -> u64 {
        match self {
            Ring::Standard => 2 << log_degree,
            Ring::ConjugateInvariant => 4 << log_degree,
        }
    }

    /// δ of `docs/ckks.md`, section 5: the mean square of a value over the mean square of a
    /// coefficient.
    pub(super) fn expansion(self, log_degree: u32) -> f64 {
        (self.root_order(log_degree) / 2) as f64
    }
}

/// A parameter set as a user writes it, unchecked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParamsSpec {
    /// log2 of the ring degree N.
    pub log_degree: u32,
    /// The ring.
    pub ring: Ring,
    /// Bits of the base prime, which alone is left at level 0: scale bits plus those of the largest
    /// result.
    pub base_bits: u32,
    /// log2 of the scale, and bits of the prime that each level takes.
    pub scale_bits: u32,
    /// Levels: how often a product can be rescaled.
    pub levels: usize,
    /// Special primes, by which key switching divides. With none of them nothing can be
    /// relinearised or rotated.
    pub special_primes: usize,
    /// Bits of a special prime.
    pub special_bits: u32,
    /// Digits of key switching at the top level ("dnum").
    pub digits: usize,
    /// The row of the security table to stay under.
    pub security: Security,
}

impl ParamsSpec {
    /// Primes of the ciphertext modulus at the top level.
    pub fn primes(&self) -> usize {
        self.levels + 1
    }

    /// Primes of one key-switching digit.
    pub fn digit_primes(&self) -> usize {
        self.primes().div_ceil(self.digits.max(1))
    }

    /// Bits of prime `index`, the base prime at 0.
    pub(super) fn prime_bits(&self, widths: &Widths, index: usize) -> u32 {
        match index {
            0 => self.base_bits,
            level => widths.at(self.levels, self.scale_bits, level).prime_bits,
        }
    }

    /// Where key-switching digits end: after equally many primes each; or, where primes are not
    /// equally wide, such that the widest digit is as narrow as can be.
    pub(super) fn digit_ends(&self, widths: &Widths) -> Vec<usize> {
        let primes = self.primes();
        if widths.stages().is_empty() {
            let width = self.digit_primes();
            return (1..=primes.div_ceil(width)).map(|digit| (digit * width).min(primes)).collect();
        }
        let bits: Vec<u32> = (0..primes).map(|index| self.prime_bits(widths, index)).collect();
        let cut = |limit: u32| {
            let (mut ends, mut sum) = (Vec::new(), 0);
            for (index, &bits) in bits.iter().enumerate() {
                if index > 0 && sum + bits > limit {
                    ends.push(index);
                    sum = 0;
                }
                sum += bits;
            }
            ends.push(primes);
            ends
        };
        let all = bits.iter().sum();
        let narrowest = (0..=all).find(|&limit| cut(limit).len() <= self.digits.max(1));
        cut(narrowest.unwrap_or(all))
    }

    /// Bits of the widest key-switching digit, and the most primes of one.
    fn widest_digit(&self, widths: &Widths) -> (u32, usize) {
        let ends = self.digit_ends(widths);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let digits = starts.zip(&ends).map(|(start, &end)| start..end);
        let bits = |range: core::ops::Range<usize>| {
            range.map(|index| self.prime_bits(widths, index)).sum::<u32>()
        };
        digits.fold((0, 0), |(most, primes), range| {
            (most.max(bits(range.clone())), primes.max(range.len()))
        })
    }

    /// Refuses what no chain of primes can be found for or no transform serves.
    pub(super) fn check(
        &self,
        log_degrees: core::ops::RangeInclusive<u32>,
        widths: &Widths,
    ) -> Result<()> {
        let bits = |bits| (bits, "bits");
        within("log2 of the ring degree", log_degrees, (self.log_degree, ""))?;
        within("the base prime", PRIME_BITS, bits(self.base_bits))?;
        within("the scale", SCALE_BITS, bits(self.scale_bits))?;
        within("a special prime", PRIME_BITS, bits(self.special_bits))?;
        within("the number of levels", 0..=MAX_LEVELS, (self.levels, ""))?;
        within("the number of digits", 1..=self.primes(), (self.digits, ""))?;
        within("the number of special primes", 0..=MAX_DIGIT_PRIMES, (self.special_primes, ""))?;
        if self.base_bits < self.scale_bits {
            return Err(Error::Range {
                what: "the base prime",
                expected: format!("at least as wide as the scale, {} bits", self.scale_bits),
                actual: format!("{} bits", self.base_bits),
            });
        }
        if let Some(last) = widths.last() {
            within("the prime of level 1", PRIME_BITS, bits(last))?;
            within("the levels above a last prime", 1..=MAX_LEVELS, (self.levels, ""))?;
            let left = (2 * self.scale_bits).saturating_sub(last);
            within("the scale at level 0", FINAL_SCALE_BITS, bits(left))?;
        }
        // Key switching multiplies the noise by a digit and divides it by P (docs/ckks.md, section
        // 4.2).
        widths.check(self.levels)?;
        let even = widths.stages().is_empty();
        let least = if even { self.scale_bits * self.digit_primes() as u32 } else { 0 };
        let (bits, primes) = self.widest_digit(widths);
        within("the primes of a digit", 1..=MAX_DIGIT_PRIMES, (primes, ""))?;
        let digit = bits.max(least);
        let special = self.special_bits * self.special_primes as u32;
        // Without special primes there are no keys to switch, and more room for the rest.
        if self.special_primes > 0 && special < digit {
            return Err(Error::Range {
                what: "the product of the special primes",
                expected: format!("at least {digit} bits, as wide as a digit"),
                actual: format!("{special} bits"),
            });
        }
        Ok(())
    }

    /// What the parameter id hashes.
    pub(super) fn description(&self, insecure: bool, widths: &Widths) -> String {
        let widths = widths.describe();
        format!(
            "{}ckks ring={} log N={} base={} scale={} levels={} special={}x{} digits={}{widths} \
             ternary sigma=3.2",
            if insecure { "insecure " } else { "" },
            self.ring.as_str(),
            self.log_degree,
            self.base_bits,
            self.scale_bits,
            self.levels,
            self.special_primes,
            self.special_bits,
            self.digits,
        )
    }

    /// The public name of the set.
    pub(super) fn param_id(&self, insecure: bool, widths: &Widths) -> ParamId {
        ParamId::of(&self.description(insecure, widths))
    }
}
