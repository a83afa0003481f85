//! Padding: a cluster's rows as a segment of which everything has the length that it has in every other cluster: rows, ids, records.
//!
//! Rows that nobody put in fill a cluster up. They are sealed like the others; their ids, which nobody asks for, take what room those of
//! the others leave. Metadata and documents of all rows are one record, filled up with zeros, and so are the vectors as they were put in:
//! a record a row would show its length. Where rows are fetched in private each has a record of its own, and all of these one length.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::protect::records::{Place, seal_records};
use ciphervec_owner::search::Expected;
use ciphervec_owner::{Error as SchemeError, Id, Metric};
use indexmap::IndexMap;

use crate::change::{NewSegment, ORIGINALS, RECORDS, ROWS, SIDECAR};
use crate::clusters::table::Clustering;
use crate::error::{Error, Result};
use crate::random::Draws;
use crate::records::original::original;
use crate::replica::Replica;
use crate::threads::heavy;

/// Bytes of a text id.
const LONGEST_ID: u64 = 65_535;
/// What ids of padding take at least, where any id is a text.
pub const SPARE_BYTES: u64 = 64;
/// Bytes before a payload that say how long it is.
pub const LENGTH: usize = 4;
/// The id that the one record of a cluster is sealed to.
pub const BUNDLE: &str = "ciphervec records of a cluster";

/// What is the same of every cluster, and all that is seen of one.
pub struct Shape {
    pub rows: usize,
    pub id_bytes: u64,
    pub record_bytes: u64,
    /// Whether each row has a record of its own, of `record_bytes`.
    pub apart: bool,
}

/// Rows of the key holder's.
#[derive(Default)]
pub struct Rows {
    pub ids: Vec<Id>,
    pub vectors: Vec<f32>,
    /// Which of these are as they were put in.
    pub original: Vec<bool>,
    /// The bytes of each metadata and document.
    pub payloads: Vec<Arc<[u8]>>,
}

impl Rows {
    /// These of them.
    pub fn take(&self, numbers: &[usize], dimension: usize) -> Self {
        let vector = |at: &usize| &self.vectors[at * dimension..][..dimension];
        Rows {
            ids: numbers.iter().map(|at| self.ids[*at].clone()).collect(),
            vectors: numbers.iter().flat_map(vector).copied().collect(),
            original: numbers.iter().map(|at| self.original[*at]).collect(),
            payloads: numbers.iter().map(|at| Arc::clone(&self.payloads[*at])).collect(),
        }
    }
}

impl Shape {
    pub fn of(plan: &Clustering) -> Self {
        Shape {
            rows: plan.rows as usize,
            id_bytes: plan.id_bytes,
            record_bytes: plan.record_bytes,
            apart: plan.apart,
        }
    }

    /// Whether these rows can be a cluster, with at least one of padding.
    pub fn fits(&self, rows: &Rows) -> bool {
        let Some(spare) = self.rows.checked_sub(rows.ids.len()).filter(|spare| *spare > 0) else {
            return false;
        };
        let Some(left) = self.id_bytes.checked_sub(id_bytes(&rows.ids)) else { return false };
        let most = spare as u64 * (LONGEST_ID - SPARE_BYTES);
        (left == 0 || (SPARE_BYTES..=most).contains(&left))
            && match self.apart {
                true => rows.payloads.iter().all(|one| fits_in(one, self.record_bytes)),
                false => packed_bytes(&rows.payloads) <= self.record_bytes,
            }
    }
}

/// What ids take in a sidecar beside a fixed part.
pub fn id_bytes(ids: &[Id]) -> u64 {
    let of = |id: &Id| match id {
        Id::Text(text) => text.len() as u64,
        Id::Number(_) => 0,
    };
    ids.iter().map(of).sum()
}

/// What [`pack`] makes of them at least; nothing where no row has any.
pub fn packed_bytes(payloads: &[Arc<[u8]>]) -> u64 {
    let bytes: usize = payloads.iter().map(|one| one.len()).sum();
    if bytes == 0 { 0 } else { (4 + 4 * payloads.len() + bytes) as u64 }
}

/// Whether a payload fits into a record of its own of so many bytes. None take no bytes where no row has any.
pub fn fits_in(payload: &[u8], room: u64) -> bool {
    payload.is_empty() || (LENGTH + payload.len()) as u64 <= room
}

/// A payload as a record of its own, so long: its length u32, the bytes, zeros.
fn padded(payload: &[u8], room: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(room);
    record.extend((payload.len() as u32).to_le_bytes());
    record.extend_from_slice(payload);
    record.resize(room.max(record.len()), 0);
    record
}

/// Reads what [`padded`] wrote.
pub fn unpadded(record: &[u8]) -> Option<&[u8]> {
    let (length, rest) = record.split_first_chunk::<LENGTH>()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

/// Payloads as one, so long: their number u32, the length of each u32, the bytes, zeros.
fn pack(payloads: &[Arc<[u8]>], length: usize) -> Vec<u8> {
    let mut packed = Vec::with_capacity(length);
    packed.extend((payloads.len() as u32).to_le_bytes());
    payloads.iter().for_each(|one| packed.extend((one.len() as u32).to_le_bytes()));
    payloads.iter().for_each(|one| packed.extend_from_slice(one));
    packed.resize(length.max(packed.len()), 0);
    packed
}

/// Reads what [`pack`] wrote.
pub fn unpack(data: &[u8]) -> Result<Vec<Arc<[u8]>>> {
    let mut rest = data;
    let mut number = || -> Option<usize> {
        let (first, left) = rest.split_first_chunk::<4>()?;
        rest = left;
        usize::try_from(u32::from_le_bytes(*first)).ok()
    };
    let lengths: Option<Vec<_>> = number().and_then(|count| (0..count).map(|_| number()).collect());
    let mut one = |length: usize| -> Option<Arc<[u8]>> {
        let (first, left) = rest.split_at_checked(length)?;
        rest = left;
        Some(first.into())
    };
    let payloads = lengths.and_then(|lengths| lengths.into_iter().map(&mut one).collect());
    payloads.ok_or_else(|| {
        Error::Corrupt(format!(
            "the records of a cluster are not records: they end beyond its {} bytes.",
            data.len()
        ))
    })
}

impl Replica {
    /// A segment of these rows, filled up to the shape, for an index of so many rows.
    pub fn seal_cluster(
        &self,
        draws: &mut Draws,
        rows: &Rows,
        shape: &Shape,
        expected: usize,
    ) -> Result<NewSegment> {
        let dimension = self.description.spec.dimension();
        let spare = shape.rows - rows.ids.len();
        let mut ids = rows.ids.clone();
        filling(draws, &mut ids, spare, shape.id_bytes - id_bytes(&rows.ids));
        let mut vectors = rows.vectors.clone();
        let bits = self.description.spec.metric() == Metric::Hamming;
        like(draws, &mut vectors, spare, dimension, bits);
        let expected = Expected { rows: expected, network: self.description.network };
        let sealed = {
            let (owner, center) = (&self.owner, self.center());
            heavy(|| owner.seal_around(&vectors, &ids, &expected, center))?
        };
        let mut blobs: IndexMap<&'static str, Arc<[u8]>> = IndexMap::new();
        blobs.insert(ROWS, sealed.segment.to_vec().into());
        blobs.insert(SIDECAR, sealed.sidecar.into());
        let seal = |payloads: &[Arc<[u8]>], each: usize, all: usize| {
            let records = match shape.apart {
                true => {
                    let payloads = payloads.iter().map(|one| &one[..]);
                    let payloads = payloads.chain(core::iter::repeat(&[][..]));
                    let record = |(id, one): (&Id, &[u8])| (id.clone(), padded(one, each));
                    ids.iter().zip(payloads).map(record).collect()
                }
                false => vec![(Id::from(BUNDLE), pack(payloads, all))],
            };
            let binding = self.owner.spec().binding();
            let place = Place { collection: &binding, segment: &sealed.id.0 };
            let sealed = seal_records(self.owner.aead(), place, &records);
            sealed.map(Arc::from).map_err(SchemeError::Envelope)
        };
        if shape.record_bytes > 0 {
            let length = shape.record_bytes as usize;
            blobs.insert(RECORDS, seal(&rows.payloads, length, length)?);
        }
        if self.description.originals {
            let kept = rows.vectors.chunks_exact(dimension).zip(&rows.original);
            let kept: Vec<Arc<[u8]>> =
                kept.map(|(row, there)| original(row, *there).into()).collect();
            let each = LENGTH + 1 + 4 * dimension;
            blobs.insert(ORIGINALS, seal(&kept, each, 4 + shape.rows * each)?);
        }
        Ok(NewSegment { id: sealed.id, rows: sealed.rows, blobs, deleted: Vec::new() })
    }
}

/// Adds so many ids, none of those there, that take so many bytes together: none, or [`SPARE_BYTES`] and more.
fn filling(draws: &mut Draws, ids: &mut Vec<Id>, count: usize, mut room: u64) {
    let mut taken: HashSet<Id> = ids.iter().cloned().collect();
    let all = ids.len() + count;
    while ids.len() < all {
        // What is left for the next one must be long enough not to meet an id that is taken.
        let length = if room <= LONGEST_ID { room } else { LONGEST_ID.min(room - SPARE_BYTES) };
        let one = if length > 0 {
            let mut text = String::with_capacity(length as usize + 16);
            while (text.len() as u64) < length {
                text.push_str(&format!("{:016x}", draws.u64()));
            }
            text.truncate(length as usize);
            Id::Text(text)
        } else {
            Id::Number((draws.u64() >> 2) as i64)
        };
        if taken.insert(one.clone()) {
            ids.push(one);
            room -= length;
        }
    }
}

/// Adds so many vectors near those there that are none of them.
fn like(draws: &mut Draws, vectors: &mut Vec<f32>, count: usize, dimension: usize, bits: bool) {
    let there = vectors.len() / dimension;
    let mean = vectors.iter().map(|x| f64::from(*x)).sum::<f64>() / vectors.len().max(1) as f64;
    let variance = vectors.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
    let spread = (variance / vectors.len().max(1) as f64).sqrt();
    let spread = 0.1 * if spread > 0.0 { spread } else { 1.0 } + 1e-6;
    for _ in 0..count {
        let (one, two) = match there {
            0 => (0, 0),
            there => (draws.below(there), draws.below(there)),
        };
        for column in 0..dimension {
            vectors.push(match (bits, there) {
                (true, _) => [-1.0, 1.0][draws.below(2)],
                (false, 0) => draws.normal() as f32,
                (false, _) => {
                    let at = |row: usize| f64::from(vectors[row * dimension + column]);
                    ((at(one) + at(two)) / 2.0 + spread * draws.normal()) as f32
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(rows in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..9), more in 0usize..40) {
            let rows: Vec<Arc<[u8]>> = rows.into_iter().map(Into::into).collect();
            let length = packed_bytes(&rows) as usize + more;
            prop_assert_eq!(&unpack(&pack(&rows, length)).unwrap(), &rows);
        }

        #[test]
        fn other_bytes_are_refused_or_read(data in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = unpack(&data);
            let _ = unpadded(&data);
        }

        #[test]
        fn records_by_themselves_have_one_length(payload in proptest::collection::vec(any::<u8>(), 0..40), more in 0usize..40) {
            let room = LENGTH + payload.len() + more;
            let record = padded(&payload, room);
            prop_assert!(fits_in(&payload, room as u64));
            prop_assert_eq!((record.len(), unpadded(&record)), (room, Some(&payload[..])));
            prop_assert_eq!(fits_in(&payload, (LENGTH + payload.len()) as u64 - 1), payload.is_empty());
        }

        #[test]
        fn ids_of_padding_take_the_room_that_is_left(count in 1usize..6, room in prop_oneof![Just(0u64), 64u64..200_000]) {
            prop_assume!(room <= count as u64 * (LONGEST_ID - SPARE_BYTES));
            let mut ids = vec![Id::from("a")];
            filling(&mut Draws::new().unwrap(), &mut ids, count, room);
            prop_assert_eq!((ids.len(), id_bytes(&ids)), (count + 1, room + 1));
        }
    }

    #[test]
    fn a_length_that_no_bytes_follow_takes_no_memory() {
        assert!(unpack(&u32::MAX.to_le_bytes()).is_err());
        assert!(unpadded(&u32::MAX.to_le_bytes()).is_none());
    }
}
