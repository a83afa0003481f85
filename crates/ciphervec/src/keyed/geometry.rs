//! How long slots and buckets of a table are and how many there are: a function of few numbers, which both sides compute.

use super::hash::{MAX_PARTS, TAG_BYTES};
use super::tree;
use crate::error::{Error, Result};
use ciphervec_he::lattice::retrieval::{PAYLOAD_BYTES, Shape};

/// The most bytes of a record.
pub const MAX_CONTENT: usize = u16::MAX as usize;
/// The most bytes of a bucket: a larger one would be read for each key.
const MAX_BUCKET: usize = 10 * PAYLOAD_BYTES;
/// What sealing adds to a record: nonce, tag, and its length.
pub(super) const SEALED: usize = 24 + 16 + size_of::<u32>();

/// The sizes of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// The most bytes of a record.
    pub content: usize,
    /// Whether records are sealed by an owner.
    pub sealed: bool,
    /// Parts, each of which has one bucket for each key.
    pub parts: usize,
    /// Buckets of a part.
    pub buckets: usize,
}

impl Geometry {
    /// Checks that such a table can be.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn check(self) -> Result<Self> {
        let range = |what, most: usize, actual: usize| Error::Range {
            what,
            expected: format!("1 to {most}"),
            actual: actual.to_string(),
        };
        if self.content > MAX_CONTENT {
            return Err(range("bytes of a record", MAX_CONTENT, self.content));
        }
        if !(1..=MAX_PARTS).contains(&self.parts) {
            return Err(range("parts of a table", MAX_PARTS, self.parts));
        }
        // Refuses no buckets, and more than a part may have.
        self.shape([0; 16])?;
        Ok(self)
    }

    /// Bytes of a record as its slot holds it, after the tag: sealed, or behind two bytes of length where any has content.
    pub fn body(&self) -> usize {
        match (self.sealed, self.content) {
            (true, content) => content + SEALED,
            (false, 0) => 0,
            (false, content) => size_of::<u16>() + content,
        }
    }

    /// Bytes of a slot.
    pub fn slot(&self) -> usize {
        TAG_BYTES + self.body()
    }

    /// Buckets of all parts.
    pub fn all_buckets(&self) -> usize {
        self.parts.saturating_mul(self.buckets)
    }

    /// Hashes at the end of a bucket.
    pub(super) fn path(&self) -> usize {
        tree::path_len(self.all_buckets())
    }

    /// Bytes of a bucket: as few whole polynomials as hold a slot and the path.
    pub fn bucket(&self) -> usize {
        self.bucket_with(self.path())
    }

    fn bucket_with(&self, path: usize) -> usize {
        (self.slot() + path * tree::NODE_BYTES).next_multiple_of(PAYLOAD_BYTES)
    }

    /// Bytes of a bucket that hold slots, and zeros behind the last one.
    pub(super) fn slot_bytes(&self) -> usize {
        self.bucket() - self.path() * tree::NODE_BYTES
    }

    /// Slots of a bucket.
    pub fn slots(&self) -> usize {
        self.slots_with(self.path())
    }

    fn slots_with(&self, path: usize) -> usize {
        (self.bucket_with(path) - path * tree::NODE_BYTES) / self.slot()
    }

    /// The shape of each part.
    ///
    /// # Errors
    /// [`Error::Range`] for no buckets, or more than a table of private fetch holds.
    pub fn shape(&self, name: [u8; 16]) -> Result<Shape> {
        let bucket = self.bucket();
        if bucket > MAX_BUCKET {
            return Err(Error::Range {
                what: "bytes of a bucket",
                expected: format!("at most {MAX_BUCKET}"),
                actual: bucket.to_string(),
            });
        }
        Ok(Shape::new(name, self.buckets, bucket)?)
    }

    /// The table for so many records: the fewest parts with which it stays small, and room for all keys to find a place.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn of(records: usize, content: usize, sealed: bool) -> Result<Self> {
        let mut fitting = Geometry { content, sealed, parts: 1, buckets: 1 };
        // Longer paths take room from slots; there is a length that suits the number of buckets which it leads to.
        for path in 0..=tree::MAX_PATH {
            let slots = fitting.slots_with(path);
            let parts = match slots {
                // Buckets of so many slots, filled by chance alone, are more than half full.
                MANY.. => 1,
                2.. => 2,
                _ => 3,
            };
            let needed = least_buckets(records, slots, parts).max(tree::least_leaves(path));
            (fitting.parts, fitting.buckets) = (parts, needed.div_ceil(parts));
            if fitting.path() == path {
                break;
            }
        }
        fitting.check()
    }
}

/// Slots from which on one place a key is enough.
const MANY: usize = 128;

/// Buckets in which so many records find places with a chance of three quarters at least.
fn least_buckets(records: usize, slots: usize, parts: usize) -> usize {
    // Thresholds of cuckoo hashing are 0.918 for three places of one slot, and for two places 0.897, 0.959 and 0.980 of
    // two, three and four slots (Fotakis et al.; Fernholz and Ramachandran).
    let load = match (parts, slots) {
        (3, _) => 0.88,
        (2, 2) => 0.85,
        (2, 3) => 0.92,
        (2, _) => 0.95,
        _ => return least_by_chance(records, slots),
    };
    ((records as f64 / (slots as f64 * load)).ceil() as usize).max(parts)
}

/// The same for one place a key. By Bernstein's inequality a bucket of mean λ has more than c with exp(−(c−λ)²/(2(λ+(c−λ)/3))).
fn least_by_chance(records: usize, slots: usize) -> usize {
    let fits = |buckets: usize| {
        let mean = records as f64 / buckets as f64;
        let over = slots as f64 - mean;
        over > 0.0 && over * over / (2.0 * (mean + over / 3.0)) > (4.0 * buckets as f64).ln()
    };
    let mut buckets = records.div_ceil(slots).max(1);
    while records > slots && !fits(buckets) {
        buckets += buckets.div_ceil(64);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_every_size_hold_their_records_and_paths() {
        for records in [0, 1, 2, 100, 434, 435, 10_000, 100_000, 1_000_000, 3_000_000] {
            for content in [0, 1, 30, 38, 40, 100, 1024, 3500, 3566, 6000, 7130, 7200, MAX_CONTENT]
            {
                for sealed in [false, true] {
                    let Ok(table) = Geometry::of(records, content, sealed) else {
                        assert!(records * content > 1 << 30, "{records} {content}");
                        continue;
                    };
                    let held = table.slots() * table.slot() + table.path() * tree::NODE_BYTES;
                    assert!(table.slots() >= 1 && held <= table.bucket(), "{table:?}");
                    assert!(table.slots() * table.all_buckets() >= records, "{table:?}");
                    let places = match table.slots() {
                        MANY.. => 1,
                        2.. => 2,
                        _ => 3,
                    };
                    assert_eq!(table.parts, places, "{table:?}");
                    // Of a thousand buckets the cap has each; of more, their path.
                    assert_eq!(table.path() > 0, table.all_buckets() > tree::CAP, "{table:?}");
                    if records >= 100_000 {
                        let full = records as f64 / (table.slots() * table.all_buckets()) as f64;
                        assert!(full > 0.5, "{full} {table:?}");
                    }
                }
            }
        }
        let of = |content| Geometry::of(200_000, content, false).unwrap();
        assert_eq!([0, 1024, 6000].map(|content| of(content).parts), [1, 2, 3]);
        assert_eq!(Geometry::of(1_000_000, 0, false).unwrap().slots(), 444);
    }

    #[test]
    fn sizes_without_a_table_are_refused() {
        let one = Geometry { content: 10, sealed: false, parts: 1, buckets: 1 };
        assert!(one.check().is_ok());
        for bad in [
            Geometry { content: MAX_CONTENT + 1, ..one },
            Geometry { parts: 0, ..one },
            Geometry { parts: 4, ..one },
            Geometry { buckets: 0, ..one },
            Geometry { buckets: 1 << 30, ..one },
            Geometry { buckets: usize::MAX, parts: 3, ..one },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(Geometry::of(usize::MAX >> 8, 1024, false).is_err());
    }
}
