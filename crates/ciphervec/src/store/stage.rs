//! Staged segments: their blobs are written first, and named by a commit later. A writer's side.
//!
//! Where several machines write, a commit that comes second has to be made again on top of the other's. Staged, the long
//! part, the upload, is done once whoever comes first.

use super::error::StoreError;
use super::folder::Store;
use super::keyed::Committed;
use super::manifest::SegmentEntry;
use super::rows::RowSet;
use super::{Change, NewSegment};
use std::time::Instant;

/// Segments whose blobs are written and that no state names yet. Given up, the blobs are collected like all that no state
/// names.
#[derive(Clone, Debug)]
pub struct Staged {
    segments: Vec<SegmentEntry>,
    began: Instant,
}

impl Store {
    /// Writes the blobs of new segments, which [`Self::commit_staged`] of this very store names.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn stage(&mut self, add: Vec<NewSegment>) -> Result<Staged, StoreError> {
        self.require_writable()?;
        let change = Change { add, ..Change::default() };
        self.check(&change)?;
        let began = Instant::now();
        let mut written = Vec::new();
        let mut blobs = match self.write_payloads(&change, &mut written) {
            Ok(blobs) => blobs.into_iter(),
            Err(error) => return Err(self.give_up(error, &written)),
        };
        let segments = change.add.into_iter().map(|NewSegment { id, rows, blobs: named }| {
            let names = named.into_iter().map(|(name, _)| name.into_boxed_str());
            let mut stored: Vec<_> = names.zip(blobs.by_ref()).collect();
            stored.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            let deleted = RowSet::new(rows);
            SegmentEntry { id, rows, added: 0, deleted, blobs: stored.into() }
        });
        Ok(Staged { segments: segments.collect(), began })
    }

    /// One commit that adds staged segments and sets attachments, or nothing.
    ///
    /// # Errors
    /// As [`Store::commit`]. After [`StoreError::Conflict`] on a shared medium: [`Store::refresh`], look again, and commit
    /// the same again.
    pub fn commit_staged(
        &mut self,
        staged: &Staged,
        attachments: Vec<(String, Vec<u8>)>,
    ) -> Result<Committed, StoreError> {
        self.require_writable()?;
        if let Some(there) = staged.segments.iter().find(|one| self.segment(&one.id).is_some()) {
            let id = crate::decode::hex(&there.id);
            return Err(StoreError::SegmentExists { path: self.path.clone(), id });
        }
        let change = Change { attachments, ..Change::default() };
        self.check(&change)?;
        self.publish_since(staged.began, None, |store, next, written| {
            store.write_blobs(&change, next, written)?;
            let added = next.version;
            let segments = staged.segments.iter().cloned();
            next.segments.extend(segments.map(|segment| SegmentEntry { added, ..segment }));
            // Also where nothing but staged blobs has to last.
            store.medium.settle()
        })
    }
}
