//! Sets of row numbers, in the shorter of two representations.

use crate::decode::{DecodeError, Reader};

/// A set of rows of one segment, representation as it is stored: the rows themselves while that is
/// shorter, else a bitmap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet {
    rows: u32,
    count: u32,
    representation: Representation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Representation {
    Sorted(Vec<u32>),
    /// A boxed slice, so that the whole is no larger than a vector.
    Bits(Box<[u8]>),
}

impl RowSet {
    /// The empty set of rows below `rows`.
    pub fn new(rows: u32) -> Self {
        Self { rows, count: 0, representation: Representation::Sorted(Vec::new()) }
    }

    /// The set of the given rows; those not below `rows` are left out.
    pub fn from_rows(rows: u32, members: impl IntoIterator<Item = u32>) -> Self {
        let mut set = Self::new(rows);
        members.into_iter().for_each(|row| {
            set.insert(row);
        });
        set
    }

    /// Adds a row; false when it was there, or is not below the bound.
    pub fn insert(&mut self, row: u32) -> bool {
        if row >= self.rows {
            return false;
        }
        let fresh = match &mut self.representation {
            Representation::Sorted(sorted) => {
                let place = sorted.binary_search(&row);
                if let Err(at) = place {
                    sorted.insert(at, row);
                }
                place.is_err()
            }
            Representation::Bits(bits) => {
                let (byte, bit) = (row as usize / 8, 1 << (row % 8));
                let fresh = bits[byte] & bit == 0;
                bits[byte] |= bit;
                fresh
            }
        };
        self.count += u32::from(fresh);
        self.switch();
        fresh
    }

    /// Turns a list that grew longer than the bitmap into the bitmap.
    fn switch(&mut self) {
        if let Representation::Sorted(sorted) = &self.representation
            && !listed(self.count, self.rows)
        {
            let mut bits = vec![0; bitmap_bytes(self.rows)];
            sorted.iter().for_each(|&row| bits[row as usize / 8] |= 1 << (row % 8));
            self.representation = Representation::Bits(bits.into());
        }
    }

    /// Whether the row is in the set.
    pub fn contains(&self, row: u32) -> bool {
        match &self.representation {
            Representation::Sorted(sorted) => sorted.binary_search(&row).is_ok(),
            Representation::Bits(bits) => {
                bits.get(row as usize / 8).is_some_and(|byte| byte & (1 << (row % 8)) != 0)
            }
        }
    }

    /// Rows in the set.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (sorted, bits): (&[u32], &[u8]) = match &self.representation {
            Representation::Sorted(sorted) => (sorted, &[]),
            Representation::Bits(bits) => (&[], bits),
        };
        let members = |(&byte, index): (&u8, u32)| {
            (0..8).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| index * 8 + bit)
        };
        sorted.iter().copied().chain(bits.iter().zip(0u32..).flat_map(members))
    }

    /// Appends: count u32, then the shorter of the rows themselves (u32 each) and a bitmap of all
    /// rows. Which one follows from the count alone, so every set has one encoding.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_le_bytes());
        match &self.representation {
            Representation::Sorted(sorted) => {
                sorted.iter().for_each(|row| out.extend_from_slice(&row.to_le_bytes()))
            }
            Representation::Bits(bits) => out.extend_from_slice(bits),
        }
    }

    pub(super) fn read(rows: u32, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        let count = reader.u32()?;
        if count > rows {
            return Err(reader.field("deleted rows", offset, format!("at most {rows}"), count));
        }
        if listed(count, rows) {
            reader.need_items(count as usize, 4)?;
            let mut sorted = Vec::with_capacity(count as usize);
            let mut least = 0;
            for _ in 0..count {
                let at = reader.offset();
                let row = reader.u32()?;
                if row < least || row >= rows {
                    return Err(reader.field("deleted row", at, format!("{least}..{rows}"), row));
                }
                least = row + 1;
                sorted.push(row);
            }
            return Ok(Self { rows, count, representation: Representation::Sorted(sorted) });
        }
        let at = reader.offset();
        let bits = reader.take(bitmap_bytes(rows))?;
        let spare = bits.len() * 8 - rows as usize;
        let past = bits.last().is_some_and(|byte| u32::from(*byte) >> (8 - spare) != 0);
        let found: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        if past || found != count {
            return Err(reader.field(
                "deleted bitmap",
                at,
                format!("{count} rows below {rows}"),
                found,
            ));
        }
        Ok(Self { rows, count, representation: Representation::Bits(bits.into()) })
    }
}

fn bitmap_bytes(rows: u32) -> usize {
    rows.div_ceil(8) as usize
}

fn listed(count: u32, rows: u32) -> bool {
    u64::from(count) * 4 <= u64::from(rows.div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set_and_round_trips(
            total in 1u32..700,
            seeds in proptest::collection::vec(any::<u32>(), 0..200),
        ) {
            let rows: Vec<u32> = seeds.iter().map(|seed| seed % total).collect();
            let expected: BTreeSet<u32> = rows.iter().copied().collect();
            let set = RowSet::from_rows(total, rows);
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len() as usize, expected.len());
            prop_assert!((0..total + 70).all(|row| set.contains(row) == expected.contains(&row)));
            let mut bytes = Vec::new();
            set.write(&mut bytes);
            prop_assert!(bytes.len() <= 4 + total.div_ceil(8) as usize);
            let mut reader = Reader::new("rows", &bytes);
            prop_assert_eq!(RowSet::read(total, &mut reader), Ok(set));
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn refuses_rows_past_the_end_in_both_encodings() {
        let read = |rows, bytes: &[u8]| RowSet::read(rows, &mut Reader::new("rows", bytes)).is_ok();
        assert!(read(64, &[1, 0, 0, 0, 63, 0, 0, 0]));
        assert!(!read(64, &[1, 0, 0, 0, 64, 0, 0, 0]));
        assert!(!read(128, &[2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0]));
        assert!(read(5, &[2, 0, 0, 0, 0b11000]));
        assert!(read(8, &[1, 0, 0, 0, 0x80]));
        assert!(!read(5, &[2, 0, 0, 0, 0b110000]));
        assert!(!read(5, &[2, 0, 0, 0, 0b11100]));
        assert!(!read(5, &[6, 0, 0, 0, 0xff]));
        assert!(!RowSet::new(5).insert(5));
    }

    #[test]
    fn one_row_of_four_billion_takes_four_bytes() {
        let set = RowSet::from_rows(u32::MAX, [u32::MAX - 1]);
        let mut bytes = Vec::new();
        set.write(&mut bytes);
        assert_eq!(bytes.len(), 8);
        assert_eq!(RowSet::read(u32::MAX, &mut Reader::new("rows", &bytes)), Ok(set));
    }
}
