//! Tables whose records an owner seals, so that their server reads neither keys nor records; and plain ones. Publishers only.

use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::protect::aead::{self, AeadKey};
use ciphervec::keyed::{Description, KeyHash, KeyedTable, LookupKey, Records, Sealing, Tag};
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use std::io::{Seek, Write};
use std::path::Path;
use zeroize::Zeroizing;

/// Bytes before the content: how long it is.
const LENGTH: usize = size_of::<u32>();

/// What an owner derives for one table.
pub(super) struct TableKeys {
    aead: AeadKey,
    name: [u8; 16],
    hash: KeyHash,
    authentication: Zeroizing<[u8; 32]>,
}

impl TableKeys {
    pub fn derive(master: &MasterKey, name: &[u8; 16]) -> Self {
        let derive = |what: &[u8]| *master.derive(Purpose::Aead, &[b"keyed", what, name]).expose();
        TableKeys {
            aead: AeadKey::new(derive(b"records")),
            name: *name,
            hash: KeyHash::new(derive(b"keys")),
            authentication: Zeroizing::new(derive(b"description")),
        }
    }

    pub fn hash(&self) -> &KeyHash {
        &self.hash
    }

    /// What an owner says of a description.
    pub fn authenticate(&self, description: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.authentication, description).as_bytes()
    }

    /// Whether the owner has said it. Hashes compare in constant time.
    pub fn is_authentic(&self, description: &Description) -> bool {
        let said = description.authenticator().map(|said| blake3::Hash::from_bytes(*said));
        let expected = self.authenticate(&description.authenticated());
        said.is_some_and(|said| said == blake3::Hash::from_bytes(expected))
    }

    fn associated(&self, tag: &Tag) -> Vec<u8> {
        aead::associated_data("ciphervec v1 keyed-record", &[&self.name, tag])
    }

    fn seal(&self, tag: &Tag, content: &[u8], out: &mut [u8]) -> Result<()> {
        let mut plain = Zeroizing::new(vec![0; out.len() - aead::OVERHEAD]);
        plain[..LENGTH].copy_from_slice(&(content.len() as u32).to_le_bytes());
        plain[LENGTH..][..content.len()].copy_from_slice(content);
        Ok(self.aead.seal_to("a record", &self.associated(tag), &plain, out)?)
    }

    /// The content of a sealed body; none where it is not what was sealed for this tag.
    pub fn open(&self, tag: &Tag, body: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut plain = self.aead.open("a record", &self.associated(tag), body).ok()?;
        let length = u32::from_le_bytes(*plain.first_chunk()?) as usize;
        (length <= plain.len() - LENGTH).then(|| {
            plain.copy_within(LENGTH..LENGTH + length, 0);
            plain.truncate(length);
            plain
        })
    }
}

/// No records yet, of a new table: of one that the owner of `keys` will seal, or of one that its server reads. Its name is
/// random, and so is the seed of its keys' hash unless the publisher gives one.
///
/// # Errors
/// [`Error::Envelope`] if the system gives no randomness.
pub fn new_records(keys: Option<&Keys>, seed: Option<[u8; 32]>) -> Result<Records> {
    let (mut name, mut drawn) = ([0; 16], [0; 32]);
    aead::random(&mut name)?;
    aead::random(&mut drawn)?;
    let hash = match keys {
        Some(keys) => TableKeys::derive(&keys.master, &name).hash,
        None => KeyHash::new(seed.unwrap_or(drawn)),
    };
    Ok(Records::new(name, hash))
}

/// Writes the table, sealed by the keys that its records were begun with, or plain without any.
///
/// # Errors
/// As [`Records::write`].
pub fn write_table(
    records: &Records,
    keys: Option<&Keys>,
    content: usize,
    path: &Path,
    out: &mut (impl Write + Seek),
) -> Result<Description> {
    let Some(keys) = keys else {
        return records.write(Sealing::Plain, content, path, out);
    };
    let table = TableKeys::derive(&keys.master, records.name());
    let sealing = Sealing::Sealed {
        record: &|tag, content, body| table.seal(tag, content, body),
        authenticate: &|description| table.authenticate(description),
    };
    records.write(sealing, content, path, out)
}

/// The record of a key, for who has the table's file, and the owner's keys where it is sealed.
///
/// # Errors
/// [`Error::Envelope`] for other keys; a damaged file.
pub fn read_record(
    table: &KeyedTable,
    keys: Option<&Keys>,
    key: LookupKey<'_>,
) -> Result<Option<Vec<u8>>> {
    let description = table.description();
    if let Some(seed) = description.seed() {
        let body = table.body(&seed.digest(key))?;
        return Ok(body.and_then(|body| description.content(&body)));
    }
    let owner = keys.map(|keys| TableKeys::derive(&keys.master, description.name()));
    let owner = owner.filter(|owner| owner.is_authentic(description)).ok_or_else(foreign)?;
    let digest = owner.hash.digest(key);
    let body = table.body(&digest)?;
    Ok(body.and_then(|body| owner.open(&digest.tag, &body)).map(|content| content.to_vec()))
}

/// The error of keys that a table was not sealed with.
pub(super) fn foreign() -> Error {
    Error::Envelope(aead::EnvelopeError::Unauthentic { what: "this table's description" })
}
