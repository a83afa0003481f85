//! What a replica fetches rows with in private: a session, the tables that its server offers, and what failed.

use std::collections::HashMap;

use ciphervec_owner::KeyId;
use ciphervec_owner::fetch::{FetchSession, FetchedRows, Shape};

use crate::belief::fetch_book::FetchBook;
use crate::store::FetchOffer;

pub struct Fetches {
    pub book: FetchBook,
    /// Under which keys, and of which process: it serves so many queries.
    pub session: Option<((KeyId, u64), FetchSession)>,
    /// By blob.
    pub offers: HashMap<&'static str, FetchOffer>,
}

impl Fetches {
    pub fn new(book: FetchBook) -> Self {
        Fetches { book, session: None, offers: HashMap::new() }
    }
}

/// A private fetch, as a server offers it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivateTable {
    /// Rows that it is among, deleted ones included.
    pub rows: usize,
    /// Bytes that each has there, sealed: the size class of the longest that is not in the table of long rows.
    pub place_bytes: usize,
    /// Rows that are much longer than the others, and have a table of their own.
    pub long_rows: usize,
    /// Bytes that each has there; 0 where there is none.
    pub long_place_bytes: usize,
    /// Bytes that both tables take in the server's memory.
    pub table_bytes: u64,
    /// Seconds that one row is predicted to take.
    pub seconds: f64,
    /// The same of up to ten; up to a hundred take ten times as long.
    pub seconds_of_ten: f64,
}

/// What there is to know of private fetches from a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateFetch {
    /// Of metadata and documents; or why there is none.
    pub records: core::result::Result<PrivateTable, String>,
    /// How many failed a check: each may have told a server whether one row was among those asked for.
    pub failures: u32,
    /// Whether none is made any more, because one failed.
    pub ended: bool,
}

/// A table of the present state, or both where long rows have one of their own.
pub struct Table {
    pub blob: &'static str,
    pub rows: FetchedRows,
    pub shape: Shape,
    pub long: Option<Shape>,
    pub offer: FetchOffer,
}

impl Table {
    /// What is asked for rows: of each table as many, whichever the rows are in.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let long = self.long.as_ref().map(|shape| Part { of: self, shape, long: true });
        core::iter::once(Part { of: self, shape: &self.shape, long: false }).chain(long)
    }
}

/// One of the tables that rows of a blob are in.
pub struct Part<'a> {
    pub of: &'a Table,
    pub shape: &'a Shape,
    pub long: bool,
}

impl Part<'_> {
    /// Where a row of the first table is in this one; none where it is not in this one.
    pub fn place(&self, first: usize) -> Option<usize> {
        match (self.of.rows.long_place(first), self.long) {
            (place, true) => place,
            (None, false) => Some(first),
            (Some(_), false) => None,
        }
    }
}
