//! Upkeep: compaction, snapshots, verification and sizes of one collection. Server side.

use super::loaded::LoadedState;
use super::{Collection, settle};
use crate::storage::error::DatabaseError;
use ciphervec::store::{self, Committed, Compacted, SnapshotEntry, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Verifications of states that were changed meanwhile.
const VERIFICATIONS: u32 = 4;

/// Sizes, for metrics and listings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Rows marked deleted.
    pub deleted: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of all blobs and attachments.
    pub bytes: u64,
    /// Bytes of segments in memory.
    pub resident: u64,
    /// Whether the last answer had to read segments from the store because they exceed the memory
    /// budget.
    pub degraded: bool,
}

/// What a verification looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files read.
    pub files: u64,
    /// Bytes of payload checked.
    pub bytes: u64,
    /// Files that no state names, which the next collection of garbage clears away.
    pub strays: u64,
    /// Every fault: the file, the offset, and a sentence.
    pub problems: Vec<store::Problem>,
}

impl Collection {
    /// Work on the store that is no change by a client; afterwards the state is read again where it
    /// differs.
    fn upkeep<T: Send>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send,
    ) -> Result<T, DatabaseError> {
        let mut writer = self.writer();
        let store = self.open_writer(&mut writer)?;
        if store.is_shared() {
            self.refresh(store)?;
        }
        let done = self.engine.pool.install(|| work(store));
        let done = settle(&mut writer, done)?;
        let view = self.open_writer(&mut writer)?.view();
        if view.head() != self.held().view.head() {
            self.show(self.engine.pool.install(|| LoadedState::load(view, &self.engine.cache))?);
        }
        Ok(done)
    }

    /// Moves small files together and drops segments without live rows. Needs no key. Deleted rows of segments that live stay in
    /// them until their owner seals these again: answers are checked against sums over all rows of a segment.
    ///
    /// # Errors
    /// As [`Collection::commit`]; [`DatabaseError::Corrupt`] when a blob to be moved is damaged:
    /// the state stays as it was.
    pub fn compact(&self) -> Result<Compacted, DatabaseError> {
        self.upkeep(|store| {
            let done = store.compact(false)?;
            // In a folder every commit frees what is not needed any more; in a bucket only this
            // does.
            if store.is_shared() {
                store.collect_garbage()?;
            }
            Ok(done)
        })
    }

    /// Deletes what neither the present state nor a snapshot names, dead bytes within packs
    /// included.
    ///
    /// # Errors
    /// As [`Collection::compact`].
    pub fn purge(&self) -> Result<(), DatabaseError> {
        self.upkeep(Store::purge)
    }

    /// Keeps the present state under a name; it takes no room of its own.
    ///
    /// # Errors
    /// [`DatabaseError::Exists`], [`DatabaseError::Invalid`] for what is no name; as
    /// [`Collection::commit`].
    pub fn snapshot(&self, snapshot: &str) -> Result<Committed, DatabaseError> {
        self.upkeep(|store| store.take_snapshot(snapshot))
    }

    /// The snapshots, by ascending name.
    ///
    /// # Errors
    /// [`DatabaseError::Corrupt`], [`DatabaseError::Io`].
    pub fn snapshots(&self) -> Result<Vec<SnapshotEntry>, DatabaseError> {
        self.upkeep(|store| store.snapshots())
    }

    /// Forgets a snapshot, and frees what only it needed.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`]; as [`Collection::commit`].
    pub fn drop_snapshot(&self, snapshot: &str) -> Result<Committed, DatabaseError> {
        self.upkeep(|store| store.drop_snapshot(snapshot))
    }

    /// Makes the state of a snapshot the next state: versions go on counting.
    pub(crate) fn restore(&self, snapshot: &str) -> Result<Committed, DatabaseError> {
        self.upkeep(|store| store.restore(snapshot))
    }

    /// Writes the state of a snapshot to a medium that holds nothing.
    pub(crate) fn copy_snapshot(
        &self,
        snapshot: &str,
        target: Arc<dyn store::Medium>,
    ) -> Result<(), DatabaseError> {
        self.upkeep(|store| store.copy_snapshot(snapshot, target))
    }

    /// Reads every block of every file and lists all faults. `progress` gets the bytes done and to
    /// do.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] when the files cannot be listed.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, DatabaseError> {
        let mut left = VERIFICATIONS;
        loop {
            left -= 1;
            let store = self.home.open_read_only()?;
            let head = store.head();
            let found = store.verify(progress)?;
            // A file that went with an older state is no fault of it.
            if !found.problems.is_empty() && left > 0 && self.home.open_read_only()?.head() != head
            {
                continue;
            }
            return Ok(Report {
                files: found.files,
                bytes: found.bytes,
                strays: found.strays,
                problems: found.problems,
            });
        }
    }

    /// Sizes.
    pub fn statistics(&self) -> Statistics {
        let held = self.held();
        let manifest = held.view.manifest();
        Statistics {
            rows: manifest.segments.iter().map(|segment| u64::from(segment.rows)).sum(),
            deleted: manifest.segments.iter().map(|segment| u64::from(segment.deleted.len())).sum(),
            segments: manifest.segments.len() as u64,
            bytes: manifest.bytes(),
            resident: held.index.resident(),
            degraded: self.degraded.load(Ordering::Relaxed),
        }
    }

    /// Drops the collection from a shared place.
    pub(crate) fn drop_on(&self) -> Result<(), DatabaseError> {
        let mut writer = self.writer();
        let store = self.open_writer(&mut writer)?;
        self.refresh(store)?;
        let done = store.drop_on();
        settle(&mut writer, done)
    }
}
