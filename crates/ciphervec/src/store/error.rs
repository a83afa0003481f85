//! Store errors: each names the path, what was expected, what is there and the next step.

use crate::decode::{DecodeError, hex};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a store operation did not happen. Unless it says otherwise, the committed state is as
/// before.
#[non_exhaustive]
#[derive(thiserror::Error, Debug)]
pub enum StoreError {
    /// No collection folder.
    #[error("no collection at {}: {expected} is not there; check the path, or create the collection", path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
        /// The file that makes it one.
        expected: &'static str,
    },
    /// The folder is in use for something already.
    #[error("{} is not an empty folder; open the collection in it, or choose another path", path.display())]
    AlreadyExists {
        /// The folder.
        path: PathBuf,
    },
    /// Another writer has the folder open.
    #[error("{} is locked by another writer ({holder}); close it there, or open the collection \
        read-only", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who has it, in words.
        holder: String,
    },
    /// Another writer has committed although this one holds the lock.
    #[error(
        "{} is at version {actual}, this writer left it at {expected}: another writer got past the lock (was the \
         file LOCK removed?); nothing was changed, reopen the folder",
        path.display()
    )]
    Conflict {
        /// The folder.
        path: PathBuf,
        /// The version of this writer.
        expected: u64,
        /// The newest version there.
        actual: u64,
    },
    /// An earlier fsync failed, or another writer interfered.
    #[error("the writer of {} stopped ({cause}); reopen the folder to see what was committed", path.display())]
    Poisoned {
        /// The folder.
        path: PathBuf,
        /// The first failure.
        cause: String,
    },
    /// The store was opened for reading.
    #[error("{} is open read-only; open it for writing to change it", path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The lock is held by the process that this one was forked from.
    #[error(
        "{} was opened for writing before this process was forked, and its parent may be writing; open it again here once that \
         has closed it, or read-only",
        path.display()
    )]
    Forked {
        /// The folder.
        path: PathBuf,
    },
    /// The file system has no room.
    #[error("no space left writing {}: {source}; nothing was changed, make room and try again", path.display())]
    Full {
        /// The file being written.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// An fsync failed: whether the bytes are durable is unknown, and this writer takes no more
    /// commits.
    #[error("fsync of {} failed: {source}; the writer stops, check the disk and reopen the folder", path.display())]
    Sync {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The system refused an operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Bytes are not what was committed.
    #[error("{} is damaged at offset {offset}: expected {expected}, found {actual}; restore the \
        file from a copy", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The first byte that is known to be wrong, or the start of its block.
        offset: u64,
        /// What was committed.
        expected: String,
        /// What is there.
        actual: String,
    },
    /// A file that the manifest names is not there.
    #[error("{} is missing ({expected}); restore the file from a copy, or reopen if another \
        process changed the collection", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: String,
    },
    /// Written by a later release.
    #[error("{} has format version {actual}, this release reads up to {newest}; upgrade ciphervec", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Newest version this release reads.
        newest: u32,
        /// The version found.
        actual: u32,
    },
    /// A segment that is there already, as after a batch that was sent twice.
    #[error("change refused: segment {id} is in {} already; nothing was changed", path.display())]
    SegmentExists {
        /// The folder.
        path: PathBuf,
        /// The segment, in hexadecimal.
        id: String,
    },
    /// A [`Change`](super::Change) that cannot be applied.
    #[error("change refused: {what} is {actual}, expected {expected}")]
    InvalidChange {
        /// The part of the change.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// A snapshot of that name is there.
    #[error("{} has a snapshot {name:?}; drop it first, or choose another name", path.display())]
    SnapshotExists {
        /// The collection.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A key of a commit that was used for another change.
    #[error("{}: this key was used for another change; take a fresh key for each change", path.display())]
    KeyReused {
        /// The collection.
        path: PathBuf,
    },
    /// No such segment.
    #[error("no segment {id} in {}; it was removed, or belongs to another collection", path.display())]
    UnknownSegment {
        /// The folder.
        path: PathBuf,
        /// The id in hexadecimal.
        id: String,
    },
    /// No blob or attachment of that name.
    #[error("no blob named {name} in {}", path.display())]
    UnknownBlob {
        /// The folder.
        path: PathBuf,
        /// The name asked for.
        name: String,
    },
}

impl StoreError {
    pub(super) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::Full { path, source }
            }
            _ => Self::Io { operation, path, source },
        }
    }

    pub(super) fn sync(path: &Path, source: io::Error) -> Self {
        Self::Sync { path: path.to_owned(), source }
    }

    pub(super) fn corrupt(
        path: &Path,
        offset: u64,
        expected: impl ToString,
        actual: impl ToString,
    ) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            offset,
            expected: expected.to_string(),
            actual: actual.to_string(),
        }
    }

    pub(super) fn decode(path: &Path, error: DecodeError) -> Self {
        match error {
            DecodeError::Version { newest, actual, .. } => {
                Self::Unsupported { path: path.to_owned(), newest, actual }
            }
            DecodeError::Truncated { offset, expected, actual, .. } => Self::corrupt(
                path,
                offset,
                format!("{expected} bytes"),
                format!("{actual} (truncated)"),
            ),
            DecodeError::Trailing { offset, extra, .. } => {
                Self::corrupt(path, offset, "the end", format!("{extra} more bytes"))
            }
            DecodeError::Magic { expected, actual, .. } => Self::corrupt(path, 0, expected, actual),
            DecodeError::Field { field, offset, expected, actual, .. } => {
                Self::corrupt(path, offset, format!("{field} {expected}"), actual)
            }
        }
    }

    pub(super) fn invalid(
        what: &'static str,
        expected: impl ToString,
        actual: impl ToString,
    ) -> Self {
        Self::InvalidChange { what, expected: expected.to_string(), actual: actual.to_string() }
    }

    pub(super) fn unknown_segment(path: &Path, id: &super::SegmentId) -> Self {
        Self::UnknownSegment { path: path.to_owned(), id: hex(id) }
    }
}
