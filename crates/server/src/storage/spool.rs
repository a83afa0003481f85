//! A folder that nobody else can read or has prepared.

use crate::hex;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Error, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder of this process's user alone.
pub struct Spool {
    folder: PathBuf,
    /// Whether it goes when this does.
    temporary: bool,
}

impl Spool {
    /// The folder of that name, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made, is no folder but a link to one, or somebody else's.
    pub fn at(folder: &Path) -> io::Result<Self> {
        let mut builder = private();
        let made = builder.recursive(true).create(folder).and_then(|()| guard(folder));
        made.map_err(|error| {
            let says = format!(
                "cannot use {}: {error}; name a folder of this user with --spool",
                folder.display()
            );
            Error::new(error.kind(), says)
        })?;
        Ok(Spool { folder: folder.to_owned(), temporary: false })
    }

    /// A new folder in the system's temporary one, under a name that nobody can foresee.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn temporary() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(Error::other)?;
        let name = format!("ciphervec-uploads-{}", hex::show(&random));
        let folder = std::env::temp_dir().join(name);
        // Not recursive: one that is there already is another's.
        private().create(&folder)?;
        guard(&folder)?;
        Ok(Spool { folder, temporary: true })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is the system's to clear away.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn private() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Takes away what others may do with a folder of ours; refuses one that is not.
fn guard(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        return Err(Error::new(ErrorKind::NotADirectory, "it is no folder, or a link to one"));
    }
    if !is_ours(folder, &found)? {
        return Err(Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    close(folder, &found)
}

/// Whether whoever owns the folder is who owns what this process makes.
#[cfg(unix)]
fn is_ours(folder: &Path, found: &Metadata) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let probe = folder.join(".owner");
    let ours = fs::File::create(&probe).and_then(|file| file.metadata());
    let _ = fs::remove_file(&probe);
    Ok(ours?.uid() == found.uid())
}

#[cfg(unix)]
fn close(folder: &Path, found: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    if found.mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn is_ours(_: &Path, _: &Metadata) -> io::Result<bool> {
    Ok(true)
}

#[cfg(not(unix))]
fn close(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn it_is_private_ours_and_no_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = folder.path().join("open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("opened");
        assert_eq!(mode(Spool::at(&open).expect("ours").path()), 0o700);
        let fresh = folder.path().join("a/b");
        assert_eq!(mode(Spool::at(&fresh).expect("made").path()), 0o700);
        let link = folder.path().join("link");
        symlink(&open, &link).expect("linked");
        let says = Spool::at(&link).err().expect("refused").to_string();
        assert!(says.contains("link") && says.contains("--spool"), "{says}");
        fs::write(folder.path().join("file"), "").expect("written");
        assert!(Spool::at(&folder.path().join("file")).is_err());
    }

    #[test]
    fn a_temporary_one_has_a_new_name_each_time_and_goes() {
        let (one, two) = (Spool::temporary().expect("made"), Spool::temporary().expect("made"));
        assert_ne!(one.path(), two.path());
        assert_eq!(mode(one.path()), 0o700);
        let path = one.path().to_owned();
        fs::write(path.join("x"), "x").expect("written");
        drop(one);
        assert!(!path.exists() && two.path().exists());
    }
}
