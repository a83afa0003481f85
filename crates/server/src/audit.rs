//! Audit log, for the server's operator: a JSON line a request, of who did what, never a token or a body.

use ciphervec::protect::audit::{AUDIT_KEY_BYTES, AuditLog};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One line.
#[derive(Serialize)]
pub struct Line<'a> {
    /// When the answer began, RFC 3339.
    pub time: jiff::Timestamp,
    /// The request's id, as in the log and in the answer.
    pub request: &'a str,
    /// The token's id; `-` without a valid one.
    pub token: &'a str,
    /// Whom an issuer's token names; absent for other tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<&'a str>,
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

/// JSON with nothing but ASCII in it: readers part lines at other characters too, and show some backwards.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            text.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// Where audit lines go.
pub struct Audit {
    log: Option<Mutex<AuditLog>>,
}

impl Audit {
    /// Appends to a file, which has no lines changed unseen and is signed by `key`; or writes to the log.
    ///
    /// # Errors
    /// If the file cannot be opened, or another process writes to it.
    pub fn open(path: Option<&Path>, key: Option<[u8; AUDIT_KEY_BYTES]>) -> io::Result<Self> {
        let log = path.map(|path| AuditLog::open(path, key).map(Mutex::new)).transpose()?;
        Ok(Audit { log })
    }

    /// Opens the file by its name again, after it was moved away.
    ///
    /// # Errors
    /// If it cannot be opened: lines then go where they went.
    pub fn reopen(&self) -> io::Result<()> {
        self.held().map_or(Ok(()), |mut log| log.reopen())
    }

    /// Signs what came last, before the server ends.
    pub fn close(&self) {
        if let Some(Err(error)) = self.held().map(|mut log| log.sign()) {
            tracing::error!(%error, "the audit log could not be signed at its end");
        }
    }

    /// Writes one line.
    pub fn write(&self, line: &Line<'_>) {
        let text = ascii(&serde_json::to_string(line).unwrap_or_default());
        match self.held() {
            None => tracing::info!(target: "audit", "{text}"),
            Some(mut log) => {
                if let Err(error) = log.append(&text) {
                    tracing::error!(%error, "an audit line could not be written");
                }
            }
        }
    }

    fn held(&self) -> Option<MutexGuard<'_, AuditLog>> {
        Some(self.log.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
