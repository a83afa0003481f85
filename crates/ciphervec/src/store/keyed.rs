//! Commits with a key, which are made once however often they are sent.
//!
//! A client whose answer was lost sends its change again under the same key. The manifests remember
//! the latest keys, so that the answer is the first one however often the server was started in
//! between.

use crate::decode::{DecodeError, Reader, hex};

/// Keys that a manifest remembers.
pub const KEYS_KEPT: usize = 256;
const ENTRY: usize = 16 + 16 + 8 + 32;

/// What identifies a commit to a client that may have to send it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitKey {
    /// Chosen by the client for this one change.
    pub key: [u8; 16],
    /// Hash of the change: the same key with another change is a mistake.
    pub digest: [u8; 16],
}

/// What a commit made, or had made before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Version of the state that the commit made.
    pub version: u64,
    /// Its hash.
    pub head: [u8; 32],
    /// Whether the commit had been made before, under the same key.
    pub replayed: bool,
}

/// A commit that was made under a key. In the manifest that the commit made, its hash cannot stand
/// yet and is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keyed {
    pub key: CommitKey,
    pub version: u64,
    pub head: [u8; 32],
}

impl Keyed {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.key);
        out.extend_from_slice(&self.key.digest);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.head);
    }
}

/// Makes room for the key of the next commit: the hash of the newest manifest is known now, the
/// oldest keys are forgotten.
pub(super) fn advance(keyed: &mut Vec<Keyed>, version: u64, head: [u8; 32]) {
    if let Some(last) = keyed.last_mut().filter(|last| last.version == version) {
        last.head = head;
    }
    let extra = (keyed.len() + 1).saturating_sub(KEYS_KEPT);
    keyed.drain(..extra);
}

/// Reads the keys in a manifest of this version.
pub(super) fn read(reader: &mut Reader<'_>, version: u64) -> Result<Vec<Keyed>, DecodeError> {
    let at = reader.offset();
    let count = reader.u32()? as usize;
    if count > KEYS_KEPT {
        return Err(reader.field("keyed commits", at, format!("at most {KEYS_KEPT}"), count));
    }
    reader.need_items(count, ENTRY)?;
    let mut keyed: Vec<Keyed> = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.offset();
        let key = CommitKey { key: reader.array()?, digest: reader.array()? };
        let found = Keyed { key, version: reader.u64()?, head: reader.array()? };
        let least = keyed.last().map_or(1, |last| last.version.saturating_add(1));
        if !(least..=version).contains(&found.version) {
            let expected = format!("{least} to {version}");
            return Err(reader.field("version of a keyed commit", at, expected, found.version));
        }
        if (found.version == version) != (found.head == [0; 32]) {
            return Err(reader.field(
                "hash of a keyed commit",
                at,
                "zero in its own manifest alone",
                hex(&found.head),
            ));
        }
        if keyed.iter().any(|other| other.key.key == key.key) {
            return Err(reader.field("key of a commit", at, "each key once", hex(&key.key)));
        }
        keyed.push(found);
    }
    Ok(keyed)
}
