//! The smallest set of parameters that makes a design's roots of unity, and the bits of a coefficient that are sent. Public
//! numbers only.

use crate::error::{Error, Result};
use crate::lookup::strategy::Strategy;
use crate::lookup::tokens::bound::Errors;
use crate::lookup::tokens::candidate::Candidate;
use crate::lookup::tokens::design::Design;
use ciphervec_he::ckks::{ExponentialSpec, ParamsSpec, Ring};
use ciphervec_he::params::{Security, max_log_modulus};
use core::f64::consts::{PI, SQRT_2};

/// Fewest bits of a coefficient that are tried.
const LEAST_BITS: u32 = 10;
/// Most levels that sets are laid out for.
const MAX_LEVELS: usize = 16;
/// Products of coefficients-to-slots.
pub(super) const TRANSFORMS: usize = 3;
/// K of the exponential.
const RANGE: f64 = 16.0;

/// A family of sets: all but the levels that roots are computed with.
#[derive(Clone, Copy, Debug)]
struct Family {
    log_degree: u32,
    base_bits: u32,
    scale_bits: u32,
    exponential_bits: u32,
    doublings: u32,
    /// Levels that the exponential spends.
    exponential_levels: usize,
    /// Key switches of one exponential.
    switches: usize,
    /// Rotations that its products need keys for, with the conjugation.
    rotations: usize,
    /// −log2 of the standard deviation of a part of a root, at the least.
    root_bits: f64,
}

/// From the fastest for a token up.
const FAMILIES: [Family; 2] = [
    Family {
        log_degree: 15,
        base_bits: 42,
        scale_bits: 38,
        exponential_bits: 45,
        doublings: 3,
        exponential_levels: 8,
        switches: 12,
        rotations: 25,
        root_bits: 24.0,
    },
    Family {
        log_degree: 16,
        base_bits: 50,
        scale_bits: 45,
        exponential_bits: 49,
        doublings: 2,
        exponential_levels: 8,
        switches: 14,
        rotations: 29,
        root_bits: 26.5,
    },
];

impl Family {
    /// The set with so many levels, its special primes as wide as the widest digit: of few digits, as
    /// far as the security table leaves room.
    fn spec(&self, levels: usize, limit: u32) -> Option<ExponentialSpec> {
        let Family { log_degree, base_bits, scale_bits, exponential_bits, doublings, .. } = *self;
        let upper = self.exponential_levels + TRANSFORMS;
        let primes = 1 + levels + upper;
        let chain = base_bits + scale_bits * levels as u32 + exponential_bits * upper as u32;
        // A bit for primes that are a little wider than they are called.
        let special_bits = (exponential_bits + 1).min(50);
        let room = limit.checked_sub(chain + 1)? / special_bits;
        let special_primes = (room as usize).min(primes.div_ceil(2)).min(16);
        if special_primes == 0 {
            return None;
        }
        Some(ExponentialSpec {
            log_degree,
            base_bits,
            levels,
            scale_bits,
            slots_to_coefficients: 0,
            slots_to_coefficients_bits: scale_bits,
            exponential_bits,
            doublings,
            coefficients_to_slots: TRANSFORMS,
            coefficients_to_slots_bits: exponential_bits,
            special_primes,
            special_bits,
            digits: primes.div_ceil(special_primes),
            range: RANGE,
            security: Security::Classical128,
        })
    }

    /// What of `spec` a chain of even widths would have: all that estimates of what follows look at.
    fn candidate(&self, spec: &ExponentialSpec) -> Candidate {
        let levels = spec.levels + self.exponential_levels + TRANSFORMS;
        let spec = ParamsSpec {
            log_degree: self.log_degree,
            ring: Ring::Standard,
            base_bits: self.base_bits,
            scale_bits: self.scale_bits,
            levels,
            special_primes: spec.special_primes,
            special_bits: spec.special_bits,
            digits: spec.digits,
            security: spec.security,
        };
        Candidate { spec, last_bits: None }
    }

    /// The standard deviation of a part of a root of a number of which so many bits were sent, N/2
    /// numbers modulo 2^bits: it turns by 2π times what the number is off by.
    fn deviation(&self, bits: u32) -> f64 {
        let sent = f64::exp2(-f64::from(bits)) / 12f64.sqrt();
        // Fresh noise and the key switch, of 2^8 or less.
        let noise = f64::exp2(8.0 - f64::from(self.base_bits));
        let turned = 2.0 * PI * sent.hypot(noise) / SQRT_2;
        turned.hypot(f64::exp2(-self.root_bits))
    }
}

/// A set of parameters, and what is sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::lookup::tokens) struct CompactPlan {
    pub spec: ExponentialSpec,
    /// What an estimate of the work on roots looks at.
    pub params: ParamsSpec,
    /// Bits of a coefficient.
    pub bits: u32,
    /// The standard deviation of a part of a root.
    pub deviation: f64,
    /// The relative root mean square error of a looked-up row.
    pub error: f64,
    /// The least precision that a root must have.
    pub root_bits: f64,
    /// Key switches of one exponential.
    pub switches: usize,
    /// Keys of coefficients-to-slots.
    pub rotations: usize,
}

impl CompactPlan {
    /// The smallest set with the levels of `design` that is secure and precise enough, and the fewest
    /// bits of a coefficient with which it is.
    ///
    /// # Errors
    /// [`Error::Choice`] for a strategy that does not begin with roots of unity, [`Error::Range`] where
    /// no set has the levels or the precision.
    pub fn new(strategy: Strategy, design: &Design<'_>) -> Result<Self> {
        check(strategy)?;
        let levels = design.top_level();
        let goal = 0.8 * f64::exp2(-f64::from(design.shape.precision_bits));
        let secure = FAMILIES.iter().filter_map(|family| {
            let limit = max_log_modulus(1 << family.log_degree, Security::Classical128)?;
            family.spec(levels, limit).map(|spec| (family, spec))
        });
        let mut best = f64::INFINITY;
        for (family, spec) in secure.filter(|_| levels <= MAX_LEVELS) {
            let plan = |bits| Self::of(family, spec, design, bits);
            if let Some(plan) =
                (LEAST_BITS..=family.base_bits).map(plan).find(|plan| plan.error <= goal)
            {
                return Ok(plan);
            }
            best = best.min(plan(family.base_bits).error);
        }
        let actual = design.shape.precision_bits.to_string();
        Err(Error::Range {
            what: "the bits of precision of compact transport",
            expected: match best {
                best if best < 1.0 => format!("at most {:.0}", (-best.log2()).floor()),
                _ => format!("of a table with fewer rows: {levels} levels are too many"),
            },
            actual,
        })
    }

    /// The same in a small ring that the security table is not asked about.
    ///
    /// # Errors
    /// [`Error::Choice`] as for [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure(strategy: Strategy, design: &Design<'_>, log_degree: u32) -> Result<Self> {
        check(strategy)?;
        let family = Family { log_degree, ..FAMILIES[1] };
        let Some(spec) = family.spec(design.top_level(), 4000) else {
            return Err(Error::choice("strategy", "one of few levels", strategy.as_str()));
        };
        let spec = ExponentialSpec { special_primes: 5, digits: 5, ..spec };
        let goal = 0.8 * f64::exp2(-f64::from(design.shape.precision_bits));
        let plan = |bits| Self::of(&family, spec, design, bits);
        let found = (LEAST_BITS..family.base_bits).map(plan).find(|plan| plan.error <= goal);
        Ok(found.unwrap_or_else(|| plan(family.base_bits)))
    }

    fn of(family: &Family, spec: ExponentialSpec, design: &Design<'_>, bits: u32) -> Self {
        let candidate = family.candidate(&spec);
        let deviation = family.deviation(bits);
        let errors = Errors::new(design, family.log_degree).with_input(deviation);
        CompactPlan {
            spec,
            params: candidate.spec,
            bits,
            deviation,
            error: errors.relative(&candidate),
            root_bits: family.root_bits,
            switches: family.switches,
            rotations: family.rotations,
        }
    }
}

fn check(strategy: Strategy) -> Result<()> {
    if matches!(strategy, Strategy::Ive | Strategy::IveDigits) {
        return Ok(());
    }
    Err(Error::choice("strategy", "ive or ive_digits, for compact transport", strategy.as_str()))
}
