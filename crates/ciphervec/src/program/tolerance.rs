//! Whether the errors of a program's outputs are small enough for the values that were declared. Key holder, without a key.

use super::arrays::{Decoding, Output};
use super::circuit::{Circuit, Step};
use super::numbers::elements;
use super::placement::Domain;
use crate::refusal::Refusal;
use ciphervec_he::ckks::{Deviation, Traced, TracedForecast, Tracing};
use ciphervec_he::params::Security;

/// log2 of the chance that an answer is wrong or refused, unless another one is asked for.
pub const FAILURE_BITS: u8 = 64;

/// How exact a circuit's answers must be, and how secure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Asked<'a> {
    /// How far each number of each output may be off.
    pub allowed: &'a [f64],
    /// log2 of one over the chance that an answer is wrong or refused.
    pub failure: u8,
    /// The table of parameters.
    pub security: Security,
}

impl<'a> Asked<'a> {
    /// [`FAILURE_BITS`], and the table for classical computers.
    pub fn of(allowed: &'a [f64]) -> Self {
        Asked { allowed, failure: FAILURE_BITS, security: Security::Classical128 }
    }
}

/// What an output is like when it arrives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OutputForecast {
    /// The standard deviation of a number's error.
    pub error: f64,
    /// What the error of any number is within, but for the chance that was asked for.
    pub within: f64,
}

/// How the errors of a circuit are traced: so that all that could go wrong in an answer, its numbers
/// and what every step of it can bear, does so with a chance below `2^-failure` together.
///
/// In a circuit that `refreshes`, and gives real numbers alone, errors of different steps are taken
/// for independent: by absolute values, those of a loop grow from round to round, whatever the loop
/// does.
///
/// `local` follows errors slot by slot, which takes longer: a mask takes those of what it leaves out with it,
/// so that what is put together of masked parts is no further off than each.
pub fn traced(circuit: &Circuit, failure: u8, refreshes: bool, local: bool) -> Tracing {
    let numbers = circuit.outputs.iter().filter_map(|output| elements(&output.shape));
    let numbers = numbers.fold(0u64, u64::saturating_add) as f64;
    let stages = circuit.steps.iter().map(|step| match *step {
        Step::Sign(_, sign) => circuit.signs[sign as usize].stages().len(),
        Step::SignStage(..) | Step::LookUp(..) => 1,
        _ => 0,
    });
    let events = numbers + stages.sum::<usize>() as f64 * circuit.slots as f64;
    let exact = circuit
        .outputs
        .iter()
        .any(|output| output.decoding != Decoding::Numbers || output.numbers.step > 0.0);
    Tracing {
        bits: f64::from(failure) + events.max(1.0).log2(),
        // What a refresh adds may be alike wherever slots repeat.
        slots: if refreshes { usize::MAX } else { circuit.slots },
        local: local || refreshes,
        dependent: exact || !refreshes,
    }
}

impl Output {
    /// How far the numbers of one of its registers are off.
    pub(super) fn forecast(
        &self,
        slots: usize,
        forecast: &TracedForecast,
        register: &Traced,
    ) -> OutputForecast {
        let unit = self.unit * self.placement.error(slots);
        let error = register.deviation();
        // A coefficient has something of all slots, which have all that the secret key does.
        let spread = match self.placement.domain {
            Domain::Slots => error,
            Domain::Coefficients => Deviation { keyed: 0.0, ..error },
        };
        OutputForecast { error: error.std * unit, within: forecast.beyond(spread) * unit }
    }
}

/// Why the outputs are not exact enough, if they are not.
pub(super) fn inexact(
    circuit: &Circuit,
    allowed: &[f64],
    outputs: &[OutputForecast],
) -> Option<Refusal> {
    circuit.outputs.iter().zip(outputs).zip(allowed).find_map(|((output, found), &most)| {
        (found.within > most).then(|| Refusal::Inexact {
            output: output.name.clone(),
            off: found.within,
            most,
        })
    })
}
