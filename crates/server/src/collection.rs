//! Changes and queries of one collection enter, durable states and sealed answers leave. Server side; no key in sight.
//!
//! Readers hold one committed state behind an `Arc` and never wait for a commit; commits wait for each other.

use crate::check::{self, Checked};
use crate::description::Description;
use crate::error::DatabaseError;
use crate::scan_queue::{Answer, QueryTimings, ScanQueue};
use bytes::Bytes;
use ciphervec::filter::FilterTags;
use ciphervec::search::ServerIndex;
use ciphervec::store::{
    self, Change, Compacted, Manifest, SegmentId, SnapshotEntry, Store, StoreError,
};
pub use ciphervec::store::{CommitKey, Committed};
use rayon::ThreadPool;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

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

/// What the collections of a database share.
pub(crate) struct Engine {
    pub pool: Arc<ThreadPool>,
    pub queue: ScanQueue,
}

/// One open collection.
pub struct Collection {
    name: String,
    path: PathBuf,
    engine: Arc<Engine>,
    /// None after a failure that left unknown what is on disk, until it is opened anew.
    writer: Mutex<Option<Store>>,
    held: RwLock<Arc<Held>>,
    closed: AtomicBool,
}

impl Collection {
    /// Opens the folder at `path`.
    pub(crate) fn open(
        name: &str,
        path: &Path,
        engine: &Arc<Engine>,
    ) -> Result<Arc<Self>, DatabaseError> {
        let store = Store::open(path)?;
        let held = engine.pool.install(|| load(store.view()))?;
        Ok(Arc::new(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            engine: Arc::clone(engine),
            writer: Mutex::new(Some(store)),
            held: RwLock::new(Arc::new(held)),
            closed: AtomicBool::new(false),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
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
        let held = self.held();
        State { manifest: Arc::clone(held.view.manifest()), head: held.view.head() }
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
        let done = store.commit_keyed(&change, key);
        let committed = settle(&mut writer, done)?;
        let store = self.open_writer(&mut writer)?;
        self.show(self.next(store.view(), &change.remove, checked)?);
        Ok(committed)
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
                let store = Store::open(&self.path)?;
                self.show(self.engine.pool.install(|| load(store.view()))?);
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
        let done = self.engine.pool.install(|| work(store));
        let done = settle(&mut writer, done)?;
        let view = self.open_writer(&mut writer)?.view();
        if view.head() != self.held().view.head() {
            self.show(self.engine.pool.install(|| load(view))?);
        }
        Ok(done)
    }

    /// Moves small files together and drops segments without live rows. Needs no key: sealed bytes move as they are.
    ///
    /// # Errors
    /// As [`Collection::commit`]; [`DatabaseError::Corrupt`] when a blob to be moved is damaged: nothing was changed.
    pub fn compact(&self) -> Result<Compacted, DatabaseError> {
        self.upkeep(|store| store.compact(false))
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
        checked.apply(&mut index)?;
        let description = checked.description.unwrap_or_else(|| held.description.clone());
        Ok(Held { view, description, index })
    }

    /// One blob of a segment, every block checked.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Corrupt`], [`DatabaseError::Io`].
    pub fn blob(&self, segment: &SegmentId, name: &str) -> Result<Bytes, DatabaseError> {
        let view = self.held().view.clone();
        let bytes = self.engine.pool.install(|| view.read(segment, name))?;
        Ok(Bytes::from_owner(bytes))
    }

    /// One attachment, every block checked.
    ///
    /// # Errors
    /// As [`Collection::blob`].
    pub fn attachment(&self, name: &str) -> Result<Bytes, DatabaseError> {
        let view = self.held().view.clone();
        Ok(self.engine.pool.install(|| view.attachment(name))?.into())
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
        let held = self.held();
        let (version, head) = (held.view.manifest().version, held.view.head());
        queries
            .iter()
            .map(|query| {
                let evaluation = held
                    .index
                    .evaluate(query)
                    .map_err(|error| DatabaseError::Invalid(error.to_string()))?;
                let (bytes, timings) = (evaluation.bytes.into(), QueryTimings::default());
                Ok(Answer { bytes, version, head, timings, degraded: false })
            })
            .collect()
    }

    /// Reads every block of every file and lists all faults. `progress` gets the bytes done and to do.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] when the files cannot be listed.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, DatabaseError> {
        let store = Store::open_read_only(&self.path)?;
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
            resident: held.index.bytes() as u64,
            degraded: false,
        }
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

/// Reads a whole state into memory, every block checked.
fn load(view: store::View) -> Result<Held, DatabaseError> {
    let description =
        Description::from_bytes(&view.manifest().meta).map_err(DatabaseError::Corrupt)?;
    let damaged = |error: ciphervec::Error| DatabaseError::Corrupt(error.to_string());
    let mut index = ServerIndex::new(description.spec.clone()).map_err(damaged)?;
    if description.needs_evaluation() {
        index.set_evaluation_keys(&view.attachment(EVALUATION)?).map_err(damaged)?;
    }
    for entry in &view.manifest().segments {
        let tags = match entry.blob(TAGS) {
            Some(_) => FilterTags::from_bytes(&view.read(&entry.id, TAGS)?)
                .map_err(|error| DatabaseError::Corrupt(error.to_string()))?,
            None => FilterTags::new(),
        };
        let id = index.add_tagged(view.read(&entry.id, ROWS)?, tags).map_err(damaged)?;
        if id.0 != entry.id {
            let named = ciphervec::SegmentId(entry.id);
            return Err(DatabaseError::Corrupt(format!(
                "segment {named} holds the rows of segment {id}"
            )));
        }
    }
    Ok(Held { view, description, index })
}
