//! The collections of one place, by name. It holds no key.
//!
//! Collections are opened when they are first used, and closed when nobody asks for them.

use super::blob_names::EVALUATION;
use super::cache::Cache;
use super::collection::{Collection, Engine, Home};
use super::description::Description;
use super::error::DatabaseError;
use super::fetching::Fetching;
use super::place::{Place, check_name, failed, sync_folder};
use super::scan_queue::ScanQueue;
use ciphervec::search::SessionStore;
use ciphervec::store::shelf::{self, Draft, valid_name};
use ciphervec::store::{self, Change, Folder, Store, StoreError};
use object_store::ObjectStore;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// After this a collection that nobody asks for is closed.
const IDLE_AFTER: Duration = Duration::from_secs(15 * 60);
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Where programs lie: under no collection's name.
const PROGRAMS: &str = ".programs";
/// Where keyed tables lie.
const TABLES: &str = ".tables";

/// Where a database lies and what it may use.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// A path, `file://…`, or `s3://bucket/prefix`.
    pub url: String,
    /// Bytes of segments to keep in memory at most.
    pub memory_budget: u64,
    /// Threads that scan, and as many that read and check; 0 for one a core.
    pub threads: usize,
    /// Queries that may wait.
    pub queue: usize,
}

/// The collections of one place.
pub struct Database {
    place: Place,
    engine: Arc<Engine>,
    open: Mutex<Opened>,
    /// Collections of a folder that may be open at once.
    most: AtomicUsize,
}

type Opened = BTreeMap<String, Arc<Collection>>;

impl Database {
    /// Opens the place, makes it if it is not there, and clears away what a killed process left.
    /// Collections are opened when they are first used.
    ///
    /// # Errors
    /// [`DatabaseError::Unsupported`] for a URL of another kind, [`DatabaseError::Io`].
    pub fn open(options: &DatabaseOptions) -> Result<Arc<Self>, DatabaseError> {
        Self::start(Place::open(&options.url)?, options)
    }

    /// Opens a database in the part of an object store below `prefix`; the URL in `options` is for
    /// messages.
    ///
    /// # Errors
    /// [`DatabaseError::Io`].
    pub fn open_store(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &DatabaseOptions,
    ) -> Result<Arc<Self>, DatabaseError> {
        Self::start(Place::of_store(store, prefix, &options.url)?, options)
    }

    fn start(place: Place, options: &DatabaseOptions) -> Result<Arc<Self>, DatabaseError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .thread_name(|index| format!("ciphervec-{index}"))
            .build()
            .map_err(|error| DatabaseError::Io(format!("cannot start threads: {error}")))?;
        let pool = Arc::new(pool);
        let queue = ScanQueue::start(options.queue, options.threads)
            .map_err(|error| DatabaseError::Io(format!("cannot start the scan thread: {error}")))?;
        let cache = Cache::new(options.memory_budget);
        let sessions = SessionStore::within(options.memory_budget);
        let fetching = Fetching::within(options.memory_budget, options.queue);
        let engine = Arc::new(Engine { pool, queue, cache, sessions, fetching });
        let most = AtomicUsize::new(usize::MAX);
        let database = Arc::new(Self { place, engine, open: Mutex::default(), most });
        let watched = Arc::downgrade(&database);
        // Ends within a minute of the database.
        let housekeeping = move || {
            while let Some(database) = Weak::upgrade(&watched) {
                database.close_idle(IDLE_AFTER);
                database.engine.fetching.let_go_of_idle(IDLE_AFTER);
                database.engine.count_taken();
                drop(database);
                std::thread::sleep(LOOK_EVERY);
            }
        };
        std::thread::Builder::new()
            .name("ciphervec-idle".to_owned())
            .spawn(housekeeping)
            .map_err(|error| DatabaseError::Io(format!("cannot start a thread: {error}")))?;
        Ok(database)
    }

    /// Whether requests can be served.
    pub fn ready(&self) -> bool {
        self.place.is_there()
    }

    /// Queries that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.engine.queue.waiting()
    }

    /// Bytes of segments in memory, of all collections.
    pub fn resident(&self) -> u64 {
        self.engine.cache.bytes()
    }

    /// Bytes of tables of private fetch in memory.
    pub fn fetch_tables(&self) -> u64 {
        self.engine.fetching.table_bytes()
    }

    /// Lets no more collections of a folder be open at once, unless they are all in use: each holds a
    /// file open.
    pub(crate) fn hold_at_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The collections that are open, by name.
    pub fn open_collections(&self) -> Vec<Arc<Collection>> {
        self.opened().values().map(Arc::clone).collect()
    }

    /// The names of all collections, sorted.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] where they cannot be listed, [`DatabaseError::Descriptors`].
    pub fn names(&self) -> Result<Vec<String>, DatabaseError> {
        let mut names = self.place.names()?;
        if let Place::Bucket(_) = self.place {
            // Of one that was dropped something is left.
            names.retain(|name| !matches!(self.get(name), Err(DatabaseError::NotFound(_))));
        }
        Ok(names)
    }

    /// The collections that another process has open for writing, and which.
    pub fn locked(&self) -> Vec<(String, String)> {
        let Place::Folder(root) = &self.place else { return Vec::new() };
        let held = |name: String| {
            let holder = store::writer_of(&root.join(&name))?;
            Some((name, holder))
        };
        self.place.names().unwrap_or_default().into_iter().filter_map(held).collect()
    }

    /// Makes a collection with this description and these attachments, durably, in one step.
    ///
    /// # Errors
    /// [`DatabaseError::Exists`]; [`DatabaseError::Invalid`] for a name, a description or
    /// evaluation keys that do not fit together; [`DatabaseError::Full`], [`DatabaseError::Io`].
    pub fn create(
        &self,
        name: &str,
        meta: Vec<u8>,
        attachments: Vec<(String, Vec<u8>)>,
    ) -> Result<Arc<Collection>, DatabaseError> {
        check_name(name)?;
        check_new(name, &meta, &attachments)?;
        match &self.place {
            Place::Folder(root) => {
                self.make(root, name, |draft| write_draft(draft, &meta, attachments))
            }
            Place::Bucket(bucket) => {
                let medium = bucket.collection(name);
                let made = self.engine.pool.install(|| {
                    Store::create_on(Arc::clone(&medium), &meta, &attachments).map(drop)
                });
                made.map_err(|error| taken(error, name))?;
                self.insert(name, &Home::Bucket(medium))
            }
        }
    }

    /// The collection of that name.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`]; [`DatabaseError::Locked`] while another process writes it;
    /// [`DatabaseError::Corrupt`], [`DatabaseError::Io`].
    pub fn get(&self, name: &str) -> Result<Arc<Collection>, DatabaseError> {
        let mut open = self.opened();
        if let Some(collection) = open.get(name) {
            collection.touch();
            return Ok(Arc::clone(collection));
        }
        self.open_in(&mut open, name, &self.home(name)?).map_err(|error| match error {
            DatabaseError::NotFound(_) => unknown(name),
            error => error,
        })
    }

    fn insert(&self, name: &str, home: &Home) -> Result<Arc<Collection>, DatabaseError> {
        self.open_in(&mut self.opened(), name, home)
    }

    /// Opens a collection beside those that are open; those that nobody has asked for the longest make
    /// room for it.
    fn open_in(
        &self,
        open: &mut Opened,
        name: &str,
        home: &Home,
    ) -> Result<Arc<Collection>, DatabaseError> {
        if let Home::Folder(_) = home {
            let most = self.most.load(Ordering::Relaxed);
            close_longest_idle(open, (open.len() + 1).saturating_sub(most));
        }
        loop {
            match Collection::open(name, home.clone(), &self.engine) {
                Err(DatabaseError::Descriptors(_))
                    if close_longest_idle(open, open.len().div_ceil(4)) > 0 => {}
                opened => {
                    let collection = opened?;
                    open.insert(name.to_owned(), Arc::clone(&collection));
                    return Ok(collection);
                }
            }
        }
    }

    /// Deletes a collection and all its segments and snapshots.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Locked`] while another process writes it,
    /// [`DatabaseError::Io`].
    pub fn drop_collection(&self, name: &str) -> Result<(), DatabaseError> {
        let Place::Folder(root) = &self.place else {
            let collection = self.get(name)?;
            collection.drop_on()?;
            collection.close();
            self.opened().remove(name);
            return Ok(());
        };
        let mut open = self.opened();
        let path = self.existing(root, name)?;
        match open.remove(name) {
            Some(collection) => collection.close(),
            // Refuses while another process has it.
            None => drop(Store::open(&path)?),
        }
        Ok(shelf::remove(root, name)?)
    }

    /// Brings a snapshot back: as the next state of its collection if `into` is `name`, else as
    /// another collection, which is a copy that shares nothing. The owner's keys are bound to the
    /// collection's name, so that a copy serves as a backup to be renamed, not to be searched under
    /// its own name.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Exists`] for another collection that is there,
    /// [`DatabaseError::Invalid`] for its name; [`DatabaseError::Corrupt`],
    /// [`DatabaseError::Full`], [`DatabaseError::Io`].
    pub fn restore(
        &self,
        name: &str,
        snapshot: &str,
        into: &str,
    ) -> Result<Arc<Collection>, DatabaseError> {
        let collection = self.get(name)?;
        if name == into {
            collection.restore(snapshot)?;
            return Ok(collection);
        }
        check_name(into)?;
        let write = |draft: &Path| {
            let blobs = draft.join(store::BLOBS);
            fs::create_dir_all(&blobs).map_err(|error| failed("create", &blobs, &error))?;
            collection.copy_snapshot(snapshot, Arc::new(Folder::new(draft)))?;
            sync_folder(draft)
        };
        match &self.place {
            Place::Folder(root) => self.make(root, into, write),
            Place::Bucket(bucket) => {
                let medium = bucket.collection(into);
                collection.copy_snapshot(snapshot, Arc::clone(&medium))?;
                self.insert(into, &Home::Bucket(medium))
            }
        }
    }

    /// Makes a collection in a folder, all of it or nothing.
    fn make(
        &self,
        root: &Path,
        name: &str,
        write: impl FnOnce(&Path) -> Result<(), DatabaseError>,
    ) -> Result<Arc<Collection>, DatabaseError> {
        let exists = || DatabaseError::Exists(format!("the collection {name:?}"));
        if root.join(name).exists() {
            return Err(exists());
        }
        let draft = Draft::write(root, write)?;
        let mut open = self.opened();
        // Somebody may have made it in the meantime.
        let path = draft.settle(name)?.ok_or_else(exists)?;
        self.open_in(&mut open, name, &Home::Folder(path))
    }

    /// Where programs lie beside the collections.
    pub(crate) fn programs(&self) -> Place {
        self.place.within(PROGRAMS)
    }

    /// Where keyed tables lie beside the collections; none in a bucket.
    pub(crate) fn tables(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Folder(root) => Some(root.join(TABLES)),
            Place::Bucket(_) => None,
        }
    }

    /// What the collections share.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Threads that read and check what is stored.
    pub(crate) fn pool(&self) -> &Arc<rayon::ThreadPool> {
        &self.engine.pool
    }

    fn home(&self, name: &str) -> Result<Home, DatabaseError> {
        self.place.home(name).ok_or_else(|| unknown(name))
    }

    fn existing(&self, root: &Path, name: &str) -> Result<PathBuf, DatabaseError> {
        let path = root.join(name);
        if !valid_name(name) || !path.is_dir() {
            return Err(unknown(name));
        }
        Ok(path)
    }

    /// Closes collections that nobody has asked for in that time and nobody holds: their memory and
    /// their locks are free. They are opened again when somebody asks. Returns how many were
    /// closed.
    pub fn close_idle(&self, after: Duration) -> usize {
        let mut open = self.opened();
        let before = open.len();
        open.retain(|_, collection| Arc::strong_count(collection) > 1 || collection.idle() < after);
        before - open.len()
    }

    /// Answers what waits and gives all locks back.
    pub fn close(&self) {
        self.engine.queue.close();
        for (_, collection) in std::mem::take(&mut *self.opened()) {
            collection.close();
        }
    }
}

/// Closes so many collections that nobody holds, those first that nobody has asked for the longest; how
/// many it were.
fn close_longest_idle(open: &mut Opened, count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let idle = open.iter().filter(|(_, collection)| Arc::strong_count(collection) == 1);
    let mut idle: Vec<(Duration, String)> =
        idle.map(|(name, collection)| (collection.idle(), name.clone())).collect();
    idle.sort_unstable_by(|a, b| b.cmp(a));
    idle.truncate(count);
    idle.iter().for_each(|(_, name)| drop(open.remove(name)));
    idle.len()
}

fn unknown(name: &str) -> DatabaseError {
    DatabaseError::NotFound(format!("no collection {name:?}"))
}

fn taken(error: StoreError, name: &str) -> DatabaseError {
    match error {
        StoreError::AlreadyExists { .. } => {
            DatabaseError::Exists(format!("the collection {name:?}"))
        }
        error => error.into(),
    }
}

/// Refuses a collection that could not be searched.
fn check_new(
    name: &str,
    meta: &[u8],
    attachments: &[(String, Vec<u8>)],
) -> Result<(), DatabaseError> {
    let description = Description::received(meta).map_err(DatabaseError::Invalid)?;
    if description.spec.collection() != name {
        return Err(DatabaseError::Invalid(format!(
            "the description is that of the collection {:?}; its name is part of what its keys are bound to, so it \
             cannot be created as {name:?}",
            description.spec.collection()
        )));
    }
    if description.needs_evaluation() {
        let invalid = |error: ciphervec::Error| DatabaseError::Invalid(error.to_string());
        let keys = attachments.iter().find(|(found, _)| found == EVALUATION);
        let keys = keys.ok_or_else(|| {
            DatabaseError::Invalid(format!(
                "the attachment {EVALUATION:?} is missing; send the evaluation keys"
            ))
        })?;
        let mut index = ciphervec::search::ServerIndex::new(description.spec).map_err(invalid)?;
        super::check::evaluation(&mut index, &keys.1)?;
    }
    Ok(())
}

fn write_draft(
    draft: &Path,
    meta: &[u8],
    attachments: Vec<(String, Vec<u8>)>,
) -> Result<(), DatabaseError> {
    let mut store = Store::create(draft, meta)?;
    store.commit(Change { attachments, ..Change::default() })?;
    Ok(())
}
