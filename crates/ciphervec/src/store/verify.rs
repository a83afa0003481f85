//! An open folder enters, a list of every damaged block leaves; any side. Also clears away files nobody names.

use super::blob::{self, BlobRef};
use super::disk;
use super::error::StoreError;
use super::folder::{self, Store, TEMPORARY};
use crate::decode::hex;
use std::collections::HashSet;
use std::path::PathBuf;

/// One fault found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The first byte known to be wrong, or the start of its block; 0 for a missing file.
    pub offset: u64,
    /// What was expected, what is there, and the next step.
    pub message: String,
}

/// What [`Store::verify`] looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files read: the two newest manifests and every blob that they name.
    pub files: u64,
    /// Bytes of payload checked.
    pub bytes: u64,
    /// Files of an interrupted commit; harmless, cleared away by the next [`Store::open`].
    pub strays: u64,
    /// Faults, in the order of the files; empty when all is well.
    pub problems: Vec<Problem>,
}

impl Store {
    /// Reads every block of every file that the two newest states name, in 1 MiB of memory, and reports all faults
    /// rather than the first. `progress` gets the payload bytes done and to do.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder cannot be listed; a file that cannot be read is a [`Problem`].
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, StoreError> {
        let mut report = Report { strays: self.strays()?.len() as u64, ..Report::default() };
        for manifest in [&self.current, &self.previous] {
            report.files += 1;
            match folder::read_manifest(&self.path, manifest.version) {
                Ok((found, _)) if found == *manifest => {}
                Ok(_) => {
                    let path = folder::manifest_path(&self.path, manifest.version);
                    let error = StoreError::corrupt(
                        &path,
                        0,
                        "the manifest that was opened",
                        "another one",
                    );
                    report.problems.push(problem(error));
                }
                Err(error) => report.problems.push(problem(error)),
            }
        }
        let blobs = self.distinct();
        let total: u64 = blobs.iter().map(|blob| blob.length).sum();
        let mut done = 0;
        progress(done, total);
        for blob in blobs {
            report.files += 1;
            let before = done;
            let mut read = |length: u64| {
                done += length;
                progress(done, total);
            };
            blob::check(
                &self.blobs(),
                blob,
                &mut |error| report.problems.push(problem(error)),
                &mut read,
            );
            report.bytes += done - before;
            // A blob that cannot be read is done with, too.
            done = before + blob.length;
        }
        progress(total, total);
        Ok(report)
    }

    fn distinct(&self) -> Vec<&BlobRef> {
        let mut seen = HashSet::new();
        self.current
            .references()
            .chain(self.previous.references())
            .filter(|blob| seen.insert(**blob))
            .collect()
    }

    /// Removes what an interrupted commit left: temporary files, older manifests and blobs that neither of the two
    /// newest states names. Files with names that no store writes stay. Returns the number of files removed.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Poisoned`], [`StoreError::Io`].
    pub fn collect_garbage(&mut self) -> Result<u64, StoreError> {
        self.require_writable()?;
        let strays = self.strays()?;
        for path in &strays {
            disk::remove(path)?;
        }
        Ok(strays.len() as u64)
    }

    fn strays(&self) -> Result<Vec<PathBuf>, StoreError> {
        let temporary = format!(".{TEMPORARY}");
        let mut strays = Vec::new();
        for name in folder::list(&self.path)? {
            let stem = name.strip_suffix(&temporary);
            let left_over = stem.and_then(folder::manifest_version).is_some();
            let older = folder::manifest_version(&name)
                .is_some_and(|version| version < self.previous.version);
            if left_over || older {
                strays.push(self.path.join(name));
            }
        }
        let kept: HashSet<String> = self.kept().iter().map(|blob| hex(&blob.root)).collect();
        let is_blob =
            |name: &str| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        for name in folder::list(&self.blobs())? {
            let left_over = name.strip_suffix(&temporary).is_some_and(is_blob);
            if left_over || is_blob(&name) && !kept.contains(&name) {
                strays.push(self.blobs().join(name));
            }
        }
        Ok(strays)
    }
}

fn problem(error: StoreError) -> Problem {
    let message = error.to_string();
    let (path, offset) = match error {
        StoreError::Corrupt { path, offset, .. } => (path, offset),
        StoreError::Missing { path, .. }
        | StoreError::Io { path, .. }
        | StoreError::Unsupported { path, .. }
        | StoreError::NotFound { path, .. } => (path, 0),
        _ => (PathBuf::new(), 0),
    };
    Problem { path, offset, message }
}
