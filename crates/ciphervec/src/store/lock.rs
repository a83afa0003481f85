//! The right to write a folder: at most one process has it, on this machine's view of the file
//! system.

use super::error::StoreError;
use ciphervec_he::process;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
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
            Ok(()) => {
                // For whoever finds it locked. On a full disk nobody is named.
                let _ = file
                    .set_len(0)
                    .and_then(|()| (&file).write_all(process::id().to_string().as_bytes()));
                Ok(Self { file, process: process::id() })
            }
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::Locked { path, holder: holder(&file) })
            }
            Err(TryLockError::Error(source)) => Err(StoreError::io("lock", &path, source)),
        }
    }

    /// Whether this process took it, and is no fork of the one that did.
    pub(super) fn is_own(&self) -> bool {
        self.process == process::id()
    }
}

/// Who has the collection in this folder open for writing, in words; nothing where nobody has.
pub fn writer_of(folder: &Path) -> Option<String> {
    let file = File::open(folder.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(holder(&file)),
        _ => None,
    }
}

fn holder(file: &File) -> String {
    let mut text = String::new();
    let read = file.take(20).read_to_string(&mut text);
    match read.ok().and_then(|_| text.parse::<u32>().ok()) {
        Some(id) if id == process::id() => "this process".to_owned(),
        Some(id) => format!("process {id}"),
        None => "this or another process".to_owned(),
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
        let Err(StoreError::Locked { holder, .. }) = WriterLock::acquire(folder.path()) else {
            panic!()
        };
        assert_eq!(holder, "this process");
        assert_eq!(writer_of(folder.path()), Some(holder));
        // What a forked process has.
        let held = lock.file.try_clone().unwrap();
        drop(lock);
        assert_eq!(writer_of(folder.path()), None);
        WriterLock::acquire(folder.path()).unwrap();
        drop(held);
    }
}
