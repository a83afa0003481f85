//! Rooms: how much collections and tables take, and what is being added to them at the moment, so that two who add at once
//! do not both get the last of what their token may have.

use super::collection::Collection;
use super::error::DatabaseError;
use ciphervec::store::{Change, Manifest};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes and rows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Rows, deleted ones included.
    pub rows: u64,
}

impl Amount {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Amount {
            bytes: self.bytes.saturating_add(other.bytes),
            rows: self.rows.saturating_add(other.rows),
        }
    }

    /// What more there is of it than of `other`.
    fn beyond(self, other: Self) -> Self {
        Amount {
            bytes: self.bytes.saturating_sub(other.bytes),
            rows: self.rows.saturating_sub(other.rows),
        }
    }

    /// Of a collection: its description, segments and attachments.
    fn of_state(manifest: &Manifest) -> Self {
        let rows = manifest.segments.iter().map(|segment| u64::from(segment.rows)).sum();
        Amount { bytes: manifest.bytes() + manifest.meta.len() as u64, rows }
    }

    /// By how much a change makes a state larger.
    pub fn of_change(change: &Change, manifest: &Manifest) -> Self {
        let length = |blobs: &[(String, Vec<u8>)]| {
            blobs.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
        };
        let comes = Amount {
            bytes: change.add.iter().map(|segment| length(&segment.blobs)).sum::<u64>()
                + length(&change.attachments)
                + change.set_meta.as_ref().map_or(0, |meta| meta.len() as u64),
            rows: change.add.iter().map(|segment| u64::from(segment.rows)).sum(),
        };
        let removed = change.remove.iter().filter_map(|id| manifest.segment(id));
        let goes = removed.fold(Amount::default(), |sum, segment| {
            let bytes = segment.blobs().map(|(_, blob)| blob.length).sum();
            sum.and(Amount { bytes, rows: u64::from(segment.rows) })
        });
        let replaced = manifest.attachments().filter(|(name, _)| {
            change.attachments.iter().any(|(new, _)| new == name)
                || change.drop_attachments.iter().any(|dropped| dropped == name)
        });
        let meta = change.set_meta.as_ref().map_or(0, |_| manifest.meta.len() as u64);
        let bytes = replaced.map(|(_, blob)| blob.length).sum::<u64>() + meta;
        comes.beyond(goes.and(Amount { bytes, rows: 0 }))
    }
}

/// What is being added at the moment, by collection or table.
pub type Adding = Vec<(Arc<str>, Amount)>;

/// The same for all who add.
#[derive(Clone, Default)]
pub struct Rooms(Arc<Mutex<Adding>>);

impl Rooms {
    /// Held while stores are looked at: what is added meanwhile is seen there or here.
    pub fn lock(&self) -> MutexGuard<'_, Adding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that so much is being added, until what this gives is dropped.
    pub fn take(&self, adding: &mut Adding, name: &str, adds: Amount) -> Room {
        let held = (Arc::from(name), adds);
        adding.push(held.clone());
        Room { all: self.clone(), held }
    }
}

/// What one request adds, until it has.
pub struct Room {
    all: Rooms,
    held: (Arc<str>, Amount),
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(at) = all.iter().position(|one| *one == self.held) {
            all.swap_remove(at);
        }
    }
}

/// What a collection takes; of its snapshots, all that they name.
///
/// # Errors
/// Those of reading its snapshots.
pub fn stored(collection: &Collection) -> Result<Amount, DatabaseError> {
    let manifest = collection.state().manifest;
    let mut amount = Amount::of_state(&manifest);
    if manifest.snapshots().len() > 0 {
        let kept: u64 = collection.snapshots()?.iter().map(|snapshot| snapshot.bytes).sum();
        amount.bytes = amount.bytes.saturating_add(kept);
    }
    Ok(amount)
}
