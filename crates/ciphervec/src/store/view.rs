//! Reads the checked blobs of one committed state. Needs no writer and waits for none.

use super::SegmentId;
use super::blob;
use super::blob_ref::BlobRef;
use super::error::StoreError;
use super::manifest::{self, Manifest};
use super::medium::Medium;
use ciphervec_arith::buffer::AlignedBytes;
use std::sync::Arc;

/// A committed state that can be read while the next ones are written. Its blobs stay for one more
/// commit; after that those that no newer state names are gone, and reading them is
/// [`StoreError::Missing`].
#[derive(Clone, Debug)]
pub struct View {
    pub(super) medium: Arc<dyn Medium>,
    pub(super) manifest: Arc<Manifest>,
    pub(super) head: [u8; 32],
}

/// A blob that can be read when it is needed; it is there for as long as a state names it, as those
/// of a [`View`].
#[derive(Clone, Debug)]
pub struct StoredBlob {
    medium: Arc<dyn Medium>,
    blob: BlobRef,
}

impl StoredBlob {
    /// Length of the payload in bytes.
    pub fn length(&self) -> u64 {
        self.blob.length
    }

    /// All of it, checked as [`View::read`] does.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn read(&self) -> Result<AlignedBytes, StoreError> {
        blob::read(&*self.medium, &self.blob)
    }

    /// Its first bytes, at most `length`; only the blocks that they lie in are read and checked.
    ///
    /// # Errors
    /// As [`StoredBlob::read`].
    pub fn read_start(&self, length: usize) -> Result<Vec<u8>, StoreError> {
        blob::read_start(&*self.medium, &self.blob, length)
    }
}

impl View {
    /// The state.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Hash of its manifest.
    pub fn head(&self) -> [u8; 32] {
        self.head
    }

    /// Reads one blob of a segment into a 64-byte aligned buffer; every 1 MiB block is checked
    /// before any byte is returned. Hashing uses the current rayon pool.
    ///
    /// # Errors
    /// [`StoreError::UnknownSegment`], [`StoreError::UnknownBlob`], [`StoreError::Missing`],
    /// [`StoreError::Corrupt`] with the offset of the block, [`StoreError::Io`].
    pub fn read(&self, segment: &SegmentId, blob: &str) -> Result<AlignedBytes, StoreError> {
        let entry = self
            .manifest
            .segment(segment)
            .ok_or_else(|| StoreError::unknown_segment(&self.medium.path(""), segment))?;
        blob::read(&*self.medium, entry.blob(blob).ok_or_else(|| self.unknown(blob))?)
    }

    /// A blob of this state, to be read later.
    pub fn stored(&self, blob: &BlobRef) -> StoredBlob {
        StoredBlob { medium: Arc::clone(&self.medium), blob: *blob }
    }

    /// Reads an attachment, checked as [`View::read`] does.
    ///
    /// # Errors
    /// As [`View::read`].
    pub fn attachment(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let found =
            manifest::find(&self.manifest.attachments, name).ok_or_else(|| self.unknown(name))?;
        Ok(blob::read(&*self.medium, found)?.to_vec())
    }

    fn unknown(&self, name: &str) -> StoreError {
        StoreError::UnknownBlob { path: self.medium.path(""), name: name.to_owned() }
    }
}
