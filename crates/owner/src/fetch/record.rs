//! Records of one sealed length: content is filled up, encrypted and bound to its table and place. Owner only.

use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::protect::aead::{self, AeadKey, OVERHEAD};
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use ciphervec_he_secret::lattice::retrieval::{MAX_RECORD, Shape};
use zeroize::Zeroizing;

/// Bytes before the content: how long it is.
const LENGTH: usize = size_of::<u32>();

/// The most bytes of content that records of a table have. All are sealed to one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordClass {
    content: usize,
}

impl RecordClass {
    /// The most bytes of content that a table can have.
    pub const MAX_CONTENT: usize = MAX_RECORD - LENGTH - OVERHEAD;

    /// Records of up to `content` bytes.
    ///
    /// # Errors
    /// [`Error::Range`] above [`Self::MAX_CONTENT`].
    pub fn new(content: usize) -> Result<Self> {
        if content > Self::MAX_CONTENT {
            return Err(Error::Range {
                what: "bytes of a record",
                expected: format!("at most {}", Self::MAX_CONTENT),
                actual: content.to_string(),
            });
        }
        Ok(RecordClass { content })
    }

    /// Bytes of each sealed record.
    pub fn sealed_len(self) -> usize {
        LENGTH + self.content + OVERHEAD
    }

    /// The shape of a table of so many of them. `name` is new for each state of a table.
    ///
    /// # Errors
    /// [`Error::Scheme`] for no records, or more than one table holds.
    pub fn shape(self, name: [u8; 16], records: usize) -> Result<Shape> {
        Ok(Shape::new(name, records, self.sealed_len())?)
    }

    /// Seals record `place` of a table.
    ///
    /// # Errors
    /// [`Error::Range`] for more content than the class has, [`Error::Envelope`] if the system gives no randomness.
    pub fn seal(
        self,
        keys: &Keys,
        table: &[u8; 16],
        place: usize,
        content: &[u8],
    ) -> Result<Vec<u8>> {
        if content.len() > self.content {
            return Err(Error::Range {
                what: "bytes of a record",
                expected: format!("at most {}, the table's class", self.content),
                actual: content.len().to_string(),
            });
        }
        let mut plain = Zeroizing::new(vec![0; LENGTH + self.content]);
        plain[..LENGTH].copy_from_slice(&(content.len() as u32).to_le_bytes());
        plain[LENGTH..][..content.len()].copy_from_slice(content);
        Ok(aead_key(&keys.master, table).seal("a record", &associated(table, place), &plain)?)
    }
}

/// The key of a table's records.
pub(super) fn aead_key(master: &MasterKey, table: &[u8; 16]) -> AeadKey {
    AeadKey::new(*master.derive(Purpose::Aead, &[b"fetch", table]).expose())
}

fn associated(table: &[u8; 16], place: usize) -> Vec<u8> {
    aead::associated_data("ciphervec v1 fetched-record", &[table, &(place as u64).to_le_bytes()])
}

/// The content of a sealed record; `None` where it is not the one that was sealed for this place.
pub(super) fn open(
    aead: &AeadKey,
    table: &[u8; 16],
    place: usize,
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let mut plain = aead.open("a record", &associated(table, place), sealed).ok()?;
    let length = u32::from_le_bytes(*plain.first_chunk()?) as usize;
    (length <= plain.len() - LENGTH).then(|| {
        plain.copy_within(LENGTH..LENGTH + length, 0);
        plain.truncate(length);
        plain
    })
}
