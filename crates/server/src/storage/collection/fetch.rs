//! Private fetch from one collection. The server learns the table, a class of how many rows, and none of the rows.

use super::Collection;
use crate::storage::blob_names::{FETCHED, ROUTING};
use crate::storage::error::DatabaseError;
use crate::storage::fetching::{Fetched, TableKey, refused};
use bytes::Bytes;
use ciphervec::fetch::{self, FetchTable, FetchedRows, Lengths, Shape};
use ciphervec::protect::records::{HEAD_START, RecordBatch, head_len, record_lens};
use ciphervec::store::{self, SegmentId, StoreError};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// Fetches that a query may be made to look like, whose times an offer has.
pub const CLASSES: [usize; 2] = [1, 10];

/// Bytes of each row in a head of records, at most.
const LONGEST_ENTRY: usize = 24;

/// A table of the present state: what a client checks, and what a fetch costs.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchOffer {
    /// What the table is called, by the rows in it.
    pub table: [u8; 16],
    /// Rows in it, deleted ones included.
    pub rows: u64,
    /// Bytes that each has in it.
    pub place_bytes: u64,
    /// Rows that have a table of their own, by their places in the first.
    pub long_rows: Vec<u32>,
    /// Bytes that each has in that; 0 where there is none.
    pub long_place_bytes: u64,
    /// Bytes that both take in memory.
    pub table_bytes: u64,
    /// Seconds that a query for one row takes here, and one for ten, as predicted.
    pub seconds: [f64; 2],
}

struct Planned {
    rows: FetchedRows,
    shape: Shape,
    /// Of long rows, where they have a table of their own.
    long: Option<Shape>,
    /// Bytes that they are made of.
    stored: u64,
}

impl Planned {
    fn shapes(&self) -> impl Iterator<Item = &Shape> {
        core::iter::once(&self.shape).chain(&self.long)
    }

    fn table_bytes(&self) -> u64 {
        self.shapes().map(Shape::table_bytes).sum()
    }
}

impl Collection {
    /// What a private fetch from a blob of the present state is like.
    ///
    /// # Errors
    /// [`DatabaseError::Limit`] where none is offered, with why; as [`Collection::blob`].
    pub fn fetch_offer(&self, blob: &str) -> Result<FetchOffer, DatabaseError> {
        self.catch_up();
        let planned = self.plan(fetched(blob)?)?;
        let threads = self.engine.pool.current_num_threads();
        let seconds =
            |fetches| planned.shapes().map(|shape| fetch::seconds(shape, fetches, threads)).sum();
        Ok(FetchOffer {
            table: *planned.rows.name(),
            rows: planned.rows.len() as u64,
            place_bytes: planned.shape.record_len() as u64,
            long_rows: planned.rows.long().to_vec(),
            long_place_bytes: planned.long.map_or(0, |long| long.record_len() as u64),
            table_bytes: planned.table_bytes(),
            seconds: CLASSES.map(seconds),
        })
    }

    /// Takes in the evaluation keys of a session of fetches, for those of this token.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for bytes that are no such keys, [`DatabaseError::SessionExists`].
    pub fn put_fetch_keys(&self, token: &str, bytes: &[u8]) -> Result<(), DatabaseError> {
        let (engine, index) = (&self.engine, self.held().description.spec.id());
        engine.fetching.put_keys(&engine.pool, (token, index), bytes)?;
        engine.count_taken();
        Ok(())
    }

    /// Answers a token's query for rows of a table, which is made if it is not there.
    ///
    /// # Errors
    /// [`DatabaseError::FetchKeysMissing`]; [`DatabaseError::TableMoved`] for a table of another state, [`DatabaseError::Limit`] where
    /// none is offered, [`DatabaseError::Invalid`] for bytes that are no query of it, [`DatabaseError::Busy`]; as [`Collection::blob`].
    pub async fn fetch(
        self: &Arc<Self>,
        token: &str,
        (blob, table): (&str, [u8; 16]),
        query: Bytes,
    ) -> Result<Fetched, DatabaseError> {
        let blob = fetched(blob)?;
        let key = (self.held().description.spec.id(), table);
        let (collection, engine) = (Arc::clone(self), &self.engine);
        let table = move || collection.table(blob, key);
        engine.fetching.answer(&engine.pool, (token, key.0), query, table).await
    }

    /// The table of that name, made with the other of its rows.
    fn table(&self, blob: &'static str, key: TableKey) -> Result<Arc<FetchTable>, DatabaseError> {
        let fetching = &self.engine.fetching;
        if let Some(table) = fetching.get(&key) {
            return Ok(table);
        }
        self.catch_up();
        let planned = self.plan(blob)?;
        let Planned { rows, shape, long, stored } = &planned;
        if *rows.name() != key.1 && rows.long_name() != Some(&key.1) {
            return Err(DatabaseError::TableMoved);
        }
        let making = fetching.make_room(planned.table_bytes() + stored);
        self.engine.count_taken();
        let of = |entry: &store::SegmentEntry| (entry.id, entry.blob(blob).copied());
        let read = |view: &store::View| {
            let blobs: Vec<_> = view.manifest().segments.iter().map(of).collect();
            let read = |(id, blob): (SegmentId, Option<store::BlobRef>)| {
                Ok((id, blob.map(|blob| view.stored(&blob).read()).transpose()?))
            };
            blobs.into_par_iter().map(read).collect::<Result<HashMap<_, _>, StoreError>>()
        };
        let blobs = self.read(read)?;
        let batch = |id: ciphervec::SegmentId| {
            // One that is not there went after the plan was made.
            let blob = blobs.get(&id.0).ok_or(DatabaseError::TableMoved)?.as_deref();
            Ok(blob.and_then(|blob| RecordBatch::parse(blob).ok()))
        };
        let batches: Vec<_> = rows.segments().map(batch).collect::<Result<_, DatabaseError>>()?;
        let row = |place: usize| {
            let (segment, row) = rows.row(place)?;
            batches[segment].as_ref()?.ciphertext(row)
        };
        let of_long = |place: usize| row(rows.long()[place] as usize).unwrap_or_default();
        let made = || {
            let first = FetchTable::of_rows(*shape, |place| row(place).unwrap_or_default())?;
            Ok((first, long.map(|long| FetchTable::of_rows(long, of_long)).transpose()?))
        };
        let made: Result<_, ciphervec::Error> = self.engine.pool.install(made);
        let (first, long) = made.map_err(refused)?;
        for table in core::iter::once(first).chain(long) {
            fetching.keep((key.0, *table.shape().name()), Arc::new(table));
        }
        drop(making);
        self.engine.count_taken();
        fetching.get(&key).ok_or(DatabaseError::TableMoved)
    }

    /// The table that the present state has.
    fn plan(&self, blob: &'static str) -> Result<Planned, DatabaseError> {
        let known = self.row_lengths.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (view, found) = self.read(|view| {
            let news = view.manifest().segments.par_iter().filter_map(|entry| {
                let blob_ref = entry.blob(blob)?;
                let place = (entry.id, blob);
                let head = || head_of(&view.stored(blob_ref), entry.rows);
                let read = || Ok((place, blob_ref.length, head()?));
                (!known.contains_key(&place)).then(read)
            });
            Ok((view.clone(), news.collect::<Result<Vec<_>, StoreError>>()?))
        })?;
        let manifest = view.manifest();
        let mut lengths = known;
        for (place, length, head) in found {
            // A writer may have sent what is no batch of records: its own rows alone have empty places then.
            let lens = record_lens(&head).unwrap_or_default();
            let there = lens.iter().all(|one| *one <= length);
            let lens = lens.into_iter().map(|one| u32::try_from(one).unwrap_or(u32::MAX));
            lengths.insert(place, if there { lens.collect() } else { Arc::from([]) });
        }
        let listed: HashMap<_, _> =
            manifest.segments.iter().map(|entry| (entry.id, entry)).collect();
        lengths.retain(|(id, _), _| listed.contains_key(id));
        let routed = manifest.attachments().any(|(name, _)| name == ROUTING);
        let one = |(id, _): &(_, _)| listed.get(id).is_some_and(|entry| entry.rows > 1);
        if routed && lengths.iter().any(|(place, lens)| lens.len() == 1 && one(place)) {
            return Err(DatabaseError::Limit(
                "a routed collection keeps the records of each cluster as one: its rows can't be fetched in private".to_owned(),
            ));
        }
        let segments =
            manifest.segments.iter().map(|entry| (ciphervec::SegmentId(entry.id), entry.rows));
        let binding = self.held().description.spec.binding();
        let rows = FetchedRows::new(&binding, blob, segments);
        let of = |id: ciphervec::SegmentId| {
            let count = listed.get(&id.0).map_or(0, |entry| entry.rows as usize);
            let lens = lengths.get(&(id.0, blob)).into_iter().flat_map(|lens| lens.iter().copied());
            lens.chain(core::iter::repeat(0)).take(count)
        };
        let limit = |error: ciphervec::Error| DatabaseError::Limit(error.to_string());
        let all: Vec<u32> = rows.segments().flat_map(of).collect();
        let Lengths { place, long_place, long } = Lengths::of(&all).map_err(limit)?;
        let rows = rows.with_long(long).map_err(limit)?;
        let shape = rows.shape(place).map_err(limit)?;
        let long = rows.long_shape(long_place).map_err(limit)?;
        let stored = listed.values().filter_map(|entry| Some(entry.blob(blob)?.length)).sum();
        *self.row_lengths.lock().unwrap_or_else(PoisonError::into_inner) = lengths;
        let planned = Planned { rows, shape, long, stored };
        self.engine.fetching.check(planned.table_bytes(), stored)?;
        Ok(planned)
    }
}

/// The blob of that name, if its rows are fetched.
fn fetched(blob: &str) -> Result<&'static str, DatabaseError> {
    let known = FETCHED.into_iter().find(|known| *known == blob);
    known.ok_or_else(|| DatabaseError::NotFound(format!("no private fetch of {blob:?}")))
}

/// The head of the records of so many rows; too little of one that says that it is of more.
fn head_of(blob: &store::StoredBlob, rows: u32) -> Result<Vec<u8>, StoreError> {
    let start = blob.read_start(HEAD_START)?;
    let most = HEAD_START + 8 + LONGEST_ENTRY * rows as usize;
    // What is no head is found out by whoever reads it.
    blob.read_start(head_len(&start).unwrap_or(HEAD_START).min(most))
}
