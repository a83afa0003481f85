//! Fetch tables: tables that answer private fetches are kept within a bound, and fetches wait for their turn. Server side.
//!
//! A fetch reads a whole table, and making one takes all threads: one is at work at a time. Tables come and go with the fetches that
//! need them; what was used longest ago makes room.

use super::error::DatabaseError;
use ciphervec::fetch::{FetchKeys, FetchTable};
use ciphervec::search::SessionStore;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The share of the memory budget that tables may take, with the work on a fetch and what a table is made of.
const SHARE: u64 = 2;
/// What an answer takes while it is computed: trees of one ciphertext, and sums.
const WORK: u64 = 130 << 20;

/// A collection's index and a table of its rows.
pub(crate) type TableKey = ([u8; 8], [u8; 16]);

#[derive(Default)]
struct Held {
    tables: HashMap<TableKey, (Arc<FetchTable>, u64)>,
    /// Counts uses, for what was used longest ago.
    clock: u64,
}

impl Held {
    fn bytes(&self) -> u64 {
        self.tables.values().map(|(table, _)| table.bytes() as u64).sum()
    }
}

/// What the collections of a database share for private fetch.
pub(crate) struct Fetching {
    budget: u64,
    /// Evaluation keys of fetches.
    pub sessions: SessionStore<FetchKeys>,
    held: Mutex<Held>,
    turn: Arc<Semaphore>,
    waiting: AtomicUsize,
    limit: usize,
}

/// Counts one that waits, until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Fetching {
    /// Within its share of `memory`; at most `limit` fetches wait.
    pub fn within(memory: u64, limit: usize) -> Self {
        Fetching {
            budget: memory / SHARE,
            sessions: SessionStore::within(memory),
            held: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            limit,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of tables in memory.
    pub fn table_bytes(&self) -> u64 {
        self.lock().bytes()
    }

    /// Bytes of the memory budget that are taken: of keys, of tables, and of the work on a fetch where there may be one.
    pub fn bytes(&self) -> u64 {
        let tables = self.table_bytes();
        self.sessions.bytes() + tables + if tables > 0 { WORK } else { 0 }
    }

    /// The turn to work on a fetch, until it is dropped.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] when too many wait.
    pub async fn turn(&self) -> Result<OwnedSemaphorePermit, DatabaseError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let busy = || DatabaseError::Busy { retry_after: Duration::from_secs(1) };
        if waiting >= self.limit {
            return Err(busy());
        }
        Arc::clone(&self.turn).acquire_owned().await.map_err(|_| busy())
    }

    /// Whether there may be room for a table of so many bytes, made of so many.
    ///
    /// # Errors
    /// [`DatabaseError::Limit`], with what to change.
    pub fn check(&self, table: u64, from: u64) -> Result<(), DatabaseError> {
        const MIB: u64 = 1 << 20;
        let needed = table.saturating_add(from).saturating_add(WORK);
        if needed <= self.budget {
            return Ok(());
        }
        Err(DatabaseError::Limit(format!(
            "a private fetch of these rows takes {} MiB of the server's memory, of which it may take {}, half of --memory-budget",
            needed.div_ceil(MIB),
            self.budget / MIB
        )))
    }

    /// A table that is there.
    pub fn get(&self, key: &TableKey) -> Option<Arc<FetchTable>> {
        let mut held = self.lock();
        held.clock += 1;
        let now = held.clock;
        let (table, used) = held.tables.get_mut(key)?;
        *used = now;
        Some(Arc::clone(table))
    }

    /// Makes room for another so many bytes.
    pub fn make_room(&self, bytes: u64) {
        let mut held = self.lock();
        while held.bytes() + bytes + WORK > self.budget {
            let oldest = held.tables.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { return };
            held.tables.remove(&oldest);
        }
    }

    /// Keeps a table that there is room for.
    pub fn keep(&self, key: TableKey, table: Arc<FetchTable>) {
        let mut held = self.lock();
        held.clock += 1;
        let now = held.clock;
        held.tables.insert(key, (table, now));
    }
}
