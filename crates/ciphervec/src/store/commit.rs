//! A change enters, the next committed state leaves, or the old one stays; the one writer's side.

use super::blob::{self, BlobRef};
use super::error::StoreError;
use super::folder::{self, Store};
use super::manifest::{Manifest, SegmentEntry, valid_name};
use super::rows::RowSet;
use super::{Change, NewSegment, disk};
use std::collections::HashSet;

type Named = Vec<(String, Vec<u8>)>;

impl Store {
    /// Applies all of `change` and returns the new version, durably, or nothing of it. An empty change is no commit.
    ///
    /// # Errors
    /// [`StoreError::InvalidChange`], [`StoreError::UnknownSegment`], [`StoreError::UnknownBlob`] before anything is
    /// written; [`StoreError::Full`] and [`StoreError::Io`] with the old state intact and the writer usable;
    /// [`StoreError::Sync`] when an fsync failed, after which every commit is [`StoreError::Poisoned`] and only
    /// reopening tells which state is on disk; [`StoreError::Conflict`] when another writer got past the lock;
    /// [`StoreError::ReadOnly`].
    pub fn commit(&mut self, change: Change) -> Result<u64, StoreError> {
        self.require_writable()?;
        if change == Change::default() {
            return Ok(self.version());
        }
        self.check(&change)?;
        let mut written = Vec::new();
        let next = match self.write_blobs(change, &mut written) {
            Ok(next) => next,
            Err(error) => return Err(self.give_up(error, &written)),
        };
        let unchanged = self.require_newest();
        let head = match unchanged.and_then(|()| folder::write_manifest(&self.path, &next)) {
            Ok(head) => head,
            Err(error) => return Err(self.give_up(error, &written)),
        };
        let retired =
            std::mem::replace(&mut self.previous, std::mem::replace(&mut self.current, next));
        self.head = head;
        self.retire(&retired);
        Ok(self.version())
    }

    pub(super) fn require_writable(&self) -> Result<(), StoreError> {
        if self.lock.is_none() {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
        match &self.poisoned {
            Some(cause) => {
                Err(StoreError::Poisoned { path: self.path.clone(), cause: cause.clone() })
            }
            None => Ok(()),
        }
    }

    /// The lock keeps other writers out; if it failed, or its file was removed, they are not overwritten.
    fn require_newest(&self) -> Result<(), StoreError> {
        let expected = self.current.version;
        match folder::manifest_versions(&self.path)?.last() {
            Some(&actual) if actual != expected => {
                Err(StoreError::Conflict { path: self.path.clone(), expected, actual })
            }
            _ => Ok(()),
        }
    }

    fn check(&self, change: &Change) -> Result<(), StoreError> {
        let unknown = |id| StoreError::unknown_segment(&self.path, id);
        let mut present: HashSet<_> = self.segments().iter().map(|segment| segment.id).collect();
        for id in &change.remove {
            if !present.remove(id) {
                return Err(unknown(id));
            }
        }
        for segment in &change.add {
            check_new(segment)?;
            if !present.insert(segment.id) {
                let id = crate::decode::hex(&segment.id);
                return Err(StoreError::invalid("id of a new segment", "not in use", id));
            }
        }
        for (id, rows) in &change.delete_rows {
            let added =
                change.add.iter().find(|segment| &segment.id == id).map(|segment| segment.rows);
            let bound = added.or_else(|| self.segment(id).map(|segment| segment.rows));
            let bound = bound.filter(|_| present.contains(id)).ok_or_else(|| unknown(id))?;
            if let Some(row) = rows.iter().find(|row| **row >= bound) {
                return Err(StoreError::invalid("deleted row", format!("below {bound}"), row));
            }
        }
        check_names(&change.attachments)?;
        for name in &change.drop_attachments {
            if super::manifest::find(&self.current.attachments, name).is_none() {
                return Err(StoreError::UnknownBlob {
                    path: self.path.clone(),
                    name: name.clone(),
                });
            }
        }
        Ok(())
    }

    /// Writes the blobs, makes them durable, and returns the manifest that names them.
    fn write_blobs(
        &self,
        change: Change,
        written: &mut Vec<BlobRef>,
    ) -> Result<Manifest, StoreError> {
        let blobs = self.blobs();
        let mut write = |named: Named| -> Result<Vec<(Box<str>, BlobRef)>, StoreError> {
            let mut stored = Vec::with_capacity(named.len());
            for (name, payload) in named {
                let blob = blob::write(&blobs, &payload)?;
                written.push(blob);
                stored.push((name.into_boxed_str(), blob));
            }
            stored.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            Ok(stored)
        };
        let mut next = self.current.clone();
        next.version += 1;
        next.previous = self.head;
        let removed: HashSet<_> = change.remove.into_iter().collect();
        next.segments.retain(|segment| !removed.contains(&segment.id));
        for NewSegment { id, rows, blobs } in change.add {
            let blobs = write(blobs)?.into_boxed_slice();
            next.segments.push(SegmentEntry {
                id,
                rows,
                added: next.version,
                deleted: RowSet::new(rows),
                blobs,
            });
        }
        for (id, rows) in change.delete_rows {
            for segment in next.segments.iter_mut().filter(|segment| segment.id == id) {
                rows.iter().for_each(|row| {
                    segment.deleted.insert(*row);
                });
            }
        }
        let attached = write(change.attachments)?;
        let gone = |name: &str| {
            change.drop_attachments.iter().any(|dropped| dropped == name)
                || attached.iter().any(|(replaced, _)| **replaced == *name)
        };
        next.attachments.retain(|(name, _)| !gone(name));
        next.attachments.extend(attached);
        next.attachments.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(meta) = change.set_meta {
            next.meta = meta;
        }
        if !written.is_empty() {
            disk::sync_folder(&blobs)?;
        }
        Ok(next)
    }

    /// After a failure: frees the room that the attempt took, unless nobody knows what is on disk.
    fn give_up(&mut self, error: StoreError, written: &[BlobRef]) -> StoreError {
        let next = self.current.version + 1;
        let unknown = matches!(error, StoreError::Sync { .. } | StoreError::Conflict { .. });
        if unknown || folder::manifest_path(&self.path, next).exists() {
            self.poisoned = Some(error.to_string());
            return error;
        }
        let kept = self.kept();
        for blob in written.iter().filter(|blob| !kept.contains(*blob)) {
            // What cannot be removed now is collected by the next open.
            let _ = disk::remove(&blob.path(&self.blobs()));
        }
        let _ = disk::remove(
            &folder::manifest_path(&self.path, next).with_extension(folder::TEMPORARY),
        );
        error
    }

    /// Removes the third newest state: its manifest, then the blobs that it alone named.
    fn retire(&self, retired: &Manifest) {
        // The commit stands whatever happens here; what stays is collected by the next open.
        let _ = disk::remove(&folder::manifest_path(&self.path, retired.version));
        let kept = self.kept();
        for blob in retired.references().filter(|blob| !kept.contains(blob)) {
            let _ = disk::remove(&blob.path(&self.blobs()));
        }
    }

    /// Blobs that the two newest states name.
    pub(super) fn kept(&self) -> HashSet<&BlobRef> {
        self.current.references().chain(self.previous.references()).collect()
    }
}

fn check_new(segment: &NewSegment) -> Result<(), StoreError> {
    if segment.rows == 0 {
        return Err(StoreError::invalid("rows of a new segment", "at least 1", 0));
    }
    if segment.blobs.is_empty() {
        return Err(StoreError::invalid("blobs of a new segment", "at least 1", 0));
    }
    check_names(&segment.blobs)
}

fn check_names(named: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
    let mut seen = HashSet::new();
    for (name, _) in named {
        if !valid_name(name.as_bytes()) {
            return Err(StoreError::invalid(
                "name",
                "1 to 64 of a-z 0-9 . _ -",
                format!("{name:?}"),
            ));
        }
        if !seen.insert(name) {
            return Err(StoreError::invalid("name", "each name once", format!("{name:?} twice")));
        }
    }
    Ok(())
}
