//! A path enters, an open collection folder leaves; any side.

use super::blob::{self, BlobRef};
use super::error::StoreError;
use super::lock::{LOCK_FILE, WriterLock};
use super::manifest::{self, Manifest, SegmentEntry};
use super::view::View;
use super::{SegmentId, disk};
use ciphervec_arith::buffer::AlignedBytes;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const BLOBS: &str = "blobs";
pub(super) const MANIFEST: &str = "manifest-";
pub(super) const TEMPORARY: &str = "tmp";
const DIGITS: usize = 20;
/// A reader that finds a manifest gone looks again: a writer may have replaced it in between.
const READER_ATTEMPTS: u32 = 20;

/// An open collection folder: the state of one commit, read with every block checked, and changed by one writer.
#[derive(Debug)]
pub struct Store {
    pub(super) path: PathBuf,
    pub(super) lock: Option<WriterLock>,
    pub(super) current: Manifest,
    pub(super) head: [u8; 32],
    pub(super) previous: Manifest,
    pub(super) poisoned: Option<String>,
}

impl Store {
    /// Makes a collection folder with version 1, no segments and these opaque `meta` bytes, and opens it for writing.
    /// A folder whose creation was cut short is finished.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] for a folder with anything else in it, [`StoreError::Locked`],
    /// [`StoreError::Io`], [`StoreError::Full`], [`StoreError::Sync`].
    pub fn create(path: &Path, meta: &[u8]) -> Result<Self, StoreError> {
        create_folders(path)?;
        if !is_unfinished(path)? {
            return Err(StoreError::AlreadyExists { path: path.to_owned() });
        }
        let lock = WriterLock::acquire(path)?;
        // Somebody may have finished between the look and the lock.
        if !is_unfinished(path)? {
            return Err(StoreError::AlreadyExists { path: path.to_owned() });
        }
        let blobs = path.join(BLOBS);
        fs::create_dir_all(&blobs)
            .map_err(|source| StoreError::io("create the folder", &blobs, source))?;
        disk::sync_folder(path)?;
        let previous = Manifest::first(meta);
        let before = write_manifest(path, &previous)?;
        let current = Manifest { version: 1, previous: before, ..previous.clone() };
        let head = write_manifest(path, &current)?;
        Ok(Self {
            path: path.to_owned(),
            lock: Some(lock),
            current,
            head,
            previous,
            poisoned: None,
        })
    }

    /// Opens a folder for reading and writing, at its last commit, and clears away what a crash left.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`] while another writer has it, [`StoreError::Corrupt`],
    /// [`StoreError::Missing`], [`StoreError::Unsupported`], [`StoreError::Io`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        require_folder(path)?;
        // The lock file is made by whoever locks: not in a folder that is no collection.
        if manifest_versions(path)?.is_empty() {
            return Err(StoreError::NotFound { path: path.to_owned(), expected: "a manifest" });
        }
        let lock = WriterLock::acquire(path)?;
        let mut store = Self::load(path)?;
        store.lock = Some(lock);
        // What cannot be removed harms nothing, and stays for another time.
        let _ = store.collect_garbage();
        Ok(store)
    }

    /// Opens a folder for reading: takes no lock, writes nothing, and stays at the commit that it found.
    ///
    /// # Errors
    /// As [`Store::open`], but never [`StoreError::Locked`].
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        require_folder(path)?;
        let mut attempts = 0;
        loop {
            match Self::load(path) {
                Err(StoreError::Missing { .. }) if attempts < READER_ATTEMPTS => {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                loaded => return loaded,
            }
        }
    }

    fn load(path: &Path) -> Result<Self, StoreError> {
        let versions = manifest_versions(path)?;
        let newest = match versions.last() {
            None | Some(0) => {
                return Err(StoreError::NotFound { path: path.to_owned(), expected: "a manifest" });
            }
            Some(newest) => *newest,
        };
        let (current, head) = read_manifest(path, newest)?;
        // The two newest are always there: one alone means that the other was lost, and with it perhaps a commit.
        let (previous, before) = read_manifest(path, newest - 1)?;
        if before != current.previous {
            let shown =
                |hash| format!("previous manifest with BLAKE3 {}", crate::decode::hex(hash));
            let file = manifest_path(path, newest);
            return Err(StoreError::corrupt(&file, 28, shown(&before), shown(&current.previous)));
        }
        Ok(Self { path: path.to_owned(), lock: None, current, head, previous, poisoned: None })
    }

    /// The current state, to be read beside this writer.
    pub fn view(&self) -> View {
        View { path: self.path.clone(), manifest: Arc::new(self.current.clone()), head: self.head }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this store was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.lock.is_some()
    }

    /// The collection's opaque bytes.
    pub fn meta(&self) -> &[u8] {
        &self.current.meta
    }

    /// Number of the commit that this store shows: 1 after creation, one more with each commit.
    pub fn version(&self) -> u64 {
        self.current.version
    }

    /// Hash of the current manifest. It fixes the whole state and, through the chain, every state before it: a client
    /// that remembers version and head notices a folder that was rolled back.
    pub fn head(&self) -> [u8; 32] {
        self.head
    }

    /// Segments in the order in which they were added.
    pub fn segments(&self) -> &[SegmentEntry] {
        &self.current.segments
    }

    /// The segment of that id.
    pub fn segment(&self, id: &SegmentId) -> Option<&SegmentEntry> {
        self.current.segment(id)
    }

    /// Attachments by ascending name.
    pub fn attachments(&self) -> impl ExactSizeIterator<Item = (&str, &BlobRef)> {
        self.current.attachments()
    }

    /// Bytes of all blobs of the current state.
    pub fn bytes(&self) -> u64 {
        self.current.bytes()
    }

    /// Reads one blob of a segment into a 64-byte aligned buffer; every 1 MiB block is checked before any byte is
    /// returned. Hashing uses the current rayon pool.
    ///
    /// # Errors
    /// [`StoreError::UnknownSegment`], [`StoreError::UnknownBlob`], [`StoreError::Missing`], [`StoreError::Corrupt`]
    /// with the offset of the block, [`StoreError::Io`].
    pub fn read(&self, segment: &SegmentId, blob: &str) -> Result<AlignedBytes, StoreError> {
        let entry = self
            .segment(segment)
            .ok_or_else(|| StoreError::unknown_segment(&self.path, segment))?;
        blob::read(&self.blobs(), entry.blob(blob).ok_or_else(|| self.unknown(blob))?)
    }

    /// Reads an attachment, checked as [`Store::read`] does.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn attachment(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let found =
            manifest::find(&self.current.attachments, name).ok_or_else(|| self.unknown(name))?;
        Ok(blob::read(&self.blobs(), found)?.to_vec())
    }

    /// Removes the whole collection: the folder first gets a hidden name in one step, then goes.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Io`].
    pub fn destroy(self) -> Result<(), StoreError> {
        if self.lock.is_none() {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
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

    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    fn unknown(&self, name: &str) -> StoreError {
        StoreError::UnknownBlob { path: self.path.clone(), name: name.to_owned() }
    }
}

pub(super) fn manifest_path(folder: &Path, version: u64) -> PathBuf {
    folder.join(format!("{MANIFEST}{version:0DIGITS$}"))
}

/// Writes a manifest durably and returns its hash. Once it is renamed, the commit has happened.
pub(super) fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<[u8; 32], StoreError> {
    let bytes = manifest.to_bytes()?;
    let path = manifest_path(folder, manifest.version);
    let temporary = path.with_extension(TEMPORARY);
    if let Err(error) = disk::write_file(&temporary, &[&bytes]) {
        // Whatever stays is collected by the next open.
        let _ = disk::remove(&temporary);
        return Err(error);
    }
    disk::rename(&temporary, &path)?;
    disk::sync_folder(folder)?;
    Ok(manifest::hash(&bytes))
}

pub(super) fn read_manifest(
    folder: &Path,
    version: u64,
) -> Result<(Manifest, [u8; 32]), StoreError> {
    let path = manifest_path(folder, version);
    let bytes = fs::read(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => StoreError::Missing {
            path: path.clone(),
            expected: "one of the two newest manifests".into(),
        },
        _ => StoreError::io("read", &path, source),
    })?;
    let manifest =
        Manifest::from_bytes(&bytes).map_err(|error| StoreError::decode(&path, error))?;
    if manifest.version != version {
        return Err(StoreError::corrupt(&path, 20, format!("version {version}"), manifest.version));
    }
    Ok((manifest, manifest::hash(&bytes)))
}

pub(super) fn manifest_versions(folder: &Path) -> Result<BTreeSet<u64>, StoreError> {
    Ok(list(folder)?.iter().filter_map(|name| manifest_version(name)).collect())
}

pub(super) fn manifest_version(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(MANIFEST)?;
    let canonical = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if canonical { digits.parse().ok() } else { None }
}

/// Names in a folder; those that are not UTF-8 are none of ours.
pub(super) fn list(folder: &Path) -> Result<Vec<String>, StoreError> {
    let failed = |source| StoreError::io("list", folder, source);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    Ok(names)
}

/// Whether a folder holds nothing, or only what an unfinished creation leaves.
fn is_unfinished(path: &Path) -> Result<bool, StoreError> {
    let first = format!("{MANIFEST}{:0DIGITS$}", 0);
    let ours = |name: &String| {
        *name == LOCK_FILE
            || *name == BLOBS
            || *name == first
            || name.starts_with(MANIFEST) && name.ends_with(&format!(".{TEMPORARY}"))
    };
    Ok(list(path)?.iter().all(ours))
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
