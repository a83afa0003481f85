//! Where a collection lies, and how its store is opened there.

use ciphervec::store::{self, Store, StoreError};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a collection lies.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// A folder, with one writer.
    Folder(PathBuf),
    /// A part of a bucket, which other servers may write to.
    Bucket(Arc<dyn store::Medium>),
}

impl Home {
    /// For writing; where nothing can be written, for reading.
    pub fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::Folder(path) => match Store::open(path) {
                Err(StoreError::Io { source, .. }) if takes_no_writes(&source) => {
                    self.open_read_only()
                }
                opened => opened,
            },
            Self::Bucket(medium) => Store::open_on(Arc::clone(medium)),
        }
    }

    pub fn open_read_only(&self) -> Result<Store, StoreError> {
        match self {
            Self::Folder(path) => Store::open_read_only(path),
            Self::Bucket(medium) => Store::open_read_only_on(Arc::clone(medium)),
        }
    }
}

fn takes_no_writes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}
