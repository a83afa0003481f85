//! Place: a folder or a part of a bucket enters; the stores in it by name leave, made and removed in
//! one step. Server side.
//!
//! One sub-folder a store, as the embedded client lays them out. A folder whose name starts with a
//! dot is unfinished work, or what belongs to another kind of store.

use super::bucket::Bucket;
use super::collection::Home;
use super::error::DatabaseError;
use object_store::ObjectStore;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// After this a folder that somebody was making is taken for abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
const DRAFT: &str = ".new-";
const TRASH: &str = ".trash-";
const LONGEST_NAME: usize = 128;

/// Where stores of one kind lie.
pub(crate) enum Place {
    /// A folder.
    Folder(PathBuf),
    /// A bucket, or a part of one.
    Bucket(Bucket),
}

impl Place {
    /// The place that a URL names: a folder is made if it is not there, and what a killed process
    /// left in it is cleared away.
    pub fn open(url: &str) -> Result<Self, DatabaseError> {
        if url.starts_with("s3://") {
            let bucket = Bucket::at(url);
            return Ok(Place::Bucket(bucket.map_err(|error| refused("open", url, &error))?));
        }
        let root = folder_of(url)?;
        fs::create_dir_all(&root).map_err(|error| failed("create the folder", &root, &error))?;
        sweep(&root)?;
        Ok(Place::Folder(root))
    }

    /// The part of an object store below `prefix`; the URL is for messages.
    pub fn of_store(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        url: &str,
    ) -> Result<Self, DatabaseError> {
        let bucket = Bucket::new(store, prefix, url);
        Ok(Place::Bucket(bucket.map_err(|error| refused("open", url, &error))?))
    }

    /// The place of that name within this one, for stores of another kind. Nothing is made yet.
    pub fn within(&self, name: &str) -> Self {
        match self {
            Place::Folder(root) => {
                let root = root.join(name);
                // What cannot be swept now harms nothing; one that is not there has nothing.
                let _ = sweep(&root);
                Place::Folder(root)
            }
            Place::Bucket(bucket) => Place::Bucket(bucket.within(name)),
        }
    }

    /// Whether requests can be served.
    pub fn is_there(&self) -> bool {
        match self {
            Place::Folder(root) => root.is_dir(),
            Place::Bucket(bucket) => bucket.names().is_ok(),
        }
    }

    /// The names under which there is a store, sorted; in a bucket, also those under which something
    /// is left of one. A folder that is not there has none.
    ///
    /// # Errors
    /// [`DatabaseError::Io`], [`DatabaseError::Descriptors`]: what cannot be listed is not empty.
    pub fn names(&self) -> Result<Vec<String>, DatabaseError> {
        let mut names = match self {
            Place::Folder(root) => stores_in(root).map_err(|error| failed("list", root, &error))?,
            Place::Bucket(bucket) => {
                bucket.names().map_err(|error| refused("list", &bucket.url, &error))?
            }
        };
        names.retain(|name| valid_name(name));
        names.sort_unstable();
        Ok(names)
    }

    /// Where the store of that name lies; nothing if there cannot be one, or no folder of it.
    pub fn home(&self, name: &str) -> Option<Home> {
        if !valid_name(name) {
            return None;
        }
        match self {
            Place::Folder(root) => {
                let path = root.join(name);
                path.is_dir().then_some(Home::Folder(path))
            }
            Place::Bucket(bucket) => Some(Home::Bucket(bucket.collection(name))),
        }
    }
}

/// A store that is made beside its place and renamed into it: a kill leaves a dot folder, never half
/// a store.
pub(crate) struct Draft<'a> {
    root: &'a Path,
    path: PathBuf,
    settled: bool,
}

impl<'a> Draft<'a> {
    /// A new one in the folder `root`, filled by `write`.
    pub fn write(
        root: &'a Path,
        write: impl FnOnce(&Path) -> Result<(), DatabaseError>,
    ) -> Result<Self, DatabaseError> {
        let path = root.join(format!("{DRAFT}{}", random_name()?));
        let draft = Draft { root, path, settled: false };
        write(&draft.path)?;
        Ok(draft)
    }

    /// Gives it its name, durably, unless there is one of that name; where it lies now. Callers keep
    /// others from doing the same.
    pub fn settle(mut self, name: &str) -> Result<Option<PathBuf>, DatabaseError> {
        let path = self.root.join(name);
        // A rename would replace an empty folder.
        if path.exists() {
            return Ok(None);
        }
        fs::rename(&self.path, &path).map_err(|error| failed("create", &path, &error))?;
        self.settled = true;
        sync_folder(self.root)?;
        Ok(Some(path))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.settled {
            // What cannot be removed now is swept at the next start.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the store of that name from a folder, durably and in one step.
pub(crate) fn remove(root: &Path, name: &str) -> Result<(), DatabaseError> {
    let path = root.join(name);
    let trash = root.join(format!("{TRASH}{}", random_name()?));
    fs::rename(&path, &trash).map_err(|error| failed("delete", &path, &error))?;
    sync_folder(root)?;
    // It is gone; what cannot be removed now is swept at the next start.
    let _ = fs::remove_dir_all(&trash);
    Ok(())
}

fn refused(doing: &str, url: &str, error: &std::io::Error) -> DatabaseError {
    DatabaseError::Io(format!("cannot {doing} {url}: {error}"))
}

/// Whether a collection or a program may have that name: 1 to 128 of `A-Z a-z 0-9 . _ -`, a letter or digit at
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

fn folder_of(url: &str) -> Result<PathBuf, DatabaseError> {
    match url.split_once("://") {
        None => Ok(PathBuf::from(url)),
        Some(("file", path)) => Ok(PathBuf::from(path)),
        Some((scheme, _)) => Err(DatabaseError::Unsupported(format!(
            "data at {scheme}:// is not supported; give a folder, file://…, or s3://bucket/prefix"
        ))),
    }
}

/// The names in a folder; none of what is no folder, or not there.
fn entries(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(path) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names.filter_map(io::Result::transpose).collect()
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The folders in one that are stores, be they damaged ones.
fn stores_in(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in entries(root)? {
        let within = match entries(&root.join(&name)) {
            // Somebody else's folder hides no other.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Vec::new(),
            listed => listed?,
        };
        if within.iter().any(|name| name == "blobs" || name.starts_with("manifest-")) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Removes what a killed process left behind.
fn sweep(root: &Path) -> Result<(), DatabaseError> {
    let entries = fs::read_dir(root).map_err(|error| failed("list", root, &error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let age = entry.metadata().and_then(|found| found.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        // Another process may be making a store right now; that takes seconds, and then it is
        // gone.
        let abandoned = name.starts_with(DRAFT) && age.is_some_and(|age| age > ABANDONED_AFTER);
        if name.starts_with(TRASH) || abandoned {
            // What cannot be removed harms nothing, and stays for another time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

pub(crate) fn sync_folder(path: &Path) -> Result<(), DatabaseError> {
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

pub(crate) fn failed(doing: &str, path: &Path, error: &std::io::Error) -> DatabaseError {
    DatabaseError::of_io(format!("cannot {doing} {}: {error}", path.display()), error)
}
