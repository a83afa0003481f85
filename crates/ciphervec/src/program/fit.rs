//! Finds the smallest ring that is secure and exact enough for a circuit, with the keys that the circuit takes. The key holder
//! runs it, without a key.

use super::circuit::{Circuit, Step};
use super::numbers::range;
use super::plan::{KeySet, Plan};
use super::reference::reference;
use super::refreshed::{Refreshed, kept, specs};
use super::tolerance::{Asked, inexact};
use super::trial::{SPARE_BITS, Trial};
use super::weighing::{key_bytes, weight};
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use ciphervec_he::ckks::{BootstrapSpec, Calibration, Params, ParamsSpec, Ring};
use ciphervec_he::params::{Security, max_log_modulus};

/// Scales that are tried, in bits.
const SCALE_BITS: core::ops::RangeInclusive<u32> = 25..=48;
/// Bits of the base prime and of special ones.
const PRIME_BITS: u32 = 50;
/// Most primes of a digit, and most special primes.
const DIGIT_PRIMES: usize = 16;
/// Levels of a trial that finds how many a circuit takes.
const DEEPEST: usize = 62;
/// Rings that are tried.
const LOG_DEGREES: core::ops::RangeInclusive<u32> = 12..=17;
/// Milliseconds below which nothing is refreshed: one refresh takes longer.
const NO_REFRESH_MS: f64 = 500.0;

/// Levels of a circuit that no refresh is of use for.
const SHALLOW: usize = 10;

/// A ring that a circuit was tried in, and what came of it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// log2 of the degree.
    pub log_degree: u32,
    /// Whether registers are refreshed in it.
    pub refreshing: bool,
    /// log2 of one over the chance that an answer is wrong or refused.
    pub failure: u8,
    /// The circuit with its refreshes, if they are and it serves.
    pub refreshed: Option<Refreshed>,
    /// The parameters and the trial under them, or why there are none.
    pub outcome: core::result::Result<(ParamsSpec, Trial), Refusal>,
}

/// Tries a circuit in every ring, and stops at the first that serves. Where none serves, or it takes long, the sets that refresh
/// registers are tried as well. What is predicted to be best stands last, in time and in keys.
///
/// # Errors
/// [`Error::Range`] for a circuit that [`Circuit::check`] refuses, [`Error::Program`] for another
/// number of outputs.
pub fn candidates(circuit: &Circuit, asked: &Asked<'_>) -> Result<Vec<Candidate>> {
    circuit.check()?;
    let Asked { allowed, failure, security } = *asked;
    if failure == 0 {
        return Err(range("the bits of a chance of failure", "at least 1", failure));
    }
    if allowed.len() != circuit.outputs.len() {
        let detail = format!("{} outputs, {} errors allowed", circuit.outputs.len(), allowed.len());
        return Err(Error::Program { operation: "a fit", detail });
    }
    let needs = Needs::of(circuit);
    let mut tried = with_levels(circuit, asked, &needs, false);
    // Errors slot by slot take longer to follow, and matter where masks leave some of them out.
    let masks = circuit.steps.iter().any(|step| matches!(step, Step::MultiplyVector(..)));
    if masks && tried.last().is_none_or(|one| one.outcome.is_err()) {
        tried = with_levels(circuit, asked, &needs, true);
    }
    let long = |one: &Candidate| one.milliseconds().is_none_or(|ms| ms > NO_REFRESH_MS);
    let deep = needs.as_ref().map_or(true, |needs| needs.depth > SHALLOW);
    if deep && tried.last().is_none_or(long) {
        for spec in specs() {
            let spec = BootstrapSpec { security, ..spec };
            tried.push(Candidate::refreshing(circuit, asked, spec));
        }
    }
    Ok(best_last(tried))
}

/// What weighs least comes last, and what serves as well says how many times as much it weighs.
fn best_last(mut tried: Vec<Candidate>) -> Vec<Candidate> {
    let serving = tried.iter().enumerate();
    let serving = serving.filter_map(|(place, one)| Some((place, one.weight()?)));
    let Some((place, least)) = serving.min_by(|a, b| a.1.total_cmp(&b.1)) else { return tried };
    let best = tried.remove(place);
    for one in &mut tried {
        let Some(weight) = one.weight() else { continue };
        one.outcome = Err(Refusal::Dearer { times: weight / least });
        one.refreshed = None;
    }
    tried.push(best);
    tried
}

/// Every ring up to the first that serves without a refresh.
fn with_levels(
    circuit: &Circuit,
    asked: &Asked<'_>,
    needs: &core::result::Result<Needs, Refusal>,
    local: bool,
) -> Vec<Candidate> {
    let mut tried = Vec::new();
    let needs = match needs {
        Ok(needs) => *needs,
        Err(why) => {
            let (log_degree, outcome) = (*LOG_DEGREES.end(), Err(why.clone()));
            return vec![Candidate::levels(log_degree, asked, outcome)];
        }
    };
    for log_degree in LOG_DEGREES {
        let outcome = if circuit.slots > 1 << log_degree {
            Err(Refusal::Slots { slots: circuit.slots, most: 1 << log_degree })
        } else {
            in_ring(circuit, asked, log_degree, needs, local)
        };
        let serves = outcome.is_ok();
        tried.push(Candidate::levels(log_degree, asked, outcome));
        if serves {
            break;
        }
    }
    tried
}

impl Candidate {
    fn levels(
        log_degree: u32,
        asked: &Asked<'_>,
        outcome: core::result::Result<(ParamsSpec, Trial), Refusal>,
    ) -> Self {
        let failure = asked.failure;
        Candidate { log_degree, refreshing: false, failure, refreshed: None, outcome }
    }

    /// A circuit under a set that refreshes registers.
    fn refreshing(circuit: &Circuit, asked: &Asked<'_>, spec: BootstrapSpec) -> Self {
        let found = kept(spec)
            .map_err(Refusal::from)
            .and_then(|bootstrapper| Refreshed::of(circuit, asked, bootstrapper));
        let (refreshed, outcome) = match found {
            Ok((refreshed, trial)) => {
                let params = *refreshed.bootstrapper.params().spec();
                (Some(refreshed), Ok((params, trial)))
            }
            Err(why) => (None, Err(why)),
        };
        let one = Candidate::levels(spec.log_degree, asked, outcome);
        Candidate { refreshing: true, refreshed, ..one }
    }

    /// The same with what a run takes on this machine, which is timed for it. Candidates are chosen
    /// among by a table of times, so that a plan is the same wherever it is made.
    ///
    /// # Errors
    /// None for a degree that was tried.
    pub fn timed(mut self) -> Result<Self> {
        let calibration = Calibration::measure(self.log_degree)?;
        if let Some(one) = &mut self.refreshed {
            one.milliseconds = one.bootstrapper.work()?.milliseconds(&calibration);
        }
        self.outcome = self.outcome.map(|(spec, trial)| (spec, trial.timed(&calibration)));
        Ok(self)
    }

    /// What it is compared with others by, if it serves: what a run is predicted to take by a table of times,
    /// and keys.
    pub fn weight(&self) -> Option<f64> {
        let (spec, trial) = self.outcome.as_ref().ok()?;
        let keys = key_bytes(spec, &trial.keys);
        let refreshing = self.refreshed.as_ref().and_then(|one| one.bootstrapper.plan().ok());
        let refreshing = refreshing.map_or(0.0, |plan| plan.key_bytes as f64);
        Some(weight(trial.milliseconds(), keys + refreshing))
    }

    /// What a run is predicted to take on one thread, if it serves.
    pub fn milliseconds(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|(_, trial)| trial.milliseconds())
    }

    /// The plan of the circuit that was tried.
    ///
    /// # Errors
    /// [`Error::Program`] for one that does not serve; as [`Plan::new`].
    pub fn plan(&self, circuit: &Circuit) -> Result<Plan> {
        let (spec, trial) = self.outcome.as_ref().map_err(|why| Error::Program {
            operation: "a plan",
            detail: format!("this candidate does not serve: {why}"),
        })?;
        let keys = trial.keys.clone();
        let plan = match &self.refreshed {
            Some(one) => Plan::refreshing(one.circuit.clone(), one.bootstrapper.clone(), keys),
            None => Plan::of(circuit.clone(), *spec, keys),
        };
        Ok(plan?.with_failure(self.failure))
    }
}

impl Plan {
    /// A plan under the parameters of a candidate.
    ///
    /// # Errors
    /// As [`Plan::new`], and [`ciphervec_he::Error`] for parameters that cannot be made.
    pub fn of(circuit: Circuit, spec: ParamsSpec, keys: Vec<KeySet>) -> Result<Self> {
        Plan::new(circuit, Params::new(spec)?, keys)
    }
}

/// What a circuit takes of any ring.
#[derive(Clone, Copy)]
struct Needs {
    /// Levels.
    depth: usize,
    /// Bits that outputs have above the scale.
    headroom: u32,
    /// Whether any key is switched, which takes special primes.
    keys: bool,
}

impl Needs {
    fn of(circuit: &Circuit) -> core::result::Result<Self, Refusal> {
        if circuit.look_ups() > 0 {
            return Err(Refusal::LookUp);
        }
        let spec = spec((17, 45, PRIME_BITS), DEEPEST, DEEPEST + 1, Security::Classical128);
        let trial = Trial::levels(circuit, &spec).map_err(|error| match error {
            Error::Scheme(ciphervec_he::Error::Level { .. }) => {
                Refusal::TooDeep { levels: DEEPEST }
            }
            other => other.into(),
        })?;
        let headroom = (trial.largest.log2() + SPARE_BITS).ceil().max(SPARE_BITS) as u32 + 1;
        let keys = circuit.switching().next().is_some();
        Ok(Needs { depth: DEEPEST - trial.left, headroom, keys })
    }
}

fn weight_of((spec, trial): &(ParamsSpec, Trial)) -> f64 {
    weight(trial.milliseconds(), key_bytes(spec, &trial.keys))
}

/// The narrowest scale that serves in a ring, with the digits that weigh least.
fn in_ring(
    circuit: &Circuit,
    asked: &Asked<'_>,
    log_degree: u32,
    needs: Needs,
    local: bool,
) -> core::result::Result<(ParamsSpec, Trial), Refusal> {
    let limit = max_log_modulus(1 << log_degree, asked.security).unwrap_or(0);
    let calibration = reference(log_degree);
    let mut why = None;
    // Wide outputs take a level that is left; nothing takes more than two.
    for levels in needs.depth..=needs.depth + 2 {
        let mut scales = *SCALE_BITS.start()..*SCALE_BITS.end() + 1;
        let mut best = None;
        while !scales.is_empty() {
            // Errors shrink with the scale, and room with it too, so the least is searched for.
            let scale_bits = scales.start + (scales.end - scales.start) / 2;
            let base_bits = (scale_bits + needs.headroom).min(PRIME_BITS);
            let ring = (log_degree, scale_bits, base_bits);
            let sizes = (levels, limit, needs.keys);
            match at_scale(circuit, asked, (ring, local), sizes, &calibration) {
                Tried::Serves(found) => {
                    best = Some(found);
                    scales.end = scale_bits;
                }
                Tried::Inexact(reason) => {
                    why = Some(reason);
                    scales.start = scale_bits + 1;
                }
                Tried::NoRoom(reason) => {
                    why = Some(reason);
                    scales.end = scale_bits;
                }
            }
        }
        if let Some(found) = best {
            return Ok(*found);
        }
    }
    Err(why.unwrap_or(Refusal::TooDeep { levels: needs.depth }))
}

enum Tried {
    Serves(Box<(ParamsSpec, Trial)>),
    /// A wider scale may do.
    Inexact(Refusal),
    /// A narrower scale may do.
    NoRoom(Refusal),
}

fn at_scale(
    circuit: &Circuit,
    asked: &Asked<'_>,
    (ring, local): ((u32, u32, u32), bool),
    (levels, limit, keys): (usize, u32, bool),
    calibration: &Calibration,
) -> Tried {
    let mut best: Option<(ParamsSpec, Trial)> = None;
    let mut why = Tried::NoRoom(Refusal::Insecure { levels, bits: ring.1, most: limit });
    for digits in 1..=levels + 1 {
        let mut spec = spec(ring, levels, digits, asked.security);
        if !keys {
            spec.special_primes = 0;
        }
        let bits = spec.base_bits
            + spec.scale_bits * levels as u32
            + spec.special_bits * spec.special_primes as u32
            + 1;
        if bits > limit || spec.digit_primes().max(spec.special_primes) > DIGIT_PRIMES {
            continue;
        }
        let repeated =
            best.as_ref().is_some_and(|(held, _)| held.digit_primes() == spec.digit_primes());
        if repeated {
            continue;
        }
        let trial = match Trial::run(circuit, &spec, calibration, asked.failure, local) {
            Ok(trial) => trial,
            Err(error) => {
                why = match error {
                    Error::Scheme(
                        ciphervec_he::Error::Range { .. } | ciphervec_he::Error::TooNoisy { .. },
                    ) => Tried::Inexact(error.into()),
                    other => Tried::NoRoom(other.into()),
                };
                break;
            }
        };
        if let Some(reason) = inexact(circuit, asked.allowed, &trial.outputs) {
            why = Tried::Inexact(reason);
            break;
        }
        let found = (spec, trial);
        if best.as_ref().is_none_or(|held| weight_of(&found) < weight_of(held)) {
            best = Some(found);
        }
    }
    best.map_or(why, |found| Tried::Serves(Box::new(found)))
}

/// Parameters of a ring: log2 of its degree, bits of the scale and of the base prime.
fn spec(
    (log_degree, scale_bits, base_bits): (u32, u32, u32),
    levels: usize,
    digits: usize,
    security: Security,
) -> ParamsSpec {
    let mut spec = ParamsSpec {
        log_degree,
        // Arrays are real.
        ring: Ring::ConjugateInvariant,
        base_bits,
        scale_bits,
        levels,
        special_primes: 1,
        special_bits: PRIME_BITS,
        digits,
        security,
    };
    let width = scale_bits * (spec.digit_primes() as u32 - 1) + spec.base_bits;
    spec.special_primes = width.div_ceil(PRIME_BITS) as usize;
    // As narrow as they may be: bits that are left belong to smaller rings.
    spec.special_bits = width.div_ceil(spec.special_primes as u32).max(25);
    spec
}
