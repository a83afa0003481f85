//! One committed state enters, its checked blobs leave; any side. Needs no writer and waits for none.

use super::SegmentId;
use super::blob::{self, BlobRef};
use super::error::StoreError;
use super::manifest::{self, Manifest};
use super::medium::Medium;
use ciphervec_arith::buffer::AlignedBytes;
use std::sync::Arc;

/// A committed state that can be read while the next ones are written. Its blobs stay for one more commit; after that those
/// that no newer state names are gone, and reading them is [`StoreError::Missing`].
#[derive(Clone, Debug)]
pub struct View {
    pub(super) medium: Arc<dyn Medium>,
    pub(super) manifest: Arc<Manifest>,
    pub(super) head: [u8; 32],
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

    /// Reads one blob of a segment into a 64-byte aligned buffer; every 1 MiB block is checked before any byte is
    /// returned. Hashing uses the current rayon pool.
    ///
    /// # Errors
    /// [`StoreError::UnknownSegment`], [`StoreError::UnknownBlob`], [`StoreError::Missing`], [`StoreError::Corrupt`]
    /// with the offset of the block, [`StoreError::Io`].
    pub fn read(&self, segment: &SegmentId, blob: &str) -> Result<AlignedBytes, StoreError> {
        let entry = self
            .manifest
            .segment(segment)
            .ok_or_else(|| StoreError::unknown_segment(&self.medium.path(""), segment))?;
        blob::read(&*self.medium, entry.blob(blob).ok_or_else(|| self.unknown(blob))?)
    }

    /// Reads one blob, checked as [`View::read`] does.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn read_blob(&self, blob: &BlobRef) -> Result<AlignedBytes, StoreError> {
        blob::read(&*self.medium, blob)
    }

    /// Reads the first bytes of a blob, at most `length`; only the blocks that they lie in are read and checked.
    ///
    /// # Errors
    /// As [`View::read_blob`].
    pub fn read_start(&self, blob: &BlobRef, length: usize) -> Result<Vec<u8>, StoreError> {
        blob::read_start(&*self.medium, blob, length)
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
