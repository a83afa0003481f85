//! Stores by name in a folder or a part of a bucket, made and removed in one step.
//!
//! One sub-folder a store, as the embedded client lays them out. A folder whose name starts with a
//! dot is unfinished work, or what belongs to another kind of store.

use super::bucket::Bucket;
use super::collection::Home;
use super::error::DatabaseError;
use ciphervec::store::shelf::{self, LONGEST_NAME, sweep, valid_name};
use object_store::ObjectStore;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            Place::Folder(root) => shelf::names(root)?,
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

fn refused(doing: &str, url: &str, error: &std::io::Error) -> DatabaseError {
    DatabaseError::Io(format!("cannot {doing} {url}: {error}"))
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

pub(crate) fn sync_folder(path: &Path) -> Result<(), DatabaseError> {
    let synced =
        if cfg!(unix) { fs::File::open(path).and_then(|file| file.sync_all()) } else { Ok(()) };
    synced.map_err(|error| failed("fsync", path, &error))
}

pub(crate) fn failed(doing: &str, path: &Path, error: &std::io::Error) -> DatabaseError {
    DatabaseError::of_io(format!("cannot {doing} {}: {error}", path.display()), error)
}
