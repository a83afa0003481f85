//! Claim: one server a folder. A second one would clear away what the first is writing, and answer that every collection is
//! locked. The claim's file says which process has it; the system drops the claim when that process ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;

const FILE: &str = ".serving";

/// Held until dropped.
pub struct Claim {
    _file: File,
}

impl Claim {
    /// Claims the folder for this process, which answers at `address`. Nothing where the folder takes no writes or its
    /// file system has no locks: such a folder is served without.
    ///
    /// # Errors
    /// Who serves it, and what to do.
    pub fn take(folder: &Path, address: SocketAddr) -> Result<Option<Self>, String> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let Ok(mut file) = fs::create_dir_all(folder).and_then(|()| options.open(path)) else {
            return Ok(None);
        };
        match file.try_lock() {
            Ok(()) => {
                let who = format!("process {} at {address}\n", std::process::id());
                let _ = file.set_len(0).and_then(|()| file.write_all(who.as_bytes()));
                Ok(Some(Self { _file: file }))
            }
            Err(TryLockError::WouldBlock) => {
                let mut who = String::new();
                let _ = file.take(200).read_to_string(&mut who);
                let who = if who.is_empty() { "another process" } else { who.trim() };
                Err(format!(
                    "{} is served already, by {who}: stop that server first, or serve another folder with --data",
                    folder.display()
                ))
            }
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }
}
