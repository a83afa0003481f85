//! A collection: it commits changes durably and answers sealed queries.
//!
//! Readers hold one committed state behind an `Arc` and never wait for a commit; commits wait for
//! each other.

mod answering;
mod fetch;
mod home;
mod loaded;
mod upkeep;

pub use fetch::FetchOffer;
pub(crate) use home::Home;
pub use upkeep::{Report, Statistics};

use super::cache::Cache;
use super::check;
use super::description::Description;
use super::error::DatabaseError;
use super::fetching::Fetching;
use super::scan_queue::ScanQueue;
use bytes::Bytes;
use ciphervec::search::SessionStore;
use ciphervec::store::{
    self, Change, CommitKey, Committed, Manifest, SegmentId, Store, StoreError,
};
use loaded::LoadedState;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// One committed state; cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    /// Version, meta, segments with their rows, deleted rows and blobs, attachments.
    pub manifest: Arc<Manifest>,
    /// Its hash.
    pub head: [u8; 32],
    /// BLAKE3 of the evaluation keys that its queries are answered with, where there are any.
    pub evaluation: Option<[u8; 32]>,
}

/// Reads of states whose files went meanwhile before a client is asked to come back.
const LOOKS: u32 = 16;

/// When to ask again for what changed faster than it could be read.
const COME_BACK: Duration = Duration::from_secs(1);

/// What other writers of a shared place have done is seen this much later at most.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Attempts at a commit that other writers of a shared place get in the way of.
const ATTEMPTS: u32 = 32;

/// What the collections of a database share.
pub(crate) struct Engine {
    pub pool: Arc<ThreadPool>,
    pub queue: ScanQueue,
    pub cache: Arc<Cache>,
    pub sessions: SessionStore,
    pub fetching: Fetching,
}

impl Engine {
    /// Counts what is held beside segments: these make room for it.
    pub fn count_taken(&self) {
        self.cache.take(self.sessions.bytes() + self.fetching.bytes());
    }
}

/// Whether rows are on their way into memory, and of which state they were last.
#[derive(Default)]
struct Loading {
    busy: bool,
    done: Option<([u8; 32], Instant)>,
}

/// The lengths of sealed rows in each blob of a segment, as far as it was looked at.
type RowLengths = HashMap<(SegmentId, &'static str), Arc<[u32]>>;

/// One open collection.
pub struct Collection {
    name: String,
    home: Home,
    engine: Arc<Engine>,
    /// None after a failure that left unknown what is on disk, until it is opened anew.
    writer: Mutex<Option<Store>>,
    held: RwLock<Arc<LoadedState>>,
    closed: AtomicBool,
    degraded: AtomicBool,
    /// The most bytes that work on a query has taken beside segments.
    working: AtomicU64,
    loading: Mutex<Loading>,
    row_lengths: Mutex<RowLengths>,
    /// When other writers of a shared place were last looked for.
    looked: Mutex<Instant>,
    used: Mutex<Instant>,
}

impl Collection {
    /// Opens what lies at `home`.
    pub(crate) fn open(
        name: &str,
        home: Home,
        engine: &Arc<Engine>,
    ) -> Result<Arc<Self>, DatabaseError> {
        let store = home.open()?;
        let held = engine.pool.install(|| LoadedState::load(store.view(), &engine.cache))?;
        Ok(Arc::new(Self {
            name: name.to_owned(),
            home,
            looked: Mutex::new(Instant::now()),
            used: Mutex::new(Instant::now()),
            engine: Arc::clone(engine),
            writer: Mutex::new(Some(store)),
            held: RwLock::new(Arc::new(held)),
            closed: AtomicBool::new(false),
            degraded: AtomicBool::new(false),
            working: AtomicU64::new(0),
            loading: Mutex::default(),
            row_lengths: Mutex::default(),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Notes that somebody asked for it.
    pub(crate) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long nobody has asked for it.
    pub(crate) fn idle(&self) -> Duration {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn held(&self) -> Arc<LoadedState> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, held: LoadedState) {
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(held);
    }

    fn writer(&self) -> MutexGuard<'_, Option<Store>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present state.
    pub fn state(&self) -> State {
        self.catch_up();
        let held = self.held();
        State {
            manifest: Arc::clone(held.view.manifest()),
            head: held.view.head(),
            evaluation: held.evaluation,
        }
    }

    /// Moves on to what other writers of a shared place have committed, if nobody has looked for a
    /// while.
    fn catch_up(&self) {
        let Home::Bucket(_) = self.home else { return };
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.elapsed() < LOOK_EVERY {
                return;
            }
            *looked = Instant::now();
        }
        // Whoever commits at this moment looks by itself. What cannot be read now is read by
        // whoever needs it.
        if let Ok(mut writer) = self.writer.try_lock()
            && let Ok(store) = self.open_writer(&mut writer)
            && let Err(error) = self.refresh(store)
        {
            tracing::warn!(collection = self.name, %error, "the bucket could not be looked at");
        }
    }

    /// Brings a writer, and what is shown, to the newest state of a shared place.
    fn refresh(&self, store: &mut Store) -> Result<(), DatabaseError> {
        self.engine.pool.install(|| store.refresh())?;
        if store.head() != self.held().view.head() {
            self.show(
                self.engine.pool.install(|| LoadedState::load(store.view(), &self.engine.cache))?,
            );
        }
        Ok(())
    }

    /// What the owner's description says in the clear.
    pub fn description(&self) -> Description {
        self.held().description.clone()
    }

    /// Applies all of `change` durably, or nothing of it. With `expect`, only on top of that head;
    /// with `key`, once however often it is sent.
    ///
    /// # Errors
    /// [`DatabaseError::Conflict`], [`DatabaseError::KeyReused`], [`DatabaseError::Invalid`] for
    /// what could not be searched or applied, [`DatabaseError::NotFound`] for segments and
    /// attachments that are not there, [`DatabaseError::Full`], [`DatabaseError::Io`];
    /// [`DatabaseError::Poisoned`] when it is unknown whether the change is durable.
    pub fn commit(
        &self,
        change: Change,
        expect: Option<[u8; 32]>,
        key: Option<CommitKey>,
    ) -> Result<Committed, DatabaseError> {
        // Most of the work is done before any other commit has to wait for it. A change that was
        // made before is not looked at again: what it removed is not there any more.
        if let Some(done) = self.committed(key)? {
            return Ok(done);
        }
        let held = self.held();
        let checked =
            self.engine.pool.install(|| check::change(&held.index, &held.description, &change))?;
        let mut writer = self.writer();
        let mut attempt = 0;
        let committed = loop {
            let store = self.open_writer(&mut writer)?;
            if let Some(key) = &key
                && let Some(done) = store.committed(key)?
            {
                return Ok(done);
            }
            if expect.is_some_and(|head| head != store.head()) {
                let (version, head) = (store.version(), store.head());
                return Err(DatabaseError::Conflict { expected: expect, version, head });
            }
            attempt += 1;
            match store.commit_keyed(&change, key) {
                // Another server was faster: its commit comes first, this one is looked at again on
                // top of it.
                Err(StoreError::Conflict { .. }) if store.is_shared() && attempt < ATTEMPTS => {
                    self.refresh(store)?;
                }
                done => break settle(&mut writer, done)?,
            }
        };
        let view = self.open_writer(&mut writer)?.view();
        self.show(self.held().next(view, &change.remove, checked, &self.engine.cache)?);
        Ok(committed)
    }

    /// What an earlier commit under that key made, if there was one.
    ///
    /// # Errors
    /// [`DatabaseError::KeyReused`]; as [`Collection::commit`] where the store has to be opened
    /// anew to know.
    pub fn committed(&self, key: Option<CommitKey>) -> Result<Option<Committed>, DatabaseError> {
        let Some(key) = key else { return Ok(None) };
        Ok(self.open_writer(&mut self.writer())?.committed(&key)?)
    }

    /// The writer, opened anew after a failure that left unknown what is on disk.
    fn open_writer<'a>(
        &self,
        writer: &'a mut Option<Store>,
    ) -> Result<&'a mut Store, DatabaseError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(DatabaseError::NotFound(format!(
                "the collection {:?} was closed",
                self.name
            )));
        }
        match writer {
            Some(store) => Ok(store),
            None => {
                let store = self.home.open()?;
                self.show(
                    self.engine
                        .pool
                        .install(|| LoadedState::load(store.view(), &self.engine.cache))?,
                );
                Ok(writer.insert(store))
            }
        }
    }

    /// One blob of a segment, every block checked.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Corrupt`], [`DatabaseError::Io`].
    pub fn blob(&self, segment: &SegmentId, name: &str) -> Result<Bytes, DatabaseError> {
        self.read(|view| view.read(segment, name)).map(Bytes::from_owner)
    }

    /// The same blob of several segments, as many of the first ones as have `most` bytes together, but
    /// one at least; `None` for one that is not there.
    ///
    /// # Errors
    /// As [`Collection::blob`].
    pub fn blobs(
        &self,
        segments: &[SegmentId],
        name: &str,
        most: u64,
    ) -> Result<Vec<Option<Bytes>>, DatabaseError> {
        self.read(|view| {
            let entries: HashMap<_, _> =
                view.manifest().segments.iter().map(|entry| (entry.id, entry)).collect();
            let mut total = 0;
            let blobs = segments.iter().map(|id| entries.get(id)?.blob(name));
            let blobs: Vec<_> = blobs
                .take_while(|blob| {
                    let before = total;
                    total += blob.map_or(0, |blob| blob.length);
                    before == 0 || total <= most
                })
                .collect();
            let read = |blob: &store::BlobRef| view.stored(blob).read().map(Bytes::from_owner);
            blobs.into_par_iter().map(|blob| blob.map(read).transpose()).collect()
        })
    }

    /// Reads from the present state; again, if its files went because there is a newer one.
    fn read<T: Send>(
        &self,
        read: impl Fn(&store::View) -> Result<T, StoreError> + Sync,
    ) -> Result<T, DatabaseError> {
        for _ in 0..LOOKS {
            let view = self.held().view.clone();
            match self.engine.pool.install(|| read(&view)) {
                Err(error @ StoreError::Missing { .. }) => {
                    self.moved_on(view.head(), error.into())?
                }
                done => return Ok(done?),
            }
        }
        Err(DatabaseError::Busy { retry_after: COME_BACK })
    }

    /// Waits until whoever changes the collection now is done; files of an older state go before the
    /// newer one is shown. Waits for a lock: not on the threads that scan.
    ///
    /// # Errors
    /// `missing`, if the state is still that one: nobody has changed it, the file is really gone.
    fn moved_on(&self, head: [u8; 32], missing: DatabaseError) -> Result<(), DatabaseError> {
        let mut writer = self.writer();
        let store = self.open_writer(&mut writer)?;
        if store.is_shared() {
            self.refresh(store)?;
        }
        if self.held().view.head() == head { Err(missing) } else { Ok(()) }
    }

    /// One attachment, every block checked.
    ///
    /// # Errors
    /// As [`Collection::blob`].
    pub fn attachment(&self, name: &str) -> Result<Bytes, DatabaseError> {
        self.read(|view| view.attachment(name)).map(Into::into)
    }

    /// Gives the lock back; queries that hold the state are still answered.
    pub(crate) fn close(&self) {
        let mut writer = self.writer();
        self.closed.store(true, Ordering::Release);
        *writer = None;
    }
}

/// After a failure that leaves unknown what is on disk, the writer goes: the next use opens the
/// folder and finds out. One that could only read goes too: it may be possible to write by then.
fn settle<T>(writer: &mut Option<Store>, done: Result<T, StoreError>) -> Result<T, DatabaseError> {
    let unknown = matches!(
        done,
        Err(StoreError::Sync { .. }
            | StoreError::Poisoned { .. }
            | StoreError::Conflict { .. }
            | StoreError::ReadOnly { .. })
    );
    if unknown {
        *writer = None;
    }
    done.map_err(Into::into)
}
