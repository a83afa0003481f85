//! Writer lock: a folder enters, the right to write it leaves. At most one holder, on this
//! machine's view of the file system.

use super::error::StoreError;
use ciphervec_he::process;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// Name of the lock file. It stays when the lock is released; the system drops the lock when its
/// holder dies.
pub(super) const LOCK_FILE: &str = "LOCK";

/// The exclusive writer lock, held until dropped.
#[derive(Debug)]
pub struct WriterLock {
    file: File,
    /// Whose lock it is: a fork has the file open, too, and may neither write nor unlock it.
    process: u32,
}

impl WriterLock {
    /// Takes the lock without waiting.
    pub(super) fn acquire(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| StoreError::io("open for writing", &path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, process: process::id() }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path }),
            Err(TryLockError::Error(source)) => Err(StoreError::io("lock", &path, source)),
        }
    }

    /// Whether this process took it, and is no fork of the one that did.
    pub(super) fn is_own(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for WriterLock {
    /// Closing the file would not do: a process that another thread has just forked holds it open
    /// too, until it runs its program.
    fn drop(&mut self) {
        if self.is_own() {
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_hold_on_the_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = WriterLock::acquire(folder.path()).unwrap();
        assert!(matches!(WriterLock::acquire(folder.path()), Err(StoreError::Locked { .. })));
        // What a forked process has.
        let held = lock.file.try_clone().unwrap();
        drop(lock);
        WriterLock::acquire(folder.path()).unwrap();
        drop(held);
    }
}
