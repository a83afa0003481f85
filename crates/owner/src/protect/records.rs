//! Records: rows' documents and metadata, sealed one by one in one blob. Key owner only.
//!
//! Each record is bound to its collection, segment, row and id, so that a server that moves one is found out. Lengths of
//! records are visible.

use crate::protect::aead::{self, AeadKey, EnvelopeError, OVERHEAD};
use crate::protect::id::Id;
pub use ciphervec::protect::records::*;
use ciphervec_arith::parallel::*;
use zeroize::Zeroizing;

/// Records that one thread seals at least: fewer are done before another has woken up.
const LEAST_TOGETHER: usize = 64;

/// Where records live: bound into each of them.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The collection's identifying bytes.
    pub collection: &'a [u8],
    /// The segment that the rows belong to.
    pub segment: &'a [u8; 16],
}

fn associated(place: Place<'_>, id: &Id, row: u32) -> Vec<u8> {
    let mut out = associated_start(place);
    append_row(&mut out, id, row);
    out
}

/// What is the same for all records of a place.
fn associated_start(place: Place<'_>) -> Vec<u8> {
    aead::associated_data("ciphervec v1 record", &[place.collection, place.segment])
}

fn append_row(out: &mut Vec<u8>, id: &Id, row: u32) {
    aead::append_part(out, &row.to_le_bytes());
    aead::append_part(out, &id.to_bytes());
}

/// Seals one record per row, in row order; a payload may be empty.
///
/// # Errors
/// [`EnvelopeError::Plaintext`] for an invalid id or more than 2^32 - 1 rows,
/// [`EnvelopeError::Randomness`].
pub fn seal_records(
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

/// The payload of `row`, which must be the record of `id` in `place`; wiped on drop.
///
/// # Errors
/// [`EnvelopeError::Unauthentic`] when the record was sealed for another id, row, segment,
/// collection or key, or changed; [`EnvelopeError::Plaintext`] for a row past the end.
pub fn open_row(
    batch: &RecordBatch<'_>,
    aead: &AeadKey,
    place: Place<'_>,
    id: &Id,
    row: u32,
) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
    let mut opener = RecordOpener::new(batch, aead, place);
    opener.open(id, row)?;
    Ok(opener.plain)
}

/// Opens many records of one batch, one after the other and each into the room of the one before; wiped on drop.
pub struct RecordOpener<'a> {
    batch: &'a RecordBatch<'a>,
    aead: &'a AeadKey,
    associated: Vec<u8>,
    /// Bytes of `associated` that stay.
    start: usize,
    plain: Zeroizing<Vec<u8>>,
}

impl<'a> RecordOpener<'a> {
    /// Of the batch that was sealed for this place.
    pub fn new(batch: &'a RecordBatch<'a>, aead: &'a AeadKey, place: Place<'_>) -> Self {
        let associated = associated_start(place);
        let (start, plain) = (associated.len(), Zeroizing::default());
        RecordOpener { batch, aead, associated, start, plain }
    }

    /// The payload of `row`, until the next one is opened.
    ///
    /// # Errors
    /// As [`open_row`].
    pub fn open(&mut self, id: &Id, row: u32) -> Result<&[u8], EnvelopeError> {
        let Some(sealed) = self.batch.ciphertext(row) else {
            return Err(EnvelopeError::Plaintext {
                what: "record row",
                expected: format!("below {}", self.batch.rows()),
                actual: row.to_string(),
            });
        };
        self.associated.truncate(self.start);
        append_row(&mut self.associated, id, row);
        self.aead.open_to("record", &self.associated, sealed, &mut self.plain)?;
        Ok(&self.plain)
    }
}

/// Opens one sealed record that was fetched on its own; as [`open_row`].
///
/// # Errors
/// [`EnvelopeError::Unauthentic`] as there.
pub fn open_record(
    aead: &AeadKey,
    place: Place<'_>,
    id: &Id,
    row: u32,
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
    aead.open("record", &associated(place, id, row), ciphertext)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::DecodeError;

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
        let sealed = seal_records(&key(), HERE, &rows())?;
        let batch = RecordBatch::parse(&sealed)?;
        assert_eq!(batch.rows(), 3);
        for (row, (id, plain)) in (0..).zip(rows()) {
            assert_eq!(open_row(&batch, &key(), HERE, &id, row)?.as_slice(), plain);
        }
        assert!(open_row(&batch, &key(), HERE, &Id::from("a"), 3).is_err());
        Ok(())
    }

    #[test]
    fn records_open_into_the_room_of_others_in_any_order() -> Result<(), EnvelopeError> {
        let sealed = seal_records(&key(), HERE, &rows())?;
        let (batch, key, rows) = (RecordBatch::parse(&sealed)?, key(), rows());
        let mut opener = RecordOpener::new(&batch, &key, HERE);
        for row in [0, 2, 1, 2, 0] {
            let (id, plain) = &rows[row as usize];
            assert!(opener.open(&Id::from("other"), row).is_err());
            assert!(opener.open(id, row + 1).is_err());
            assert_eq!(opener.open(id, row)?, plain);
        }
        Ok(())
    }

    #[test]
    fn a_record_moved_anywhere_else_does_not_open() -> Result<(), EnvelopeError> {
        let same = vec![(Id::from("a"), b"one".to_vec()), (Id::from("a"), b"two".to_vec())];
        let sealed = seal_records(&key(), HERE, &same)?;
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
        let sealed = seal_records(&key(), HERE, &rows()[..2])?;
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(batch) = RecordBatch::parse(&changed) else { continue };
            for (row, (id, plain)) in (0..2).zip(rows()) {
                if let Ok(opened) = open_row(&batch, &key(), HERE, &id, row) {
                    assert_eq!(opened.as_slice(), plain, "bit {bit}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn truncations_trailing_bytes_and_huge_counts_are_refused() -> Result<(), EnvelopeError> {
        let sealed = seal_records(&key(), HERE, &rows())?;
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
        let first = seal_records(&key(), HERE, &rows())?;
        let mut others = rows();
        for (row, (id, _)) in (100..).zip(&mut others) {
            *id = Id::from(row);
        }
        let later = Place { segment: &[2; 16], ..HERE };
        let second = seal_records(&AeadKey::new([5; 32]), later, &others)?;
        assert_eq!(first[..visible], second[..visible]);
        Ok(())
    }

    #[test]
    fn a_head_alone_tells_the_lengths_of_records() -> Result<(), EnvelopeError> {
        let sealed = seal_records(&key(), HERE, &rows())?;
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
        let sealed = seal_records(&key(), HERE, &rows())?;
        let mut former = sealed[..16].to_vec();
        former[8..12].copy_from_slice(&1u32.to_le_bytes());
        former.extend_from_slice(&[0xa5; 3 * 16]);
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
