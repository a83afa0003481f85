//! Snapshots: the present state is kept under a name, to be restored or copied later. For the one
//! writer.
//!
//! A snapshot is a manifest kept as a blob: it takes no room of its own, but what it names is not
//! removed.

use super::blob;
use super::blob_ref::BlobRef;
use super::error::StoreError;
use super::folder::Store;
use super::keyed::Committed;
use super::manifest::{self, Manifest, valid_new_name};
use super::medium::Medium;
use std::sync::Arc;

/// A snapshot, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// Its name: 1 to 64 of `a-z 0-9 . _ -`.
    pub name: String,
    /// The version that it keeps.
    pub version: u64,
    /// Rows in it, deleted ones included.
    pub rows: u64,
    /// Bytes of the blobs that it names.
    pub bytes: u64,
}

impl Store {
    /// Keeps the present state under a name.
    ///
    /// # Errors
    /// [`StoreError::InvalidChange`] for a name that is taken or not one; as [`Store::commit`].
    pub fn take_snapshot(&mut self, name: &str) -> Result<Committed, StoreError> {
        self.require_writable()?;
        if !valid_new_name(name.as_bytes()) {
            let shown = format!("{name:?}");
            return Err(StoreError::invalid(
                "name of a snapshot",
                "1 to 64 of a-z 0-9 . _ -, not only dots",
                shown,
            ));
        }
        if manifest::find(&self.current.snapshots, name).is_some() {
            return Err(StoreError::SnapshotExists {
                path: self.path.clone(),
                name: name.to_owned(),
            });
        }
        self.publish(None, |store, next, written| {
            let mut frozen = Manifest::clone(&store.current);
            frozen.snapshots.clear();
            frozen.keyed.clear();
            written.push(store.write_one(&frozen.to_bytes()?)?);
            let kept = written.iter().map(|blob| (Box::from(name), *blob));
            next.snapshots.extend(kept);
            next.snapshots.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            Ok(())
        })
    }

    /// Forgets a snapshot; what only it named goes with the next commit but one.
    ///
    /// # Errors
    /// [`StoreError::UnknownBlob`]; as [`Store::commit`].
    pub fn drop_snapshot(&mut self, name: &str) -> Result<Committed, StoreError> {
        self.require_writable()?;
        self.snapshot_blob(name)?;
        self.publish(None, |_, next, _| {
            next.snapshots.retain(|(found, _)| **found != *name);
            Ok(())
        })
    }

    /// The snapshots, by ascending name.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn snapshots(&self) -> Result<Vec<SnapshotEntry>, StoreError> {
        let entries = self.current.snapshots().map(|(name, blob)| {
            let frozen = self.frozen_now(blob)?;
            Ok(SnapshotEntry {
                name: name.to_owned(),
                version: frozen.version,
                rows: frozen.segments.iter().map(|segment| u64::from(segment.rows)).sum(),
                bytes: frozen.bytes(),
            })
        });
        entries.collect()
    }

    /// Makes the state of a snapshot the next state. Versions go on counting, so that no client
    /// takes it for a rollback.
    ///
    /// # Errors
    /// [`StoreError::UnknownBlob`], [`StoreError::Corrupt`]; as [`Store::commit`].
    pub fn restore(&mut self, name: &str) -> Result<Committed, StoreError> {
        self.require_writable()?;
        let snapshot = *self.snapshot_blob(name)?;
        let frozen = self.frozen(&snapshot)?;
        self.publish(None, |store, next, _| {
            next.meta.clone_from(&frozen.meta);
            next.attachments.clone_from(&frozen.attachments);
            next.segments.clone_from(&frozen.segments);
            for segment in &mut next.segments {
                // Who knows a state without it has to fetch it again.
                if store.segment(&segment.id).is_none() {
                    segment.added = next.version;
                }
            }
            Ok(())
        })
    }

    /// Writes the state of a snapshot to a medium that holds nothing yet, every block checked on
    /// the way, and opens it there.
    ///
    /// # Errors
    /// [`StoreError::UnknownBlob`], [`StoreError::AlreadyExists`], [`StoreError::Corrupt`],
    /// [`StoreError::Io`].
    pub fn copy_snapshot(&self, name: &str, target: Arc<dyn Medium>) -> Result<(), StoreError> {
        let frozen = self.frozen_now(self.snapshot_blob(name)?)?;
        let mut copy = Self::prepare(Arc::clone(&target))?;
        copy.publish(None, |copy, next, written| {
            let mut moved = |blob: &mut BlobRef| -> Result<(), StoreError> {
                let payload = blob::read(&*self.medium, blob)?;
                *blob = copy.write_one(&payload)?;
                written.push(*blob);
                Ok(())
            };
            next.meta.clone_from(&frozen.meta);
            next.attachments.clone_from(&frozen.attachments);
            next.segments.clone_from(&frozen.segments);
            next.attachments.iter_mut().try_for_each(|(_, blob)| moved(blob))?;
            for segment in &mut next.segments {
                segment.added = next.version;
                let mut blobs = segment.blobs.to_vec();
                blobs.iter_mut().try_for_each(|(_, blob)| moved(blob))?;
                segment.blobs = blobs.into();
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Drops the collection on a shared medium: the next state holds nothing, and is there for
    /// whoever makes the collection anew. Files go when they are old.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn drop_on(&mut self) -> Result<(), StoreError> {
        self.require_writable()?;
        self.publish(None, |_, next, _| {
            next.meta.clear();
            next.segments.clear();
            next.attachments.clear();
            next.snapshots.clear();
            next.keyed.clear();
            next.dropped = true;
            Ok(())
        })?;
        Ok(())
    }

    fn snapshot_blob(&self, name: &str) -> Result<&BlobRef, StoreError> {
        manifest::find(&self.current.snapshots, name).ok_or_else(|| StoreError::UnknownBlob {
            path: self.path.clone(),
            name: name.to_owned(),
        })
    }
}
