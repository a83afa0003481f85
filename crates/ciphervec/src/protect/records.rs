//! A segment's records (documents and metadata), sealed one by one in one blob. The key owner seals
//! and opens them, a server hands them out.
//!
//! `CVRECORD` | version u32 | count u32 | offsets u64, count + 1 of them, from the start of the
//! ciphertexts | ciphertexts. Each record is bound to its collection, segment, row and id, so that
//! a server that moves one is found out. Lengths of records are visible.
//!
//! Version 1 had a keyed hash of each row's id before the offsets, the same in every segment: by it
//! a server could follow a record through its versions. Nothing needs it, and it is skipped.

use crate::decode::{DecodeError, Reader};

#[doc(hidden)]
pub const MAGIC: &[u8; 8] = b"CVRECORD";
#[doc(hidden)]
pub const VERSION: u32 = 2;
/// Bytes a row before the offsets, in version 1 only.
const FORMER_TAG: usize = 16;
const WHAT: &str = "records";
const SHORTEST: u64 = 40;

/// A parsed batch; borrows the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBatch<'a> {
    offsets: &'a [u8],
    ciphertexts: &'a [u8],
}

impl<'a> RecordBatch<'a> {
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
