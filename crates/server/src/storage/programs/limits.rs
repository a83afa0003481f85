//! Whether a stranger's plan may be run here, and what it takes.
//!
//! Sizes are looked at before anything is computed from them: bytes, then steps and the ring, then
//! the memory of the ring's tables, then what the forecast says of time and memory.

use super::memory::ProgramMemory;
use super::record::{InputRecord, OutputRecord, PlanRecord};
use crate::storage::error::DatabaseError;
use ciphervec::program::{Footprint, Plan, PlanBytes, Trial};
use std::sync::Arc;
use std::time::Duration;

/// What programs may take.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLimits {
    /// Bytes of a plan.
    pub plan: u64,
    /// Steps of a plan.
    pub steps: usize,
    /// log2 of the ring degree.
    pub log_degree: u32,
    /// How long a run may take, predicted and real.
    pub time: Duration,
    /// Bytes of memory for plans, keys, inputs and runs, all together.
    pub memory: u64,
    /// Runs at once.
    pub runs: usize,
    /// Runs and keys that may wait for their turn.
    pub queue: usize,
    /// Bytes that all programs may have stored; those of one token half of it.
    pub quota: u64,
    /// Threads of all runs; 0 for one a core.
    pub threads: usize,
}

/// Refuses a plan that is larger than it may be, before its ring is made. What its tables take is
/// returned.
pub(super) fn look<'a>(
    bytes: &'a [u8],
    limits: &ProgramLimits,
) -> Result<(PlanBytes<'a>, u64), DatabaseError> {
    within("bytes", bytes.len() as u64, limits.plan, "--program-plan")?;
    let read = PlanBytes::read(bytes).map_err(invalid)?;
    within("steps", read.steps() as u64, limits.steps as u64, "--program-steps")?;
    let log_degree = read.log_degree();
    if log_degree > limits.log_degree {
        return Err(DatabaseError::Limit(format!(
            "the plan has a ring of degree 2^{}, at most 2^{} is taken here (--program-degree)",
            log_degree, limits.log_degree
        )));
    }
    if !read.is_regular() {
        let says = "the plan's parameters have a prime of their own at level 1; compile it again";
        return Err(DatabaseError::Invalid(says.into()));
    }
    let memory = read.ring_memory();
    within("bytes of memory for its ring", memory, limits.memory, "--program-memory")?;
    Ok((read, memory))
}

/// The plan and what it takes.
pub(super) fn examine(
    read: PlanBytes<'_>,
    bytes: u64,
    limits: &ProgramLimits,
) -> Result<(Arc<Plan>, PlanRecord), DatabaseError> {
    let plan = Arc::new(read.plan().map_err(invalid)?);
    let spec = *plan.params().spec();
    let trial = Trial::costs(&plan).map_err(invalid)?;
    let predicted = Duration::try_from_secs_f64(trial.milliseconds() / 1e3);
    let predicted = predicted.unwrap_or(Duration::MAX);
    if predicted > limits.time {
        return Err(DatabaseError::Limit(format!(
            "a run of the plan is predicted to take {:.1} s on one thread, at most {:.1} s are taken here \
                 (--program-time)",
            predicted.as_secs_f64(),
            limits.time.as_secs_f64()
        )));
    }
    let footprint = Footprint::of(&plan, &trial).map_err(invalid)?;
    let key_bytes = plan.key_bytes().map_err(invalid)? as u64;
    let inputs: u64 = Footprint::inputs(&plan);
    let memory = [footprint.plan, footprint.keys, key_bytes, footprint.run, inputs]
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(*part));
    within("bytes of memory for a run", memory, limits.memory, "--program-memory")?;
    let circuit = plan.circuit();
    let inputs = circuit.inputs.iter().map(|input| InputRecord {
        name: input.name.clone(),
        shape: input.shape.clone(),
        bytes: plan.input_bytes(input) as u64,
        memory: Footprint::input(&plan, input),
        public: input.public,
    });
    let outputs = circuit
        .outputs
        .iter()
        .map(|output| OutputRecord { name: output.name.clone(), shape: output.shape.clone() });
    let record = PlanRecord {
        id: plan.id().to_string(),
        bytes,
        steps: circuit.steps.len() as u64,
        slots: circuit.slots as u64,
        log_degree: spec.log_degree,
        log_modulus: plan.params().log_key_modulus(),
        levels: spec.levels as u64,
        predicted_ms: trial.milliseconds(),
        memory,
        plan_memory: footprint.plan,
        key_memory: footprint.keys,
        run_memory: footprint.run,
        key_bytes,
        answer_bytes: plan.answer_bytes(&trial.levels_sent) as u64,
        inputs: inputs.collect(),
        outputs: outputs.collect(),
    };
    Ok((plan, record))
}

/// Room beside the memory of a plan's tables while it is examined: a few times its bytes.
pub(super) fn examining(bytes: u64, ring: u64, memory: &ProgramMemory) -> u64 {
    ring.saturating_add(bytes.saturating_mul(6)).min(memory.budget())
}

fn within(what: &str, actual: u64, most: u64, option: &str) -> Result<(), DatabaseError> {
    if actual <= most {
        return Ok(());
    }
    Err(DatabaseError::Limit(format!(
        "the plan takes {actual} {what}, at most {most} are taken here ({option})"
    )))
}

pub(super) fn invalid(error: ciphervec::Error) -> DatabaseError {
    DatabaseError::Invalid(error.to_string())
}
