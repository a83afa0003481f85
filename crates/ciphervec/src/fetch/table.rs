//! A server's half of private fetch: the table, and answers from it. Holds no key.

use crate::error::{Error, Result};
use ciphervec_he::lattice::retrieval::{self, RetrievalQuery, SelectorKeys, Shape, Table};
use ciphervec_he::lattice::ring::Ring;

/// Evaluation keys of one session of a client's.
pub struct FetchKeys(SelectorKeys);

impl FetchKeys {
    /// The session they belong to.
    pub fn epoch(&self) -> u32 {
        self.0.epoch()
    }

    /// Bytes that they take in memory.
    pub fn memory(&self) -> usize {
        self.0.memory()
    }
}

/// Sealed records, as answers are computed from them: some 3.6 times their bytes.
pub struct FetchTable {
    ring: Ring,
    table: Table,
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
        Ok(FetchTable { ring, table })
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        self.table.shape()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Reads a client's evaluation keys.
    ///
    /// # Errors
    /// Damaged or foreign bytes.
    pub fn read_keys(&self, bytes: &[u8]) -> Result<FetchKeys> {
        Ok(FetchKeys(SelectorKeys::from_bytes(&self.ring, bytes)?))
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Damaged or foreign bytes, another table's or another state's, or keys of another session.
    pub fn answer(&self, keys: &FetchKeys, query: &[u8]) -> Result<Vec<u8>> {
        let shape = self.table.shape();
        let query = RetrievalQuery::from_bytes(&self.ring, query, shape)?;
        Ok(retrieval::answer(&self.ring, &keys.0, &self.table, &query)?.to_bytes(shape))
    }
}
