//! Records: rows' documents and metadata enter, one blob of separately sealed records leaves, and
//! back. The key owner seals and opens, a server may find a record by its tag and hand it out.
//!
//! `CVRECORD` | version u32 | count u32 | id tags, 16 bytes a row | offsets u64, count + 1 of them,
//! from the start of the ciphertexts | ciphertexts. Each record is bound to its collection,
//! segment, row and id, so that a server that moves one is found out. Lengths of records are
//! visible.

use crate::decode::{DecodeError, Reader};
#[cfg(feature = "client")]
use crate::protect::{
    aead::{self, AeadKey, EnvelopeError, OVERHEAD},
    id::Id,
};
#[cfg(feature = "client")]
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CVRECORD";
const VERSION: u32 = 1;
const WHAT: &str = "records";
const SHORTEST: u64 = 40;

/// A keyed hash of a record id: equal for equal ids under one key, meaningless without it.
pub type IdTag = [u8; 16];

/// Where records live: bound into each of them.
#[cfg(feature = "client")]
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The collection's identifying bytes.
    pub collection: &'a [u8],
    /// The segment that the rows belong to.
    pub segment: &'a [u8; 16],
}

/// A parsed batch; borrows the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBatch<'a> {
    tags: &'a [u8],
    offsets: &'a [u8],
    ciphertexts: &'a [u8],
}

/// The tag of `id` under `id_key`: the first 16 bytes of keyed BLAKE3 of the id's canonical bytes.
#[cfg(feature = "client")]
pub fn id_tag(id_key: &[u8; 32], id: &Id) -> IdTag {
    let mut tag = [0; 16];
    tag.copy_from_slice(&blake3::keyed_hash(id_key, &id.to_bytes()).as_bytes()[..16]);
    tag
}

#[cfg(feature = "client")]
fn associated(place: Place<'_>, id: &Id, row: u32) -> Vec<u8> {
    let parts: [&[u8]; 4] = [place.collection, place.segment, &row.to_le_bytes(), &id.to_bytes()];
    aead::associated_data("ciphervec v1 record", &parts)
}

impl<'a> RecordBatch<'a> {
    /// Seals one record per row, in row order; a payload may be empty.
    ///
    /// # Errors
    /// [`EnvelopeError::Plaintext`] for an invalid id or more than 2^32 - 1 rows,
    /// [`EnvelopeError::Randomness`].
    #[cfg(feature = "client")]
    pub fn seal(
        aead: &AeadKey,
        id_key: &[u8; 32],
        place: Place<'_>,
        rows: &[(Id, Vec<u8>)],
    ) -> Result<Vec<u8>, EnvelopeError> {
        let wrong = |what, expected: &str, actual: String| EnvelopeError::Plaintext {
            what,
            expected: expected.to_owned(),
            actual,
        };
        let count = u32::try_from(rows.len())
            .map_err(|_| wrong("records", "at most 4294967295 rows", rows.len().to_string()))?;
        let payload: usize = rows.iter().map(|(_, plain)| plain.len() + OVERHEAD).sum();
        let mut out = Vec::with_capacity(16 + rows.len() * 16 + (rows.len() + 1) * 8 + payload);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        for (row, (id, _)) in rows.iter().enumerate() {
            id.validate()
                .map_err(|error| wrong("record id", "a valid id", format!("row {row}: {error}")))?;
            out.extend_from_slice(&id_tag(id_key, id));
        }
        let mut end = 0u64;
        out.extend_from_slice(&end.to_le_bytes());
        for (_, plain) in rows {
            end += (plain.len() + OVERHEAD) as u64;
            out.extend_from_slice(&end.to_le_bytes());
        }
        for (row, (id, plain)) in (0..count).zip(rows) {
            aead.seal_into("record", &associated(place, id, row), plain, &mut out)?;
        }
        Ok(out)
    }

    /// Checks the layout of untrusted bytes; opens nothing, allocates nothing.
    ///
    /// # Errors
    /// [`DecodeError`] naming the offset.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.header(MAGIC, VERSION)?;
        let count = reader.u32()? as usize;
        reader.need_items(count, 24)?;
        let tags = reader.take(count * 16)?;
        let offsets_at = reader.offset();
        let offsets = reader.take((count + 1) * 8)?;
        let length = reader.remaining() as u64;
        let batch = Self { tags, offsets, ciphertexts: reader.take(reader.remaining())? };
        if batch.offset(0) != 0 {
            return Err(reader.field("first offset", offsets_at, 0, batch.offset(0)));
        }
        for row in 0..count {
            let (start, end) = (batch.offset(row), batch.offset(row + 1));
            if end > length || end < start || end - start < SHORTEST {
                let expected = format!("{}..={length}", start.saturating_add(SHORTEST));
                return Err(reader.field(
                    "offset",
                    offsets_at + 8 * (row as u64 + 1),
                    expected,
                    end,
                ));
            }
        }
        if batch.offset(count) != length {
            let at = offsets_at + 8 * count as u64;
            return Err(reader.field("last offset", at, length, batch.offset(count)));
        }
        Ok(batch)
    }

    fn offset(&self, index: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.offsets[index * 8..index * 8 + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Rows in the batch.
    pub fn rows(&self) -> u32 {
        (self.tags.len() / 16) as u32
    }

    /// The id tag of a row; none past the end.
    pub fn tag(&self, row: u32) -> Option<IdTag> {
        self.tags.chunks_exact(16).nth(row as usize).map(|bytes| {
            let mut tag = [0; 16];
            tag.copy_from_slice(bytes);
            tag
        })
    }

    /// The first row with this tag.
    pub fn find(&self, tag: &IdTag) -> Option<u32> {
        self.tags.chunks_exact(16).position(|found| found == tag).map(|row| row as u32)
    }

    /// The sealed record of a row; none past the end.
    pub fn ciphertext(&self, row: u32) -> Option<&'a [u8]> {
        if row >= self.rows() {
            return None;
        }
        let (start, end) =
            (self.offset(row as usize) as usize, self.offset(row as usize + 1) as usize);
        self.ciphertexts.get(start..end)
    }

    /// The payload of `row`, which must be the record of `id` in `place`; wiped on drop.
    ///
    /// # Errors
    /// [`EnvelopeError::Unauthentic`] when the record was sealed for another id, row, segment,
    /// collection or key, or changed; [`EnvelopeError::Plaintext`] for a row past the end.
    #[cfg(feature = "client")]
    pub fn open_row(
        &self,
        aead: &AeadKey,
        place: Place<'_>,
        id: &Id,
        row: u32,
    ) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
        let Some(ciphertext) = self.ciphertext(row) else {
            return Err(EnvelopeError::Plaintext {
                what: "record row",
                expected: format!("below {}", self.rows()),
                actual: row.to_string(),
            });
        };
        open_record(aead, place, id, row, ciphertext)
    }
}

/// Opens one sealed record that was fetched on its own; as [`RecordBatch::open_row`].
///
/// # Errors
/// [`EnvelopeError::Unauthentic`] as there.
#[cfg(feature = "client")]
pub fn open_record(
    aead: &AeadKey,
    place: Place<'_>,
    id: &Id,
    row: u32,
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
    aead.open("record", &associated(place, id, row), ciphertext)
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    const ID_KEY: [u8; 32] = [9; 32];
    const HERE: Place<'_> = Place { collection: b"faces", segment: &[1; 16] };

    fn key() -> AeadKey {
        AeadKey::new([4; 32])
    }

    fn rows() -> Vec<(Id, Vec<u8>)> {
        vec![
            (Id::from("a"), b"first".to_vec()),
            (Id::from(2), Vec::new()),
            (Id::from("c"), vec![7; 300]),
        ]
    }

    #[test]
    fn each_row_opens_in_its_place() -> Result<(), EnvelopeError> {
        let sealed = RecordBatch::seal(&key(), &ID_KEY, HERE, &rows())?;
        let batch = RecordBatch::parse(&sealed)?;
        assert_eq!(batch.rows(), 3);
        for (row, (id, plain)) in (0..).zip(rows()) {
            assert_eq!(batch.find(&id_tag(&ID_KEY, &id)), Some(row));
            assert_eq!(batch.tag(row), Some(id_tag(&ID_KEY, &id)));
            assert_eq!(batch.open_row(&key(), HERE, &id, row)?.as_slice(), plain);
        }
        assert_eq!(batch.find(&id_tag(&ID_KEY, &Id::from("x"))), None);
        assert!(batch.open_row(&key(), HERE, &Id::from("a"), 3).is_err());
        Ok(())
    }

    #[test]
    fn a_record_moved_anywhere_else_does_not_open() -> Result<(), EnvelopeError> {
        let same = vec![(Id::from("a"), b"one".to_vec()), (Id::from("a"), b"two".to_vec())];
        let sealed = RecordBatch::seal(&key(), &ID_KEY, HERE, &same)?;
        let batch = RecordBatch::parse(&sealed)?;
        let unauthentic = Err(EnvelopeError::Unauthentic { what: "record" });
        let first = batch.ciphertext(0).unwrap_or_default();
        let id = Id::from("a");
        assert_eq!(open_record(&key(), HERE, &id, 0, first)?.as_slice(), b"one");
        assert_eq!(open_record(&key(), HERE, &id, 1, first), unauthentic, "another row, same id");
        assert_eq!(open_record(&key(), HERE, &Id::from("b"), 0, first), unauthentic, "another id");
        let texts = Place { collection: b"texts", ..HERE };
        assert_eq!(open_record(&key(), texts, &id, 0, first), unauthentic, "another collection");
        let later = Place { segment: &[2; 16], ..HERE };
        assert_eq!(open_record(&key(), later, &id, 0, first), unauthentic, "another segment");
        let other = AeadKey::new([5; 32]);
        assert_eq!(open_record(&other, HERE, &id, 0, first), unauthentic, "another key");
        Ok(())
    }

    #[test]
    fn any_flipped_bit_is_refused_or_harms_only_the_tag_it_is_in() -> Result<(), EnvelopeError> {
        let sealed = RecordBatch::seal(&key(), &ID_KEY, HERE, &rows()[..2])?;
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(batch) = RecordBatch::parse(&changed) else { continue };
            for (row, (id, plain)) in (0..2).zip(rows()) {
                if let Ok(opened) = batch.open_row(&key(), HERE, &id, row) {
                    assert_eq!(opened.as_slice(), plain, "bit {bit}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn truncations_trailing_bytes_and_huge_counts_are_refused() -> Result<(), EnvelopeError> {
        let sealed = RecordBatch::seal(&key(), &ID_KEY, HERE, &rows())?;
        for length in 0..sealed.len() {
            assert!(RecordBatch::parse(&sealed[..length]).is_err(), "length {length}");
        }
        let mut longer = sealed.clone();
        longer.push(0);
        assert!(RecordBatch::parse(&longer).is_err());
        let mut huge = sealed;
        huge[12..16].fill(0xff);
        assert!(matches!(RecordBatch::parse(&huge), Err(DecodeError::Truncated { .. })));
        Ok(())
    }

    #[test]
    fn tags_depend_on_the_key_and_the_kind_of_id() {
        assert_ne!(id_tag(&ID_KEY, &Id::from(7)), id_tag(&ID_KEY, &Id::from("7")));
        assert_ne!(id_tag(&ID_KEY, &Id::from(7)), id_tag(&[8; 32], &Id::from(7)));
    }
}
