//! Shape of a table of records: how many polynomials they take, and where each stands. For both sides, which
//! agree on it before a fetch: no length in a message is believed.
//!
//! # The table
//!
//! Records have one length, up to 286,720 bytes. A polynomial carries 4,096 × 14 bits, 7,168 bytes: ⌊7,168/length⌋
//! records, or a part of one that takes several, each in a *layer* of its own. Polynomials stand in a grid of G
//! *nodes* times C *columns*, in NTT form: 50 bits for 14, **3.57 times the bytes of the records**, and what is
//! left of 7,168 bytes.
//!
//! Every polynomial is XORed with public bits that depend on the table's name and the place alone (BLAKE3). So its
//! coefficients D, integers in \[−2^13, 2^13), are uniform, and the noise of `bound.rs` does not depend on the
//! records.
//!
//! Both sides know the *shape*: name, number of records, length, G. Messages bear a hash of it and are refused
//! under another; lengths come from the shape.

use super::selector::GADGET;
use crate::error::{Error, Result};
use crate::lattice::ring::{DEGREE, Layout, POLY_BYTES};

/// Bits of a record that one coefficient carries.
pub const PAYLOAD_BITS: u32 = 14;
/// Bytes of records that one polynomial carries.
pub const PAYLOAD_BYTES: usize = DEGREE * PAYLOAD_BITS as usize / 8;
/// The longest record: forty polynomials. A page of 1,030 image patches of 128 numbers, with 8 bits a number, takes nineteen.
pub const MAX_RECORD: usize = 40 * PAYLOAD_BYTES;
/// Most nodes: polynomials that one scan adds up.
pub const MAX_NODES: usize = 256;
/// Most polynomials that records start in.
pub const MAX_POLYNOMIALS: usize = 1 << 20;

/// Most numbers that one ciphertext of a query carries.
const NUMBERS: usize = 1 << super::keys::LEVELS;

/// The shape of a table of records of one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    name: [u8; 16],
    records: usize,
    record_len: usize,
    nodes: usize,
}

/// Where a record stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The column.
    pub column: usize,
    /// The node.
    pub node: usize,
    /// The first byte of it in its polynomial.
    pub offset: usize,
}

impl Shape {
    /// `records` records of `record_len` bytes. `name` says which table it is, of which state: messages
    /// about another name or size are refused.
    ///
    /// # Errors
    /// [`Error::Range`] for no records, too many, or a length that is 0 or above [`MAX_RECORD`].
    pub fn new(name: [u8; 16], records: usize, record_len: usize) -> Result<Self> {
        let mut shape = Self::with_nodes(name, records, record_len, 1)?;
        // Numbers of a fetch fill a power of two, or the tree would grow nodes for none; nodes are as many as columns,
        // as far as the noise allows.
        for room in (0..=MAX_NODES.ilog2()).map(|bits| 1 << bits) {
            let of = |nodes| Shape { nodes, ..shape };
            let widest = (1..=room).rev().map(of).find(|shape| shape.numbers() <= room);
            shape = widest.unwrap_or(shape);
            if widest.is_some() && shape.nodes * shape.nodes >= shape.polynomials() {
                break;
            }
        }
        Ok(shape)
    }

    /// As [`Self::new`] with a number of nodes of one's own.
    ///
    /// # Errors
    /// As [`Self::new`], or for no nodes or more than [`MAX_NODES`].
    pub fn with_nodes(
        name: [u8; 16],
        records: usize,
        record_len: usize,
        nodes: usize,
    ) -> Result<Self> {
        let range = |what, expected: String, actual: usize| {
            Err(Error::Range { what, expected, actual: actual.to_string() })
        };
        if !(1..=MAX_RECORD).contains(&record_len) {
            return range("bytes of a record", format!("1 to {MAX_RECORD}"), record_len);
        }
        if !(1..=MAX_NODES).contains(&nodes) {
            return range("nodes", format!("1 to {MAX_NODES}"), nodes);
        }
        let most = MAX_POLYNOMIALS.saturating_mul((PAYLOAD_BYTES / record_len).max(1));
        if !(1..=most).contains(&records) {
            return range("records", format!("1 to {most} of {record_len} bytes"), records);
        }
        Ok(Shape { name, records, record_len, nodes })
    }

    /// Records there are.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Bytes of each.
    pub fn record_len(&self) -> usize {
        self.record_len
    }

    /// Nodes: polynomials a column.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Records that one polynomial carries.
    pub fn per_polynomial(&self) -> usize {
        (PAYLOAD_BYTES / self.record_len).max(1)
    }

    /// Layers: polynomials that one record takes, each of which is a table of its own.
    pub fn layers(&self) -> usize {
        self.record_len.div_ceil(PAYLOAD_BYTES)
    }

    /// Polynomials a layer that have records.
    pub fn polynomials(&self) -> usize {
        self.records.div_ceil(self.per_polynomial())
    }

    /// Columns a layer.
    pub fn columns(&self) -> usize {
        self.polynomials().div_ceil(self.nodes)
    }

    /// Bits of a column's number.
    pub fn column_bits(&self) -> u32 {
        self.columns().next_power_of_two().trailing_zeros()
    }

    /// Bytes of the table in a server's memory.
    pub fn table_bytes(&self) -> u64 {
        (self.layers() * self.nodes * POLY_BYTES) as u64 * self.columns() as u64
    }

    /// Where a record stands.
    ///
    /// # Errors
    /// [`Error::Range`] for a record that there is not.
    pub fn place(&self, record: usize) -> Result<Place> {
        if record >= self.records {
            return Err(Error::Range {
                what: "the record",
                expected: format!("below {}", self.records),
                actual: record.to_string(),
            });
        }
        let (polynomial, index) = (record / self.per_polynomial(), record % self.per_polynomial());
        let (column, node) = (polynomial / self.nodes, polynomial % self.nodes);
        Ok(Place { column, node, offset: index * self.record_len })
    }

    /// Numbers that one fetch encrypts: a one for its node among zeros, then [`GADGET`] times each bit of
    /// its column, the lowest first.
    pub fn numbers(&self) -> usize {
        self.nodes + self.column_bits() as usize * GADGET.count as usize
    }

    /// Fetches that share a ciphertext.
    pub fn fetches_per_ciphertext(&self) -> usize {
        NUMBERS / self.numbers()
    }

    /// Ciphertexts of a query of so many fetches.
    pub fn ciphertexts(&self, fetches: usize) -> usize {
        fetches.div_ceil(self.fetches_per_ciphertext())
    }

    /// How the numbers of so many fetches stand in one ciphertext.
    ///
    /// # Errors
    /// [`Error::Range`] for none.
    #[doc(hidden)]
    pub fn layout(&self, fetches: usize) -> Result<Layout> {
        let numbers = fetches * self.numbers();
        Layout::new(numbers, Layout::top_level(numbers))
    }

    /// The name that messages about this shape bear.
    pub(super) fn id(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 retrieval-shape");
        hasher.update(&self.name);
        for number in [self.records, self.record_len, self.nodes] {
            hasher.update(&(number as u64).to_le_bytes());
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        id
    }

    /// What the table is called.
    pub fn name(&self) -> &[u8; 16] {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_record_has_a_place_of_its_own() {
        for record_len in [1, 7, 100, 1024, 2389, 2390, 3584, 3585, PAYLOAD_BYTES, MAX_RECORD] {
            for records in [1, 2, 3, 17, 1000, 70_001] {
                let shape = Shape::new([0; 16], records, record_len).unwrap();
                let mut places = HashSet::new();
                for record in 0..records {
                    let place = shape.place(record).unwrap();
                    assert!(place.column < shape.columns() && place.node < shape.nodes());
                    assert!(place.column >> shape.column_bits() == 0);
                    assert!(shape.layers() > 1 || place.offset + record_len <= PAYLOAD_BYTES);
                    assert!(places.insert((place.column, place.node, place.offset)));
                }
                assert!(shape.place(records).is_err());
                assert!(shape.nodes() * shape.columns() < shape.polynomials() + shape.nodes());
                assert!(shape.numbers() * shape.fetches_per_ciphertext() <= NUMBERS);
                assert!(shape.numbers() <= MAX_NODES && shape.fetches_per_ciphertext() >= 4);
            }
        }
    }

    #[test]
    fn sizes_without_a_table_are_refused() {
        let new = |records, len| Shape::new([0; 16], records, len);
        assert!(new(0, 1).is_err() && new(1, 0).is_err() && new(1, MAX_RECORD + 1).is_err());
        assert!(new(usize::MAX, 1).is_err() && new(usize::MAX, usize::MAX).is_err());
        assert!(new(MAX_POLYNOMIALS, MAX_RECORD).is_ok());
        assert!(new(MAX_POLYNOMIALS + 1, MAX_RECORD).is_err());
        assert!(new(MAX_POLYNOMIALS.saturating_mul(PAYLOAD_BYTES), 1).is_ok());
        assert!([0, 257, usize::MAX].iter().all(|&n| Shape::with_nodes([0; 16], 9, 9, n).is_err()));
        let sizes = |shape: Shape| (shape.nodes(), shape.columns(), shape.numbers());
        assert_eq!(sizes(new(200_000, 1024).unwrap()), (228, 126, 256));
        assert_eq!(sizes(new(1_000_000, 1024).unwrap()), (216, 662, 256));
        assert_eq!(sizes(new(1, 1).unwrap()), (1, 1, 1));
    }

    #[test]
    fn another_name_size_or_length_is_another_shape() {
        let shape = |name, records, len| Shape::new([name; 16], records, len).unwrap().id();
        let ids = [shape(0, 9, 9), shape(1, 9, 9), shape(0, 8, 9), shape(0, 9, 8)];
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4);
    }
}
