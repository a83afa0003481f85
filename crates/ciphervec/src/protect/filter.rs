//! Filter tags: keyed hashes of chosen fields' values. The key owner makes them, a server matches
//! rows by them.
//!
//! Tags leak equality: a server sees which rows share a value of a field, and which rows a filtered
//! query asks for.
//!
//! `CVFILTER` | version u32 | rows u32 | end of each row's tags u32, counted in tags | tags, 16
//! bytes, strictly ascending within a row.

use crate::decode::{DecodeError, Reader};

const MAGIC: &[u8; 8] = b"CVFILTER";
const VERSION: u32 = 1;
const WHAT: &str = "filter tags";

/// A keyed hash of one field's value.
pub type FilterTag = [u8; 16];

/// The tags of one segment's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterTags {
    ends: Vec<u32>,
    tags: Vec<FilterTag>,
}

impl FilterTags {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a row; the order of its tags and repeated ones do not matter.
    ///
    /// # Errors
    /// [`DecodeError::Field`] when the segment would have more than 2^32 - 1 rows or tags.
    pub fn push(&mut self, row: &[FilterTag]) -> Result<(), DecodeError> {
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let end = u32::try_from(self.tags.len() + sorted.len());
        let (Ok(end), Ok(_)) = (end, u32::try_from(self.ends.len() + 1)) else {
            let reader = Reader::new(WHAT, &[]);
            return Err(reader.field("tags", 0, "at most 4294967295 rows and tags", "more"));
        };
        self.tags.extend(sorted);
        self.ends.push(end);
        Ok(())
    }

    /// Rows in the segment.
    pub fn rows(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The tags of a row, ascending; empty past the end.
    pub fn row(&self, row: u32) -> &[FilterTag] {
        let row = row as usize;
        let Some(end) = self.ends.get(row) else { return &[] };
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.tags[start as usize..*end as usize]
    }

    /// For each row, whether it carries all of the tags.
    pub fn matches(&self, all_of: &[FilterTag]) -> Vec<bool> {
        (0..self.rows())
            .map(|row| all_of.iter().all(|tag| self.row(row).binary_search(tag).is_ok()))
            .collect()
    }

    /// Bytes for storage.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.ends.len() * 4 + self.tags.len() * 16);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.rows().to_le_bytes());
        for end in &self.ends {
            out.extend_from_slice(&end.to_le_bytes());
        }
        for tag in &self.tags {
            out.extend_from_slice(tag);
        }
        out
    }

    /// Reads [`FilterTags::to_bytes`]; nothing else is accepted.
    ///
    /// # Errors
    /// [`DecodeError`] naming the offset.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.header(MAGIC, VERSION)?;
        let rows = reader.u32()? as usize;
        reader.need_items(rows, 4)?;
        let mut ends = Vec::with_capacity(rows);
        let mut last = 0;
        for _ in 0..rows {
            let offset = reader.offset();
            let end = reader.u32()?;
            if end < last {
                return Err(reader.field("row end", offset, format!("{last} or more"), end));
            }
            last = end;
            ends.push(end);
        }
        reader.need_items(last as usize, 16)?;
        let mut tags = Vec::with_capacity(last as usize);
        let mut start = 0;
        for &end in &ends {
            for index in start..end {
                let offset = reader.offset();
                let tag: FilterTag = reader.array()?;
                if index > start && tags.last() >= Some(&tag) {
                    return Err(reader.field(
                        "tag",
                        offset,
                        "larger than the row's tag before it",
                        "not larger",
                    ));
                }
                tags.push(tag);
            }
            start = end;
        }
        reader.finish()?;
        Ok(Self { ends, tags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Result<FilterTags, DecodeError> {
        let mut tags = FilterTags::new();
        tags.push(&[[3; 16], [1; 16], [3; 16]])?;
        tags.push(&[])?;
        tags.push(&[[1; 16]])?;
        Ok(tags)
    }

    #[test]
    fn rows_match_when_they_carry_every_tag() -> Result<(), DecodeError> {
        let tags = sample()?;
        assert_eq!(tags.matches(&[[1; 16]]), [true, false, true]);
        assert_eq!(tags.matches(&[[1; 16], [3; 16]]), [true, false, false]);
        assert_eq!(tags.matches(&[]), [true, true, true]);
        assert_eq!(tags.matches(&[[2; 16]]), [false, false, false]);
        assert_eq!(tags.row(0), [[1; 16], [3; 16]]);
        assert_eq!(tags.row(9), [[0u8; 16]; 0]);
        Ok(())
    }

    #[test]
    fn bytes_round_trip_and_every_flip_errors_or_is_canonical() -> Result<(), DecodeError> {
        let bytes = sample()?.to_bytes();
        assert_eq!(FilterTags::from_bytes(&bytes)?, sample()?);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = FilterTags::from_bytes(&changed) {
                assert_eq!(read.to_bytes(), changed, "bit {bit}");
            }
        }
        for length in 0..bytes.len() {
            assert!(FilterTags::from_bytes(&bytes[..length]).is_err(), "length {length}");
        }
        Ok(())
    }

    #[test]
    fn huge_counts_are_refused_before_allocation() -> Result<(), DecodeError> {
        let mut bytes = sample()?.to_bytes();
        bytes[24..28].fill(0xff);
        assert!(matches!(FilterTags::from_bytes(&bytes), Err(DecodeError::Truncated { .. })));
        bytes[12..16].fill(0xff);
        assert!(matches!(FilterTags::from_bytes(&bytes), Err(DecodeError::Truncated { .. })));
        Ok(())
    }
}
