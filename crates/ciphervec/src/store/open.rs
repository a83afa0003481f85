//! Makes collections, and opens them to read or to write.

use super::blob_ref::BLOBS;
use super::error::StoreError;
use super::folder::{MANIFEST, Store, manifest_name, manifest_versions};
use super::lock::LOCK_FILE;
use super::manifest::{self, Manifest};
use super::medium::{Folder, Medium, TEMPORARY};
use super::{Change, disk};
use std::fs;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Makes a collection folder with version 1, no segments and these opaque `meta` bytes, and
    /// opens it for writing. A folder whose creation was cut short is finished.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] for a folder with anything else in it, [`StoreError::Locked`],
    /// [`StoreError::Io`], [`StoreError::Full`], [`StoreError::Sync`].
    pub fn create(path: &Path, meta: &[u8]) -> Result<Self, StoreError> {
        create_folders(path)?;
        if !is_unfinished(path)? {
            return Err(StoreError::AlreadyExists { path: path.to_owned() });
        }
        let medium = Arc::new(Folder::new(path));
        let lock = medium.lock()?;
        // Somebody may have finished between the look and the lock.
        if !is_unfinished(path)? {
            return Err(StoreError::AlreadyExists { path: path.to_owned() });
        }
        let blobs = path.join(BLOBS);
        fs::create_dir_all(&blobs)
            .map_err(|source| StoreError::io("create the folder", &blobs, source))?;
        disk::sync_folder(path)?;
        let previous = Manifest::first(meta);
        let before = require_made(&*medium, &previous)?;
        let current = Manifest { version: 1, previous: before, ..previous.clone() };
        let head = require_made(&*medium, &current)?;
        Ok(Self { lock, ..Self::new(medium, current, head, previous) })
    }

    /// Makes a collection on a shared medium, with these opaque `meta` bytes and attachments, in
    /// one step: a collection that was dropped there goes on counting its versions.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`], also when another writer was faster;
    /// [`StoreError::InvalidChange`], [`StoreError::Io`].
    pub fn create_on(
        medium: Arc<dyn Medium>,
        meta: &[u8],
        attachments: &[(String, Vec<u8>)],
    ) -> Result<Self, StoreError> {
        let mut store = Self::prepare(medium)?;
        let change = Change {
            set_meta: Some(meta.to_vec()),
            attachments: attachments.to_vec(),
            ..Change::default()
        };
        match store.commit_keyed(&change, None) {
            Ok(_) => Ok(store),
            Err(StoreError::Conflict { path, .. }) => Err(StoreError::AlreadyExists { path }),
            Err(error) => Err(error),
        }
    }

    /// A writer on a medium that holds no collection, or one that was dropped: its first commit
    /// makes one.
    pub(super) fn prepare(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let lock = medium.lock()?;
        match Self::load(Arc::clone(&medium)) {
            Ok(found) if found.current.dropped => Ok(Self { lock, writable: true, ..found }),
            Ok(found) => Err(StoreError::AlreadyExists { path: found.path }),
            Err(StoreError::NotFound { .. }) => {
                // Whoever comes first writes the state before the first, which holds nothing; then
                // all race for the first.
                let nothing = Manifest { dropped: true, ..Manifest::first(&[]) };
                let bytes = nothing.to_bytes()?;
                medium.create(&manifest_name(0), &bytes)?;
                let head = manifest::hash(&bytes);
                Ok(Self { lock, ..Self::new(medium, nothing.clone(), head, nothing) })
            }
            Err(error) => Err(error),
        }
    }

    /// Opens what lies on a medium for reading and writing, as [`Store::open`] does for a folder.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let lock = medium.lock()?;
        let store = Self::load(medium)?;
        store.require_there()?;
        Ok(Self { lock, writable: true, ..store })
    }

    /// Opens a folder for reading and writing, at its last commit, and clears away what a crash
    /// left.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`] while another writer has it,
    /// [`StoreError::Corrupt`], [`StoreError::Missing`], [`StoreError::Unsupported`],
    /// [`StoreError::Io`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        require_folder(path)?;
        let medium = Arc::new(Folder::new(path));
        // The lock file is made by whoever locks: not in a folder that is no collection.
        if manifest_versions(&*medium)?.is_empty() {
            return Err(StoreError::NotFound { path: path.to_owned(), expected: "a manifest" });
        }
        let mut store = Self::open_on(medium)?;
        // What cannot be removed harms nothing, and stays for another time.
        let _ = store.collect_garbage();
        Ok(store)
    }

    /// Opens a folder for reading: takes no lock, writes nothing, and stays at the commit that it
    /// found.
    ///
    /// # Errors
    /// As [`Store::open`], but never [`StoreError::Locked`].
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        require_folder(path)?;
        Self::open_read_only_on(Arc::new(Folder::new(path)))
    }

    /// Opens what lies on a medium for reading.
    ///
    /// # Errors
    /// As [`Store::open_read_only`].
    pub fn open_read_only_on(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let store = Self::load_patiently(medium)?;
        store.require_there()?;
        Ok(store)
    }

    /// Removes the whole collection: the folder first gets a hidden name in one step, then goes.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Io`].
    pub fn destroy(self) -> Result<(), StoreError> {
        if self.lock.is_none() {
            return Err(StoreError::ReadOnly { path: self.path });
        }
        self.require_writable()?;
        let path = self
            .path
            .canonicalize()
            .map_err(|source| StoreError::io("resolve", &self.path, source))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(path.file_name().unwrap_or_default());
        hidden.push(format!(".deleted-{}", crate::decode::hex(&self.head[..8])));
        let grave = path.with_file_name(hidden);
        disk::rename(&path, &grave)?;
        disk::sync_folder(parent(&path))?;
        fs::remove_dir_all(&grave).map_err(|source| StoreError::io("remove", &grave, source))
    }
}

/// Writes a manifest durably and returns its hash. Once it is there, the commit has happened.
fn require_made(medium: &dyn Medium, manifest: &Manifest) -> Result<[u8; 32], StoreError> {
    let bytes = manifest.to_bytes()?;
    if medium.create(&manifest_name(manifest.version), &bytes)? {
        return Ok(manifest::hash(&bytes));
    }
    Err(StoreError::AlreadyExists { path: medium.path("") })
}

/// Whether a folder holds nothing, or only what an unfinished creation leaves.
fn is_unfinished(path: &Path) -> Result<bool, StoreError> {
    let first = manifest_name(0);
    let ours = |name: &str| {
        name == LOCK_FILE
            || name == BLOBS
            || name == first
            || name.starts_with(MANIFEST) && name.ends_with(&format!(".{TEMPORARY}"))
    };
    Ok(Folder::new(path).list("")?.iter().all(|file| ours(&file.name)))
}

/// Makes a folder and those above it, each durable in the one above.
fn create_folders(path: &Path) -> Result<(), StoreError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
    fs::create_dir_all(path).map_err(|source| StoreError::io("create the folder", path, source))?;
    missing
        .iter()
        .filter(|folder| !folder.as_os_str().is_empty())
        .try_for_each(|folder| disk::sync_folder(parent(folder)))
}

fn require_folder(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    Err(StoreError::NotFound { path: path.to_owned(), expected: "the folder" })
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
