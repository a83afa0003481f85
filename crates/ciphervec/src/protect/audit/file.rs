//! A log in a file, which this process alone writes to, and the check of one.

use super::MOST;
use super::chain::{AUDIT_KEY_BYTES, Chain, Mark, Place, verifying_key};
use super::verify::{Broken, Check, Verified, begins};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A log that is written. Others can't write to its file meanwhile, if they ask for the lock.
pub struct AuditLog {
    path: PathBuf,
    chain: Chain<Open>,
}

/// The file, as far as it has come.
struct Open {
    file: File,
    /// Bytes of whole lines; none where it is a pipe or a device.
    length: Option<u64>,
    opened: Instant,
    /// Which process opened it: a fork has the file open too, and another end of the chain.
    process: u32,
}

impl AuditLog {
    /// Goes on with the log in a file, or begins one. All of it is checked, by the key's signatures too, and the next line says how
    /// many lines were not signed: these may have been changed meanwhile. A line that was not written to its end goes.
    ///
    /// # Errors
    /// If the file can't be read or written, holds anything but a log that stands, or another process writes to it.
    pub fn open(path: &Path, key: Option<[u8; AUDIT_KEY_BYTES]>) -> io::Result<Self> {
        let (open, found) = Open::at(path, key.as_ref().map(verifying_key).as_ref())?;
        let chain = Chain::go_on(open, key, found.end, found.signed)?;
        Ok(AuditLog { path: path.to_owned(), chain })
    }

    /// Goes on in the file of this name, after it was moved away: its first line says where the other one ended.
    ///
    /// # Errors
    /// As [`Self::open`], and for a file that has something in it; then lines go where they went.
    pub fn reopen(&mut self) -> io::Result<()> {
        if same_file(&self.chain.place().file, &self.path)? {
            return Ok(());
        }
        if std::fs::metadata(&self.path).is_ok_and(|found| found.len() > 0) {
            return Err(io::Error::other(
                "there is something in the new file already; move it away",
            ));
        }
        let (fresh, _) = Open::at(&self.path, None)?;
        self.chain.move_to(fresh)
    }

    /// As [`Chain::append`].
    ///
    /// # Errors
    /// If it can't be written: then nothing of it is in the log.
    pub fn append(&mut self, object: &str) -> io::Result<()> {
        self.chain.append(object)
    }

    /// As [`Chain::sign`].
    ///
    /// # Errors
    /// If the signature can't be written.
    pub fn sign(&mut self) -> io::Result<()> {
        self.chain.sign()
    }

    /// Where it has come to.
    pub fn mark(&self) -> Mark {
        self.chain.mark()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // Who can't be told has what was signed before.
        let _ = self.sign();
    }
}

impl Open {
    /// The file, locked and at its end, and what is in it, by what `key` has signed for.
    fn at(path: &Path, key: Option<&[u8; AUDIT_KEY_BYTES]>) -> io::Result<(Self, Verified)> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok((Open::of(options.open(path)?, None), Verified::default()));
        }
        let file = options.read(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another process writes to it; give each process a file of its own";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let end = file.metadata()?.len();
        let start = end.saturating_sub(MOST);
        let (mut tail, mut reader) = (Vec::new(), &file);
        reader.seek(SeekFrom::Start(start))?;
        Read::take(reader, MOST).read_to_end(&mut tail)?;
        let torn = tail.len() - tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let length = end - torn as u64;
        // Nothing is taken off a file before it is known to be a log.
        let found = verified(path, Some(length), key, &[]).map_err(|broken| {
            let why = format!(
                "{broken}. It is not gone on with: move the file away, and keep it if nobody of yours changed it"
            );
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        if torn > 0 {
            if length == 0 && !(start == 0 && begins(&tail)) {
                let why = "it is no audit log; move the file away";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            file.set_len(length)?;
        }
        Ok((Open::of(file, Some(length)), found))
    }

    fn of(file: File, length: Option<u64>) -> Self {
        Open { file, length, opened: Instant::now(), process: std::process::id() }
    }
}

impl Place for Open {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            // Half a line is none.
            self.length.map_or(Ok(()), |length| self.file.set_len(length))?;
            return Err(error);
        }
        self.length = self.length.map(|length| length + line.len() as u64);
        Ok(())
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    fn check(&self) -> io::Result<()> {
        if std::process::id() == self.process {
            return Ok(());
        }
        let why = "this process was forked off the one that opened it; give each process a file of its own";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let of = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(found) => Ok(of(found) == of(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere a file that is open keeps its name.
#[cfg(not(unix))]
fn same_file(_file: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// Checks every line of a log; with `key` the signatures, each of which has to be its, and one there; and that it passes `marks` that
/// others have seen.
///
/// # Errors
/// [`Broken`], at the first line that does not follow from those before it.
pub fn verify(
    path: &Path,
    key: Option<&[u8; AUDIT_KEY_BYTES]>,
    marks: &[Mark],
) -> Result<Verified, Broken> {
    let found = verified(path, None, key, marks)?;
    if key.is_some() && found.signed == 0 {
        let (path, why) = (path.display().to_string(), "the given key has signed none".to_owned());
        return Err(Broken::Line { path, line: found.end.line.max(1), why });
    }
    Ok(found)
}

/// As [`verify`], of the first `length` bytes, or of all.
fn verified(
    path: &Path,
    length: Option<u64>,
    key: Option<&[u8; AUDIT_KEY_BYTES]>,
    marks: &[Mark],
) -> Result<Verified, Broken> {
    let shown = path.display().to_string();
    let broken = |(line, why)| Broken::Line { path: shown.clone(), line, why };
    let unread = |source| Broken::Read { path: shown.clone(), source };
    let mut check = Check::new(key, marks).map_err(|why| broken((0, why)))?;
    let file = File::open(path).map_err(unread)?;
    let (mut reader, mut line) =
        (BufReader::new(file.take(length.unwrap_or(u64::MAX))), Vec::new());
    loop {
        line.clear();
        let read = reader.by_ref().take(MOST + 1).read_until(b'\n', &mut line).map_err(unread)?;
        if read == 0 {
            return check.end().map_err(broken);
        }
        check.line(&line).map_err(broken)?;
    }
}
