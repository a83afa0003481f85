//! A folder of collections: one sub-folder each. One whose name starts with a dot is unfinished work, or what belongs to another kind of
//! store.

use super::blob_ref::BLOBS;
use super::disk;
use super::error::StoreError;
use super::folder::MANIFEST;
use super::lock::{LOCK_FILE, WriterLock};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// After this a folder that somebody was making is taken for abandoned, where it has no lock to ask.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// For so long the lock of one may be free while it is being made.
const UNLOCKED_FOR: Duration = Duration::from_secs(2);
const DRAFT: &str = ".new-";
const TRASH: &str = ".trash-";

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 128;

/// Whether a collection may have that name, which is also its folder's: 1 to 128 of `A-Z a-z 0-9 . _ -`, a letter or digit at both ends,
/// no `..`.
pub fn valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    (1..=LONGEST_NAME).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
        && ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && !name.contains("..")
}

/// The names of the collections in a folder, sorted, damaged ones included. A folder that is not there has none.
///
/// # Errors
/// [`StoreError::Io`]: what cannot be listed is not empty.
pub fn names(root: &Path) -> Result<Vec<String>, StoreError> {
    let mut found =
        stores_in(root).map_err(|source| StoreError::io("list the folder", root, source))?;
    found.retain(|name| valid_name(name));
    found.sort_unstable();
    Ok(found)
}

fn stores_in(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in entries(root)? {
        let within = match entries(&root.join(&name)) {
            // Somebody else's folder hides no other.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Vec::new(),
            listed => listed?,
        };
        if within.iter().any(|name| name == BLOBS || name.starts_with(MANIFEST)) {
            found.push(name);
        }
    }
    Ok(found)
}

/// The names in a folder; none of what is no folder, or not there.
fn entries(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(path) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names.filter_map(io::Result::transpose).collect()
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// Removes what a killed process left behind.
///
/// # Errors
/// [`StoreError::Io`] for a folder that cannot be listed. What cannot be removed harms nothing, and stays for another time.
pub fn sweep(root: &Path) -> Result<(), StoreError> {
    let entries =
        fs::read_dir(root).map_err(|source| StoreError::io("list the folder", root, source))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let abandoned = || {
            let modified = entry.metadata().and_then(|found| found.modified());
            modified.is_ok_and(|modified| is_abandoned(&entry.path(), modified))
        };
        if name.starts_with(TRASH) || name.starts_with(DRAFT) && abandoned() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Whether nobody makes a collection in this folder any more: another process may be making it right now.
fn is_abandoned(path: &Path, modified: SystemTime) -> bool {
    let age = modified.elapsed().unwrap_or_default();
    let unlocked = || path.join(LOCK_FILE).is_file() && WriterLock::acquire(path).is_ok();
    age > ABANDONED_AFTER || age > UNLOCKED_FOR && unlocked()
}

/// A store that is made beside its place and renamed into it: a kill leaves a dot folder, never half a store.
pub struct Draft<'a> {
    root: &'a Path,
    path: PathBuf,
    settled: bool,
}

impl<'a> Draft<'a> {
    /// A new one in the folder `root`, filled by `write`.
    ///
    /// # Errors
    /// Those of `write`, and [`StoreError::Io`] when the system gives no random bytes.
    pub fn write<E: From<StoreError>>(
        root: &'a Path,
        write: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Self, E> {
        let draft = Draft { root, path: hidden(root, DRAFT)?, settled: false };
        write(&draft.path)?;
        Ok(draft)
    }

    /// Gives it its name, durably, unless there is one of that name; where it lies now. Callers keep others from doing the same.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Sync`].
    pub fn settle(mut self, name: &str) -> Result<Option<PathBuf>, StoreError> {
        let path = self.root.join(name);
        // A rename would replace an empty folder.
        if path.exists() {
            return Ok(None);
        }
        disk::rename(&self.path, &path)?;
        self.settled = true;
        disk::sync_folder(self.root)?;
        Ok(Some(path))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.settled {
            // What cannot be removed now is swept at the next start.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes what has that name in a folder, durably and in one step.
///
/// # Errors
/// [`StoreError::Io`], [`StoreError::Sync`].
pub fn remove(root: &Path, name: &str) -> Result<(), StoreError> {
    let trash = hidden(root, TRASH)?;
    disk::rename(&root.join(name), &trash)?;
    disk::sync_folder(root)?;
    // It is gone; what cannot be removed now is swept at the next start.
    let _ = fs::remove_dir_all(&trash);
    Ok(())
}

fn hidden(root: &Path, prefix: &str) -> Result<PathBuf, StoreError> {
    let random = ciphervec_he::random::random_bytes::<8>().map_err(|error| {
        StoreError::io("draw a name in", root, io::Error::other(error.to_string()))
    })?;
    Ok(root.join(format!("{prefix}{}", crate::decode::hex(&random))))
}

#[cfg(test)]
mod tests {
    use super::super::{Store, StoreError};
    use super::*;

    fn made(root: &Path, name: &str) {
        let draft = Draft::write(root, |path| Store::create(path, b"meta").map(drop)).unwrap();
        assert!(draft.settle(name).unwrap().is_some());
    }

    #[test]
    fn stores_are_listed_by_name_and_gone_when_removed() {
        let root = tempfile::tempdir().unwrap();
        made(root.path(), "b");
        made(root.path(), "a");
        fs::create_dir(root.path().join("other")).unwrap();
        assert_eq!(names(root.path()).unwrap(), ["a", "b"]);
        let second = Draft::write(root.path(), |path| Store::create(path, b"").map(drop)).unwrap();
        assert!(second.settle("a").unwrap().is_none());
        assert_eq!(Store::open(&root.path().join("a")).unwrap().meta(), b"meta");
        remove(root.path(), "a").unwrap();
        assert_eq!(names(root.path()).unwrap(), ["b"]);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
        assert!(names(&root.path().join("nowhere")).unwrap().is_empty());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_work_under_its_lock_is_not() {
        let root = tempfile::tempdir().unwrap();
        for left in [".trash-1", ".new-dead", ".new-locked", ".new-fresh", ".new-plain"] {
            fs::create_dir(root.path().join(left)).unwrap();
        }
        for locked in [".new-dead", ".new-locked", ".new-fresh"] {
            fs::write(root.path().join(locked).join(LOCK_FILE), "").unwrap();
        }
        let lock = WriterLock::acquire(&root.path().join(".new-locked")).unwrap();
        let old = SystemTime::now() - Duration::from_secs(60);
        for aged in [".new-dead", ".new-locked", ".new-plain"] {
            fs::File::open(root.path().join(aged)).unwrap().set_modified(old).unwrap();
        }
        sweep(root.path()).unwrap();
        let mut left = entries(root.path()).unwrap();
        left.sort();
        assert_eq!(left, [".new-fresh", ".new-locked", ".new-plain"]);
        drop(lock);
        sweep(root.path()).unwrap();
        assert!(!root.path().join(".new-locked").exists());
    }

    #[test]
    fn what_fails_while_it_is_made_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let failed = Draft::write(root.path(), |path| {
            Store::create(path, b"").map(drop)?;
            Err(StoreError::ReadOnly { path: path.to_owned() })
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_are_those_of_folders_everywhere() {
        for good in ["a", "A-1", "x.y_z", &"n".repeat(LONGEST_NAME)] {
            assert!(valid_name(good), "{good}");
        }
        for bad in ["", ".a", "a.", "a..b", "a/b", "ä", "-a", &"n".repeat(LONGEST_NAME + 1)] {
            assert!(!valid_name(bad), "{bad}");
        }
    }
}
