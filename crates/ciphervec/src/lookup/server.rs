//! The server's half. Tables enter at setup; then queries enter, which it cannot read, and answers leave.

use super::bytes::{Answer, Query};
use super::spec::{Options, Spec};
use super::table::Table;
use crate::error::Result;
use ciphervec_he::sealed::counts::{Counts, Hint, Masks};

/// Tables ready to be looked up in, and their public description.
///
/// Nothing here hides the tables from those who may ask: an answer is a linear function of their rows, and as many well-chosen
/// queries as there are rows give all of them away.
pub struct Server {
    spec: Spec,
    table: Table,
    scheme: Counts,
    weights: Vec<i64>,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (tables, rows, columns) = self.spec.shape;
        write!(f, "Server({tables} tables of {rows} × {columns})")
    }
}

impl Server {
    /// Prepares `table`.
    ///
    /// # Errors
    /// [`Error::Range`](crate::Error::Range), [`Error::Lookup`](crate::Error::Lookup) for options or numbers that do not go
    /// together.
    pub fn new(table: Table, options: Options) -> Result<Self> {
        let (spec, scheme) = Spec::new(&table, options)?;
        let weights = spec.scales.weights(&table);
        Ok(Server { spec, table, scheme, weights })
    }

    /// What a client needs to know.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What is looked up.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and a query for another table or other settings.
    pub fn answer(&self, query: &[u8]) -> Result<Vec<u8>> {
        let query = Query::from_bytes(&self.spec, &self.scheme, query)?;
        let dimension = self.spec.dimension();
        let sums = self.scheme.scan(query.words, query.documents, dimension, &self.weights);
        let hint = query.wants_hint.then(|| {
            let masks = Masks::new(&self.scheme, &query.mask_seed, dimension);
            Hint::new(&self.scheme, &masks, &self.weights)
        });
        let answer =
            Answer { key: query.key, nonce: query.nonce, documents: query.documents, hint, sums };
        Ok(answer.to_bytes(&self.spec, &self.scheme))
    }
}
