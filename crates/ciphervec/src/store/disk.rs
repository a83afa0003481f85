//! Files that survive a crash. Every step that can fail or be the last one before a crash is named
//! here, so that the tests can stop at each of them.

use super::error::StoreError;
#[cfg(test)]
use super::failpoint;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The steps of a commit at which the tests inject faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Write,
    Sync,
    Rename,
    SyncFolder,
    Remove,
}

#[cfg(not(test))]
fn reach(_: Step) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
fn reach(step: Step) -> io::Result<()> {
    failpoint::reach(step)
}

/// Writes `parts` one after another to a new file (an old one of that name is emptied) and fsyncs
/// it.
pub(super) fn write_file(path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("write", path, source);
    reach(Step::Create).map_err(failed)?;
    let mut file = File::create(path).map_err(failed)?;
    #[cfg(test)]
    failpoint::created(path);
    for part in parts {
        // Two writes, so that a test can stop half-way.
        let (first, second) = part.split_at(part.len() / 2);
        for half in [first, second] {
            reach(Step::Write).and_then(|()| file.write_all(half)).map_err(failed)?;
        }
    }
    reach(Step::Sync)
        .and_then(|()| file.sync_all())
        .map_err(|source| StoreError::sync(path, source))?;
    #[cfg(test)]
    failpoint::synced(path);
    Ok(())
}

/// Renames within a folder, replacing `to`; durable after [`sync_folder`].
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("rename to", to, source);
    reach(Step::Rename).map_err(failed)?;
    #[cfg(test)]
    failpoint::renaming(from, to);
    fs::rename(from, to).map_err(failed)
}

/// Makes renames and removals in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let synced = reach(Step::SyncFolder).and_then(|()| sync_folder_now(path));
    synced.map_err(|source| StoreError::sync(path, source))?;
    #[cfg(test)]
    failpoint::folder_synced(path);
    Ok(())
}

#[cfg(unix)]
fn sync_folder_now(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Only Unix lets a program fsync a folder; elsewhere the file system orders renames by itself.
#[cfg(not(unix))]
fn sync_folder_now(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes a file; one that is not there is as good as removed.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("remove", path, source);
    reach(Step::Remove).map_err(failed)?;
    #[cfg(test)]
    failpoint::removing(path);
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed(source)),
        _ => Ok(()),
    }
}
