//! Database: a place for collections enters, named collections leave. Server side, no key.
//!
//! One sub-folder a collection, as the embedded client lays them out. A folder whose name starts
//! with a dot is unfinished work and never a collection.

use super::blob_names::EVALUATION;
use super::bucket::Bucket;
use super::cache::Cache;
use super::collection::{Collection, Engine, Home};
use super::description::Description;
use super::error::DatabaseError;
use super::scan_queue::ScanQueue;
use ciphervec::store::{self, Change, Folder, Store, StoreError};
use object_store::ObjectStore;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// After this a folder that somebody was making is taken for abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// After this a collection that nobody asks for is closed.
const IDLE_AFTER: Duration = Duration::from_secs(15 * 60);
const LOOK_EVERY: Duration = Duration::from_secs(60);
const DRAFT: &str = ".new-";
const TRASH: &str = ".trash-";
const LONGEST_NAME: usize = 128;

/// Where a database lies and what it may use.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// A path, `file://…`, or `s3://bucket/prefix`.
    pub url: String,
    /// Bytes of segments to keep in memory at most.
    pub memory_budget: u64,
    /// Threads that scan and check; 0 for one a core.
    pub threads: usize,
    /// Queries that may wait.
    pub queue: usize,
}

/// Where the collections lie.
enum Place {
    Folder(PathBuf),
    Bucket(Bucket),
}

/// The collections of one place.
pub struct Database {
    place: Place,
    engine: Arc<Engine>,
    open: Mutex<BTreeMap<String, Arc<Collection>>>,
}

impl Database {
    /// Opens the place, makes it if it is not there, and clears away what a killed process left.
    /// Collections are opened when they are first used.
    ///
    /// # Errors
    /// [`DatabaseError::Unsupported`] for a URL of another kind, [`DatabaseError::Io`].
    pub fn open(options: &DatabaseOptions) -> Result<Arc<Self>, DatabaseError> {
        let place = if options.url.starts_with("s3://") {
            let bucket = Bucket::at(&options.url);
            Place::Bucket(bucket.map_err(|error| refused("open", &options.url, &error))?)
        } else {
            let root = folder_of(&options.url)?;
            fs::create_dir_all(&root)
                .map_err(|error| failed("create the folder", &root, &error))?;
            sweep(&root)?;
            Place::Folder(root)
        };
        Self::start(place, options)
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
        let bucket = Bucket::new(store, prefix, &options.url);
        let bucket = bucket.map_err(|error| refused("open", &options.url, &error))?;
        Self::start(Place::Bucket(bucket), options)
    }

    fn start(place: Place, options: &DatabaseOptions) -> Result<Arc<Self>, DatabaseError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .thread_name(|index| format!("ciphervec-{index}"))
            .build()
            .map_err(|error| DatabaseError::Io(format!("cannot start threads: {error}")))?;
        let pool = Arc::new(pool);
        let queue = ScanQueue::start(options.queue, Arc::clone(&pool))
            .map_err(|error| DatabaseError::Io(format!("cannot start the scan thread: {error}")))?;
        let cache = Cache::new(options.memory_budget);
        let engine = Arc::new(Engine { pool, queue, cache });
        let database = Arc::new(Self { place, engine, open: Mutex::default() });
        let watched = Arc::downgrade(&database);
        // Ends within a minute of the database.
        let housekeeping = move || {
            while let Some(database) = Weak::upgrade(&watched) {
                database.close_idle(IDLE_AFTER);
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
        match &self.place {
            Place::Folder(root) => root.is_dir(),
            Place::Bucket(bucket) => bucket.names().is_ok(),
        }
    }

    /// Queries that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.engine.queue.waiting()
    }

    /// Bytes of segments in memory, of all collections.
    pub fn resident(&self) -> u64 {
        self.engine.cache.bytes()
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Collection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The collections that are open, by name.
    pub fn open_collections(&self) -> Vec<Arc<Collection>> {
        self.opened().values().map(Arc::clone).collect()
    }

    /// The names of all collections, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = match &self.place {
            Place::Folder(root) => {
                let entries = fs::read_dir(root).into_iter().flatten().flatten();
                let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
                names.filter(|name| valid_name(name) && is_collection(&root.join(name))).collect()
            }
            // Of one that was dropped something is left.
            Place::Bucket(bucket) => {
                let names = bucket.names().unwrap_or_default().into_iter();
                names
                    .filter(|name| !matches!(self.get(name), Err(DatabaseError::NotFound(_))))
                    .collect()
            }
        };
        names.sort_unstable();
        names
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
                self.insert(name, Home::Bucket(medium))
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
        let collection = Collection::open(name, self.home(name)?, &self.engine).map_err(
            |error| match error {
                DatabaseError::NotFound(_) => unknown(name),
                error => error,
            },
        )?;
        open.insert(name.to_owned(), Arc::clone(&collection));
        Ok(collection)
    }

    fn insert(&self, name: &str, home: Home) -> Result<Arc<Collection>, DatabaseError> {
        let collection = Collection::open(name, home, &self.engine)?;
        self.opened().insert(name.to_owned(), Arc::clone(&collection));
        Ok(collection)
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
        let trash = root.join(format!("{TRASH}{}", random_name()?));
        fs::rename(&path, &trash).map_err(|error| failed("delete", &path, &error))?;
        sync_folder(root)?;
        // It is gone; what cannot be removed now is swept at the next start.
        let _ = fs::remove_dir_all(&trash);
        Ok(())
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
                self.insert(into, Home::Bucket(medium))
            }
        }
    }

    /// Makes a collection beside its place and renames it into it: a kill leaves a dot folder,
    /// never half a collection.
    fn make(
        &self,
        root: &Path,
        name: &str,
        write: impl FnOnce(&Path) -> Result<(), DatabaseError>,
    ) -> Result<Arc<Collection>, DatabaseError> {
        let path = root.join(name);
        let exists = || DatabaseError::Exists(format!("the collection {name:?}"));
        if path.exists() {
            return Err(exists());
        }
        let draft = root.join(format!("{DRAFT}{}", random_name()?));
        let made = write(&draft).and_then(|()| {
            let mut open = self.opened();
            // Somebody may have made it in the meantime; a rename would replace an empty folder.
            if path.exists() {
                return Err(exists());
            }
            fs::rename(&draft, &path).map_err(|error| failed("create", &path, &error))?;
            sync_folder(root)?;
            let collection = Collection::open(name, Home::Folder(path.clone()), &self.engine)?;
            open.insert(name.to_owned(), Arc::clone(&collection));
            Ok(collection)
        });
        if made.is_err() {
            // What cannot be removed now is swept at the next start.
            let _ = fs::remove_dir_all(&draft);
        }
        made
    }

    fn home(&self, name: &str) -> Result<Home, DatabaseError> {
        match &self.place {
            Place::Folder(root) => self.existing(root, name).map(Home::Folder),
            Place::Bucket(bucket) if valid_name(name) => Ok(Home::Bucket(bucket.collection(name))),
            Place::Bucket(_) => Err(unknown(name)),
        }
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

fn refused(doing: &str, url: &str, error: &std::io::Error) -> DatabaseError {
    DatabaseError::Io(format!("cannot {doing} {url}: {error}"))
}

/// Whether a collection may have that name: 1 to 128 of `A-Z a-z 0-9 . _ -`, a letter or digit at
/// both ends, no `..`.
pub fn valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    (1..=LONGEST_NAME).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
        && ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && !name.contains("..")
}

/// Refuses a name that is none.
///
/// # Errors
/// [`DatabaseError::Invalid`], with what a name is.
pub fn check_name(name: &str) -> Result<(), DatabaseError> {
    if valid_name(name) {
        return Ok(());
    }
    Err(DatabaseError::Invalid(format!(
        "a name has 1 to {LONGEST_NAME} characters from a-z A-Z 0-9 . _ - and starts and ends with a letter or digit, \
         without '..'; got {name:?}"
    )))
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
        index.set_evaluation_keys(&keys.1).map_err(invalid)?;
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

fn folder_of(url: &str) -> Result<PathBuf, DatabaseError> {
    match url.split_once("://") {
        None => Ok(PathBuf::from(url)),
        Some(("file", path)) => Ok(PathBuf::from(path)),
        Some((scheme, _)) => Err(DatabaseError::Unsupported(format!(
            "data at {scheme}:// is not supported; give a folder, file://…, or s3://bucket/prefix"
        ))),
    }
}

/// Whether a folder is a collection, be it a damaged one.
fn is_collection(path: &Path) -> bool {
    let names = fs::read_dir(path).into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| name == "blobs" || name.starts_with("manifest-"))
}

/// Removes what a killed process left behind.
fn sweep(root: &Path) -> Result<(), DatabaseError> {
    let entries = fs::read_dir(root).map_err(|error| failed("list", root, &error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let age = entry.metadata().and_then(|found| found.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        // Another process may be making a collection right now; that takes seconds, and then it is
        // gone.
        let abandoned = name.starts_with(DRAFT) && age.is_some_and(|age| age > ABANDONED_AFTER);
        if name.starts_with(TRASH) || abandoned {
            // What cannot be removed harms nothing, and stays for another time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

fn sync_folder(path: &Path) -> Result<(), DatabaseError> {
    let synced =
        if cfg!(unix) { fs::File::open(path).and_then(|file| file.sync_all()) } else { Ok(()) };
    synced.map_err(|error| failed("fsync", path, &error))
}

pub(crate) fn random_name() -> Result<String, DatabaseError> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| DatabaseError::Io(format!("the system gives no random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn failed(doing: &str, path: &Path, error: &std::io::Error) -> DatabaseError {
    DatabaseError::of_io(format!("cannot {doing} {}: {error}", path.display()), error.kind())
}
