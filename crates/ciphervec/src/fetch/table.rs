//! A server's half of private fetch: the table, and answers from it. Holds no key.

use super::rows;
use crate::error::{Error, Result};
use ciphervec_arith::Backend;
use ciphervec_he::lattice::retrieval::{self, RetrievalQuery, SelectorKeys, Shape, Table};
use ciphervec_he::lattice::ring::Ring;
use std::sync::{Arc, Mutex, PoisonError};

/// Evaluation keys of one session of a client's. Clones share them.
#[derive(Clone)]
pub struct FetchKeys(Arc<(SelectorKeys, [u8; 32])>);

impl FetchKeys {
    /// Bytes of a message with them.
    pub const BYTES: usize = SelectorKeys::BYTES;

    /// Reads a client's.
    ///
    /// # Errors
    /// Damaged or foreign bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let keys = SelectorKeys::from_bytes(&Ring::new()?, bytes)?;
        Ok(FetchKeys(Arc::new((keys, *blake3::hash(bytes).as_bytes()))))
    }

    /// The session they belong to.
    pub fn epoch(&self) -> u32 {
        self.0.0.epoch()
    }

    /// Bytes that they take in memory.
    pub fn memory(&self) -> usize {
        self.0.0.memory()
    }

    /// Whether both are the same, bit for bit.
    pub fn same(&self, other: &Self) -> bool {
        self.0.1 == other.0.1
    }
}

/// The session that a query says it is of; its keys are needed to answer it.
///
/// # Errors
/// [`Error::Scheme`] for bytes that are no query.
pub fn session_of(query: &[u8]) -> Result<u32> {
    Ok(RetrievalQuery::epoch_of(query)?)
}

/// Seconds that so many fetches from a table take on `threads` threads of this machine: a model of the times in
/// `docs/sealed.md`, section 7.6.
pub fn seconds(shape: &Shape, fetches: usize, threads: usize) -> f64 {
    // What a fetch takes whatever the table is; and of each of its bytes, a pass over them and a fetch.
    let (fixed, pass, byte) = match Backend::current().name() {
        "avx512" => (0.010, 19e-12, 26e-12),
        "avx2" | "avx512f" => (0.018, 0.0, 86e-12),
        _ => (0.060, 0.0, 500e-12),
    };
    let (fetches, bytes) = (fetches as f64, shape.table_bytes() as f64);
    (fetches * (fixed + byte * bytes) + pass * bytes) / threads.max(1) as f64
}

/// Records, as answers are computed from them: some 3.6 times their bytes.
pub struct FetchTable {
    ring: Ring,
    shape: Shape,
    /// One, or the parts of a keyed table, which have one shape.
    parts: Vec<Table>,
}

impl FetchTable {
    /// The table of `records`, in order.
    ///
    /// # Errors
    /// [`Error::Range`] for another number of records, or another length, than the shape says.
    pub fn new(shape: Shape, records: &[impl AsRef<[u8]> + Sync]) -> Result<Self> {
        let range = |what, expected: usize, actual: usize| {
            let (expected, actual) = (expected.to_string(), actual.to_string());
            Err(Error::Range { what, expected, actual })
        };
        if records.len() != shape.records() {
            return range("records of a table", shape.records(), records.len());
        }
        let other = records.iter().map(|record| record.as_ref().len());
        if let Some(length) = other.into_iter().find(|length| *length != shape.record_len()) {
            return range("bytes of a sealed record", shape.record_len(), length);
        }
        let ring = Ring::new()?;
        let table = Table::new(&ring, shape, |record, out| {
            out.copy_from_slice(records[record].as_ref());
        });
        Ok(FetchTable { ring, shape, parts: vec![table] })
    }

    /// The table of the rows whose sealed bytes `row` gives by their places; what is longer than a place is left out.
    ///
    /// # Errors
    /// [`Error::Scheme`] without memory for the ring's tables.
    pub fn of_rows<'a>(shape: Shape, row: impl Fn(usize) -> &'a [u8] + Sync) -> Result<Self> {
        let ring = Ring::new()?;
        let table = Table::new(&ring, shape, |place, out| rows::write(row(place), out));
        Ok(FetchTable { ring, shape, parts: vec![table] })
    }

    /// Parts of one shape, of the records that `fill` writes: it is given the part, the record's number, and zeros.
    ///
    /// # Errors
    /// The first that `fill` met.
    pub fn of_parts(
        shape: Shape,
        parts: usize,
        fill: impl Fn(usize, usize, &mut [u8]) -> Result<()> + Sync,
    ) -> Result<Self> {
        let ring = Ring::new()?;
        let failed = Mutex::new(None);
        let make = |part| {
            let table = Table::new(&ring, shape, |record, out| {
                if let Err(error) = fill(part, record, out) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
            match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
                None => Ok(table),
                Some(error) => Err(error),
            }
        };
        let parts = (0..parts).map(make).collect::<Result<_>>()?;
        Ok(FetchTable { ring, shape, parts })
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Table::bytes).sum()
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Damaged or foreign bytes, another table's or another state's, or keys of another session.
    pub fn answer(&self, keys: &FetchKeys, query: &[u8]) -> Result<Vec<u8>> {
        let query = RetrievalQuery::from_bytes(&self.ring, query, &self.shape)?;
        let answer = retrieval::answer(&self.ring, &keys.0.0, &self.parts, &query)?;
        Ok(answer.to_bytes(&self.shape))
    }
}
