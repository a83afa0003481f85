//! Collection store: sealed bytes in a durable folder. It holds no key and opens nothing.
//!
//! ```text
//! collection/
//!   LOCK                            locked by the one writer, whose process it names
//!   manifest-00000000000000000007   the committed state
//!   manifest-00000000000000000006   the state before it, whose BLAKE3 the newer one names
//!   blobs/<BLAKE3 root>             immutable, named by their content
//! ```
//!
//! A commit writes its blobs under temporary names, fsyncs and renames them, fsyncs `blobs/`, and
//! then does the same with one manifest: that rename is the moment at which all of the batch
//! happens. Two manifests are always there, so that a missing newest one is noticed, not taken for
//! an older state. An fsync that fails says nothing about what is on disk, so it ends the writer:
//! reopening finds out.

mod blob;
mod blob_ref;
mod commit;
mod compact;
mod disk;
mod error;
#[cfg(test)]
mod failpoint;
mod folder;
mod keyed;
mod lock;
mod manifest;
mod medium;
mod open;
mod rows;
pub mod shelf;
mod snapshot;
mod stage;
mod verify;
mod view;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod upkeep_tests;

pub use blob_ref::{BLOBS, BLOCK, BlobPlace, BlobRef};
pub use compact::Compacted;
pub use error::StoreError;
pub use folder::Store;
pub use keyed::{CommitKey, Committed, KEYS_KEPT};
pub use lock::{WriterLock, writer_of};
pub use manifest::{Manifest, SegmentEntry};
pub use medium::{Folder, Listed, Medium};
pub use rows::RowSet;
pub use snapshot::SnapshotEntry;
pub use stage::Staged;
pub use verify::{Problem, Report};
pub use view::{StoredBlob, View};

/// A segment's 16-byte id.
pub type SegmentId = [u8; 16];

/// A segment to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSegment {
    /// Its id, not in use in the folder.
    pub id: SegmentId,
    /// Its rows, at least one.
    pub rows: u32,
    /// Its parts by name (1 to 64 of `a-z 0-9 . _ -`), each name once.
    pub blobs: Vec<(String, Vec<u8>)>,
}

/// What one commit does: all of it or nothing. Removals come first, then additions, then row
/// deletions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Segments to add.
    pub add: Vec<NewSegment>,
    /// Segments to remove.
    pub remove: Vec<SegmentId>,
    /// Rows to mark deleted, in segments that stay or are added; marking one twice is the same as
    /// once.
    pub delete_rows: Vec<(SegmentId, Vec<u32>)>,
    /// New opaque bytes for [`Store::meta`].
    pub set_meta: Option<Vec<u8>>,
    /// Named blobs of the collection as a whole, such as evaluation keys; an existing name is
    /// replaced.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// Attachments to drop.
    pub drop_attachments: Vec<String>,
}
