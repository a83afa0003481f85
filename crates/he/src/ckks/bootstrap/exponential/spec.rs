//! Specification of the exponential: sizes, and the stages of the modulus chain that they ask for.

use super::super::super::params::Params;
use super::super::super::spec::{ParamsSpec, Ring};
use super::super::super::widths::{Stage, Widths, within};
use super::super::spec::{BASE_BITS, BootstrapSpec, RANGE};
use super::series::ExponentialSeries;
use crate::error::Result;
use crate::params::Security;
use std::sync::Arc;

/// The most squarings of an exponential.
pub(super) const SQUARINGS: u32 = 6;

/// A parameter set under which numbers become roots of unity. Levels, from the lowest up: those of
/// slots-to-coefficients, those to compute with, those of the exponential, those of
/// coefficients-to-slots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExponentialSpec {
    /// log2 of the ring degree N.
    pub log_degree: u32,
    /// Bits of q_0, which stands for the number 1: what a coefficient takes that is sent.
    pub base_bits: u32,
    /// Levels that roots can be computed with before they are spent.
    pub levels: usize,
    /// log2 of their scale.
    pub scale_bits: u32,
    /// Products that slots-to-coefficients is made of, one level each; 0 for a set that takes
    /// coefficients only.
    pub slots_to_coefficients: usize,
    /// Bits of their primes.
    pub slots_to_coefficients_bits: u32,
    /// log2 of the scale of the exponential.
    pub exponential_bits: u32,
    /// How often a root is squared: more of them shorten the series.
    pub doublings: u32,
    /// Products that coefficients-to-slots is made of.
    pub coefficients_to_slots: usize,
    /// Bits of their primes.
    pub coefficients_to_slots_bits: u32,
    /// Special primes.
    pub special_primes: usize,
    /// Bits of a special prime.
    pub special_bits: u32,
    /// Digits of key switching at the top level.
    pub digits: usize,
    /// K, the largest multiple of q_0 that the exponential is close to its series at: 16 in sets to
    /// be used. What lies beyond is lost, and [`super::ExponentialPlan::failure_log2`] says how
    /// likely that is.
    pub range: f64,
    /// The row of the security table to stay under.
    pub security: Security,
}

impl ExponentialSpec {
    /// Degree 2^16: twelve levels at 45 bits, from slots or coefficients.
    pub fn degree_65536() -> Self {
        ExponentialSpec {
            log_degree: 16,
            base_bits: 50,
            levels: 12,
            scale_bits: 45,
            slots_to_coefficients: 3,
            slots_to_coefficients_bits: 42,
            exponential_bits: 49,
            doublings: 3,
            coefficients_to_slots: 3,
            coefficients_to_slots_bits: 49,
            special_primes: 9,
            special_bits: 50,
            digits: 3,
            range: RANGE,
            security: Security::Classical128,
        }
    }

    /// Degree 2^15: five levels at 38 bits, from coefficients modulo a q_0 of 42 bits.
    pub fn degree_32768() -> Self {
        ExponentialSpec {
            log_degree: 15,
            base_bits: 42,
            levels: 5,
            scale_bits: 38,
            slots_to_coefficients: 0,
            slots_to_coefficients_bits: 36,
            exponential_bits: 45,
            doublings: 3,
            coefficients_to_slots: 3,
            coefficients_to_slots_bits: 45,
            special_primes: 3,
            special_bits: 45,
            digits: 6,
            range: RANGE,
            security: Security::Classical128,
        }
    }

    /// The sizes of a set for bootstrapping.
    pub(super) fn like(set: &BootstrapSpec, doublings: u32) -> Self {
        ExponentialSpec {
            log_degree: set.log_degree,
            base_bits: BASE_BITS,
            levels: set.levels,
            scale_bits: set.scale_bits,
            slots_to_coefficients: set.slots_to_coefficients,
            slots_to_coefficients_bits: set.slots_to_coefficients_bits,
            exponential_bits: set.reduction_top_bits,
            doublings,
            coefficients_to_slots: set.coefficients_to_slots,
            coefficients_to_slots_bits: set.coefficients_to_slots_bits,
            special_primes: set.special_primes,
            special_bits: set.special_bits,
            digits: set.digits,
            range: set.range,
            security: set.security,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let steps = self.log_degree.saturating_sub(1) as usize;
        let most = steps.clamp(1, 6);
        within("the levels left after an exponential", 1..=32, (self.levels, ""))?;
        within("the products of a transform", 0..=most, (self.slots_to_coefficients, ""))?;
        within("the products of a transform", 1..=most, (self.coefficients_to_slots, ""))?;
        within("the range of an exponential", 1.0..=64.0, (self.range, ""))?;
        within("the squarings of an exponential", 0..=SQUARINGS, (self.doublings, ""))?;
        within("the number of special primes", 1..=16, (self.special_primes, ""))
    }

    /// The series of this set. It ends where what is left of it is half of what the first rescale
    /// makes of the result: its error times 2πK.
    pub(super) fn series(&self) -> Result<ExponentialSeries> {
        let delta = Ring::Standard.expansion(self.log_degree);
        let rescale = ((1.0 + delta * 2.0 / 3.0) / 12.0 * delta / 2.0).sqrt();
        let input = rescale * f64::exp2(-f64::from(self.exponential_bits));
        let tolerance = core::f64::consts::PI * self.range * input;
        ExponentialSeries::new(self.range, self.doublings, tolerance)
    }

    /// The stages, from level 1 upwards.
    fn stages(&self, series: &ExponentialSeries) -> Vec<Stage> {
        let Self { scale_bits, exponential_bits, .. } = *self;
        let stage = |levels, prime_bits, scale_bits| Stage { levels, prime_bits, scale_bits };
        let mut stages = vec![
            stage(self.slots_to_coefficients, self.slots_to_coefficients_bits, scale_bits),
            stage(self.levels, scale_bits, scale_bits),
            stage(series.levels(), exponential_bits, exponential_bits),
            stage(self.coefficients_to_slots, self.coefficients_to_slots_bits, exponential_bits),
        ];
        stages.retain(|stage| stage.levels > 0);
        stages
    }

    /// The set and its stages.
    fn layout(&self, series: &ExponentialSeries) -> (ParamsSpec, Vec<Stage>) {
        let stages = self.stages(series);
        let spec = ParamsSpec {
            log_degree: self.log_degree,
            ring: Ring::Standard,
            base_bits: self.base_bits,
            scale_bits: self.scale_bits,
            levels: stages.iter().map(|stage| stage.levels).sum(),
            special_primes: self.special_primes,
            special_bits: self.special_bits,
            digits: self.digits,
            security: self.security,
        };
        (spec, stages)
    }

    pub(super) fn build(&self, series: &ExponentialSeries, insecure: bool) -> Result<Arc<Params>> {
        let (spec, stages) = self.layout(series);
        let range = self.range;
        let why = format!(
            "roots of unity: {} levels to compute with, {} of slots-to-coefficients below them, {} \
             of an exponential on [−{range}, {range}] and {} of coefficients-to-slots above",
            self.levels,
            self.slots_to_coefficients,
            series.levels(),
            self.coefficients_to_slots,
        );
        Params::build(spec, Widths::Stages(stages), insecure, Some(why))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::modulus_chain::ModulusChain;
    use super::*;

    #[test]
    fn sets_to_be_used_are_within_the_security_table() {
        for (spec, bits) in
            [(ExponentialSpec::degree_65536(), 1705), (ExponentialSpec::degree_32768(), 862)]
        {
            spec.check().unwrap();
            let (params, stages) = spec.layout(&spec.series().unwrap());
            let chain = ModulusChain::checked(&params, Widths::Stages(stages), false).unwrap();
            // What is known of the sparse secret is modulo at most 100 bits.
            assert!(chain.prime(0).log2() + (chain.special[0] as f64).log2() <= 100.0);
            let all: f64 = chain.log_modulus(chain.max_level()) + chain.log_special();
            assert_eq!(all.round() as i32, bits, "2^{}", spec.log_degree);
        }
    }
}
