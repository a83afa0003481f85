//! One committed state enters, its checked blobs leave; any side. Needs no writer and waits for none.

use super::SegmentId;
use super::blob;
use super::error::StoreError;
use super::folder::BLOBS;
use super::manifest::{self, Manifest};
use ciphervec_arith::buffer::AlignedBytes;
use std::path::PathBuf;
use std::sync::Arc;

/// A committed state that can be read while the next ones are written. Its blobs stay for one more commit; after that those
/// that no newer state names are gone, and reading them is [`StoreError::Missing`].
#[derive(Clone, Debug)]
pub struct View {
    pub(super) path: PathBuf,
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
            .ok_or_else(|| StoreError::unknown_segment(&self.path, segment))?;
        blob::read(&self.path.join(BLOBS), entry.blob(blob).ok_or_else(|| self.unknown(blob))?)
    }

    /// Reads an attachment, checked as [`View::read`] does.
    ///
    /// # Errors
    /// As [`View::read`].
    pub fn attachment(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let found =
            manifest::find(&self.manifest.attachments, name).ok_or_else(|| self.unknown(name))?;
        Ok(blob::read(&self.path.join(BLOBS), found)?.to_vec())
    }

    fn unknown(&self, name: &str) -> StoreError {
        StoreError::UnknownBlob { path: self.path.clone(), name: name.to_owned() }
    }
}
