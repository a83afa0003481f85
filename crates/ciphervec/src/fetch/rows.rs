//! Rows of a collection as records of a table: which place each has, and how its sealed bytes lie there. For both sides.
//!
//! A server makes the table of what segments hold, and whoever asks computes its name and places from the segments that the owner's
//! state names. Rows that were deleted keep their places, as they do in their segments: a table changes with its segments alone.

use crate::error::{Error, Result};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::retrieval::{MAX_RECORD, PAYLOAD_BYTES, Shape};

/// Bytes before a row's sealed bytes: how many they are.
const LENGTH: usize = size_of::<u32>();

/// The places of rows in a table of one blob of the segments of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchedRows {
    name: [u8; 16],
    /// By id: its first row's place, and how many rows it has.
    segments: Vec<(SegmentId, usize, u32)>,
    rows: usize,
}

impl FetchedRows {
    /// Of these segments and their rows, in any order. `collection` is what its keys are bound to.
    pub fn new(
        collection: &[u8],
        blob: &str,
        segments: impl IntoIterator<Item = (SegmentId, u32)>,
    ) -> Self {
        let mut listed: Vec<_> = segments.into_iter().collect();
        listed.sort_unstable_by_key(|(id, _)| id.0);
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 fetched-rows");
        for part in [collection, blob.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let mut rows = 0usize;
        let mut places = Vec::with_capacity(listed.len());
        for (id, count) in listed {
            hasher.update(&id.0).update(&count.to_le_bytes());
            places.push((id, rows, count));
            // More than any table has are refused with its shape.
            rows = rows.saturating_add(count as usize);
        }
        let mut name = [0; 16];
        name.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        FetchedRows { name, segments: places, rows }
    }

    /// What the table is called: another one for other segments.
    pub fn name(&self) -> &[u8; 16] {
        &self.name
    }

    /// Places there are, of deleted rows too.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Where a row is; none where there is no such row.
    pub fn place(&self, segment: SegmentId, row: u32) -> Option<usize> {
        let at = self.segments.binary_search_by_key(&segment.0, |(id, ..)| id.0).ok()?;
        let (_, first, rows) = self.segments[at];
        (row < rows).then_some(first + row as usize)
    }

    /// Which row is in a place: its segment's number by ascending id, and the row.
    pub fn row(&self, place: usize) -> Option<(usize, u32)> {
        let after = self.segments.partition_point(|(_, first, _)| *first <= place);
        let at = after.checked_sub(1)?;
        let (_, first, rows) = self.segments[at];
        let row = u32::try_from(place - first).ok()?;
        (row < rows).then_some((at, row))
    }

    /// The segments, by ascending id.
    pub fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        self.segments.iter().map(|(id, ..)| *id)
    }

    /// The table's shape, of places of `place_len` bytes, one of [`place_len`]'s.
    ///
    /// # Errors
    /// [`Error::Range`] for another length, [`Error::Scheme`] for no rows, or more than one table holds.
    pub fn shape(&self, place_len: usize) -> Result<Shape> {
        if place_len < LENGTH || self::place_len(place_len - LENGTH)? != place_len {
            return Err(Error::Range {
                what: "bytes of a row's place",
                expected: format!("a part of {PAYLOAD_BYTES} or a multiple, up to {MAX_RECORD}"),
                actual: place_len.to_string(),
            });
        }
        Ok(Shape::new(self.name, self.rows, place_len)?)
    }
}

/// Bytes of each row's place where the longest row has so many: as many as leave a polynomial's rows what they are, or whole polynomials.
///
/// # Errors
/// [`Error::Range`] for a row that is too long for any table.
pub fn place_len(longest: usize) -> Result<usize> {
    let needed = longest.saturating_add(LENGTH);
    if needed > MAX_RECORD {
        return Err(Error::Range {
            what: "bytes of a sealed row",
            expected: format!("at most {}", MAX_RECORD - LENGTH),
            actual: longest.to_string(),
        });
    }
    Ok(match PAYLOAD_BYTES / needed {
        0 => needed.next_multiple_of(PAYLOAD_BYTES),
        together => PAYLOAD_BYTES / together,
    })
}

/// Writes a row's sealed bytes to its place, which is zeros.
pub(super) fn write(sealed: &[u8], place: &mut [u8]) {
    let Some((length, rest)) = place.split_first_chunk_mut() else { return };
    if let Some(into) = rest.get_mut(..sealed.len()) {
        *length = (sealed.len() as u32).to_le_bytes();
        into.copy_from_slice(sealed);
    }
}

/// What a place holds; none where it says that it holds more than there is.
pub fn sealed_row(place: &[u8]) -> Option<&[u8]> {
    let (length, rest) = place.split_first_chunk()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> Vec<(SegmentId, u32)> {
        vec![(SegmentId([9; 16]), 3), (SegmentId([2; 16]), 1), (SegmentId([5; 16]), 4)]
    }

    #[test]
    fn rows_have_places_that_follow_from_the_segments_alone() {
        let rows = FetchedRows::new(b"c", "records", segments());
        let mut turned = segments();
        turned.reverse();
        assert_eq!(rows, FetchedRows::new(b"c", "records", turned));
        assert_eq!((rows.len(), rows.place(SegmentId([2; 16]), 0)), (8, Some(0)));
        assert_eq!(rows.place(SegmentId([5; 16]), 3), Some(4));
        assert_eq!(rows.place(SegmentId([9; 16]), 2), Some(7));
        assert_eq!(rows.place(SegmentId([9; 16]), 3), None);
        assert_eq!(rows.place(SegmentId([3; 16]), 0), None);
        let ids: Vec<_> = rows.segments().collect();
        for place in 0..8 {
            let (segment, row) = rows.row(place).unwrap();
            assert_eq!(rows.place(ids[segment], row), Some(place));
        }
        assert_eq!(rows.row(8), None);
        let mut others = vec![FetchedRows::new(b"d", "records", segments())];
        others.push(FetchedRows::new(b"c", "originals", segments()));
        others.push(FetchedRows::new(b"c", "records", segments().into_iter().take(2)));
        let mut more = segments();
        more[0].1 += 1;
        others.push(FetchedRows::new(b"c", "records", more));
        assert!(others.iter().all(|other| other.name() != rows.name()));
    }

    #[test]
    fn places_are_as_long_as_leaves_a_polynomial_its_rows() {
        let lengths = [0, 1, 252, 253, 1020, 1021, 2385, 2386, 3580, 3581, 7164, 7165, 71_676];
        let places = [4, 5, 256, 265, 1024, 1194, 2389, 3584, 3584, 7168, 7168, 14_336, 71_680];
        for (longest, place) in lengths.into_iter().zip(places) {
            assert_eq!(place_len(longest).unwrap(), place, "{longest}");
        }
        assert!(place_len(71_677).is_err() && place_len(usize::MAX).is_err());
        let rows = FetchedRows::new(b"c", "records", segments());
        assert_eq!(rows.shape(1024).unwrap().records(), 8);
        assert!([0, 3, 1023, 1025, 7169, 71_681].iter().all(|&length| rows.shape(length).is_err()));
        assert!(FetchedRows::new(b"c", "records", []).shape(1024).is_err());
        let many = (0..9).map(|id| (SegmentId([id; 16]), u32::MAX));
        assert!(FetchedRows::new(b"c", "records", many).shape(4).is_err());
    }

    #[test]
    fn a_place_gives_back_what_was_written_and_no_more_than_it_has() {
        let mut place = [0; 9];
        assert_eq!(sealed_row(&place), Some(&[][..]));
        write(b"five!", &mut place);
        assert_eq!(sealed_row(&place), Some(&b"five!"[..]));
        place[0] = 6;
        assert_eq!(sealed_row(&place), None);
        assert_eq!(sealed_row(&place[..3]), None);
        let mut short = [0; 8];
        write(b"five!", &mut short);
        assert_eq!(short, [0; 8]);
    }
}
