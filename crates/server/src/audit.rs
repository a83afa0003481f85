//! Audit log: who did what enters; one JSON line leaves, never a token or a body. Server side.

use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// One line.
#[derive(Serialize)]
pub struct Line<'a> {
    /// When the answer began, RFC 3339.
    pub time: jiff::Timestamp,
    /// The request's id, as in the log and in the answer.
    pub request: &'a str,
    /// The token's id; `-` without a valid one.
    pub token: &'a str,
    /// The verb that the request needs.
    pub verb: &'a str,
    /// What was done, such as `commit` or `query`.
    pub action: &'a str,
    /// The collection or the program; empty where there is none.
    pub collection: &'a str,
    /// `allowed`, `denied`, `failed`, or `left` where the client did before its answer.
    pub outcome: &'a str,
    /// The status of the answer; 499 where the client left.
    pub status: u16,
    /// Bytes of the body that came.
    pub received: u64,
    /// Bytes of the body that went back.
    pub sent: u64,
}

/// Where audit lines go.
pub struct Audit {
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Audit {
    /// Appends to a file, or writes to the log.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = match path {
            None => None,
            Some(path) => Some((path.to_owned(), Mutex::new(append(path)?))),
        };
        Ok(Audit { file })
    }

    /// Opens the file by its name again, after it was moved away.
    ///
    /// # Errors
    /// If it cannot be opened: lines then go where they went.
    pub fn reopen(&self) -> io::Result<()> {
        if let Some((path, file)) = &self.file {
            let fresh = append(path)?;
            *file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        Ok(())
    }

    /// Writes one line.
    pub fn write(&self, line: &Line<'_>) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        let Some((_, file)) = &self.file else {
            tracing::info!(target: "audit", "{}", String::from_utf8_lossy(&text));
            return;
        };
        text.push(b'\n');
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text);
        if let Err(error) = written {
            tracing::error!(%error, "an audit line could not be written");
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
