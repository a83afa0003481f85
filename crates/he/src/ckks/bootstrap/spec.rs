//! Specification of bootstrapping: sizes, and the stages of the modulus chain that they ask for.

use super::super::params::Params;
use super::super::spec::{ParamsSpec, Ring};
use super::super::widths::{Stage, Widths, within};
use super::reduction::Reduction;
use crate::error::Result;
use crate::params::Security;
use std::sync::Arc;

/// Bits of the base prime: the most that the arithmetic takes, as what bootstrapping leaves of
/// numbers is what they are of it.
pub(super) const BASE_BITS: u32 = 50;
/// The coefficients of the sparse secret that are not zero.
pub const WEIGHT: usize = 32;
/// K: what the raised multiples of q_0 stay below.
pub(super) const RANGE: f64 = 16.0;
/// The same in the conjugate-invariant ring, where twice as many terms make one: below 32.5, and
/// above 31 with a chance of 2^−130.
pub(super) const REAL_RANGE: f64 = 31.0;

/// A parameter set that ciphertexts are refreshed under. Levels, from the lowest up: those of
/// slots-to-coefficients, those to compute with, those of the modular reduction, those of
/// coefficients-to-slots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BootstrapSpec {
    /// The ring: complex slots, or twice as many real ones.
    pub ring: Ring,
    /// log2 of the ring degree N.
    pub log_degree: u32,
    /// log2 of the most slots: all of the ring's, which are 2^(`log_degree` − 1) or, real ones,
    /// 2^`log_degree`; or fewer for less work.
    pub log_slots: u32,
    /// Levels that a refreshed ciphertext can be computed with before it is refreshed again.
    pub levels: usize,
    /// log2 of their scale.
    pub scale_bits: u32,
    /// Products that slots-to-coefficients is made of, one level each.
    pub slots_to_coefficients: usize,
    /// Bits of their primes.
    pub slots_to_coefficients_bits: u32,
    /// log2 of the scale at the lowest level of the modular reduction; a level up it is a bit more,
    pub reduction_bits: u32,
    /// until it is this: an error counts the more the earlier it comes.
    pub reduction_top_bits: u32,
    /// Bits that it rises by from a level to the next.
    pub reduction_rise: u32,
    /// Double angles of the reduction: none for the most precision, 2 for the fewest products.
    pub doublings: u32,
    /// Whether, without double angles, a polynomial that is straight near integers takes the place of
    /// a sine: twice as long, for the bits that the sine's curvature takes.
    pub straight: bool,
    /// Whether an inverse sine follows the sine: two levels for the bits that its curvature takes.
    pub inverse_sine: bool,
    /// Products that coefficients-to-slots is made of.
    pub coefficients_to_slots: usize,
    /// Bits of their primes.
    pub coefficients_to_slots_bits: u32,
    /// How many hoisted rotations of coefficients-to-slots a key less may cost.
    pub key_cost: usize,
    /// Special primes.
    pub special_primes: usize,
    /// Bits of a special prime.
    pub special_bits: u32,
    /// Digits of key switching at the top level.
    pub digits: usize,
    /// K, the largest multiple of q_0 that is reduced: 16 in sets to be used, 31 where slots are real. What lies beyond is
    /// lost, and [`super::BootstrapPlan::failure_log2`] says how likely that is.
    pub range: f64,
    /// How often numbers are refreshed: once, or again what is left of them, for more precision.
    pub iterations: usize,
    /// log2 of what that is multiplied by each time: 0 for one iteration.
    pub residual_bits: u32,
    /// The row of the security table to stay under.
    pub security: Security,
}

impl BootstrapSpec {
    /// Degree 2^16: ten levels at 40 bits.
    pub fn degree_65536() -> Self {
        BootstrapSpec {
            ring: Ring::Standard,
            log_degree: 16,
            log_slots: 15,
            levels: 10,
            scale_bits: 40,
            slots_to_coefficients: 3,
            slots_to_coefficients_bits: 32,
            reduction_bits: 42,
            reduction_top_bits: 49,
            reduction_rise: 1,
            doublings: 2,
            straight: false,
            inverse_sine: true,
            coefficients_to_slots: 3,
            coefficients_to_slots_bits: 44,
            key_cost: 4,
            special_primes: 12,
            special_bits: 50,
            digits: 2,
            range: RANGE,
            iterations: 1,
            residual_bits: 0,
            security: Security::Classical128,
        }
    }

    /// Degree 2^16: twelve levels at 45 bits, each number refreshed twice, for 29 bits in twice the
    /// time.
    pub fn degree_65536_precise() -> Self {
        BootstrapSpec {
            levels: 12,
            scale_bits: 45,
            slots_to_coefficients_bits: 34,
            reduction_bits: 40,
            reduction_top_bits: 48,
            reduction_rise: 2,
            doublings: 0,
            inverse_sine: false,
            coefficients_to_slots_bits: 43,
            iterations: 2,
            residual_bits: 12,
            ..Self::degree_65536()
        }
    }

    /// Degree 2^15: three levels at 32 bits.
    pub fn degree_32768() -> Self {
        BootstrapSpec {
            ring: Ring::Standard,
            log_degree: 15,
            log_slots: 14,
            levels: 3,
            scale_bits: 32,
            slots_to_coefficients: 2,
            slots_to_coefficients_bits: 29,
            reduction_bits: 39,
            reduction_top_bits: 44,
            reduction_rise: 1,
            doublings: 0,
            straight: false,
            inverse_sine: false,
            coefficients_to_slots: 3,
            coefficients_to_slots_bits: 41,
            key_cost: 4,
            special_primes: 5,
            special_bits: 45,
            digits: 3,
            range: RANGE,
            iterations: 1,
            residual_bits: 0,
            security: Security::Classical128,
        }
    }

    /// Degree 2^15 for up to 512 slots: three levels at 31 bits, in half of the time. With fewer
    /// (`log_slots`, 3 at least) under the same parameters in less, down to a quarter.
    pub fn degree_32768_few_slots() -> Self {
        BootstrapSpec {
            log_slots: 9,
            scale_bits: 31,
            slots_to_coefficients: 1,
            reduction_bits: 38,
            coefficients_to_slots: 2,
            coefficients_to_slots_bits: 46,
            doublings: 2,
            ..Self::degree_32768()
        }
    }

    /// Degree 2^16, real slots: eight levels at 42 bits.
    pub fn degree_65536_real_slots() -> Self {
        BootstrapSpec {
            ring: Ring::ConjugateInvariant,
            log_slots: 16,
            levels: 8,
            scale_bits: 42,
            slots_to_coefficients_bits: 37,
            reduction_bits: 46,
            doublings: 0,
            straight: true,
            inverse_sine: false,
            coefficients_to_slots: 4,
            coefficients_to_slots_bits: 46,
            key_cost: 8,
            range: REAL_RANGE,
            ..Self::degree_65536()
        }
    }

    /// Degree 2^15, real slots: three levels at 34 bits.
    pub fn degree_32768_real_slots() -> Self {
        BootstrapSpec {
            ring: Ring::ConjugateInvariant,
            log_slots: 15,
            scale_bits: 34,
            slots_to_coefficients: 3,
            slots_to_coefficients_bits: 28,
            reduction_bits: 40,
            reduction_top_bits: 46,
            coefficients_to_slots_bits: 43,
            key_cost: 8,
            special_primes: 3,
            special_bits: 47,
            digits: 6,
            range: REAL_RANGE,
            ..Self::degree_32768()
        }
    }

    /// Whether slots repeat, so that both parts have room in one ciphertext.
    pub(super) fn repeats(&self) -> bool {
        self.ring == Ring::Standard && self.log_slots + 1 < self.log_degree
    }

    /// log2 of what the residual of the last iteration is multiplied by, in all.
    pub(super) fn residual_shift(&self) -> u32 {
        self.residual_bits * (self.iterations as u32 - 1)
    }

    /// The level that the reduction ends on: with repeating slots a product with a plaintext follows.
    pub(super) fn reduced_level(&self) -> usize {
        self.slots_to_coefficients + self.levels + usize::from(self.repeats())
    }

    /// log2 of the fewest slots that a transform takes: products of a real one halve blocks of two
    /// parts.
    fn fewest_log_slots(&self) -> u32 {
        match self.ring {
            Ring::Standard => 1,
            Ring::ConjugateInvariant => 3,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let most = self.ring.log_slots(self.log_degree.max(4));
        within("log2 of the slots", self.fewest_log_slots()..=most, (self.log_slots, ""))?;
        let steps = (self.log_slots + 1 - self.fewest_log_slots()) as usize;
        within("the levels left after bootstrapping", 1..=32, (self.levels, ""))?;
        let products = 1..=steps.clamp(1, 6);
        within("the products of a transform", products.clone(), (self.slots_to_coefficients, ""))?;
        within("the products of a transform", products, (self.coefficients_to_slots, ""))?;
        within("the range of a modular reduction", 1.0..=64.0, (self.range, ""))?;
        let rise = self.reduction_top_bits.saturating_sub(self.reduction_bits);
        within("the bits that the scale of a reduction rises by", 0..=12, (rise, ""))?;
        within("the bits that it rises by at a level", 1..=8, (self.reduction_rise, ""))?;
        within("the double angles of a reduction", 0..=6, (self.doublings, ""))?;
        within("the number of special primes", 1..=16, (self.special_primes, ""))?;
        // Of slots that repeat the mean alone would be made more precise.
        let all = self.log_slots == self.ring.log_slots(self.log_degree);
        let most = if all { 4 } else { 1 };
        within("the iterations of a bootstrapping", 1..=most, (self.iterations, ""))?;
        let residual = if self.iterations == 1 { 0..=0 } else { 1..=16 };
        within("log2 of what a residual is multiplied by", residual, (self.residual_bits, ""))
    }

    /// The reduction of this set.
    pub(super) fn reduction(&self) -> Result<Reduction> {
        Reduction::new(self.range, self.doublings, self.straight, self.inverse_sine)
    }

    /// The stages, from level 1 upwards.
    fn stages(&self, reduction: &Reduction) -> Vec<Stage> {
        let Self { scale_bits, reduction_top_bits: top, .. } = *self;
        let stage = |levels, prime_bits, scale_bits| Stage { levels, prime_bits, scale_bits };
        let mut stages = vec![
            stage(self.slots_to_coefficients, self.slots_to_coefficients_bits, scale_bits),
            stage(self.reduced_level() - self.slots_to_coefficients, scale_bits, scale_bits),
        ];
        // The lowest level of the reduction is above another stage and leads to no other scale.
        let mut below = self.reduction_bits;
        let steps = reduction.levels() as u32;
        stages.push(stage(1, below, below));
        let mut left = steps - 1;
        while left > 0 && below < top {
            let rise = self.reduction_rise.min(top - below);
            stages.push(stage(1, below + 2 * rise, below + rise));
            below += rise;
            left -= 1;
        }
        if left > 0 {
            stages.push(stage(left as usize, below, below));
        }
        stages.push(stage(self.coefficients_to_slots, self.coefficients_to_slots_bits, below));
        stages
    }

    /// The set and its stages.
    pub(super) fn layout(&self, reduction: &Reduction) -> (ParamsSpec, Vec<Stage>) {
        let stages = self.stages(reduction);
        let spec = ParamsSpec {
            log_degree: self.log_degree,
            ring: self.ring,
            base_bits: BASE_BITS,
            scale_bits: self.scale_bits,
            levels: stages.iter().map(|stage| stage.levels).sum(),
            special_primes: self.special_primes,
            special_bits: self.special_bits,
            digits: self.digits,
            security: self.security,
        };
        (spec, stages)
    }

    pub(super) fn build(&self, reduction: &Reduction, insecure: bool) -> Result<Arc<Params>> {
        let (spec, stages) = self.layout(reduction);
        let range = self.range;
        let why = format!(
            "bootstrapping: {} levels to compute with, {} of slots-to-coefficients below them, {} \
             of a reduction on [−{range}, {range}] and {} of coefficients-to-slots above",
            self.levels,
            self.slots_to_coefficients,
            reduction.levels(),
            self.coefficients_to_slots,
        );
        Params::build(spec, Widths::Stages(stages), insecure, Some(why))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::modulus_chain::ModulusChain;
    use super::*;

    #[test]
    fn sets_to_be_used_are_within_the_security_table() {
        for spec in [
            BootstrapSpec::degree_65536(),
            BootstrapSpec::degree_65536_precise(),
            BootstrapSpec::degree_32768(),
            BootstrapSpec::degree_32768_few_slots(),
            BootstrapSpec::degree_65536_real_slots(),
            BootstrapSpec::degree_32768_real_slots(),
        ] {
            spec.check().unwrap();
            let reduction = spec.reduction().unwrap();
            let (params, stages) = spec.layout(&reduction);
            let chain = ModulusChain::checked(&params, Widths::Stages(stages), false).unwrap();
            assert_eq!(chain.max_level() + 1, chain.primes.len());
            // What is known of the sparse secret is modulo at most 100 bits.
            assert!(chain.prime(0).log2() + (chain.special[0] as f64).log2() <= 100.0);
        }
    }
}
