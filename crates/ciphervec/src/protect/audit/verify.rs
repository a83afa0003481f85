//! Check of a log, line by line: that each follows from those before it, that a key has signed, and that what others saw is there.

use super::chain::{AUDIT_KEY_BYTES, Mark};
use super::{BEGUN, CONTINUED, FOLLOWING, LOST, MOST, SIGNATURE};
use ed25519_dalek::{Signature, VerifyingKey};
use std::io;

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

/// A log of which lines are read one after the other.
pub struct Check<'a> {
    key: Option<VerifyingKey>,
    marks: &'a [Mark],
    found: Verified,
    /// Of the line that was read last.
    number: u64,
}

/// Which line does not hold, and why.
type Wrong = (u64, String);

impl<'a> Check<'a> {
    /// By the key's signatures, if there is one, and by what others have seen.
    ///
    /// # Errors
    /// If the key is none.
    pub fn new(key: Option<&[u8; AUDIT_KEY_BYTES]>, marks: &'a [Mark]) -> Result<Self, String> {
        let key = key.map(VerifyingKey::from_bytes).transpose();
        let key = key.map_err(|_| "the key that signatures are to be checked by is none")?;
        Ok(Check { key, marks, found: Verified::default(), number: 0 })
    }

    /// The next line, with its end.
    ///
    /// # Errors
    /// If it does not follow from those before it.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Wrong> {
        self.number += 1;
        self.next(line).map_err(|why| (self.number, why))
    }

    fn next(&mut self, line: &[u8]) -> Result<(), String> {
        let found = &mut self.found;
        let whole = line.strip_suffix(b"\n").filter(|_| line.len() as u64 <= MOST + 1);
        let whole = whole.ok_or("it has no end, or is longer than a line can be")?;
        let split = Mark::split(whole);
        let (text, mark) =
            split.ok_or("it is no line of a chained log: it lacks its number and the chain")?;
        let due = found.end.after(text);
        if mark.line != due.line {
            return Err(format!("it is numbered {}, where line {} follows", mark.line, due.line));
        }
        if mark != due {
            return Err("it, or a line before it, was changed".to_owned());
        }
        if let Some((by, key)) = field(text, SIGNATURE.as_bytes()).zip(self.key.as_ref()) {
            let after = &text[SIGNATURE.len() + by.len()..];
            let signature = field(after, b"\",\"signature\":\"").and_then(unhex::<64>);
            let is_own = unhex::<32>(by).as_ref() == Some(key.as_bytes());
            let holds = signature.is_some_and(|signature| {
                key.verify_strict(&found.end.signed(), &Signature::from_bytes(&signature)).is_ok()
            });
            if !is_own || !holds {
                return Err("the given key has not signed the lines before it".to_owned());
            }
            found.signed = found.end.line;
        }
        if mark.line == 1 {
            found.after = followed(text);
        }
        found.unsigned = found.unsigned.saturating_add(counted(text, CONTINUED));
        found.lost = found.lost.saturating_add(counted(text, LOST));
        found.end = mark;
        if self.marks.iter().any(|seen| seen.line == mark.line && *seen != mark) {
            return Err("its value of the chain is not the one that was seen".to_owned());
        }
        Ok(())
    }

    /// What the log is about, after its last line.
    ///
    /// # Errors
    /// If somebody has seen more of it.
    pub fn end(self) -> Result<Verified, Wrong> {
        match self.marks.iter().find(|seen| seen.line > self.found.end.line) {
            Some(seen) => {
                let why = format!("the log ends here; line {} was seen before", seen.line);
                Err((self.number, why))
            }
            None => Ok(self.found),
        }
    }
}

/// Whether a first line that was not written to its end is one of a log.
pub fn begins(torn: &[u8]) -> bool {
    torn.iter().zip(BEGUN.as_bytes()).all(|(found, due)| found == due)
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
