//! A collection that is open, at the state of one commit.

use super::SegmentId;
use super::blob;
use super::blob_ref::{BlobFile, BlobRef};
use super::error::StoreError;
use super::lock::WriterLock;
use super::manifest::{self, Manifest, SegmentEntry};
use super::medium::Medium;
use super::view::View;
use ciphervec_arith::buffer::AlignedBytes;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const MANIFEST: &str = "manifest-";
const DIGITS: usize = 20;
/// What lies on a shared medium for longer without a state that names it may be collected by
/// another writer.
pub(super) const ORPHAN_AFTER: Duration = Duration::from_secs(3600);
/// A reader that finds a manifest gone looks again: a writer may have replaced it in between.
const READER_ATTEMPTS: u32 = 20;

/// An open collection folder: the state of one commit, read with every block checked, and changed
/// by one writer.
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
    pub(super) fn new(
        medium: Arc<dyn Medium>,
        current: Manifest,
        head: [u8; 32],
        previous: Manifest,
    ) -> Self {
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

    /// A collection that was dropped is not there.
    pub(super) fn require_there(&self) -> Result<(), StoreError> {
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

    pub(super) fn load_patiently(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
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

    pub(super) fn load(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let versions = manifest_versions(&*medium)?;
        let newest = match versions.last() {
            None | Some(0) => {
                return Err(StoreError::NotFound { path: medium.path(""), expected: "a manifest" });
            }
            Some(newest) => *newest,
        };
        let (current, head) = read_manifest(&*medium, newest)?;
        // The two newest are always there: one alone means that the other was lost, and with it
        // perhaps a commit.
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

    /// The version that another process has committed since, where this store was opened for reading; as far as names of files say.
    pub fn newer(&self) -> Option<u64> {
        let latest = || manifest_versions(&*self.medium).ok()?.pop_last();
        if self.writable { None } else { latest().filter(|latest| *latest > self.version()) }
    }

    /// The collection's opaque bytes.
    pub fn meta(&self) -> &[u8] {
        &self.current.meta
    }

    /// Number of the commit that this store shows: 1 after creation, one more with each commit.
    pub fn version(&self) -> u64 {
        self.current.version
    }

    /// Hash of the current manifest. It fixes the whole state and, through the chain, every state
    /// before it: a client that remembers version and head notices a folder that was rolled back.
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

    /// Reads one blob of a segment into a 64-byte aligned buffer; every 1 MiB block is checked
    /// before any byte is returned. Hashing uses the current rayon pool.
    ///
    /// # Errors
    /// [`StoreError::UnknownSegment`], [`StoreError::UnknownBlob`], [`StoreError::Missing`],
    /// [`StoreError::Corrupt`] with the offset of the block, [`StoreError::Io`].
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

    pub(super) fn require_writable(&self) -> Result<(), StoreError> {
        if !self.writable {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
        if self.lock.as_ref().is_some_and(|lock| !lock.is_own()) {
            return Err(StoreError::Forked { path: self.path.clone() });
        }
        match &self.poisoned {
            Some(cause) => {
                Err(StoreError::Poisoned { path: self.path.clone(), cause: cause.clone() })
            }
            None => Ok(()),
        }
    }

    /// The manifest that a snapshot keeps, read once.
    pub(super) fn frozen(&mut self, snapshot: &BlobRef) -> Result<Arc<Manifest>, StoreError> {
        let frozen = self.frozen_now(snapshot)?;
        self.frozen.insert(snapshot.root, Arc::clone(&frozen));
        Ok(frozen)
    }

    pub(super) fn frozen_now(&self, snapshot: &BlobRef) -> Result<Arc<Manifest>, StoreError> {
        match self.frozen.get(&snapshot.root) {
            Some(frozen) => Ok(Arc::clone(frozen)),
            None => read_snapshot(&*self.medium, snapshot).map(Arc::new),
        }
    }

    /// Files that the two newest states and their snapshots name; `None` if a snapshot cannot be
    /// read, for then nobody knows.
    pub(super) fn kept(&mut self) -> Option<HashSet<BlobFile>> {
        let snapshots: Vec<BlobRef> = self
            .current
            .snapshots()
            .chain(self.previous.snapshots())
            .map(|(_, blob)| *blob)
            .collect();
        let mut kept: HashSet<BlobFile> = self
            .current
            .references()
            .chain(self.previous.references())
            .map(BlobRef::lies_in)
            .collect();
        for snapshot in snapshots {
            kept.extend(self.frozen(&snapshot).ok()?.references().map(BlobRef::lies_in));
        }
        Some(kept)
    }
}

pub(super) fn manifest_name(version: u64) -> String {
    format!("{MANIFEST}{version:0DIGITS$}")
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

/// Reads the manifest that a snapshot keeps.
pub(super) fn read_snapshot(
    medium: &dyn Medium,
    snapshot: &BlobRef,
) -> Result<Manifest, StoreError> {
    let bytes = blob::read(medium, snapshot)?;
    let path = medium.path(&snapshot.file());
    Manifest::from_bytes(&bytes).map_err(|error| StoreError::decode(&path, error))
}
