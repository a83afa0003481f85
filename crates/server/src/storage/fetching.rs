//! Fetch tables: tables that answer private fetches are kept within a bound, and fetches wait for their turn. Server side.
//!
//! A fetch reads a whole table, and making one takes all threads: one is at work at a time. Tables come and go with the fetches that
//! need them; what was used longest ago makes room.

use super::error::DatabaseError;
use bytes::Bytes;
use ciphervec::fetch::{FetchKeys, FetchTable, session_of};
use ciphervec::search::{OtherKeys, SessionStore};
use rayon::ThreadPool;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The share of the memory budget that tables may take, with the work on a fetch and what a table is made of.
const SHARE: u64 = 2;
/// What an answer to ten fetches takes while it is computed: nodes, selectors, and sums.
const WORK: u64 = 300 << 20;

/// A collection's index and a table of its rows.
pub(crate) type TableKey = ([u8; 8], [u8; 16]);

pub(super) fn refused(error: impl ToString) -> DatabaseError {
    DatabaseError::Invalid(error.to_string())
}

/// Tables, and when each was used last.
type Held = HashMap<TableKey, (Arc<FetchTable>, Instant)>;

fn bytes(held: &Held) -> u64 {
    held.values().map(|(table, _)| table.bytes() as u64).sum()
}

/// What the collections of a database share for private fetch.
pub(crate) struct Fetching {
    budget: u64,
    /// Evaluation keys of fetches.
    pub sessions: SessionStore<FetchKeys>,
    held: Mutex<Held>,
    /// Bytes set aside for a table that is being made.
    making: AtomicU64,
    turn: Arc<Semaphore>,
    waiting: AtomicUsize,
    limit: usize,
}

/// Bytes set aside, until this is dropped.
pub(crate) struct Making<'a>(&'a AtomicU64);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// An answer to a fetch.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Which only the one who asked can open.
    pub bytes: Bytes,
    /// Seconds that it waited for its turn.
    pub queue: f64,
    /// Seconds of work, a table that was made for it included.
    pub work: f64,
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
            making: AtomicU64::new(0),
            turn: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            limit: limit.max(1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of tables in memory.
    pub fn table_bytes(&self) -> u64 {
        bytes(&self.lock())
    }

    /// Bytes of the memory budget that are taken: of keys, of tables, and of the work on a fetch where there may be one.
    pub fn bytes(&self) -> u64 {
        let tables = self.table_bytes() + self.making.load(Ordering::Relaxed);
        self.sessions.bytes() + tables + if tables > 0 { WORK } else { 0 }
    }

    /// The turn to work on a fetch, until it is dropped.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] when too many wait.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, DatabaseError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let busy = || DatabaseError::Busy { retry_after: Duration::from_secs(1) };
        if waiting >= self.limit {
            return Err(busy());
        }
        Arc::clone(&self.turn).acquire_owned().await.map_err(|_| busy())
    }

    /// Takes in the evaluation keys of a session of fetches, for those of this token from what `index` names.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for bytes that are no such keys, [`DatabaseError::SessionExists`].
    pub fn put_keys(
        &self,
        pool: &ThreadPool,
        (token, index): (&str, [u8; 8]),
        bytes: &[u8],
    ) -> Result<(), DatabaseError> {
        let keys = pool.install(|| FetchKeys::from_bytes(bytes)).map_err(refused)?;
        let epoch = keys.epoch();
        let put = self.sessions.put(token, index, keys);
        put.map_err(|OtherKeys| DatabaseError::SessionExists(epoch))
    }

    /// Answers a token's query when its turn comes, from the table that `table` finds or makes then.
    ///
    /// # Errors
    /// [`DatabaseError::FetchKeysMissing`], [`DatabaseError::Invalid`] for bytes that are no query of the table,
    /// [`DatabaseError::Busy`]; those of `table`.
    pub async fn answer(
        &self,
        pool: &Arc<ThreadPool>,
        (token, index): (&str, [u8; 8]),
        query: Bytes,
        table: impl FnOnce() -> Result<Arc<FetchTable>, DatabaseError> + Send + 'static,
    ) -> Result<Fetched, DatabaseError> {
        let epoch = session_of(&query).map_err(refused)?;
        let keys = self.sessions.get(token, index, epoch);
        let keys = keys.ok_or(DatabaseError::FetchKeysMissing(epoch))?;
        let came = Instant::now();
        let turn = self.turn().await?;
        let queue = came.elapsed().as_secs_f64();
        let pool = Arc::clone(pool);
        let work = move || {
            let _turn = turn;
            let began = Instant::now();
            let table = table()?;
            let answer = pool.install(|| table.answer(&keys, &query));
            let bytes = answer.map_err(refused)?.into();
            Ok(Fetched { bytes, queue, work: began.elapsed().as_secs_f64() })
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| DatabaseError::Io(error.to_string()))?
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
        let (table, used) = held.get_mut(key)?;
        *used = Instant::now();
        Some(Arc::clone(table))
    }

    /// Makes room to make a table in so many bytes, which are set aside until what comes is dropped.
    pub fn make_room(&self, needed: u64) -> Making<'_> {
        let mut held = self.lock();
        while bytes(&held) + needed + WORK > self.budget {
            let oldest = held.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            held.remove(&oldest);
        }
        self.making.store(needed, Ordering::Relaxed);
        Making(&self.making)
    }

    /// Lets go of tables that nobody has asked for so long.
    pub fn let_go_of_idle(&self, after: Duration) {
        self.lock().retain(|_, (_, used)| used.elapsed() < after);
    }

    /// Lets go of one that is not to be asked for any more.
    pub fn let_go(&self, key: &TableKey) {
        self.lock().remove(key);
    }

    /// Keeps a table that there is room for.
    pub fn keep(&self, key: TableKey, table: Arc<FetchTable>) {
        self.lock().insert(key, (table, Instant::now()));
    }
}
