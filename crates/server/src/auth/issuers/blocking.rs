//! Issuers for callers without an event loop: the services that run in Python.

use super::{Issuers, IssuersError, Verified};
use std::path::Path;
use tokio::runtime::{Builder, Runtime};

/// Issuers, and a thread that asks for their keys.
pub struct BlockingIssuers {
    issuers: Issuers,
    runtime: Runtime,
}

impl BlockingIssuers {
    /// As [`Issuers::open`].
    ///
    /// # Errors
    /// [`IssuersError`].
    pub fn open(path: &Path) -> Result<Self, IssuersError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|source| IssuersError::Io { path: path.into(), source })?;
        Ok(BlockingIssuers { issuers: Issuers::open(path)?, runtime })
    }

    /// As [`Issuers::verify`]; also what is no signed token at all is refused.
    pub fn verify(&self, token: &str) -> Verified {
        if !Issuers::is_signed(token) {
            return Verified::Refused("it is not signed");
        }
        self.runtime.block_on(self.issuers.verify(token))
    }
}
