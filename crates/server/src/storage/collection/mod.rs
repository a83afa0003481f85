//! Collection: changes and queries enter, durable states and sealed answers leave. Server side.
//!
//! Readers hold one committed state behind an `Arc` and never wait for a commit; commits wait for
//! each other.

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
use super::scan_queue::{Answer, Asked, QueryTimings, ScanQueue, Searchable};
use bytes::Bytes;
use ciphervec::search::{Evaluation, OtherKeys, ServerIndex, SessionStore};
use ciphervec::store::{
    self, Change, CommitKey, Committed, Manifest, SegmentId, Store, StoreError,
};
use loaded::LoadedState;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
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

/// When to ask again for what changed faster than it could be read.
const COME_BACK: Duration = Duration::from_secs(1);

/// Bytes that the answers of one pass may take together; a single query whose answer takes more is
/// refused.
const MOST_ANSWERED: u64 = 1 << 30;

/// What was loaded is not loaded again for so long: where collections push each other out of
/// memory, that would be all that is ever done.
const LOAD_EVERY: Duration = Duration::from_secs(30);

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

    /// Answers a sealed query over all segments. Dropping the future takes the query out of the
    /// queue.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] when too many wait, [`DatabaseError::Invalid`] for bytes that are no
    /// query of this collection, [`DatabaseError::Corrupt`] and [`DatabaseError::Io`] when a
    /// segment cannot be read.
    pub async fn query(self: &Arc<Self>, query: Bytes) -> Result<Answer, DatabaseError> {
        self.ask(Asked { query, keys: None }).await
    }

    /// The same for a token, which may have begun sessions.
    ///
    /// # Errors
    /// As [`Collection::query`]; [`DatabaseError::KeysMissing`] for a query of a session whose keys are not here.
    pub async fn query_by(
        self: &Arc<Self>,
        token: &str,
        query: Bytes,
    ) -> Result<Answer, DatabaseError> {
        let held = self.held();
        let index = held.description.spec.id();
        let keys_of = |epoch| {
            let found = self.engine.sessions.get(token, index, epoch);
            found.ok_or(DatabaseError::KeysMissing(epoch))
        };
        let keys = held.index.session_of(&query).map(keys_of).transpose()?;
        self.ask(Asked { query, keys }).await
    }

    /// Takes in the evaluation keys of a session, for this token's queries.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for bytes that are no such keys of this collection's owner,
    /// [`DatabaseError::SessionExists`].
    pub fn put_session_keys(&self, token: &str, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.catch_up();
        let (held, engine) = (self.held(), &self.engine);
        let keys = engine.pool.install(|| held.index.session_keys(bytes));
        let keys = keys.map_err(|error| DatabaseError::Invalid(error.to_string()))?;
        let (index, epoch) = (held.description.spec.id(), keys.epoch());
        let put = engine.sessions.put(token, index, keys);
        put.map_err(|OtherKeys| DatabaseError::SessionExists(epoch))?;
        engine.count_taken();
        Ok(())
    }

    async fn ask(self: &Arc<Self>, query: Asked) -> Result<Answer, DatabaseError> {
        for _ in 0..LOOKS {
            let head = self.held().view.head();
            let answer = self.engine.queue.enter(self.clone(), query.clone())?;
            let ended = |_| Err(DatabaseError::Io("the scan thread ended".to_owned()));
            match answer.await.unwrap_or_else(ended) {
                Err(DatabaseError::Moved(text)) => {
                    let missing = DatabaseError::Corrupt(text);
                    let collection = Arc::clone(self);
                    let waited =
                        tokio::task::spawn_blocking(move || collection.moved_on(head, missing));
                    waited.await.map_err(|error| DatabaseError::Io(error.to_string()))??;
                }
                answer => return answer,
            }
        }
        Err(DatabaseError::Busy { retry_after: COME_BACK })
    }

    fn answer_from(
        &self,
        held: &LoadedState,
        queries: &[&Asked],
    ) -> Vec<Result<Answer, ciphervec::Error>> {
        let (version, head) = (held.view.manifest().version, held.view.head());
        let keys = held.evaluation;
        let cache = &self.engine.cache;
        let before = cache.streamed();
        let pushed_out = self.has_been_loaded(head) && held.index.missing().next().is_some();
        let mut answers = Vec::with_capacity(queries.len());
        let mut rest = queries;
        while !rest.is_empty() {
            let mut total = 0;
            let fits = rest.iter().take_while(|query| {
                // What does not parse is refused below, in a few bytes.
                total += held.index.answer_len(&query.query).unwrap_or(0);
                total <= MOST_ANSWERED
            });
            let fits = fits.count();
            let (group, later) = rest.split_at(fits.max(1));
            rest = later;
            if fits == 0 {
                answers.push(Err(ciphervec::Error::Range {
                    what: "the length of an answer",
                    expected: format!("at most {MOST_ANSWERED} bytes; send fewer queries at once"),
                    actual: total.to_string(),
                }));
                continue;
            }
            // Those of the ring form are answered one after another: the trees of one at a time.
            let working =
                group.iter().map(|asked| held.index.working_len(&asked.query).unwrap_or(0));
            let working = working.max().unwrap_or(0);
            self.working.fetch_max(working, Ordering::Relaxed);
            cache.begin(!self.fits(held));
            let _trees = cache.set_aside(working);
            answers.extend(evaluated(&held.index, group).into_iter().map(|evaluation| {
                let (bytes, timings) = (evaluation?.bytes.into(), QueryTimings::default());
                Ok(Answer { bytes, version, head, evaluation: keys, timings, degraded: false })
            }));
        }
        let degraded = pushed_out || cache.streamed() > before;
        if degraded && !self.degraded.swap(degraded, Ordering::Relaxed) {
            tracing::warn!(
                collection = self.name,
                bytes = held.index.bytes(),
                budget = cache.budget(),
                "the collection does not fit the memory budget: queries read from the store, slower; \
                 raise --memory-budget"
            );
        }
        self.degraded.store(degraded, Ordering::Relaxed);
        answers.iter_mut().flatten().for_each(|answer| answer.degraded = degraded);
        answers
    }

    /// Whether all of it may be in memory at once, beside the work on its queries.
    fn fits(&self, held: &LoadedState) -> bool {
        let bytes = held.index.bytes() as u64 + self.working.load(Ordering::Relaxed);
        bytes <= self.engine.cache.budget()
    }

    fn loading(&self) -> MutexGuard<'_, Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all of that state was brought into memory once: what is missing has made room for
    /// others since.
    fn has_been_loaded(&self, head: [u8; 32]) -> bool {
        self.loading().done.is_some_and(|(of, _)| of == head)
    }

    /// Loads what is not in memory while queries are answered from the store. One segment at a
    /// time: the passes come between.
    fn load_behind(self: &Arc<Self>) {
        {
            let mut loading = self.loading();
            let head = self.held().view.head();
            let lately = |(of, at): (_, Instant)| of == head && at.elapsed() < LOAD_EVERY;
            if loading.busy || loading.done.is_some_and(lately) {
                return;
            }
            loading.busy = true;
        }
        let collection = Arc::clone(self);
        let load = move || {
            let held = collection.held();
            for source in held.index.missing() {
                if collection.closed.load(Ordering::Acquire) {
                    break;
                }
                collection.engine.pool.install(|| source.load(&held.index));
            }
            let done = Some((held.view.head(), Instant::now()));
            *collection.loading() = Loading { busy: false, done };
        };
        if let Err(error) = thread::Builder::new().name("ciphervec-load".to_owned()).spawn(load) {
            self.loading().busy = false;
            tracing::warn!(collection = self.name, %error, "no thread to load it: queries read from the store");
        }
    }

    /// Gives the lock back; queries that hold the state are still answered.
    pub(crate) fn close(&self) {
        let mut writer = self.writer();
        self.closed.store(true, Ordering::Release);
        *writer = None;
    }
}

impl Searchable for Collection {
    fn answer(self: Arc<Self>, queries: &[&Asked]) -> Vec<Result<Answer, DatabaseError>> {
        self.catch_up();
        let mut held = self.held();
        loop {
            let answers = self.answer_from(&held, queries);
            let gone = |answer: &Result<Answer, ciphervec::Error>| {
                matches!(answer, Err(ciphervec::Error::Store(StoreError::Missing { .. })))
            };
            let newest = self.held();
            // Files go when no state names them any more: whoever still read the old one asks the
            // new one.
            if answers.iter().any(gone) && newest.view.head() != held.view.head() {
                held = newest;
                continue;
            }
            if self.fits(&held) && held.index.missing().next().is_some() {
                self.load_behind();
            }
            return answers.into_iter().map(|answer| answer.map_err(refused)).collect();
        }
    }
}

/// Queries of sessions share no pass, and so are answered alone.
fn evaluated(index: &ServerIndex, group: &[&Asked]) -> Vec<ciphervec::Result<Evaluation>> {
    if group.iter().all(|asked| asked.keys.is_none()) {
        let queries: Vec<&[u8]> = group.iter().map(|asked| &*asked.query).collect();
        return index.evaluate_many(&queries);
    }
    let answer = |asked: &&Asked| match &asked.keys {
        Some(keys) => index.evaluate_with(&asked.query, keys),
        None => index.evaluate(&asked.query),
    };
    group.iter().map(answer).collect()
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

/// An error of a query is the query's, unless the store is to blame.
fn refused(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error @ StoreError::Missing { .. }) => {
            DatabaseError::Moved(error.to_string())
        }
        ciphervec::Error::Store(error) => error.into(),
        other => DatabaseError::Invalid(other.to_string()),
    }
}
