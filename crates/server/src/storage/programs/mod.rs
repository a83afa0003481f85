//! Programs: the server stores plans, evaluation keys and encrypted inputs, and computes encrypted answers. It holds no key
//! that reads anything.
//!
//! A program is a plan under a name, with the evaluation keys of any number of clients and the inputs
//! that they keep here. Each is a store of its own beside the collections, so that it lasts as they
//! do. What is read and computed has its room in one budget (`memory.rs`), and its turn (`turns.rs`).

mod limits;
mod memory;
mod parts;
mod record;
mod run;
mod stored;
mod turns;

pub use limits::ProgramLimits;
pub use record::{
    InputRecord, KeptRecord, KeyRecord, OutputRecord, PlanRecord, Record, Sender, is_kept_name,
};
pub use run::{RunAnswer, RunRequest};
pub use stored::{Shown, StoredProgram};

use super::collection::Home;
use super::database::Database;
use super::error::DatabaseError;
use super::place::{Place, check_name, failed, sync_folder};
use crate::hex;
use crate::metrics::Metrics;
use bytes::Bytes;
use ciphervec::program::{Plan, PlanBytes};
use ciphervec::store::shelf::{self, Draft};
use ciphervec::store::{Change, Store, StoreError};
use limits::invalid;
use memory::{EntryName, Item, ProgramMemory, Room, Wanted};
use rayon::ThreadPool;
use record::PLAN;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use turns::Turns;

/// Most programs.
const MOST: usize = 1024;
/// About what it takes to check what is to be stored.
const CHECK_MS: u64 = 2000;

/// The programs of one place.
pub struct Programs {
    place: Place,
    /// Threads that read and check what is stored.
    reading: Arc<ThreadPool>,
    /// Threads that compute.
    computing: Arc<ThreadPool>,
    open: Mutex<BTreeMap<String, Arc<StoredProgram>>>,
    limits: ProgramLimits,
    memory: Arc<ProgramMemory>,
    /// Runs, and what has to be read and checked before it is stored.
    runs: Turns,
    checks: Turns,
    /// Bytes that are being stored, by token.
    adding: Mutex<BTreeMap<String, u64>>,
    metrics: Arc<Metrics>,
}

/// Bytes of the quota that are being stored, until this is dropped.
struct Adding<'a> {
    programs: &'a Programs,
    token: String,
    bytes: u64,
}

impl Drop for Adding<'_> {
    fn drop(&mut self) {
        let mut adding = self.programs.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = adding.get_mut(&self.token) {
            *bytes = bytes.saturating_sub(self.bytes);
            if *bytes == 0 {
                adding.remove(&self.token);
            }
        }
    }
}

impl Programs {
    /// The programs beside the collections of a database.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] if there are no threads to be had.
    pub fn open(
        database: &Database,
        limits: ProgramLimits,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, DatabaseError> {
        let computing = rayon::ThreadPoolBuilder::new()
            .num_threads(limits.threads)
            .thread_name(|index| format!("ciphervec-run-{index}"))
            .build()
            .map_err(|error| DatabaseError::Io(format!("cannot start threads: {error}")))?;
        Ok(Arc::new(Programs {
            place: database.programs(),
            reading: Arc::clone(database.pool()),
            computing: Arc::new(computing),
            open: Mutex::default(),
            memory: ProgramMemory::new(limits.memory),
            runs: Turns::new(limits.runs, limits.queue),
            checks: Turns::new(1, limits.queue),
            limits,
            adding: Mutex::default(),
            metrics,
        }))
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Arc<StoredProgram>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.runs.waiting()
    }

    /// Bytes of memory that plans, keys, inputs and runs take, as it was predicted.
    pub fn resident(&self) -> u64 {
        self.memory.taken()
    }

    /// Programs that are open, and the bytes that they have stored.
    pub fn stored(&self) -> (u64, u64) {
        let open = self.opened();
        let bytes = open.values().map(|program| program.shown().record.bytes(None)).sum();
        (open.len() as u64, bytes)
    }

    /// The program of that name.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Locked`], [`DatabaseError::Corrupt`],
    /// [`DatabaseError::Unsupported`], [`DatabaseError::Io`].
    pub fn get(&self, name: &str) -> Result<Arc<StoredProgram>, DatabaseError> {
        let unknown = || DatabaseError::NotFound(format!("no program {name:?}"));
        let found = self.opened().get(name).map(Arc::clone);
        if let Some(program) = found {
            // It may look at a bucket: nobody else has to wait for that.
            match program.catch_up() {
                Err(DatabaseError::NotFound(_)) => drop(self.opened().remove(name)),
                looked => return looked.map(|()| program),
            }
        }
        let mut open = self.opened();
        if let Some(program) = open.get(name) {
            return Ok(Arc::clone(program));
        }
        let home = self.place.home(name).ok_or_else(unknown)?;
        let program = StoredProgram::open(name, home).map_err(|error| match error {
            DatabaseError::NotFound(_) => unknown(),
            error => error,
        })?;
        open.insert(name.to_owned(), Arc::clone(&program));
        Ok(program)
    }

    /// All programs, by name. One that does not open hides no other.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] where they cannot be listed; [`DatabaseError::Descriptors`], without which
    /// it would look as if some were gone.
    pub fn all(&self) -> Result<Vec<Arc<StoredProgram>>, DatabaseError> {
        let mut found = Vec::new();
        for name in self.place.names()? {
            match self.get(&name) {
                Ok(program) => found.push(program),
                Err(DatabaseError::NotFound(_)) => {}
                Err(error @ DatabaseError::Descriptors(_)) => return Err(error),
                Err(error) => tracing::warn!(program = name, %error, "left out"),
            }
        }
        Ok(found)
    }

    /// Sets bytes of the quota aside.
    fn add(&self, token: &str, bytes: u64) -> Result<Adding<'_>, DatabaseError> {
        let all = self.all()?;
        let stored = |of: Option<&str>| -> u64 {
            all.iter().map(|program| program.shown().record.bytes(of)).sum()
        };
        let mut adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let quota = self.limits.quota;
        let taken = stored(None) + adding.values().sum::<u64>();
        let ours = stored(Some(token)) + adding.get(token).copied().unwrap_or(0);
        for (whose, taken, most) in [("programs", taken, quota), ("this token's", ours, quota / 2)]
        {
            if taken.saturating_add(bytes) > most {
                return Err(DatabaseError::Quota(format!(
                    "{whose} plans, keys and inputs take {taken} bytes, {bytes} more are over the {most} set aside for \
                     them"
                )));
            }
        }
        *adding.entry(token.to_owned()).or_default() += bytes;
        Ok(Adding { programs: self, token: token.to_owned(), bytes })
    }

    /// Stores a plan under a name. Whether it was not there before.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for a name or a plan that is none, [`DatabaseError::Limit`] for one
    /// that takes too much, [`DatabaseError::Exists`] for another plan of that name;
    /// [`DatabaseError::Busy`], [`DatabaseError::Quota`]; those of the store.
    pub async fn put(
        self: &Arc<Self>,
        name: &str,
        plan: Bytes,
        sender: &Sender,
        hold: impl Send + 'static,
    ) -> Result<(bool, Arc<StoredProgram>), DatabaseError> {
        check_name(name)?;
        let (limits, bytes) = (self.limits, plan.clone());
        let looked = blocking(move || limits::look(&bytes, &limits).map(|(_, ring)| ring));
        let ring = looked.await?;
        let turn = self.checks.take(CHECK_MS).await?;
        let length = plan.len() as u64;
        let beside = limits::examining(length, ring, &self.memory);
        let admission = self.memory.admit(&[], beside).await?;
        let (programs, name, token) = (Arc::clone(self), name.to_owned(), sender.token.clone());
        blocking(move || {
            let _held = (hold, turn);
            let made = programs.make(&name, &plan, &token);
            drop(admission);
            made
        })
        .await
    }

    fn make(
        &self,
        name: &str,
        bytes: &[u8],
        token: &str,
    ) -> Result<(bool, Arc<StoredProgram>), DatabaseError> {
        let other = || DatabaseError::Exists(format!("a program {name:?} with another plan"));
        let examine = || {
            let (read, _) = limits::look(bytes, &self.limits)?;
            limits::examine(read, bytes.len() as u64, &self.limits)
        };
        let (_, plan) = self.computing.install(examine)?;
        let same = |program: Arc<StoredProgram>| match program.shown().record.plan.id == plan.id {
            true => Ok((false, program)),
            false => Err(other()),
        };
        match self.get(name) {
            Ok(program) => return same(program),
            Err(DatabaseError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        if self.all()?.len() >= MOST {
            return Err(DatabaseError::Quota(format!("there are {MOST} programs already")));
        }
        let _adding = self.add(token, bytes.len() as u64)?;
        let meta = Record::new(plan.clone(), token).to_json();
        let attachments = vec![(PLAN.to_owned(), bytes.to_vec())];
        let home = match &self.place {
            Place::Folder(root) => {
                make_folder(root)?;
                let draft = Draft::write(root, |draft| {
                    let mut store = Store::create(draft, &meta)?;
                    store.commit(Change { attachments, ..Change::default() })?;
                    Ok::<_, DatabaseError>(())
                })?;
                let mut open = self.opened();
                let Some(path) = draft.settle(name)? else {
                    drop(open);
                    return same(self.get(name)?);
                };
                let program = StoredProgram::open(name, Home::Folder(path))?;
                open.insert(name.to_owned(), Arc::clone(&program));
                return Ok((true, program));
            }
            Place::Bucket(bucket) => {
                let medium = bucket.collection(name);
                let made = self.reading.install(|| {
                    Store::create_on(Arc::clone(&medium), &meta, &attachments).map(drop)
                });
                match made {
                    Err(StoreError::AlreadyExists { .. }) => return same(self.get(name)?),
                    made => made?,
                }
                Home::Bucket(medium)
            }
        };
        let program = StoredProgram::open(name, home)?;
        self.opened().insert(name.to_owned(), Arc::clone(&program));
        Ok((true, program))
    }

    /// Deletes a program with all keys and inputs.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Locked`], [`DatabaseError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), DatabaseError> {
        let program = self.get(name)?;
        let mut open = self.opened();
        match &self.place {
            Place::Folder(root) => {
                program.close();
                shelf::remove(root, name)?;
            }
            Place::Bucket(_) => program.drop_on()?,
        }
        open.remove(name);
        Ok(())
    }

    /// The plan, from memory or from the store.
    fn plan(
        &self,
        shown: &Shown,
        found: Option<&Option<Item>>,
        room: &mut Room,
    ) -> Result<Arc<Plan>, DatabaseError> {
        if let Some(Some(Item::Plan(plan))) = found {
            return Ok(Arc::clone(plan));
        }
        let bytes = shown.read(PLAN, &self.reading)?;
        let made = || PlanBytes::read(&bytes)?.plan();
        let plan = Arc::new(self.computing.install(made).map_err(stale)?);
        room.keep(wanted_plan(&shown.record.plan), Item::Plan(Arc::clone(&plan)));
        Ok(plan)
    }

    /// Gives all locks back.
    pub fn close(&self) {
        for program in std::mem::take(&mut *self.opened()).into_values() {
            program.close();
        }
    }
}

fn no_keys(key: &str) -> DatabaseError {
    DatabaseError::NotFound(format!("no evaluation keys of {key}"))
}

/// What was checked when it was stored cannot be read any more.
fn stale(error: ciphervec::Error) -> DatabaseError {
    DatabaseError::Corrupt(format!("a stored part of a program is refused: {error}"))
}

fn entry(plan: &PlanRecord, kind: &str, hash: &str) -> EntryName {
    let mut hasher = blake3::Hasher::new();
    for part in [plan.id.as_str(), kind, hash] {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    EntryName(*hasher.finalize().as_bytes())
}

fn wanted_plan(plan: &PlanRecord) -> Wanted {
    Wanted { name: entry(plan, "plan", ""), bytes: plan.plan_memory }
}

fn wanted_keys(plan: &PlanRecord, keys: &KeyRecord) -> Wanted {
    Wanted { name: entry(plan, "keys", &keys.hash), bytes: plan.key_memory }
}

fn wanted_input(plan: &PlanRecord, kept: &KeptRecord) -> Wanted {
    let input = plan.inputs.iter().find(|input| input.name == kept.input);
    let bytes = input.map_or(0, |input| input.memory);
    Wanted { name: entry(plan, "input", &kept.hash), bytes }
}

/// The folder of programs, durably.
fn make_folder(root: &Path) -> Result<(), DatabaseError> {
    if root.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(root).map_err(|error| failed("create the folder", root, &error))?;
    root.parent().map_or(Ok(()), sync_folder)
}

/// Runs what reads, writes or computes, away from the threads that serve connections. It goes on when
/// whoever waits for it leaves.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(DatabaseError::Io(format!("work on a program ended in a panic: {error}")))
    })
}

/// A key's id as paths have it: 16 lower-case hex digits.
pub fn is_key_id(text: &str) -> bool {
    hex::parse::<8>(text).is_some()
}
