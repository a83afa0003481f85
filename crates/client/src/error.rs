//! What a caller, or what is stored, did wrong.

/// The result type of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// What failed: what was expected, what came, and what to do.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What the caller gave is not what the method takes.
    #[error("{0}")]
    Input(String),
    /// What is stored is not what was written.
    #[error("{0}")]
    Corrupt(String),
}

impl Error {
    pub(crate) fn input<T>(message: impl Into<String>) -> Result<T> {
        Err(Self::Input(message.into()))
    }
}
