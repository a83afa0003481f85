//! What a caller, a server or what is stored did wrong.

use ciphervec_owner::SegmentId;

/// The result type of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// What failed: what was expected, what came, and what to do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What the caller gave is not what the method takes.
    #[error("{0}")]
    Input(String),
    /// Rows that can't be taken: which, and why.
    #[error("{message}")]
    Rows {
        /// All of it.
        message: String,
        /// By row.
        rows: Vec<(usize, String)>,
    },
    /// An id that is not there.
    #[error("{0}")]
    UnknownId(String),
    /// An id that is there already, or comes twice.
    #[error("{0}")]
    DuplicateId(String),
    /// A collection that is not there, or that the token may not see.
    #[error("{0}")]
    CollectionNotFound(String),
    /// A keyed table that is not there, or that the token may not see.
    #[error("{0}")]
    TableNotFound(String),
    /// A collection that is there already.
    #[error("{0}")]
    CollectionExists(String),
    /// What is stored is not what was written.
    #[error("{0}")]
    Corrupt(String),
    /// A release that is not known here.
    #[error("{0}")]
    Version(String),
    /// Keys of something else.
    #[error("{0}")]
    WrongKey(String),
    /// Others were faster. Nothing was changed.
    #[error("{0}")]
    Conflict(String),
    /// A change that may have been made or not.
    #[error("{0}")]
    CommitUncertain(String),
    /// The store shows what is older than, or beside, what it has shown before.
    #[error("{0}")]
    RolledBack(String),
    /// The server shows something else than what it was held to.
    #[error("{0}")]
    Mismatch(String),
    /// An answer that is not what these segments give to the query.
    #[error("{message}")]
    Tampered {
        /// What to do.
        message: String,
        /// The segments it is about.
        segments: Vec<SegmentId>,
    },
    /// A query that would have to do without segments that failed a check.
    #[error("{message}")]
    Quarantined {
        /// What to do.
        message: String,
        /// These segments.
        segments: Vec<SegmentId>,
    },
    /// What a private fetch brought is not what was sealed: none is made any more.
    #[error("{0}")]
    FetchEnded(String),
    /// The token does not allow it.
    #[error("{0}")]
    Authentication(String),
    /// The server refuses, fails or does not answer.
    #[error("{message}")]
    Server {
        /// What to do.
        message: String,
        /// Whether it may have acted on the request.
        acted: bool,
    },
    /// Another process writes to it, or another client of this one.
    #[error("{0}")]
    Locked(String),
    /// Others were shown as much as the noise of their answers hides.
    #[error("{0}")]
    Exhausted(String),
    /// A place to keep things in refuses.
    #[error("{0}")]
    Storage(String),
    /// The collection was closed, or the call ended by whoever made it.
    #[error("{0}")]
    Ended(String),
    /// An error of the scheme, or of what it reads.
    #[error(transparent)]
    Scheme(#[from] ciphervec_owner::Error),
}

impl Error {
    pub(crate) fn input<T>(message: impl Into<String>) -> Result<T> {
        Err(Self::Input(message.into()))
    }

    pub(crate) fn corrupt<T>(message: impl Into<String>) -> Result<T> {
        Err(Self::Corrupt(message.into()))
    }

    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::Server { message: message.into(), acted: false }
    }

    /// Of rows, by their numbers: the message has the first ten.
    pub(crate) fn rows(mut rows: Vec<(usize, String)>) -> Self {
        const SHOWN: usize = 10;
        rows.sort();
        let mut lines: Vec<_> = rows.iter().take(SHOWN).map(|(_, says)| says.clone()).collect();
        if rows.len() > 1 {
            lines.insert(0, format!("{} rows can't be used, and nothing was written:", rows.len()));
        }
        if rows.len() > SHOWN {
            lines.push(format!("and {} more", rows.len() - SHOWN));
        }
        Self::Rows { message: lines.join("\n"), rows }
    }

    /// Whether what was read did not open: damaged, of another key, or of a later release.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Self::Corrupt(_) | Self::Input(_) | Self::Version(_) | Self::WrongKey(_) => true,
            Self::Scheme(error) => !matches!(
                error,
                ciphervec_owner::Error::Tampered { .. } | ciphervec_owner::Error::Mismatched { .. }
            ),
            _ => false,
        }
    }

    /// Whether what a store shows is wrong, so that reading it once more may help.
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::RolledBack(_) | Self::Tampered { .. })
            || matches!(self, Self::Scheme(_)) && self.is_unreadable()
    }

    /// Whether it says that what a server shows is not what it was.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_wrong() || matches!(self, Self::Mismatch(_))
    }
}
