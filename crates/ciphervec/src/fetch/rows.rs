//! Rows of a collection as records of a table: which place each has, and how its sealed bytes lie there. For both sides.
//!
//! A server makes the table of what segments hold, and whoever asks computes its name and places from the segments that the owner's
//! state names. Rows that were deleted keep their places, as they do in their segments: a table changes with its segments alone.
//!
//! All rows have places of one length. Where few rows are much longer than the others, those have a table of their own, and empty
//! places in the first. Whoever asks sends as many fetches to both, whichever rows are wanted: where a row is does not show.
//!
//! A table's name is the first half of BLAKE3 (key derivation, context `ciphervec v1 fetched-rows`) of: the length of the index's
//! binding and the binding, the length of the blob's name and the name, then id (16 bytes) and rows (u32) of each segment, by
//! ascending id. Lengths are u64; all numbers are little-endian. A row's place is its number in that order. It holds the length of
//! its sealed bytes (u32), these as they stand in the blob, and zeros. Where a segment has no such blob, or one that is no batch of
//! as many rows, places are zeros.

use crate::error::{Error, Result};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::retrieval::{MAX_RECORD, PAYLOAD_BYTES, Shape};

/// Bytes before a row's sealed bytes: how many they are.
const LENGTH: usize = size_of::<u32>();
/// Most rows of a table of long rows: whoever asks is told them all.
pub const MOST_LONG: usize = 4096;
/// Polynomials, of 25,600 bytes each, up to which one table is good enough.
const SMALL: usize = 640;

/// The places of rows in a table of one blob of the segments of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchedRows {
    name: [u8; 16],
    /// By id: its first row's place, and how many rows it has.
    segments: Vec<(SegmentId, usize, u32)>,
    rows: usize,
    /// What the table of long rows is called, and their places in the first one, ascending; none where there is none.
    long: Option<([u8; 16], Vec<u32>)>,
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
        FetchedRows { name, segments: places, rows, long: None }
    }

    /// The same where rows in these places, ascending, have a table of their own; no rows, no such table. Both tables are called
    /// otherwise then.
    ///
    /// # Errors
    /// [`Error::Range`] for more than [`MOST_LONG`], another order, or a place that there is not.
    pub fn with_long(mut self, long: Vec<u32>) -> Result<Self> {
        let ascending = long.windows(2).all(|pair| pair[0] < pair[1]);
        let there = long.last().is_none_or(|last| (*last as usize) < self.rows);
        if long.len() > MOST_LONG || !ascending || !there {
            return Err(Error::Range {
                what: "places of long rows",
                expected: format!("at most {MOST_LONG}, ascending, below {}", self.rows),
                actual: format!("{}, up to {}", long.len(), long.last().copied().unwrap_or(0)),
            });
        }
        if !long.is_empty() {
            let mut hasher =
                blake3::Hasher::new_derive_key("ciphervec v1 fetched-rows of two lengths");
            hasher.update(&self.name);
            long.iter().for_each(|place| {
                hasher.update(&place.to_le_bytes());
            });
            let mut of_long = [0; 16];
            let names = hasher.finalize();
            let (name, rest) = names.as_bytes().split_at(16);
            self.name.copy_from_slice(name);
            of_long.copy_from_slice(rest);
            self.long = Some((of_long, long));
        }
        Ok(self)
    }

    /// What the table of long rows is called, if there is one.
    pub fn long_name(&self) -> Option<&[u8; 16]> {
        self.long.as_ref().map(|(name, _)| name)
    }

    /// The places in the first table of the rows in that of long rows, in its order.
    pub fn long(&self) -> &[u32] {
        self.long.as_ref().map_or(&[], |(_, long)| long)
    }

    /// Where the row of a place is in the table of long rows; none where it is not in it.
    pub fn long_place(&self, place: usize) -> Option<usize> {
        self.long().binary_search(&u32::try_from(place).ok()?).ok()
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
        shape_of(self.name, self.rows, place_len)
    }

    /// The shape of the table of long rows, if there is one, of places of so many bytes.
    ///
    /// # Errors
    /// [`Error::Range`] for another length.
    pub fn long_shape(&self, place_len: usize) -> Result<Option<Shape>> {
        let of = |(name, long): &([u8; 16], Vec<u32>)| shape_of(*name, long.len(), place_len);
        self.long.as_ref().map(of).transpose()
    }
}

fn shape_of(name: [u8; 16], rows: usize, each: usize) -> Result<Shape> {
    if each < LENGTH || place_len(each - LENGTH)? != each {
        return Err(Error::Range {
            what: "bytes of a row's place",
            expected: format!("a part of {PAYLOAD_BYTES} or a multiple, up to {MAX_RECORD}"),
            actual: each.to_string(),
        });
    }
    Ok(Shape::new(name, rows, each)?)
}

/// Lengths of places: those of all rows, and those of long rows, whose places among the others follow.
pub struct Lengths {
    /// Bytes of each place of the first table.
    pub place: usize,
    /// Bytes of each place of the table of long rows; 0 where there is none.
    pub long_place: usize,
    /// The places of long rows, ascending.
    pub long: Vec<u32>,
}

impl Lengths {
    /// Of rows of so many sealed bytes, by their places. Long rows have a table of their own where one of all rows would take more
    /// than 16 MB and both take at most half of that: the lengths that take least.
    ///
    /// # Errors
    /// As [`place_len`].
    pub fn of(rows: &[u32]) -> Result<Self> {
        let bytes = |rows: usize, each: usize| {
            rows.div_ceil((PAYLOAD_BYTES / each).max(1)) * each.div_ceil(PAYLOAD_BYTES)
        };
        let longest = place_len(rows.iter().max().map_or(0, |longest| *longest as usize))?;
        let one = bytes(rows.len(), longest);
        let whole = Lengths { place: longest, long_place: 0, long: Vec::new() };
        if one <= SMALL {
            return Ok(whole);
        }
        let mut descending: Vec<u32> = rows.to_vec();
        let kept = descending.len().min(MOST_LONG + 1);
        descending.select_nth_unstable_by(kept - 1, |a, b| b.cmp(a));
        descending.truncate(kept);
        descending.sort_unstable_by(|a, b| b.cmp(a));
        let mut best = (one / 2 + 1, None);
        for (count, &next) in descending.iter().enumerate().skip(1) {
            // Rows of one length are together.
            if descending[count - 1] > next {
                let each = place_len(next as usize)?;
                let both = bytes(rows.len(), each) + bytes(count, longest);
                if both < best.0 {
                    best = (both, Some((each, next)));
                }
            }
        }
        let Some((place, next)) = best.1 else { return Ok(whole) };
        let long = (0..).zip(rows).filter(|(_, length)| **length > next);
        Ok(Lengths { place, long_place: longest, long: long.map(|(place, _)| place).collect() })
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
        let lengths = [0, 1, 252, 253, 1020, 1021, 2385, 2386, 3580, 3581, 7164, 7165, 286_716];
        let places = [4, 5, 256, 265, 1024, 1194, 2389, 3584, 3584, 7168, 7168, 14_336, 286_720];
        for (longest, place) in lengths.into_iter().zip(places) {
            assert_eq!(place_len(longest).unwrap(), place, "{longest}");
        }
        assert!(place_len(286_717).is_err() && place_len(usize::MAX).is_err());
        let rows = FetchedRows::new(b"c", "records", segments());
        assert_eq!(rows.shape(1024).unwrap().records(), 8);
        assert!(
            [0, 3, 1023, 1025, 7169, 286_721].iter().all(|&length| rows.shape(length).is_err())
        );
        assert!(FetchedRows::new(b"c", "records", []).shape(1024).is_err());
        let many = (0..9).map(|id| (SegmentId([id; 16]), u32::MAX));
        assert!(FetchedRows::new(b"c", "records", many).shape(4).is_err());
    }

    #[test]
    fn long_rows_have_a_table_of_their_own_where_that_saves_half() {
        let of = |rows: &[u32]| {
            let Lengths { place, long_place, long } = Lengths::of(rows).unwrap();
            (place, long_place, long)
        };
        let mut rows = vec![100; 1000];
        assert_eq!(of(&rows), (105, 0, vec![]));
        (rows[3], rows[900]) = (50_000, 60_000);
        // Of all at 64,512 bytes 9,000 polynomials; of two tables 15 and 18.
        assert_eq!(of(&rows), (105, 64_512, vec![3, 900]));
        // 91 rows of seven polynomials are few, 92 are not.
        assert_eq!(of(&rows[..91]), (50_176, 0, vec![]));
        assert_eq!(of(&rows[..92]), (105, 50_176, vec![3]));
        // With as many long as short rows, half is not saved.
        let halves: Vec<u32> =
            (0..2000).map(|row| if row % 2 == 0 { 3000 } else { 7000 }).collect();
        assert_eq!(of(&halves), (7168, 0, vec![]));
        // More than can be told.
        let many: Vec<u32> =
            (0..6000).map(|row| if row < 5000 { 20_000 + row } else { 9 }).collect();
        assert_eq!(of(&many), (28_672, 0, vec![]));
        assert!(Lengths::of(&[9, 286_717]).is_err());
        assert_eq!(of(&[]), (4, 0, vec![]));
    }

    #[test]
    fn tables_of_two_lengths_are_called_by_the_rows_in_both() {
        let rows = || FetchedRows::new(b"c", "records", segments());
        let parted = rows().with_long(vec![1, 6]).unwrap();
        assert_eq!(rows().with_long(vec![]).unwrap(), rows());
        assert_eq!((rows().long_name(), rows().long_shape(7168).unwrap()), (None, None));
        let other = rows().with_long(vec![1, 7]).unwrap();
        let names = [rows().name, parted.name, other.name];
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        assert!(parted.long_name() != other.long_name());
        assert!(parted.long_name() != Some(parted.name()));
        let at = [0, 1, 6, 7, 8, usize::MAX].map(|place| parted.long_place(place));
        assert_eq!(at, [None, Some(0), Some(1), None, None, None]);
        assert_eq!(parted.place(SegmentId([9; 16]), 2), Some(7));
        let shape = parted.long_shape(7168).unwrap().unwrap();
        assert_eq!((shape.records(), Some(shape.name())), (2, parted.long_name()));
        assert!(parted.long_shape(7167).is_err());
        for wrong in [vec![8], vec![2, 1], vec![1, 1], (0..4097).collect()] {
            assert!(rows().with_long(wrong).is_err());
        }
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
