//! Changes and queries of one collection enter, durable states and sealed answers leave. Server side; no key in sight.
//!
//! Readers hold one committed state behind an `Arc` and never wait for a commit; commits wait for each other.

use crate::cache::{Cache, CachedSegment};
use crate::check::{self, Checked};
use crate::description::Description;
use crate::error::DatabaseError;
use crate::scan_queue::{Answer, QueryTimings, ScanQueue};
use bytes::Bytes;
use ciphervec::filter::FilterTags;
use ciphervec::search::{SegmentHead, ServerIndex};
use ciphervec::store::{
    self, Change, Compacted, Manifest, SegmentId, SnapshotEntry, Store, StoreError,
};
pub use ciphervec::store::{CommitKey, Committed};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub(crate) const ROWS: &str = "rows";
pub(crate) const TAGS: &str = "tags";
pub(crate) const EVALUATION: &str = "evaluation";

/// One committed state; cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    /// Version, meta, segments with their rows, deleted rows and blobs, attachments.
    pub manifest: Arc<Manifest>,
    /// Its hash.
    pub head: [u8; 32],
}

/// Sizes, for metrics and listings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Rows marked deleted.
    pub deleted: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of all blobs and attachments.
    pub bytes: u64,
    /// Bytes of segments in memory.
    pub resident: u64,
    /// Whether the last answer had to read segments from the store because they exceed the memory budget.
    pub degraded: bool,
}

/// What a verification looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files read.
    pub files: u64,
    /// Bytes of payload checked.
    pub bytes: u64,
    /// Files that no state names, which the next collection of garbage clears away.
    pub strays: u64,
    /// Every fault: the file, the offset, and a sentence.
    pub problems: Vec<store::Problem>,
}

/// The state that queries are answered from.
pub(crate) struct Held {
    pub view: store::View,
    pub description: Description,
    pub index: ServerIndex,
}

/// Where a collection lies.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// A folder, with one writer.
    Folder(PathBuf),
    /// A part of a bucket, which other servers may write to.
    Bucket(Arc<dyn store::Medium>),
}

impl Home {
    pub fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::Folder(path) => Store::open(path),
            Self::Bucket(medium) => Store::open_on(Arc::clone(medium)),
        }
    }

    fn open_read_only(&self) -> Result<Store, StoreError> {
        match self {
            Self::Folder(path) => Store::open_read_only(path),
            Self::Bucket(medium) => Store::open_read_only_on(Arc::clone(medium)),
        }
    }
}

/// What other writers of a shared place have done is seen this much later at most.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Attempts at a commit that other writers of a shared place get in the way of.
const ATTEMPTS: u32 = 32;

/// What the collections of a database share.
pub(crate) struct Engine {
    pub pool: Arc<ThreadPool>,
    pub queue: ScanQueue,
    pub cache: Arc<Cache>,
}

/// Bytes that the answers of one pass may take together; a single query whose answer takes more is refused.
const MOST_ANSWERED: u64 = 1 << 30;

/// One open collection.
pub struct Collection {
    name: String,
    home: Home,
    engine: Arc<Engine>,
    /// None after a failure that left unknown what is on disk, until it is opened anew.
    writer: Mutex<Option<Store>>,
    held: RwLock<Arc<Held>>,
    closed: AtomicBool,
    degraded: AtomicBool,
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
        let held = engine.pool.install(|| load(store.view(), &engine.cache))?;
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

    fn held(&self) -> Arc<Held> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, held: Held) {
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(held);
    }

    fn writer(&self) -> MutexGuard<'_, Option<Store>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present state.
    pub fn state(&self) -> State {
        self.catch_up();
        let held = self.held();
        State { manifest: Arc::clone(held.view.manifest()), head: held.view.head() }
    }

    /// Moves on to what other writers of a shared place have committed, if nobody has looked for a while.
    fn catch_up(&self) {
        let Home::Bucket(_) = self.home else { return };
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.elapsed() < LOOK_EVERY {
                return;
            }
            *looked = Instant::now();
        }
        // Whoever commits at this moment looks by itself. What cannot be read now is read by whoever needs it.
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
            self.show(self.engine.pool.install(|| load(store.view(), &self.engine.cache))?);
        }
        Ok(())
    }

    /// What the owner's description says in the clear.
    pub fn description(&self) -> Description {
        self.held().description.clone()
    }

    /// Applies all of `change` durably, or nothing of it. With `expect`, only on top of that head; with `key`, once however
    /// often it is sent.
    ///
    /// # Errors
    /// [`DatabaseError::Conflict`], [`DatabaseError::KeyReused`], [`DatabaseError::Invalid`] for what could not be searched
    /// or applied, [`DatabaseError::NotFound`] for segments and attachments that are not there, [`DatabaseError::Full`],
    /// [`DatabaseError::Io`]; [`DatabaseError::Poisoned`] when it is unknown whether the change is durable.
    pub fn commit(
        &self,
        change: Change,
        expect: Option<[u8; 32]>,
        key: Option<CommitKey>,
    ) -> Result<Committed, DatabaseError> {
        // Most of the work is done before any other commit has to wait for it. A change that was made before is not looked
        // at again: what it removed is not there any more.
        if let Some(done) = self.committed(key)? {
            return Ok(done);
        }
        let checked = self.engine.pool.install(|| check::change(&self.held(), &change))?;
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
                // Another server was faster: its commit comes first, this one is looked at again on top of it.
                Err(StoreError::Conflict { .. }) if store.is_shared() && attempt < ATTEMPTS => {
                    self.refresh(store)?;
                }
                done => break settle(&mut writer, done)?,
            }
        };
        let view = self.open_writer(&mut writer)?.view();
        self.show(self.next(view, &change.remove, checked)?);
        Ok(committed)
    }

    /// What an earlier commit under that key made, if there was one.
    ///
    /// # Errors
    /// [`DatabaseError::KeyReused`].
    pub fn committed(&self, key: Option<CommitKey>) -> Result<Option<Committed>, DatabaseError> {
        match (key, self.writer().as_ref()) {
            (Some(key), Some(store)) => Ok(store.committed(&key)?),
            _ => Ok(None),
        }
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
                self.show(self.engine.pool.install(|| load(store.view(), &self.engine.cache))?);
                Ok(writer.insert(store))
            }
        }
    }

    /// Work on the store that is no change by a client; afterwards the state is read again where it differs.
    fn upkeep<T: Send>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send,
    ) -> Result<T, DatabaseError> {
        let mut writer = self.writer();
        let store = self.open_writer(&mut writer)?;
        if store.is_shared() {
            self.refresh(store)?;
        }
        let done = self.engine.pool.install(|| work(store));
        let done = settle(&mut writer, done)?;
        let view = self.open_writer(&mut writer)?.view();
        if view.head() != self.held().view.head() {
            self.show(self.engine.pool.install(|| load(view, &self.engine.cache))?);
        }
        Ok(done)
    }

    /// Moves small files together and drops segments without live rows. Needs no key: sealed bytes move as they are.
    ///
    /// # Errors
    /// As [`Collection::commit`]; [`DatabaseError::Corrupt`] when a blob to be moved is damaged: nothing was changed.
    pub fn compact(&self) -> Result<Compacted, DatabaseError> {
        self.upkeep(|store| {
            let done = store.compact(false)?;
            // In a folder every commit frees what is not needed any more; in a bucket only this does.
            if store.is_shared() {
                store.collect_garbage()?;
            }
            Ok(done)
        })
    }

    /// Keeps the present state under a name; it takes no room of its own.
    ///
    /// # Errors
    /// [`DatabaseError::Exists`], [`DatabaseError::Invalid`] for what is no name; as [`Collection::commit`].
    pub fn snapshot(&self, snapshot: &str) -> Result<Committed, DatabaseError> {
        self.upkeep(|store| store.take_snapshot(snapshot))
    }

    /// The snapshots, by ascending name.
    ///
    /// # Errors
    /// [`DatabaseError::Corrupt`], [`DatabaseError::Io`].
    pub fn snapshots(&self) -> Result<Vec<SnapshotEntry>, DatabaseError> {
        self.upkeep(|store| store.snapshots())
    }

    /// Forgets a snapshot, and frees what only it needed.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`]; as [`Collection::commit`].
    pub fn drop_snapshot(&self, snapshot: &str) -> Result<Committed, DatabaseError> {
        self.upkeep(|store| store.drop_snapshot(snapshot))
    }

    /// Makes the state of a snapshot the next state: versions go on counting.
    pub(crate) fn restore(&self, snapshot: &str) -> Result<Committed, DatabaseError> {
        self.upkeep(|store| store.restore(snapshot))
    }

    /// Writes the state of a snapshot to a medium that holds nothing.
    pub(crate) fn copy_snapshot(
        &self,
        snapshot: &str,
        target: Arc<dyn store::Medium>,
    ) -> Result<(), DatabaseError> {
        self.upkeep(|store| store.copy_snapshot(snapshot, target))
    }

    /// The state after a commit: what is known already is shared with the one before.
    fn next(
        &self,
        view: store::View,
        removed: &[SegmentId],
        checked: Checked,
    ) -> Result<Held, DatabaseError> {
        let held = self.held();
        let mut index = held.index.clone();
        for id in removed {
            index.remove(ciphervec::SegmentId(*id));
        }
        if let Some(bytes) = &checked.evaluation {
            let epoch = index.set_evaluation_keys(bytes).map_err(damaged)?;
            let over = held.description.epoch;
            if epoch != over {
                index.forget_epoch(over);
            }
        }
        for (segment, tags) in checked.segments {
            let head = *segment.head();
            let blob = stored(&view, &head.id.0)?;
            let source = CachedSegment::new(&self.engine.cache, blob).with(&segment);
            index.add_stored(head, segment.byte_len(), tags, Arc::new(source)).map_err(damaged)?;
        }
        let description = checked.description.unwrap_or_else(|| held.description.clone());
        Ok(Held { view, description, index })
    }

    /// One blob of a segment, every block checked.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Corrupt`], [`DatabaseError::Io`].
    pub fn blob(&self, segment: &SegmentId, name: &str) -> Result<Bytes, DatabaseError> {
        self.read(|view| view.read(segment, name)).map(Bytes::from_owner)
    }

    /// Reads from the present state; again, if its files went because there is a newer one.
    fn read<T: Send>(
        &self,
        read: impl Fn(&store::View) -> Result<T, StoreError> + Sync,
    ) -> Result<T, DatabaseError> {
        let mut view = self.held().view.clone();
        loop {
            match self.engine.pool.install(|| read(&view)) {
                Err(StoreError::Missing { .. }) if self.held().view.head() != view.head() => {
                    view = self.held().view.clone();
                }
                done => return Ok(done?),
            }
        }
    }

    /// One attachment, every block checked.
    ///
    /// # Errors
    /// As [`Collection::blob`].
    pub fn attachment(&self, name: &str) -> Result<Bytes, DatabaseError> {
        self.read(|view| view.attachment(name)).map(Into::into)
    }

    /// Answers a sealed query over all segments. Dropping the future takes the query out of the queue.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] when too many wait, [`DatabaseError::Invalid`] for bytes that are no query of this collection,
    /// [`DatabaseError::Corrupt`] and [`DatabaseError::Io`] when a segment cannot be read.
    pub async fn query(self: &Arc<Self>, query: Bytes) -> Result<Answer, DatabaseError> {
        let answer = self.engine.queue.enter(Arc::clone(self), query)?;
        answer.await.unwrap_or_else(|_| Err(DatabaseError::Io("the scan thread ended".to_owned())))
    }

    /// The answers to queries that waited together, on the current thread pool.
    pub(crate) fn answer(&self, queries: &[&[u8]]) -> Vec<Result<Answer, DatabaseError>> {
        self.catch_up();
        let mut held = self.held();
        loop {
            let answers = self.answer_from(&held, queries);
            let gone = |answer: &Result<Answer, ciphervec::Error>| {
                matches!(answer, Err(ciphervec::Error::Store(StoreError::Missing { .. })))
            };
            let newest = self.held();
            // Files go when no state names them any more: whoever still read the old one asks the new one.
            if answers.iter().any(gone) && newest.view.head() != held.view.head() {
                held = newest;
                continue;
            }
            return answers.into_iter().map(|answer| answer.map_err(refused)).collect();
        }
    }

    fn answer_from(&self, held: &Held, queries: &[&[u8]]) -> Vec<Result<Answer, ciphervec::Error>> {
        let (version, head) = (held.view.manifest().version, held.view.head());
        let cache = &self.engine.cache;
        let before = cache.streamed();
        let mut answers = Vec::with_capacity(queries.len());
        let mut rest = queries;
        while !rest.is_empty() {
            let mut total = 0;
            let fits = rest.iter().take_while(|query| {
                // What does not parse is refused below, in a few bytes.
                total += held.index.answer_len(query).unwrap_or(0);
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
            cache.begin();
            self.warm(held);
            answers.extend(held.index.evaluate_many(group).into_iter().map(|evaluation| {
                let (bytes, timings) = (evaluation?.bytes.into(), QueryTimings::default());
                Ok(Answer { bytes, version, head, timings, degraded: false })
            }));
        }
        let degraded = cache.streamed() > before;
        if degraded && !self.degraded.swap(degraded, Ordering::Relaxed) {
            tracing::warn!(
                collection = self.name,
                bytes = held.index.bytes(),
                budget = cache.budget(),
                "the collection does not fit the memory budget: queries read from the store, slower; raise --memory-budget"
            );
        }
        self.degraded.store(degraded, Ordering::Relaxed);
        answers.iter_mut().flatten().for_each(|answer| answer.degraded = degraded);
        answers
    }

    /// Reads all segments that are not in memory at once, if all of them fit; those of more are read one by one in the pass.
    fn warm(&self, held: &Held) {
        if held.index.bytes() as u64 <= self.engine.cache.budget() {
            // A segment that cannot be read is met again in the pass, which says so.
            held.index.warm();
        }
    }

    /// Reads every block of every file and lists all faults. `progress` gets the bytes done and to do.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] when the files cannot be listed.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, DatabaseError> {
        let store = self.home.open_read_only()?;
        let found = store.verify(progress)?;
        Ok(Report {
            files: found.files,
            bytes: found.bytes,
            strays: found.strays,
            problems: found.problems,
        })
    }

    /// Sizes.
    pub fn statistics(&self) -> Statistics {
        let held = self.held();
        let manifest = held.view.manifest();
        Statistics {
            rows: manifest.segments.iter().map(|segment| u64::from(segment.rows)).sum(),
            deleted: manifest.segments.iter().map(|segment| u64::from(segment.deleted.len())).sum(),
            segments: manifest.segments.len() as u64,
            bytes: manifest.bytes(),
            resident: held.index.resident(),
            degraded: self.degraded.load(Ordering::Relaxed),
        }
    }

    /// Drops the collection from a shared place.
    pub(crate) fn drop_on(&self) -> Result<(), DatabaseError> {
        let mut writer = self.writer();
        let store = self.open_writer(&mut writer)?;
        self.refresh(store)?;
        let done = store.drop_on();
        settle(&mut writer, done)
    }

    /// Gives the lock back; queries that hold the state are still answered.
    pub(crate) fn close(&self) {
        let mut writer = self.writer();
        self.closed.store(true, Ordering::Release);
        *writer = None;
    }
}

/// After a failure that leaves unknown what is on disk, the writer goes: the next use opens the folder and finds out.
fn settle<T>(writer: &mut Option<Store>, done: Result<T, StoreError>) -> Result<T, DatabaseError> {
    let unknown = matches!(
        done,
        Err(StoreError::Sync { .. } | StoreError::Poisoned { .. } | StoreError::Conflict { .. })
    );
    if unknown {
        *writer = None;
    }
    done.map_err(Into::into)
}

fn damaged(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error) => error.into(),
        other => DatabaseError::Corrupt(other.to_string()),
    }
}

/// An error of a query is the query's, unless the store is to blame.
fn refused(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error) => error.into(),
        other => DatabaseError::Invalid(other.to_string()),
    }
}

/// The rows of a segment, to be read when they are needed.
fn stored(view: &store::View, id: &SegmentId) -> Result<store::StoredBlob, DatabaseError> {
    let rows = view.manifest().segment(id).and_then(|entry| entry.blob(ROWS));
    rows.map(|blob| view.stored(blob)).ok_or_else(|| {
        DatabaseError::Corrupt(format!(
            "segment {} has no blob {ROWS:?}",
            ciphervec::SegmentId(*id)
        ))
    })
}

/// Reads heads and filter tags of a state; rows are read when they are needed. Every block read is checked.
fn load(view: store::View, cache: &Arc<Cache>) -> Result<Held, DatabaseError> {
    let description =
        Description::from_bytes(&view.manifest().meta).map_err(DatabaseError::Corrupt)?;
    let mut index = ServerIndex::new(description.spec.clone()).map_err(damaged)?;
    if description.needs_evaluation() {
        index.set_evaluation_keys(&view.attachment(EVALUATION)?).map_err(damaged)?;
    }
    let known = view.manifest().segments.par_iter().map(|entry| {
        let tags = match entry.blob(TAGS) {
            Some(_) => FilterTags::from_bytes(&view.read(&entry.id, TAGS)?)
                .map_err(|error| DatabaseError::Corrupt(error.to_string()))?,
            None => FilterTags::new(),
        };
        let blob = entry.blob(ROWS).map(|blob| view.stored(blob));
        let named = ciphervec::SegmentId(entry.id);
        let blob = blob.ok_or_else(|| {
            DatabaseError::Corrupt(format!("segment {named} has no blob {ROWS:?}"))
        })?;
        let len = blob.length() as usize;
        let start = blob.read_start(SegmentHead::LEN)?;
        let head = SegmentHead::read_start(&description.spec, &start, len).map_err(damaged)?;
        if (head.id, head.rows) != (named, entry.rows) {
            return Err(DatabaseError::Corrupt(format!(
                "segment {named} of {} rows holds {} rows of segment {}",
                entry.rows, head.rows, head.id
            )));
        }
        Ok((head, len, tags, CachedSegment::new(cache, blob)))
    });
    let known: Vec<_> = known.collect::<Result<_, DatabaseError>>()?;
    for (head, len, tags, source) in known {
        index.add_stored(head, len, tags, Arc::new(source)).map_err(damaged)?;
    }
    Ok(Held { view, description, index })
}
