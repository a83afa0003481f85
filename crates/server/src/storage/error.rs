//! Errors of storage: what a caller can act on, of what the store or the index refused.

use crate::descriptors;
use ciphervec::store::StoreError;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Why the database did not do what it was asked. Texts may name files and are for the log;
/// [`DatabaseError::public`] is for those who asked.
#[non_exhaustive]
#[derive(thiserror::Error, Debug)]
pub enum DatabaseError {
    /// No such collection, segment, blob, attachment or snapshot.
    #[error("{0}")]
    NotFound(String),
    /// A collection or snapshot of that name is there.
    #[error("{0} exists already; choose another name, or drop it first")]
    Exists(String),
    /// A segment of that id is there.
    #[error("segment {0} is there already; nothing was changed")]
    SegmentExists(String),
    /// The collection is not in the state that the caller expects.
    #[error(
        "the collection is at version {version} (head {}), not at the head expected; read it again, then retry",
        hex(head)
    )]
    Conflict {
        /// The head that the caller named, if one did.
        expected: Option<[u8; 32]>,
        /// The version there is.
        version: u64,
        /// The head there is.
        head: [u8; 32],
    },
    /// An idempotency key that was used for another change.
    #[error("this idempotency key was used for another change; take a fresh key for each change")]
    KeyReused,
    /// A request that cannot be served as it is.
    #[error("{0}")]
    Invalid(String),
    /// No evaluation keys of a session, from whoever asks.
    #[error("there are no evaluation keys of session {0} from this token")]
    KeysMissing(u32),
    /// Other evaluation keys of a session, from the same token.
    #[error("there are other evaluation keys of session {0} from this token; nothing was changed")]
    SessionExists(u32),
    /// No evaluation keys of a session of fetches, from whoever asks.
    #[error("there are no fetch keys of session {0} from this token")]
    FetchKeysMissing(u32),
    /// A fetch from a table of another state.
    #[error("the collection has other segments than this table")]
    TableMoved,
    /// A program that takes more than it may here.
    #[error("{0}")]
    Limit(String),
    /// A run whose time was over.
    #[error("{0}")]
    Deadline(String),
    /// What another token brought.
    #[error("{0}")]
    Foreign(String),
    /// What may be stored is stored.
    #[error("{0}")]
    Quota(String),
    /// Too many queries or runs wait.
    #[error("too many are waiting; try again in {} s", retry_after.as_secs().max(1))]
    Busy {
        /// When there may be room.
        retry_after: Duration,
    },
    /// No room on the disk.
    #[error("no space left: {0}; nothing was changed, make room and try again")]
    Full(String),
    /// The place takes no writes.
    #[error("{0}")]
    ReadOnly(String),
    /// Stored bytes are not what was committed.
    #[error("{0}")]
    Corrupt(String),
    /// Files of the state that was searched are not there: there may be a newer one by now.
    #[error("{0}")]
    Moved(String),
    /// Written by a later release, or a thing that this kind of store cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The system refused an operation.
    #[error("{0}")]
    Io(String),
    /// The system lets this process open no more files for now.
    #[error("{0}")]
    Descriptors(String),
    /// Another process writes the collection.
    #[error("{0}")]
    Locked(String),
    /// Whether the last change is on disk is unknown; the collection reopens itself on the next
    /// use.
    #[error("{0}")]
    Poisoned(String),
}

impl DatabaseError {
    /// What may be told to a stranger: no path, no system's answer.
    pub fn public(&self) -> String {
        match self {
            Self::Full(_) => "no space left; nothing was changed".into(),
            Self::ReadOnly(_) => "the server's store takes no writes".into(),
            Self::Corrupt(_) | Self::Moved(_) => {
                "stored bytes are damaged; the log names the file, restore it from a copy".into()
            }
            Self::Locked(_) => "another process has the collection open for writing".into(),
            Self::Descriptors(_) => "the server has as many files open as it may".into(),
            Self::Io(_) => "the store refused an operation; the log says which".into(),
            Self::Poisoned(_) => {
                "whether the change is durable is unknown; read the collection again, then retry with the same \
                 idempotency key"
                    .into()
            }
            told => told.to_string(),
        }
    }
}

impl DatabaseError {
    /// What the system refused, by its answer.
    pub(crate) fn of_io(text: String, error: &io::Error) -> Self {
        if descriptors::used_up(error) {
            return Self::Descriptors(text);
        }
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::Full(text)
            }
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly(text),
            _ => Self::Io(text),
        }
    }
}

impl From<StoreError> for DatabaseError {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NotFound { .. } => Self::NotFound(text),
            StoreError::UnknownSegment { id, .. } => Self::NotFound(format!(
                "no segment {id}; it was removed, or is another collection's"
            )),
            StoreError::UnknownBlob { name, .. } => {
                Self::NotFound(format!("no blob or attachment {name:?}"))
            }
            StoreError::AlreadyExists { .. } => Self::Exists(text),
            StoreError::SnapshotExists { name, .. } => {
                Self::Exists(format!("the snapshot {name:?}"))
            }
            StoreError::SegmentExists { id, .. } => Self::SegmentExists(id),
            StoreError::KeyReused { .. } => Self::KeyReused,
            StoreError::InvalidChange { .. } => Self::Invalid(text),
            StoreError::Full { .. } => Self::Full(text),
            StoreError::Corrupt { .. } | StoreError::Missing { .. } => Self::Corrupt(text),
            StoreError::ReadOnly { .. } => Self::ReadOnly(text),
            StoreError::Io { source, .. } => Self::of_io(text, &source),
            StoreError::Unsupported { .. } => Self::Unsupported(text),
            StoreError::Locked { .. } => Self::Locked(text),
            StoreError::Poisoned { .. } | StoreError::Sync { .. } | StoreError::Conflict { .. } => {
                Self::Poisoned(text)
            }
            _ => Self::Io(text),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
