//! Upkeep: compaction, snapshots, verification and sizes of one collection. Server side.

use super::loaded::LoadedState;
use super::{Collection, settle};
use crate::storage::blob_names::ROWS;
use crate::storage::error::DatabaseError;
use ciphervec::search::Segment;
use ciphervec::store::{self, Committed, Compacted, SnapshotEntry, Store, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A compaction rewrites a segment if this share of its rows is deleted.
const WORTH_PRUNING: f64 = 0.25;
/// Bytes of segments that are rewritten in one commit.
const PRUNED_AT_ONCE: usize = 64 << 20;

/// Verifications of states that were changed meanwhile.
const VERIFICATIONS: u32 = 4;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Deleted rows whose words went.
    pub rows_dropped: u64,
    /// Segments that went, and files that became fewer.
    pub moved: Compacted,
}

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

    /// Takes deleted rows out where the form allows it, moves small files together and drops
    /// segments without live rows. Needs no key.
    ///
    /// # Errors
    /// As [`Collection::commit`]; [`DatabaseError::Corrupt`] when a blob to be moved is damaged:
    /// the state stays as it was, or as sound as it was with some rows taken out.
    pub fn compact(&self) -> Result<Compaction, DatabaseError> {
        let rows_dropped = self.prune(WORTH_PRUNING)?;
        let done = self.upkeep(|store| {
            let done = store.compact(false)?;
            // In a folder every commit frees what is not needed any more; in a bucket only this
            // does.
            if store.is_shared() {
                store.collect_garbage()?;
            }
            Ok(done)
        })?;
        Ok(Compaction { rows_dropped, moved: done })
    }

    /// Takes the words of deleted rows out of segments of which they are at least that share; how
    /// many it were. In the compact form only: a polynomial of the ring form holds several rows,
    /// and the additive schemes' ciphertexts do.
    fn prune(&self, share: f64) -> Result<u64, DatabaseError> {
        // Elsewhere every segment would be read for nothing.
        if !Segment::can_be_pruned(self.held().index.spec()) {
            return Ok(0);
        }
        let mut dropped = 0;
        loop {
            let round = self.upkeep(|store| self.prune_some(store, share))?;
            dropped += round;
            if round == 0 {
                return Ok(dropped);
            }
        }
    }

    /// Segments up to some bytes together, so that neither memory nor the number of commits grows
    /// with the collection.
    fn prune_some(&self, store: &mut Store, share: f64) -> Result<u64, StoreError> {
        let held = self.held();
        let (mut rewritten, mut bytes, mut dropped) = (Vec::new(), 0, 0);
        let segments = &held.view.manifest().segments;
        let entries: HashMap<_, _> = segments.iter().map(|entry| (entry.id, entry)).collect();
        for head in held.index.heads() {
            let Some(entry) = entries.get(&head.id.0) else { continue };
            let live = entry.rows - entry.deleted.len();
            let dead = head.kept.saturating_sub(live);
            // One without live rows goes as a whole.
            if live == 0 || dead == 0 || f64::from(dead) < share * f64::from(head.kept) {
                continue;
            }
            let Some(blob) = entry.blob(ROWS) else { continue };
            let Ok(segment) = held.index.parse_checked(held.view.stored(blob).read()?) else {
                continue;
            };
            let Some(pruned) = segment.prune(held.index.spec(), |row| entry.deleted.contains(row))
            else {
                continue;
            };
            bytes += pruned.len();
            dropped += u64::from(dead);
            rewritten.push((head.id.0, pruned));
            if bytes >= PRUNED_AT_ONCE {
                break;
            }
        }
        if rewritten.is_empty() {
            return Ok(0);
        }
        let blobs: Vec<_> =
            rewritten.iter().map(|(id, bytes)| (*id, ROWS, bytes.as_slice())).collect();
        store.rewrite_blobs(&blobs)?;
        Ok(dropped)
    }

    /// Deletes what neither the present state nor a snapshot names, dead bytes within packs
    /// included, and in the compact form every deleted row's words.
    ///
    /// # Errors
    /// As [`Collection::compact`].
    pub fn purge(&self) -> Result<(), DatabaseError> {
        self.prune(0.0)?;
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
