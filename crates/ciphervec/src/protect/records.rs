//! Records: rows' documents and metadata enter, one blob of separately sealed records leaves, and
//! back. The key owner seals and opens, a server hands out.
//!
//! `CVRECORD` | version u32 | count u32 | offsets u64, count + 1 of them, from the start of the
//! ciphertexts | ciphertexts. Each record is bound to its collection, segment, row and id, so that
//! a server that moves one is found out. Lengths of records are visible.
//!
//! Version 1 had a keyed hash of each row's id before the offsets, the same in every segment: by it
//! a server could follow a record through its versions. Nothing needs it, and it is skipped.

use crate::decode::{DecodeError, Reader};
#[cfg(feature = "client")]
use crate::protect::{
    aead::{self, AeadKey, EnvelopeError, OVERHEAD},
    id::Id,
};
#[cfg(feature = "client")]
use ciphervec_arith::parallel::*;
#[cfg(feature = "client")]
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CVRECORD";
const VERSION: u32 = 2;
/// Bytes a row before the offsets, in version 1 only.
const FORMER_TAG: usize = 16;
const WHAT: &str = "records";
const SHORTEST: u64 = 40;
/// Records that one thread seals at least: fewer are done before another has woken up.
#[cfg(feature = "client")]
const LEAST_TOGETHER: usize = 64;

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
    offsets: &'a [u8],
    ciphertexts: &'a [u8],
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
        let mut out = Vec::with_capacity(16 + (rows.len() + 1) * 8 + payload);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        for (row, (id, _)) in rows.iter().enumerate() {
            id.validate()
                .map_err(|error| wrong("record id", "a valid id", format!("row {row}: {error}")))?;
        }
        let mut end = 0u64;
        out.extend_from_slice(&end.to_le_bytes());
        for (_, plain) in rows {
            end += (plain.len() + OVERHEAD) as u64;
            out.extend_from_slice(&end.to_le_bytes());
        }
        let heads = out.len();
        out.resize(heads + payload, 0);
        let mut rest = &mut out[heads..];
        let mut records = Vec::with_capacity(rows.len());
        for (row, (id, plain)) in (0..count).zip(rows) {
            let (record, after) = rest.split_at_mut(plain.len() + OVERHEAD);
            records.push((row, id, plain, record));
            rest = after;
        }
        let seal = |(row, id, plain, record): (u32, &Id, &Vec<u8>, &mut [u8])| {
            aead.seal_to("record", &associated(place, id, row), plain, record)
        };
        // A few are sealed here, also where nobody has started threads.
        if records.len() <= LEAST_TOGETHER {
            records.into_iter().try_for_each(seal)?;
        } else {
            records.into_par_iter().with_min_len(LEAST_TOGETHER).try_for_each(seal)?;
        }
        Ok(out)
    }

    /// Checks the layout of untrusted bytes; opens nothing, allocates nothing.
    ///
    /// # Errors
    /// [`DecodeError`] naming the offset.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        let (offsets, offsets_at) = read_offsets(&mut reader)?;
        let count = offsets.len() / 8 - 1;
        let length = reader.remaining() as u64;
        let batch = Self { offsets, ciphertexts: reader.take(reader.remaining())? };
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
        (self.offsets.len() / 8 - 1) as u32
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

fn read_offsets<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], u64), DecodeError> {
    let version = reader.header(MAGIC, VERSION)?;
    let count = reader.u32()? as usize;
    let tag = if version == 1 { FORMER_TAG } else { 0 };
    reader.need_items(count, tag + 8)?;
    reader.take(count * tag)?;
    let offsets_at = reader.offset();
    Ok((reader.take((count + 1) * 8)?, offsets_at))
}

/// First bytes of a batch by which [`head_len`] tells the length of its head.
pub const HEAD_START: usize = 16;

/// Bytes before the ciphertexts of a batch that begins so.
///
/// # Errors
/// [`DecodeError`] naming the offset.
pub fn head_len(start: &[u8]) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(WHAT, start);
    let version = reader.header(MAGIC, VERSION)?;
    let count = reader.u32()? as usize;
    let each = if version == 1 { FORMER_TAG + 8 } else { 8 };
    Ok(HEAD_START + 8 + count.saturating_mul(each))
}

/// Bytes of each sealed record, by the head of its batch alone.
///
/// # Errors
/// [`DecodeError`] naming the offset.
pub fn record_lens(head: &[u8]) -> Result<Vec<u64>, DecodeError> {
    let (offsets, _) = read_offsets(&mut Reader::new(WHAT, head))?;
    let batch = RecordBatch { offsets, ciphertexts: &[] };
    let lens = (0..batch.rows() as usize)
        .map(|row| batch.offset(row + 1).saturating_sub(batch.offset(row)));
    Ok(lens.collect())
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
        let sealed = RecordBatch::seal(&key(), HERE, &rows())?;
        let batch = RecordBatch::parse(&sealed)?;
        assert_eq!(batch.rows(), 3);
        for (row, (id, plain)) in (0..).zip(rows()) {
            assert_eq!(batch.open_row(&key(), HERE, &id, row)?.as_slice(), plain);
        }
        assert!(batch.open_row(&key(), HERE, &Id::from("a"), 3).is_err());
        Ok(())
    }

    #[test]
    fn a_record_moved_anywhere_else_does_not_open() -> Result<(), EnvelopeError> {
        let same = vec![(Id::from("a"), b"one".to_vec()), (Id::from("a"), b"two".to_vec())];
        let sealed = RecordBatch::seal(&key(), HERE, &same)?;
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
    fn any_flipped_bit_is_refused() -> Result<(), EnvelopeError> {
        let sealed = RecordBatch::seal(&key(), HERE, &rows()[..2])?;
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
        let sealed = RecordBatch::seal(&key(), HERE, &rows())?;
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

    /// What is visible of two sealings of the same rows, the head, has nothing of the ids in it.
    #[test]
    fn the_visible_part_depends_on_lengths_alone() -> Result<(), EnvelopeError> {
        let visible = 16 + 8 * 4;
        let first = RecordBatch::seal(&key(), HERE, &rows())?;
        let mut others = rows();
        for (row, (id, _)) in (100..).zip(&mut others) {
            *id = Id::from(row);
        }
        let later = Place { segment: &[2; 16], ..HERE };
        let second = RecordBatch::seal(&AeadKey::new([5; 32]), later, &others)?;
        assert_eq!(first[..visible], second[..visible]);
        Ok(())
    }

    #[test]
    fn a_head_alone_tells_the_lengths_of_records() -> Result<(), EnvelopeError> {
        let sealed = RecordBatch::seal(&key(), HERE, &rows())?;
        let head = head_len(&sealed[..HEAD_START])?;
        assert_eq!(record_lens(&sealed[..head])?, [45, 40, 340]);
        assert!(head_len(&sealed[..15]).is_err() && record_lens(&sealed[..head - 1]).is_err());
        let mut back = sealed.clone();
        back[HEAD_START + 8..HEAD_START + 16].fill(0xff);
        assert_eq!(record_lens(&back[..head])?[1], 0);
        Ok(())
    }

    #[test]
    fn version_1_is_read_and_its_tags_are_skipped() -> Result<(), EnvelopeError> {
        let sealed = RecordBatch::seal(&key(), HERE, &rows())?;
        let mut former = sealed[..16].to_vec();
        former[8..12].copy_from_slice(&1u32.to_le_bytes());
        former.extend_from_slice(&[0xa5; 3 * FORMER_TAG]);
        former.extend_from_slice(&sealed[16..]);
        let (old, new) = (RecordBatch::parse(&former)?, RecordBatch::parse(&sealed)?);
        assert_eq!(old, new);
        let head = head_len(&former[..HEAD_START])?;
        assert_eq!(record_lens(&former[..head])?, [45, 40, 340]);
        for length in 0..former.len() {
            assert!(RecordBatch::parse(&former[..length]).is_err(), "length {length}");
        }
        former[8] = 3;
        assert!(matches!(RecordBatch::parse(&former), Err(DecodeError::Version { .. })));
        Ok(())
    }
}
