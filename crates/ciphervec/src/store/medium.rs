//! What a store asks of the place where its files are, and a folder as such a place.

use super::blob_ref::{BLOBS, BLOCK};
use super::disk;
use super::error::StoreError;
use super::lock::WriterLock;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const TEMPORARY: &str = "tmp";

/// A file as a medium lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name in the folder that was listed.
    pub name: String,
    /// Time since it was written.
    pub age: Duration,
}

/// Where one collection's files lie. Names are `manifest-…` or `blobs/…`, at most one folder deep.
///
/// Files are immutable. [`Medium::create`] is the one operation that two writers may race for.
pub trait Medium: fmt::Debug + Send + Sync {
    /// The file of that name, as messages show it.
    fn path(&self, name: &str) -> PathBuf;

    /// Whether several machines may write here at once. If not, whoever has the lock is alone; if
    /// so, a manifest can be there before its turn, files are written under names that no other
    /// writer draws, and what no state names is removed only when it is old.
    fn is_shared(&self) -> bool;

    /// Takes the right to write, without waiting; the lock is held until it is dropped. Shared
    /// media have none.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::Io`].
    fn lock(&self) -> Result<Option<WriterLock>, StoreError>;

    /// Writes an immutable file; durable after [`Medium::settle`].
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`], [`StoreError::Sync`].
    fn put(&self, name: &str, parts: &[&[u8]]) -> Result<(), StoreError>;

    /// Makes all that was put durable.
    ///
    /// # Errors
    /// [`StoreError::Sync`].
    fn settle(&self) -> Result<(), StoreError>;

    /// Writes a whole file durably in one step; false, without a change, if a shared medium has one
    /// of that name.
    ///
    /// # Errors
    /// As [`Medium::put`].
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError>;

    /// Reads a whole file; `None` if it is not there.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// The length of a file; `None` if it is not there.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn length(&self, name: &str) -> Result<Option<u64>, StoreError>;

    /// Fills `out` from a file, starting at `offset`; false if it is not there.
    ///
    /// # Errors
    /// [`StoreError::Io`], also for a file that ends before.
    fn read_at(&self, name: &str, offset: u64, out: &mut [u8]) -> Result<bool, StoreError>;

    /// The name of a new pack with this content. On a shared medium it is one that nobody else has
    /// drawn or will draw.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the system gives no random bytes.
    fn pack_name(&self, content: [u8; 16]) -> Result<[u8; 16], StoreError> {
        Ok(content)
    }

    /// Bytes to read at once for speed.
    fn stride(&self) -> usize;

    /// The files in a folder, `""` or [`BLOBS`]; none if there is no such folder.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError>;

    /// Removes a file; one that is not there is as good as removed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn remove(&self, name: &str) -> Result<(), StoreError>;
}

/// A folder of a file system.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder at `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn write(&self, name: &str, parts: &[&[u8]]) -> Result<(), StoreError> {
        let path = self.path(name);
        let temporary = path.with_extension(TEMPORARY);
        let written = disk::write_file(&temporary, parts);
        if let Err(error) = written.and_then(|()| disk::rename(&temporary, &path)) {
            // Room for the next attempt; whatever stays is collected by the next open.
            let _ = disk::remove(&temporary);
            return Err(error);
        }
        Ok(())
    }
}

impl Medium for Folder {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn lock(&self) -> Result<Option<WriterLock>, StoreError> {
        WriterLock::acquire(&self.root).map(Some)
    }

    fn put(&self, name: &str, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.write(name, parts)
    }

    fn settle(&self) -> Result<(), StoreError> {
        disk::sync_folder(&self.root.join(BLOBS))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.write(name, &[bytes])?;
        disk::sync_folder(&self.root)?;
        Ok(true)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(name);
        found(fs::read(&path)).map_err(|source| StoreError::io("read", &path, source))
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let path = self.path(name);
        let read = fs::metadata(&path).map(|metadata| metadata.len());
        found(read).map_err(|source| StoreError::io("read the length of", &path, source))
    }

    fn read_at(&self, name: &str, offset: u64, out: &mut [u8]) -> Result<bool, StoreError> {
        let path = self.path(name);
        let read = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(out)
        });
        let read = found(read).map_err(|source| StoreError::io("read", &path, source))?;
        Ok(read.is_some())
    }

    fn stride(&self) -> usize {
        // A block is hashed while it is in cache.
        BLOCK
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let path = self.root.join(folder);
        let failed = |source| StoreError::io("list", &path, source);
        let Some(entries) = found(fs::read_dir(&path)).map_err(failed)? else {
            return Ok(Vec::new());
        };
        let mut listed = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // Names that are not UTF-8 are none of ours; what went in between is not there.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| modified.elapsed().ok());
            listed.push(Listed { name, age: age.unwrap_or_default() });
        }
        Ok(listed)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        disk::remove(&self.path(name))
    }
}

fn found<T>(result: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
