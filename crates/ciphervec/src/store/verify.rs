//! Finds every damaged block that the two newest states and their snapshots name, and removes what
//! interrupted commits left.

use super::blob;
use super::blob_ref::{BLOBS, BlobRef, PACK};
use super::error::StoreError;
use super::folder::{self, ORPHAN_AFTER, Store, read_snapshot};
use super::medium::TEMPORARY;
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
    /// Reads every block of every file that the two newest states name, in 1 MiB of memory, and
    /// reports all faults rather than the first. `progress` gets the payload bytes done and to do.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder cannot be listed; a file that cannot be read is a
    /// [`Problem`].
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, StoreError> {
        let mut report = Report { strays: self.strays()?.len() as u64, ..Report::default() };
        for manifest in [&self.current, &self.previous] {
            report.files += 1;
            match folder::read_manifest(&*self.medium, manifest.version) {
                Ok((found, _)) if found == **manifest => {}
                Ok(_) => {
                    let path = self.medium.path(&folder::manifest_name(manifest.version));
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
        let blobs = self.distinct(&mut |error| report.problems.push(problem(error)));
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
                &*self.medium,
                &blob,
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

    /// Every blob that the two newest states and their snapshots name.
    fn distinct(&self, fault: &mut dyn FnMut(StoreError)) -> Vec<BlobRef> {
        let mut seen = HashSet::new();
        let mut blobs: Vec<BlobRef> = Vec::new();
        for manifest in [&self.current, &self.previous] {
            blobs.extend(manifest.references().filter(|blob| seen.insert(**blob)));
            for (_, snapshot) in manifest.snapshots() {
                match read_snapshot(&*self.medium, snapshot) {
                    Ok(frozen) => {
                        blobs.extend(frozen.references().filter(|blob| seen.insert(**blob)))
                    }
                    // A damaged block is found below; what is left is a manifest that does not
                    // parse.
                    Err(StoreError::Missing { .. }) => {}
                    Err(error) => fault(error),
                }
            }
        }
        blobs
    }

    /// Removes what an interrupted commit left: temporary files, older manifests and blobs that
    /// neither of the two newest states names. Files with names that no store writes stay. Returns
    /// the number of files removed.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Poisoned`], [`StoreError::Io`].
    pub fn collect_garbage(&mut self) -> Result<u64, StoreError> {
        self.require_writable()?;
        if self.medium.is_shared() {
            // What others have named since is no stray.
            self.refresh()?;
        }
        let strays = self.strays()?;
        for name in &strays {
            self.medium.remove(name)?;
        }
        Ok(strays.len() as u64)
    }

    fn strays(&self) -> Result<Vec<String>, StoreError> {
        let shared = self.medium.is_shared();
        let temporary = format!(".{TEMPORARY}");
        let mut strays = Vec::new();
        for file in self.medium.list("")? {
            let name = file.name;
            let stem = name.strip_suffix(&temporary);
            let left_over = stem.and_then(folder::manifest_version).is_some();
            let older = folder::manifest_version(&name)
                .is_some_and(|version| version < self.previous.version);
            let settled = !shared || file.age > ORPHAN_AFTER;
            if settled && (left_over || older) {
                strays.push(name);
            }
        }
        let mut kept: HashSet<String> = HashSet::new();
        for manifest in [&self.current, &self.previous] {
            kept.extend(manifest.references().map(BlobRef::file));
            for (_, found) in manifest.snapshots() {
                // A snapshot that cannot be read says nothing about what it needs: then every file
                // may be needed.
                let Ok(frozen) = self.frozen_now(found) else { return Ok(strays) };
                kept.extend(frozen.references().map(BlobRef::file));
            }
        }
        let is_ours = |name: &str| {
            let digits = name.strip_prefix(PACK).unwrap_or(name);
            let length = if digits.len() == name.len() { 64 } else { 32 };
            digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        for file in self.medium.list(BLOBS)? {
            let left_over = file.name.strip_suffix(&temporary).is_some_and(is_ours);
            let name = format!("{BLOBS}/{}", file.name);
            let settled = !shared || file.age > ORPHAN_AFTER;
            if settled && (left_over || is_ours(&file.name) && !kept.contains(&name)) {
                strays.push(name);
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
