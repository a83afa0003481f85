//! Audit logs, for servers and for whoever checks them: each line is hashed with all before it, so that none is changed, left out
//! or put in between unseen, and a key that decrypts nothing signs where the log has come to.
//!
//! A line is a JSON object that ends with its number and the chain's value, BLAKE3 of the value before, the number and the line's
//! own text. Whoever can write the file can still cut off its end, up to the last value that somebody else has seen.
//!
//! The last two fields of a line, without spaces around them, are `"line"`, its number from 1 on in its file, and `"chain"`, 64
//! hexadecimal digits: BLAKE3's `derive_key`, context `ciphervec v1 line of an audit log`, of the former line's chain (32 zeros
//! before the first), the number u64 and the line's text up to the comma before `"line"`. These lines have fields of their own:
//!
//! |line begins|contains|
//! |---|---|
//! |`{"event":"signed","key":…,"signature":…`|an Ed25519 key and its signature of `ciphervec v1 audit log`, a zero byte, the former line's number u64 and chain|
//! |`{"event":"begun","after_line":…,"after":…`|first in a file that follows another: the last number and chain there|
//! |`{"event":"continued","unsigned":…`|how many lines had no signature when the log was gone on with|
//! |`{"event":"lost","lines":…`|how many lines could not be written|

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
// How lines begin that say something of the log itself.
const BEGUN: &str = "{\"event\":\"begun\"";
const FOLLOWING: &str = "{\"event\":\"begun\",\"after_line\":";
const CONTINUED: &str = "{\"event\":\"continued\",\"unsigned\":";
const LOST: &str = "{\"event\":\"lost\",\"lines\":";
const SIGNATURE: &str = "{\"event\":\"signed\",\"key\":\"";

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
    open: Open,
    signed: (u64, Instant),
    /// Lines that could not be written.
    lost: u64,
    /// Which process opened it: a fork has the file open too, and another end of the chain.
    process: u32,
}

/// The file, as far as it has come.
struct Open {
    file: File,
    /// Bytes of whole lines; none where it is a pipe or a device.
    length: Option<u64>,
    mark: Mark,
}

impl AuditLog {
    /// Goes on with the log in a file, or begins one. All of it is checked, by the key's signatures too, and the next line says how
    /// many lines were not signed: these may have been changed meanwhile. A line that was not written to its end goes.
    ///
    /// # Errors
    /// If the file can't be read or written, holds anything but a log that stands, or another process writes to it.
    pub fn open(path: &Path, key: Option<[u8; AUDIT_KEY_BYTES]>) -> io::Result<Self> {
        let key = key.map(|bytes| SigningKey::from_bytes(&bytes));
        let public = key.as_ref().map(|key| key.verifying_key().to_bytes());
        let (open, signed) = Open::at(path, public.as_ref())?;
        let line = open.mark.line;
        let (signed_at, process) = ((line, Instant::now()), std::process::id());
        let mut log =
            AuditLog { path: path.to_owned(), key, open, signed: signed_at, lost: 0, process };
        log.open.write(&match line {
            0 => BEGUN.to_owned(),
            // A signature is not signed itself.
            _ => format!("{CONTINUED}{}", line - (signed + u64::from(signed > 0)).min(line)),
        })?;
        log.sign()?;
        Ok(log)
    }

    /// Goes on in the file of this name, after it was moved away: its first line says where the other one ended.
    ///
    /// # Errors
    /// As [`Self::open`], and for a file that has something in it; then lines go where they went.
    pub fn reopen(&mut self) -> io::Result<()> {
        if same_file(&self.open.file, &self.path)? {
            return Ok(());
        }
        if std::fs::metadata(&self.path).is_ok_and(|found| found.len() > 0) {
            return Err(io::Error::other(
                "there is something in the new file already; move it away",
            ));
        }
        let (mut fresh, _) = Open::at(&self.path, None)?;
        self.sign()?;
        let Mark { line, chain } = self.open.mark;
        fresh.write(&format!("{FOLLOWING}{line},\"after\":\"{}\"", Hash::from_bytes(chain)))?;
        (self.open, self.signed) = (fresh, (0, Instant::now()));
        self.sign()
    }

    /// Appends a JSON object, which has no line break and at least one field. What could not be written before is counted in a line
    /// in front of it.
    ///
    /// # Errors
    /// If it can't be written: then nothing of it is in the log.
    pub fn append(&mut self, object: &str) -> io::Result<()> {
        let text = object.strip_suffix('}').filter(|text| text.len() > 1 && !text.contains('\n'));
        self.check_process()?;
        let Some(text) = text.filter(|text| (text.len() as u64) < MOST / 2) else {
            let why = "a JSON object on one line expected, of less than 512 KiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        let written =
            if self.lost == 0 { Ok(()) } else { self.open.write(&format!("{LOST}{}", self.lost)) };
        if let Err(error) = written.and_then(|()| {
            self.lost = 0;
            self.open.write(text)
        }) {
            self.lost += 1;
            return Err(error);
        }
        let (line, then) = self.signed;
        if self.open.mark.line - line > LINES || then.elapsed() > PAUSE {
            // The next line tries again.
            let _ = self.sign();
        }
        Ok(())
    }

    fn check_process(&self) -> io::Result<()> {
        if std::process::id() == self.process {
            return Ok(());
        }
        let why = "this process was forked off the one that opened it; give each process a file of its own";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Signs where it has come to, if it has a key and something came since.
    ///
    /// # Errors
    /// If the signature can't be written.
    pub fn sign(&mut self) -> io::Result<()> {
        let (Some(key), mark) = (&self.key, self.open.mark) else { return Ok(()) };
        if self.signed.0 == mark.line {
            return Ok(());
        }
        self.check_process()?;
        let signature = key.sign(&mark.signed());
        let [key, signature] = [hex(key.verifying_key().as_bytes()), hex(&signature.to_bytes())];
        self.open.write(&format!("{SIGNATURE}{key}\",\"signature\":\"{signature}\""))?;
        self.signed = (self.open.mark.line, Instant::now());
        Ok(())
    }

    /// Where it has come to.
    pub fn mark(&self) -> Mark {
        self.open.mark
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // Who can't be told has what was signed before.
        let _ = self.sign();
    }
}

impl Open {
    /// The file, locked and at its end, and the last line in it that `key` has signed for.
    fn at(path: &Path, key: Option<&[u8; AUDIT_KEY_BYTES]>) -> io::Result<(Self, u64)> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let open = Open { file: options.open(path)?, length: None, mark: Mark::default() };
            return Ok((open, 0));
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
            let first = BEGUN.as_bytes();
            let is_own = length > 0 || start == 0 && tail.iter().zip(first).all(|(a, b)| a == b);
            if !is_own {
                let why = "it is no audit log; move the file away";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            file.set_len(length)?;
        }
        Ok((Open { file, length: Some(length), mark: found.end }, found.signed))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let next = self.mark.after(text.as_bytes());
        let line = format!("{text}{}\n", next.ending());
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line is none.
            self.length.map_or(Ok(()), |length| self.file.set_len(length))?;
            return Err(error);
        }
        self.length = self.length.map(|length| length + line.len() as u64);
        self.mark = next;
        Ok(())
    }
}

/// The half of a signing key that signatures are checked by.
pub fn verifying_key(key: &[u8; AUDIT_KEY_BYTES]) -> [u8; AUDIT_KEY_BYTES] {
    SigningKey::from_bytes(key).verifying_key().to_bytes()
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
    /// Where it ends.
    pub end: Mark,
    /// The last line that the key has signed for; 0 where there is none, or no key was given.
    pub signed: u64,
    /// Lines that were not signed when the log was gone on with: they may have been changed before.
    pub unsigned: u64,
    /// Lines that could not be written, as the log says.
    pub lost: u64,
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
    let broken = |line, why: &str| Broken::Line { path: shown.clone(), line, why: why.to_owned() };
    let unread = |source| Broken::Read { path: shown.clone(), source };
    let key = key.map(VerifyingKey::from_bytes).transpose();
    let key = key.map_err(|_| broken(0, "the key that signatures are to be checked by is none"))?;
    let file = File::open(path).map_err(unread)?;
    let mut reader = BufReader::new(file.take(length.unwrap_or(u64::MAX)));
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
            return Err(broken(
                number,
                "it is no line of a chained log: it lacks its number and the chain",
            ));
        };
        let due = found.end.after(text);
        if mark.line != due.line {
            let why = format!("it is numbered {}, where line {} follows", mark.line, due.line);
            return Err(broken(number, &why));
        }
        if mark != due {
            return Err(broken(number, "it, or a line before it, was changed"));
        }
        if let Some((by, key)) = field(text, SIGNATURE.as_bytes()).zip(key.as_ref()) {
            let after = &text[SIGNATURE.len() + by.len()..];
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
        found.unsigned = found.unsigned.saturating_add(counted(text, CONTINUED));
        found.lost = found.lost.saturating_add(counted(text, LOST));
        found.end = mark;
        if marks.iter().any(|seen| seen.line == mark.line && *seen != mark) {
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

/// The number after `start`.
fn counted(text: &[u8], start: &str) -> u64 {
    let number = text.strip_prefix(start.as_bytes()).unwrap_or_default();
    core::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The end of the log before this one, from its first line.
fn followed(text: &[u8]) -> Option<Mark> {
    let rest = text.strip_prefix(FOLLOWING.as_bytes())?;
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
