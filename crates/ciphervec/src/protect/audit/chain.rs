//! Chain: the lines of a log that is written, each hashed with all before it, and signed from time to time. Knows no file: where lines
//! go is a [`Place`]'s matter.

use super::{BEGUN, CONTINUED, FOLLOWING, LOST, MOST, SIGNATURE};
use blake3::{Hash, Hasher};
use ed25519_dalek::{Signer, SigningKey};
use std::io;
use std::time::Duration;

/// Bytes of a signing key, and of what is checked by.
pub const AUDIT_KEY_BYTES: usize = 32;
const CONTEXT: &str = "ciphervec v1 line of an audit log";
const SIGNED: &[u8] = b"ciphervec v1 audit log\0";
/// Lines, and time, after which the next line is followed by a signature.
const LINES: u64 = 1000;
const PAUSE: Duration = Duration::from_secs(60);

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
    pub(super) fn after(&self, text: &[u8]) -> Self {
        let line = self.line + 1;
        let mut hasher = Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.chain).update(&line.to_le_bytes()).update(text);
        Mark { line, chain: *hasher.finalize().as_bytes() }
    }

    fn ending(&self) -> String {
        format!(",\"line\":{},\"chain\":\"{}\"}}", self.line, Hash::from_bytes(self.chain))
    }

    /// What a signature is of.
    pub(super) fn signed(&self) -> Vec<u8> {
        [SIGNED, &self.line.to_le_bytes(), &self.chain].concat()
    }

    /// The text of a line, and what its ending says.
    pub(super) fn split(line: &[u8]) -> Option<(&[u8], Self)> {
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

/// Where a log is written, which nobody else writes to.
pub trait Place {
    /// Appends a line, all of it or nothing.
    ///
    /// # Errors
    /// Why nothing of it is there.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;

    /// The time since some moment, by a clock that is never set.
    fn now(&self) -> Duration;

    /// Whether this process may write.
    ///
    /// # Errors
    /// Why not.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A log that is written.
pub struct Chain<P> {
    place: P,
    key: Option<SigningKey>,
    mark: Mark,
    /// The last line that was signed for, and when.
    signed: (u64, Duration),
    /// Lines that could not be written.
    lost: u64,
}

impl<P: Place> Chain<P> {
    /// Begins a log, or goes on with the one there, which ends at `end` and is signed up to line `signed`: the next line says how many
    /// lines were not signed, as these may have been changed meanwhile.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn go_on(
        place: P,
        key: Option<[u8; AUDIT_KEY_BYTES]>,
        end: Mark,
        signed: u64,
    ) -> io::Result<Self> {
        let (line, now) = (end.line, place.now());
        let key = key.map(|bytes| SigningKey::from_bytes(&bytes));
        let mut log = Chain { place, key, mark: end, signed: (line, now), lost: 0 };
        log.write(&match line {
            0 => BEGUN.to_owned(),
            // A signature is not signed itself.
            _ => format!("{CONTINUED}{}", line - (signed + u64::from(signed > 0)).min(line)),
        })?;
        log.sign()?;
        Ok(log)
    }

    /// Goes on in another place: its first line says where this one ended.
    ///
    /// # Errors
    /// If it can't be written; then lines go where they went.
    pub fn move_to(&mut self, mut place: P) -> io::Result<()> {
        self.sign()?;
        let Mark { line, chain } = self.mark;
        let first = format!("{FOLLOWING}{line},\"after\":\"{}\"", Hash::from_bytes(chain));
        let mark = written(&mut place, Mark::default(), &first)?;
        let now = place.now();
        (self.place, self.mark, self.signed) = (place, mark, (0, now));
        self.sign()
    }

    /// Appends a JSON object, which has no line break and at least one field. What could not be written before is counted in a line
    /// in front of it.
    ///
    /// # Errors
    /// If it can't be written: then nothing of it is in the log.
    pub fn append(&mut self, object: &str) -> io::Result<()> {
        let text = object.strip_suffix('}').filter(|text| text.len() > 1 && !text.contains('\n'));
        self.place.check()?;
        let Some(text) = text.filter(|text| (text.len() as u64) < MOST / 2) else {
            let why = "a JSON object on one line expected, of less than 512 KiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        let told =
            if self.lost == 0 { Ok(()) } else { self.write(&format!("{LOST}{}", self.lost)) };
        if let Err(error) = told.and_then(|()| {
            self.lost = 0;
            self.write(text)
        }) {
            self.lost += 1;
            return Err(error);
        }
        let (line, then) = self.signed;
        if self.mark.line - line > LINES || self.place.now().saturating_sub(then) > PAUSE {
            // The next line tries again.
            let _ = self.sign();
        }
        Ok(())
    }

    /// Signs where it has come to, if it has a key and something came since.
    ///
    /// # Errors
    /// If the signature can't be written.
    pub fn sign(&mut self) -> io::Result<()> {
        let (Some(key), mark) = (&self.key, self.mark) else { return Ok(()) };
        if self.signed.0 == mark.line {
            return Ok(());
        }
        self.place.check()?;
        let signature = key.sign(&mark.signed());
        let [key, signature] = [hex(key.verifying_key().as_bytes()), hex(&signature.to_bytes())];
        self.write(&format!("{SIGNATURE}{key}\",\"signature\":\"{signature}\""))?;
        self.signed = (self.mark.line, self.place.now());
        Ok(())
    }

    /// Where it has come to.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Where it is written.
    pub fn place(&self) -> &P {
        &self.place
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.mark = written(&mut self.place, self.mark, text)?;
        Ok(())
    }
}

/// Writes a line, which lacks its ending; where the chain is then.
fn written(place: &mut impl Place, mark: Mark, text: &str) -> io::Result<Mark> {
    let next = mark.after(text.as_bytes());
    place.append(format!("{text}{}\n", next.ending()).as_bytes())?;
    Ok(next)
}

/// The half of a signing key that signatures are checked by.
pub fn verifying_key(key: &[u8; AUDIT_KEY_BYTES]) -> [u8; AUDIT_KEY_BYTES] {
    SigningKey::from_bytes(key).verifying_key().to_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
