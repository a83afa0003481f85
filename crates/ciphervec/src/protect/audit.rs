//! Audit logs, for servers and for whoever checks them: each line is hashed with all before it, so that none is changed, left out
//! or put in between unseen, and a key that decrypts nothing signs where the log has come to.
//!
//! A line is a JSON object that ends with its number and the chain's value, BLAKE3 of the value before, the number and the line's
//! own text. Whoever can write the file can still cut off its end, up to the last value that somebody else has seen.

use blake3::{Hash, Hasher};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of a signing key, and of what is checked by.
pub const AUDIT_KEY_BYTES: usize = 32;
const CONTEXT: &str = "ciphervec v1 line of an audit log";
const SIGNED: &[u8] = b"ciphervec v1 audit log\0";
/// Lines, and time, after which the next line is followed by a signature.
const LINES: u64 = 1000;
const PAUSE: Duration = Duration::from_secs(60);
/// Bytes of the longest line that is read.
const MOST: u64 = 1 << 20;

/// How many lines there are, and the value of the chain after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// The last line's number, from 1 on.
    pub line: u64,
    /// The value there.
    pub chain: [u8; 32],
}

impl Mark {
    /// After one more line of this text, which lacks its ending.
    fn after(&self, text: &[u8]) -> Self {
        let line = self.line + 1;
        let mut hasher = Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.chain).update(&line.to_le_bytes()).update(text);
        Mark { line, chain: *hasher.finalize().as_bytes() }
    }

    fn ending(&self) -> String {
        format!(",\"line\":{},\"chain\":\"{}\"}}", self.line, Hash::from_bytes(self.chain))
    }

    /// What a signature is of.
    fn signed(&self) -> Vec<u8> {
        [SIGNED, &self.line.to_le_bytes(), &self.chain].concat()
    }

    /// The text of a line, and what its ending says.
    fn split(line: &[u8]) -> Option<(&[u8], Self)> {
        let (rest, chain) = line.strip_suffix(b"\"}")?.split_last_chunk::<64>()?;
        let chain = *Hash::from_hex(chain).ok()?.as_bytes();
        let rest = rest.strip_suffix(b",\"chain\":\"")?;
        let text =
            &rest[..rest.len() - rest.iter().rev().take_while(|b| b.is_ascii_digit()).count()];
        let line_number = core::str::from_utf8(&rest[text.len()..]).ok()?.parse().ok()?;
        let mark = Mark { line: line_number, chain };
        let text = text.strip_suffix(b",\"line\":")?;
        // There is one way to write it, or digits could be changed that no hash is of.
        (&line[text.len()..] == mark.ending().as_bytes()).then_some((text, mark))
    }
}

/// A log that is written. Others can't write to its file meanwhile, if they ask for the lock.
pub struct AuditLog {
    path: PathBuf,
    key: Option<SigningKey>,
    file: File,
    /// Bytes of whole lines.
    length: u64,
    mark: Mark,
    signed: (u64, Instant),
}

impl AuditLog {
    /// Goes on with the log in a file, or begins one. A line that was not written to its end goes; lines of before there were chains
    /// stay in front.
    ///
    /// # Errors
    /// If the file can't be read or written, or another process writes to it.
    pub fn open(path: &Path, key: Option<[u8; AUDIT_KEY_BYTES]>) -> io::Result<Self> {
        let key = key.map(|bytes| SigningKey::from_bytes(&bytes));
        let (file, length, mark) = opened(path)?;
        let signed = (mark.line, Instant::now());
        let mut log = AuditLog { path: path.to_owned(), key, file, length, mark, signed };
        let more = if mark.line == 0 { "begun" } else { "continued" };
        log.append(&format!("{{\"event\":\"{more}\"}}"))?;
        log.sign()?;
        Ok(log)
    }

    /// Goes on in the file of this name, after it was moved away: its first line says where the other one ended.
    ///
    /// # Errors
    /// As [`Self::open`]; then lines go where they went.
    pub fn reopen(&mut self) -> io::Result<()> {
        if same_file(&self.file, &self.path)? {
            return Ok(());
        }
        let (file, length, mark) = opened(&self.path)?;
        self.sign()?;
        let Mark { line, chain } = core::mem::replace(&mut self.mark, mark);
        (self.file, self.length) = (file, length);
        let after = Hash::from_bytes(chain);
        self.append(&format!(
            "{{\"event\":\"begun\",\"after_line\":{line},\"after\":\"{after}\"}}"
        ))?;
        self.sign()
    }

    /// Appends a JSON object, which has no line break and at least one field.
    ///
    /// # Errors
    /// If it can't be written: then nothing of it is in the log.
    pub fn append(&mut self, object: &str) -> io::Result<()> {
        let text = object.strip_suffix('}').filter(|text| text.len() > 1 && !text.contains('\n'));
        let Some(text) = text else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a JSON object on one line expected",
            ));
        };
        let next = self.mark.after(text.as_bytes());
        let line = format!("{text}{}\n", next.ending());
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line is none.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.mark = next;
        let (line, then) = self.signed;
        if self.mark.line - line.min(self.mark.line) > LINES || then.elapsed() > PAUSE {
            self.sign()?;
        }
        Ok(())
    }

    /// Signs where it has come to, if it has a key and something came since.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn sign(&mut self) -> io::Result<()> {
        let Some(key) = &self.key else { return Ok(()) };
        if self.signed.0 == self.mark.line {
            return Ok(());
        }
        let signature = key.sign(&self.mark.signed());
        let [key, signature] = [hex(key.verifying_key().as_bytes()), hex(&signature.to_bytes())];
        self.signed = (self.mark.line + 1, Instant::now());
        self.append(&format!(
            "{{\"event\":\"signed\",\"key\":\"{key}\",\"signature\":\"{signature}\"}}"
        ))
    }

    /// Where it has come to.
    pub fn mark(&self) -> Mark {
        self.mark
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // Who can't be told has what was signed before.
        let _ = self.sign();
    }
}

/// The half of a signing key that signatures are checked by.
pub fn verifying_key(key: &[u8; AUDIT_KEY_BYTES]) -> [u8; AUDIT_KEY_BYTES] {
    SigningKey::from_bytes(key).verifying_key().to_bytes()
}

/// The file, locked and at its end, the length of its whole lines, and what the last one says.
fn opened(path: &Path) -> io::Result<(File, u64, Mark)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let why = "another process writes to it; give each process a file of its own";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let end = file.seek(SeekFrom::End(0))?;
    let start = end.saturating_sub(MOST);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    Read::take(&file, MOST).read_to_end(&mut tail)?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let length = if whole == 0 && start > 0 { end } else { start + whole as u64 };
    if length < end {
        file.set_len(length)?;
    }
    let lines = tail[..whole].strip_suffix(b"\n").unwrap_or_default();
    let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok((file, length, Mark::split(last).map(|(_, mark)| mark).unwrap_or_default()))
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

/// What a log that holds is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// Lines in front, of before there were chains: nothing is known of them.
    pub unchained: u64,
    /// Where it ends.
    pub end: Mark,
    /// The last line that the key has signed for; 0 where there is none, or no key was given.
    pub signed: u64,
    /// Where the log before this one ended, as the first line says.
    pub after: Option<Mark>,
}

/// Why a log does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A line does not follow from those before it.
    #[error("line {line} of {path}: {why}")]
    Line {
        /// The file.
        path: String,
        /// Which one, from 1 on; 0 where it is the key that can't be used.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The file can't be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// Checks every line of a log; with `key` the signatures, each of which has to be its; and that it passes `marks` that others have seen.
///
/// # Errors
/// [`Broken`], at the first line that does not follow from those before it.
pub fn verify(
    path: &Path,
    key: Option<&[u8; AUDIT_KEY_BYTES]>,
    marks: &[Mark],
) -> Result<Verified, Broken> {
    let shown = path.display().to_string();
    let broken = |line, why: &str| Broken::Line { path: shown.clone(), line, why: why.to_owned() };
    let unread = |source| Broken::Read { path: shown.clone(), source };
    let key = key.map(VerifyingKey::from_bytes).transpose();
    let key = key.map_err(|_| broken(0, "the key that signatures are to be checked by is none"))?;
    let mut reader = BufReader::new(File::open(path).map_err(unread)?);
    let (mut found, mut line, mut number) = (Verified::default(), Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.by_ref().take(MOST + 1).read_until(b'\n', &mut line).map_err(unread)?;
        if read == 0 {
            break;
        }
        number += 1;
        let Some(whole) = line.strip_suffix(b"\n") else {
            return Err(broken(number, "it has no end, or is longer than a line can be"));
        };
        let Some((text, mark)) = Mark::split(whole) else {
            if found.end.line > 0 {
                return Err(broken(
                    number,
                    "it has no number and value of the chain, as those before it",
                ));
            }
            found.unchained += 1;
            continue;
        };
        let due = found.end.after(text);
        if mark.line != due.line {
            let why = format!("it is numbered {}, where line {} follows", mark.line, due.line);
            return Err(broken(number, &why));
        }
        if mark != due {
            return Err(broken(number, "it, or a line before it, was changed"));
        }
        if let Some(signed) = field(text, b"{\"event\":\"signed\",\"key\":\"").zip(key.as_ref()) {
            let (by, key) = signed;
            let after = &text[by.len() + b"{\"event\":\"signed\",\"key\":\"".len()..];
            let signature = field(after, b"\",\"signature\":\"").and_then(unhex::<64>);
            let is_own = unhex::<32>(by).as_ref() == Some(key.as_bytes());
            let holds = signature.is_some_and(|signature| {
                key.verify_strict(&found.end.signed(), &Signature::from_bytes(&signature)).is_ok()
            });
            if !is_own || !holds {
                return Err(broken(number, "the given key has not signed the lines before it"));
            }
            found.signed = found.end.line;
        }
        if mark.line == 1 {
            found.after = followed(text);
        }
        found.end = mark;
        if let Some(seen) = marks.iter().find(|seen| seen.line == mark.line)
            && *seen != mark
        {
            return Err(broken(number, "its value of the chain is not the one that was seen"));
        }
    }
    match marks.iter().find(|seen| seen.line > found.end.line) {
        Some(seen) => {
            let why = format!("the log ends here; line {} was seen before", seen.line);
            Err(broken(number, &why))
        }
        None => Ok(found),
    }
}

/// What stands between `start` and the next quotation mark.
fn field<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    text.strip_prefix(start)?.split(|byte| *byte == b'"').next()
}

/// The end of the log before this one, from its first line.
fn followed(text: &[u8]) -> Option<Mark> {
    let rest = text.strip_prefix(b"{\"event\":\"begun\",\"after_line\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let line = core::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let chain = unhex(field(&rest[digits..], b",\"after\":\"")?)?;
    Some(Mark { line, chain })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let pairs = text.as_chunks::<2>();
    if pairs.0.len() != N || !pairs.1.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs.0) {
        let digit =
            |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}
