//! Storage: where what a client remembers lies, in a folder or in memory.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// What a client remembers: what servers showed before, so that a later process notices what they take back, and sealed blobs, so that
/// they are not fetched again. All of it is encrypted under the owner's keys.
pub struct Storage(Place);

enum Place {
    Memory(Mutex<Entries>),
    Folder(PathBuf),
}

#[derive(Default)]
struct Entries {
    held: HashMap<String, (u64, Vec<u8>)>,
    /// Counts uses: the latest has the largest number.
    clock: u64,
}

impl Storage {
    /// In a folder. Where it is not there it is made, and is nobody's but the user's.
    ///
    /// # Errors
    /// [`Error::Storage`] for a folder that can't be used.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        make(&folder, &folder).map_err(|error| refused(&folder, &error))?;
        Ok(Storage(Place::Folder(folder)))
    }

    /// In a folder that is made once something is put there, and can't be used before anything is.
    pub fn unmade(folder: impl Into<PathBuf>) -> Self {
        Storage(Place::Folder(folder.into()))
    }

    /// In memory: it ends with this, and a server is trusted anew by each process.
    pub fn in_memory() -> Self {
        Storage(Place::Memory(Mutex::default()))
    }

    /// Whether what is put here is there in a later process.
    pub fn durable(&self) -> bool {
        matches!(self.0, Place::Folder(_))
    }

    fn run<T>(
        &self,
        work: impl FnOnce(&Path) -> std::io::Result<T>,
        memory: impl FnOnce(&mut Entries) -> T,
    ) -> Result<T> {
        match &self.0 {
            Place::Memory(entries) => {
                Ok(memory(&mut entries.lock().unwrap_or_else(PoisonError::into_inner)))
            }
            Place::Folder(folder) => work(folder).map_err(|error| refused(folder, &error)),
        }
    }

    /// What was put under a name.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let from_folder = |folder: &Path| {
            let path = path_of(folder, name);
            let path = former_note(folder, name).filter(|_| !path.exists()).unwrap_or(path);
            match fs::read(&path) {
                Ok(data) => {
                    // When it was used last; that it can't be noted costs nothing but the order.
                    let _ = File::options()
                        .append(true)
                        .open(&path)
                        .and_then(|file| file.set_modified(SystemTime::now()));
                    Ok(Some(data))
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        let from_memory = |entries: &mut Entries| {
            entries.clock += 1;
            let (used, data) = entries.held.get_mut(name)?;
            *used = entries.clock;
            Some(data.clone())
        };
        self.run(from_folder, from_memory)
    }

    /// Keeps bytes under a name, durably.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn put(&self, name: &str, data: &[u8]) -> Result<()> {
        let into_folder = |folder: &Path| {
            let path = path_of(folder, name);
            let parent = path.parent().unwrap_or(folder);
            make(folder, parent)?;
            let mut draft = tempfile::NamedTempFile::new_in(parent)?;
            draft.write_all(data)?;
            draft.as_file().sync_all()?;
            draft.persist(&path).map_err(|error| error.error)?;
            // The new name as well; Windows opens no folder.
            if cfg!(unix) { File::open(parent)?.sync_all() } else { Ok(()) }
        };
        let into_memory = |entries: &mut Entries| {
            entries.clock += 1;
            entries.held.insert(name.to_owned(), (entries.clock, data.to_vec()));
        };
        self.run(into_folder, into_memory)
    }

    /// Forgets them; that there are none is no error.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn delete(&self, name: &str) -> Result<()> {
        let from_folder = |folder: &Path| {
            for path in former_note(folder, name).into_iter().chain([path_of(folder, name)]) {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error);
                    }
                    _ => {}
                }
            }
            Ok(())
        };
        self.run(from_folder, |entries| drop(entries.held.remove(name)))
    }

    /// Names that begin so, with the bytes of each, the ones unused for longest first.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let of_folder = |folder: &Path| {
            let (within, begins) = prefix.split_at(prefix.rfind('/').map_or(0, |at| at + 1));
            let Ok(files) = fs::read_dir(folder.join(within)) else { return Ok(Vec::new()) };
            let mut found = Vec::new();
            for file in files {
                let file = file?;
                let (Ok(known), name) = (file.metadata(), file.file_name()) else { continue };
                let name = name.to_string_lossy();
                if known.is_file() && name.starts_with(begins) {
                    found.push((known.modified()?, format!("{within}{name}"), known.len()));
                }
            }
            // Of an earlier release, in a folder of that name.
            for file in fs::read_dir(folder.join(prefix)).into_iter().flatten() {
                let file = file?;
                let name = format!("{prefix}{}", file.file_name().to_string_lossy());
                let listed = found.iter().any(|(_, known, _)| *known == name);
                if let (Some(_), false, Ok(known)) =
                    (former_note(folder, &name), listed, file.metadata())
                {
                    found.push((known.modified()?, name, known.len()));
                }
            }
            found.sort();
            Ok(found.into_iter().map(|(_, name, bytes)| (name, bytes)).collect())
        };
        let of_memory = |entries: &mut Entries| {
            let named = entries.held.iter().filter(|(name, _)| name.starts_with(prefix));
            let mut found: Vec<_> = named
                .map(|(name, (used, data))| (*used, name.clone(), data.len() as u64))
                .collect();
            found.sort();
            found.into_iter().map(|(_, name, bytes)| (name, bytes)).collect()
        };
        self.run(of_folder, of_memory)
    }

    /// The bytes that are kept under each of these names; none where there are none.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn lengths(&self, names: &[String]) -> Result<Vec<Option<u64>>> {
        let of_folder = |folder: &Path| {
            let length = |name: &String| match fs::metadata(path_of(folder, name)) {
                Ok(known) => Ok(known.is_file().then_some(known.len())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
            names.iter().map(length).collect()
        };
        let of_memory = |entries: &mut Entries| {
            let length = |name: &String| Some(entries.held.get(name)?.1.len() as u64);
            names.iter().map(length).collect()
        };
        self.run(of_folder, of_memory)
    }

    /// Keeps others with the same storage from what is done under a name, until what it gives is dropped.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn lock(&self, name: &str) -> Result<Box<dyn core::any::Any>> {
        let of_folder = |folder: &Path| {
            let path = path_of(folder, name).with_extension("lock");
            make(folder, path.parent().unwrap_or(folder))?;
            let file = File::options().create(true).truncate(false).write(true).open(path)?;
            file.lock()?;
            Ok(Box::new(file) as Box<dyn core::any::Any>)
        };
        self.run(of_folder, |_| Box::new(()) as Box<dyn core::any::Any>)
    }
}

/// The file of a name: those of this crate are a word, a slash and hexadecimal digits. Any other is hashed.
fn path_of(folder: &Path, name: &str) -> PathBuf {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match name.split_once('/') {
        Some(("former", rest)) => former(folder, rest),
        Some((kind, rest)) if plain(kind) && plain(rest) => folder.join(kind).join(rest),
        _ => folder.join("other").join(blake3::hash(name.as_bytes()).to_hex().as_str()),
    }
}

/// The file by which a Python client of an earlier release put a segment into quarantine; none for other names.
fn former_note(folder: &Path, name: &str) -> Option<PathBuf> {
    let of = name.strip_prefix("quarantine/")?;
    let hex = of.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (of.len() == 64 && hex).then(|| folder.join("quarantine").join(&of[..32]).join(&of[32..]))
}

/// The file that a Python client of an earlier release kept something in.
fn former(folder: &Path, what: &str) -> PathBuf {
    let hashed = |text: &str| {
        let digest = Sha256::digest(text.as_bytes());
        digest[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = what.split('\n');
    match [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default) {
        ["server", server, name] => {
            folder.join("servers").join(hashed(server)).join(format!("{}.json", hashed(name)))
        }
        ["origin", origin, ""] if whole(origin) => {
            folder.join("collections").join(format!("{origin}.json"))
        }
        ["consumed", origin, ""] if whole(origin) => {
            folder.join("collections").join(format!("{origin}.consumed"))
        }
        _ => folder.join("other").join(hashed(what)),
    }
}

fn refused(folder: &Path, error: &std::io::Error) -> Error {
    Error::Storage(format!(
        "{}: what this client remembers can't be kept there: {error}.",
        folder.display()
    ))
}

/// Makes a folder within that of a storage, which is the user's alone.
fn make(storage: &Path, folder: &Path) -> std::io::Result<()> {
    if !storage.is_dir() {
        fs::create_dir_all(storage)?;
        only_mine(storage)?;
    }
    fs::create_dir_all(folder)
}

/// Nobody else is to read or change what is remembered.
#[cfg(unix)]
fn only_mine(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Folders of a user's profile are theirs alone.
#[cfg(not(unix))]
fn only_mine(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_clients_kept_is_found_where_they_kept_it() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Storage::new(folder.path()).unwrap();
        let (one, two) = ("12".repeat(16), "ab".repeat(16));
        let files = [
            // hashlib.sha256(b"https://x").hexdigest()[:32], of b"docs" too
            "servers/76d6c019db51ab35edc24714da29820a/46b42b4229cd7a39c564e780bb665a8b.json"
                .to_owned(),
            format!("collections/{one}.json"),
            format!("collections/{one}.consumed"),
            format!("quarantine/{one}/{two}"),
            format!("quarantine/{one}/{two}.stated"),
        ];
        for file in &files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let note = format!("quarantine/{one}{two}");
        let names = [
            "former/server\nhttps://x\ndocs".to_owned(),
            format!("former/origin\n{one}"),
            format!("former/consumed\n{one}"),
            note.clone(),
        ];
        for (name, file) in names.iter().zip(&files) {
            assert_eq!(kept.get(name).unwrap().unwrap(), file.as_bytes(), "{name}");
        }
        assert_eq!(kept.get("former/origin\n../x").unwrap(), None);
        let prefix = format!("quarantine/{one}");
        let listed = || -> Vec<_> {
            kept.list(&prefix).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(listed(), std::slice::from_ref(&note));
        kept.put(&note, b"new").unwrap();
        assert_eq!(kept.get(&note).unwrap().unwrap(), b"new");
        assert_eq!(listed(), std::slice::from_ref(&note));
        for name in &names {
            kept.delete(name).unwrap();
            assert_eq!(kept.get(name).unwrap(), None, "{name}");
        }
        assert!(listed().is_empty());
    }

    #[test]
    fn a_folder_lists_the_names_that_begin_so() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Storage::new(folder.path()).unwrap();
        for name in ["a/12", "a/13", "a/2", "b/12"] {
            kept.put(name, b"x").unwrap();
        }
        for (prefix, expected) in
            [("a/1", &["a/12", "a/13"][..]), ("a/", &["a/12", "a/13", "a/2"]), ("c/", &[])]
        {
            let mut found: Vec<_> =
                kept.list(prefix).unwrap().into_iter().map(|(name, _)| name).collect();
            found.sort();
            assert_eq!(found, expected, "{prefix}");
        }
        let names = ["a/12", "a/1", "b/13", "b/12"].map(str::to_owned);
        assert_eq!(kept.lengths(&names).unwrap(), [Some(1), None, None, Some(1)]);
    }
}
