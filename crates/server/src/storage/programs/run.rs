//! Runs a program on encrypted inputs that are sent or kept.
//!
//! A run waits for its turn, then for room, and is computed step by step. Between two steps it looks
//! whether anybody still waits for the answer, and whether its time is over: if so it ends, and what it
//! held is free.

use super::memory::{Admission, Item, KeptInput, Wanted};
use super::record::{Record, input_attachment, keys_attachment};
use super::{Programs, Shown, StoredProgram, blocking, no_keys, stale};
use super::{invalid, wanted_input, wanted_keys, wanted_plan};
use crate::metrics::Counting;
use crate::storage::error::DatabaseError;
use bytes::Bytes;
use ciphervec::KeyId;
use ciphervec::program::{Plan, Sealed, Server, frames, key_of_input};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Attempts at a run that changes of the program get in the way of.
const ATTEMPTS: usize = 4;

/// What a run is asked for.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// The key, 16 hex digits; that of the inputs if none is named.
    pub key: Option<String>,
    /// Names of kept inputs.
    pub kept: Vec<String>,
    /// The other inputs, frame after frame.
    pub inputs: Bytes,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunAnswer {
    /// The encrypted answer.
    pub bytes: Bytes,
    /// Waiting for a turn and for room.
    pub queue: Duration,
    /// Reading what was not in memory.
    pub load: Duration,
    /// The steps.
    pub run: Duration,
}

/// A run as it was checked against the program's record.
struct Checked {
    key: KeyId,
    name: String,
    kept: Vec<(String, Wanted)>,
    /// Bytes of memory for inputs that were sent.
    sent: u64,
}

/// Tells a run that nobody waits for it any more.
struct StopWhenLeft(Arc<AtomicBool>);

impl Drop for StopWhenLeft {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Programs {
    /// Runs a program. Dropping the future ends the run.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for inputs that are missing, come twice, or are none of this program
    /// and key; [`DatabaseError::Busy`], [`DatabaseError::Deadline`]; those of the store.
    pub async fn run(
        self: &Arc<Self>,
        program: &Arc<StoredProgram>,
        request: RunRequest,
        hold: impl Send + Sync + 'static,
    ) -> Result<RunAnswer, DatabaseError> {
        let _counting = Counting::new(&self.metrics.runs);
        let stop = StopWhenLeft(Arc::default());
        let began = Instant::now();
        let hold = Arc::new(hold);
        for _ in 0..ATTEMPTS {
            let shown = program.shown();
            let plan = &shown.record.plan;
            let checked = check(&shown.record, &request)?;
            let keys =
                shown.record.keys.get(&checked.name).ok_or_else(|| no_keys(&checked.name))?;
            let mut wanted = vec![wanted_plan(plan), wanted_keys(plan, keys)];
            wanted.extend(checked.kept.iter().map(|(_, wanted)| *wanted));
            let turn = self.runs.take(plan.predicted_ms as u64).await?;
            // Keys that are read stand beside what is made of them.
            let beside =
                plan.run_memory.saturating_add(checked.sent).saturating_add(plan.key_bytes);
            let admission = self.memory.admit(&wanted, beside).await?;
            let queue = began.elapsed();
            let (programs, held, inputs) =
                (Arc::clone(self), Arc::clone(&hold), request.inputs.clone());
            let (stop, state) = (Arc::clone(&stop.0), Arc::clone(&shown));
            let done = blocking(move || {
                let _held = (held, turn);
                programs.compute(&state, &checked, &wanted, admission, &inputs, &stop)
            });
            match done.await {
                Err(DatabaseError::Moved(_)) => {
                    let program = Arc::clone(program);
                    blocking(move || program.settle()).await?;
                }
                done => {
                    let (bytes, load, run) = done?;
                    return Ok(RunAnswer { bytes, queue, load, run });
                }
            }
        }
        Err(DatabaseError::Busy { retry_after: Duration::from_secs(1) })
    }

    fn compute(
        &self,
        shown: &Shown,
        checked: &Checked,
        wanted: &[Wanted],
        admission: Admission,
        sent: &[u8],
        stop: &AtomicBool,
    ) -> Result<(Bytes, Duration, Duration), DatabaseError> {
        let began = Instant::now();
        let Admission { mut room, found } = admission;
        let plan = self.plan(shown, found.first(), &mut room)?;
        let server = match found.get(1) {
            Some(Some(Item::Keys(server))) => Arc::clone(server),
            _ => {
                let bytes = shown.read(&keys_attachment(&checked.name), &self.reading)?;
                let made = || Server::new(Arc::clone(&plan), &bytes);
                let server = Arc::new(self.computing.install(made).map_err(stale)?);
                room.keep(wanted[1], Item::Keys(Arc::clone(&server)));
                server
            }
        };
        let mut inputs = Vec::new();
        for (index, (name, wanted)) in checked.kept.iter().enumerate() {
            if let Some(Some(Item::Input(kept))) = found.get(index + 2) {
                inputs.push(kept.sealed.clone());
                continue;
            }
            let bytes = shown.read(&input_attachment(&checked.name, name), &self.reading)?;
            let read = || Sealed::read(&plan, checked.key, &bytes);
            let sealed = self.computing.install(read).map_err(stale)?;
            let kept = KeptInput { sealed: sealed.clone(), plan: Arc::clone(&plan) };
            room.keep(*wanted, Item::Input(Arc::new(kept)));
            inputs.push(sealed);
        }
        inputs.extend(self.read_sent(&plan, checked.key, sent)?);
        let loaded = Instant::now();
        let deadline = loaded + self.limits.time;
        let mut why = None;
        let ran = self.computing.install(|| {
            server.run_while(&inputs, |_| {
                if stop.load(Ordering::Relaxed) {
                    why = Some(Stopped::Left);
                } else if Instant::now() > deadline {
                    why = Some(Stopped::Late);
                }
                match why {
                    None => Ok(()),
                    Some(_) => Err(ciphervec::Error::Program {
                        operation: "a run",
                        detail: "it was stopped".to_owned(),
                    }),
                }
            })
        });
        let (load, run) = (loaded - began, loaded.elapsed());
        match why {
            None => {}
            Some(Stopped::Left) => self.metrics.stop("left"),
            Some(Stopped::Late) => {
                self.metrics.stop("deadline");
                return Err(DatabaseError::Deadline(format!(
                    "the run was stopped after {:.1} s, at most {:.1} s are given to one (--program-time)",
                    run.as_secs_f64(),
                    self.limits.time.as_secs_f64()
                )));
            }
        }
        let answer = ran.map_err(invalid)?;
        Ok((answer.into(), load, run))
    }

    fn read_sent(
        &self,
        plan: &Arc<Plan>,
        key: KeyId,
        sent: &[u8],
    ) -> Result<Vec<Sealed>, DatabaseError> {
        let frames = frames(sent, plan.circuit().inputs.len()).map_err(invalid)?;
        let read = frames.into_iter().map(|frame| Sealed::read(plan, key, frame));
        self.computing.install(|| read.collect::<Result<_, _>>()).map_err(invalid)
    }
}

#[derive(Clone, Copy)]
enum Stopped {
    Left,
    Late,
}

/// What a run needs, by the program's record: nothing of the inputs is looked at but their headers.
fn check(record: &Record, request: &RunRequest) -> Result<Checked, DatabaseError> {
    let plan = &record.plan;
    let sent = frames(&request.inputs, plan.inputs.len()).map_err(invalid)?;
    let key = match (&request.key, sent.first()) {
        (Some(key), _) => key.clone(),
        (None, Some(frame)) => key_of_input(frame).map_err(invalid)?.to_string(),
        (None, None) => {
            let says = "name the key where all inputs are kept: ?key=…, 16 hex digits";
            return Err(DatabaseError::Invalid(says.into()));
        }
    };
    let id = crate::hex::parse::<8>(&key).map(KeyId).ok_or_else(|| {
        DatabaseError::Invalid(format!("a key is named by 16 hex digits, got {key:?}"))
    })?;
    let keys = record.keys.get(&key).ok_or_else(|| {
        DatabaseError::Invalid(format!(
            "there are no evaluation keys of {key} here; send them first, with PUT …/keys/{key}"
        ))
    })?;
    let mut of = BTreeSet::new();
    let mut kept = Vec::new();
    for name in &request.kept {
        let found = keys.inputs.get(name).ok_or_else(|| {
            DatabaseError::Invalid(format!(
                "no input is kept under the name {name:?} and the key {key}"
            ))
        })?;
        if !of.insert(found.input.as_str()) {
            return Err(DatabaseError::Invalid(format!(
                "input {:?} came twice; one of each is needed",
                found.input
            )));
        }
        kept.push((name.clone(), wanted_input(plan, found)));
    }
    let others = plan.inputs.iter().filter(|input| !of.contains(input.name.as_str()));
    let missing: Vec<&str> = others.clone().map(|input| input.name.as_str()).collect();
    if missing.len() != sent.len() {
        return Err(DatabaseError::Invalid(format!(
            "{} inputs were sent, and these are needed beside the kept ones: {}",
            sent.len(),
            if missing.is_empty() { "none".to_owned() } else { missing.join(", ") }
        )));
    }
    let sent = others.map(|input| input.memory).fold(0, u64::saturating_add);
    Ok(Checked { key: id, name: key, kept, sent })
}
