//! A path or a medium enters, an open collection leaves; any side.

use super::blob::BlobRef;
use super::error::StoreError;
use super::lock::{LOCK_FILE, WriterLock};
use super::manifest::{self, Manifest, SegmentEntry};
use super::medium::{BLOBS, Folder, Medium, TEMPORARY};
use super::view::View;
use super::{Change, SegmentId, disk};
use ciphervec_arith::buffer::AlignedBytes;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const MANIFEST: &str = "manifest-";
const DIGITS: usize = 20;
/// A reader that finds a manifest gone looks again: a writer may have replaced it in between.
const READER_ATTEMPTS: u32 = 20;

/// An open collection folder: the state of one commit, read with every block checked, and changed by one writer.
#[derive(Debug)]
pub struct Store {
    pub(super) medium: Arc<dyn Medium>,
    pub(super) path: PathBuf,
    pub(super) lock: Option<WriterLock>,
    pub(super) writable: bool,
    pub(super) current: Arc<Manifest>,
    pub(super) head: [u8; 32],
    pub(super) previous: Arc<Manifest>,
    /// Manifests of snapshots that were read, by the root of their blob.
    pub(super) frozen: HashMap<[u8; 32], Arc<Manifest>>,
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

    fn new(medium: Arc<dyn Medium>, current: Manifest, head: [u8; 32], previous: Manifest) -> Self {
        let path = medium.path("");
        Self {
            medium,
            path,
            lock: None,
            writable: true,
            current: Arc::new(current),
            head,
            previous: Arc::new(previous),
            frozen: HashMap::new(),
            poisoned: None,
        }
    }

    /// Makes a collection on a shared medium, with these opaque `meta` bytes and attachments, in one step: a collection that
    /// was dropped there goes on counting its versions.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`], also when another writer was faster; [`StoreError::InvalidChange`],
    /// [`StoreError::Io`].
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

    /// A writer on a medium that holds no collection, or one that was dropped: its first commit makes one.
    pub(super) fn prepare(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let lock = medium.lock()?;
        match Self::load(Arc::clone(&medium)) {
            Ok(found) if found.current.dropped => Ok(Self { lock, writable: true, ..found }),
            Ok(found) => Err(StoreError::AlreadyExists { path: found.path }),
            Err(StoreError::NotFound { .. }) => {
                // Whoever comes first writes the state before the first, which holds nothing; then all race for the first.
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

    /// A collection that was dropped is not there.
    fn require_there(&self) -> Result<(), StoreError> {
        if self.current.dropped {
            return Err(StoreError::NotFound { path: self.path.clone(), expected: "a manifest" });
        }
        Ok(())
    }

    /// Moves on to the newest state of a shared medium; whether there was one.
    ///
    /// # Errors
    /// As [`Store::open`]; the present state stays then.
    pub fn refresh(&mut self) -> Result<bool, StoreError> {
        let newest = manifest_versions(&*self.medium)?.last().copied();
        if newest == Some(self.current.version) {
            return Ok(false);
        }
        let found = Self::load_patiently(Arc::clone(&self.medium))?;
        found.require_there()?;
        let moved = found.head != self.head;
        self.current = found.current;
        self.previous = found.previous;
        self.head = found.head;
        Ok(moved)
    }

    /// Opens a folder for reading and writing, at its last commit, and clears away what a crash left.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`] while another writer has it, [`StoreError::Corrupt`],
    /// [`StoreError::Missing`], [`StoreError::Unsupported`], [`StoreError::Io`].
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

    /// Opens a folder for reading: takes no lock, writes nothing, and stays at the commit that it found.
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

    fn load_patiently(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let mut attempts = 0;
        loop {
            match Self::load(Arc::clone(&medium)) {
                Err(StoreError::Missing { .. }) if attempts < READER_ATTEMPTS => {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                loaded => return loaded,
            }
        }
    }

    fn load(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let versions = manifest_versions(&*medium)?;
        let newest = match versions.last() {
            None | Some(0) => {
                return Err(StoreError::NotFound { path: medium.path(""), expected: "a manifest" });
            }
            Some(newest) => *newest,
        };
        let (current, head) = read_manifest(&*medium, newest)?;
        // The two newest are always there: one alone means that the other was lost, and with it perhaps a commit.
        let (previous, before) = read_manifest(&*medium, newest - 1)?;
        if before != current.previous {
            let shown =
                |hash| format!("previous manifest with BLAKE3 {}", crate::decode::hex(hash));
            let file = medium.path(&manifest_name(newest));
            return Err(StoreError::corrupt(&file, 28, shown(&before), shown(&current.previous)));
        }
        Ok(Self { writable: false, ..Self::new(medium, current, head, previous) })
    }

    /// Whether other writers may commit between two commits of this one.
    pub fn is_shared(&self) -> bool {
        self.medium.is_shared()
    }

    /// The current state, to be read beside this writer.
    pub fn view(&self) -> View {
        View {
            medium: Arc::clone(&self.medium),
            manifest: Arc::clone(&self.current),
            head: self.head,
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this store was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
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
        self.view().read(segment, blob)
    }

    /// Reads an attachment, checked as [`Store::read`] does.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn attachment(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        self.view().attachment(name)
    }

    /// Removes the whole collection: the folder first gets a hidden name in one step, then goes.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Io`].
    pub fn destroy(self) -> Result<(), StoreError> {
        if self.lock.is_none() {
            return Err(StoreError::ReadOnly { path: self.path });
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
}

pub(super) fn manifest_name(version: u64) -> String {
    format!("{MANIFEST}{version:0DIGITS$}")
}

/// Writes a manifest durably and returns its hash. Once it is there, the commit has happened.
fn require_made(medium: &dyn Medium, manifest: &Manifest) -> Result<[u8; 32], StoreError> {
    let bytes = manifest.to_bytes()?;
    if medium.create(&manifest_name(manifest.version), &bytes)? {
        return Ok(manifest::hash(&bytes));
    }
    Err(StoreError::AlreadyExists { path: medium.path("") })
}

pub(super) fn read_manifest(
    medium: &dyn Medium,
    version: u64,
) -> Result<(Manifest, [u8; 32]), StoreError> {
    let name = manifest_name(version);
    let path = medium.path(&name);
    let bytes = medium.get(&name)?.ok_or_else(|| StoreError::Missing {
        path: path.clone(),
        expected: "one of the two newest manifests".into(),
    })?;
    let manifest =
        Manifest::from_bytes(&bytes).map_err(|error| StoreError::decode(&path, error))?;
    if manifest.version != version {
        return Err(StoreError::corrupt(&path, 20, format!("version {version}"), manifest.version));
    }
    Ok((manifest, manifest::hash(&bytes)))
}

pub(super) fn manifest_versions(medium: &dyn Medium) -> Result<BTreeSet<u64>, StoreError> {
    Ok(medium.list("")?.iter().filter_map(|file| manifest_version(&file.name)).collect())
}

pub(super) fn manifest_version(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(MANIFEST)?;
    let canonical = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if canonical { digits.parse().ok() } else { None }
}

/// Whether a folder holds nothing, or only what an unfinished creation leaves.
fn is_unfinished(path: &Path) -> Result<bool, StoreError> {
    let first = format!("{MANIFEST}{:0DIGITS$}", 0);
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
