//! The queue of queries of all collections: one scan at a time.
//!
//! A scan is bound by memory bandwidth, so two at once would each take twice as long: the queue is
//! first in, first out, and what waits for the same collection at the moment when its turn comes is
//! answered in the same pass.

use super::error::DatabaseError;
use bytes::Bytes;
use ciphervec::search::SessionKeys;
use rayon::ThreadPoolBuilder;
use std::collections::VecDeque;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Queries that are answered in one pass at most.
const BATCH: usize = 16;

/// Where an answer's time went, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryTimings {
    /// Waiting for its turn.
    pub queue: f64,
    /// Reading and expanding the query, the products, and writing the answer.
    pub scan: f64,
    /// Queries answered in the same pass, this one included.
    pub batch: usize,
}

/// An answer, and the state that it is about.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The sealed answer.
    pub bytes: Bytes,
    /// Version of the state that was searched.
    pub version: u64,
    /// Hash of that state.
    pub head: [u8; 32],
    /// BLAKE3 of the evaluation keys that were used, where there are any.
    pub evaluation: Option<[u8; 32]>,
    /// Where the time went.
    pub timings: QueryTimings,
    /// Whether segments had to be read from the store again because the collection exceeds the
    /// memory budget.
    pub degraded: bool,
}

/// A query, and the evaluation keys of its session if it has one.
#[derive(Clone)]
pub(crate) struct Asked {
    pub query: Bytes,
    pub keys: Option<SessionKeys>,
}

/// What queries are put to.
pub(crate) trait Searchable: Send + Sync {
    /// The answers to queries that waited together, on the queue's threads.
    fn answer(self: Arc<Self>, queries: &[&Asked]) -> Vec<Result<Answer, DatabaseError>>;
}

type Reply = oneshot::Sender<Result<Answer, DatabaseError>>;

struct Job {
    target: Arc<dyn Searchable>,
    query: Asked,
    since: Instant,
    reply: Reply,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
    /// Seconds that a pass takes, averaged over the latest ones.
    pass: f64,
}

struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    limit: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue and the thread that serves it.
pub(crate) struct ScanQueue {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ScanQueue {
    /// Starts `threads` threads, as many as there are cores for 0; at most `limit` queries wait.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn start(limit: usize, threads: usize) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            limit: limit.max(1),
        });
        let served = Arc::clone(&shared);
        let (started, begun) = std::sync::mpsc::channel();
        let scan = move || {
            // One of the pool's threads itself: a small scan wakes no other.
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("ciphervec-scan-{index}"))
                .use_current_thread()
                .build();
            let _ = started.send(pool.as_ref().map(|_| ()).map_err(ToString::to_string));
            if pool.is_ok() {
                serve(&served);
            }
        };
        let thread = std::thread::Builder::new().name("ciphervec-scan".to_owned()).spawn(scan)?;
        begun.recv()??;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Queries that wait.
    pub fn waiting(&self) -> usize {
        self.shared.lock().jobs.len()
    }

    /// Puts a query into the queue. Dropping what comes back takes it out again, unless its pass
    /// has begun.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] when the queue is full or closed.
    pub fn enter(
        &self,
        target: Arc<dyn Searchable>,
        query: Asked,
    ) -> Result<oneshot::Receiver<Result<Answer, DatabaseError>>, DatabaseError> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.shared.lock();
        waiting.jobs.retain(|job| !job.reply.is_closed());
        if waiting.closed || waiting.jobs.len() >= self.shared.limit {
            let passes = waiting.jobs.len().div_ceil(BATCH).max(1);
            let seconds = (waiting.pass * passes as f64).clamp(1.0, 60.0);
            return Err(DatabaseError::Busy { retry_after: Duration::from_secs_f64(seconds) });
        }
        waiting.jobs.push_back(Job { target, query, since: Instant::now(), reply });
        drop(waiting);
        self.shared.arrived.notify_one();
        Ok(answer)
    }

    /// Answers what waits, takes no more, and ends the thread.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.arrived.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread itself may be the last that has a collection of a server that is gone.
        let own = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != own) {
            // A panic in the thread has been answered to those who waited.
            let _ = thread.join();
        }
    }
}

impl Drop for ScanQueue {
    fn drop(&mut self) {
        self.close();
    }
}

fn serve(shared: &Shared) {
    while let Some(batch) = next(shared) {
        let began = Instant::now();
        let Some(first) = batch.first() else { continue };
        let target = Arc::clone(&first.target);
        let queries: Vec<&Asked> = batch.iter().map(|job| &job.query).collect();
        // A panic must not take the only scan thread with it: those who wait are told, the next
        // pass runs.
        let answers = catch_unwind(AssertUnwindSafe(|| target.answer(&queries)));
        let seconds = began.elapsed().as_secs_f64();
        let count = batch.len();
        match answers {
            Ok(answers) => {
                for (job, answer) in batch.into_iter().zip(answers) {
                    let queue = (began - job.since).as_secs_f64();
                    let timings = QueryTimings { queue, scan: seconds, batch: count };
                    // Whoever asked may have left.
                    let _ = job.reply.send(answer.map(|answer| Answer { timings, ..answer }));
                }
            }
            Err(_) => {
                for job in batch {
                    let failed = DatabaseError::Io("a scan ended in a panic".to_owned());
                    let _ = job.reply.send(Err(failed));
                }
            }
        }
        let mut waiting = shared.lock();
        waiting.pass =
            if waiting.pass == 0.0 { seconds } else { 0.8 * waiting.pass + 0.2 * seconds };
    }
}

/// The oldest query and those that wait for the same collection; `None` once the queue is closed
/// and empty.
fn next(shared: &Shared) -> Option<Vec<Job>> {
    let mut waiting = shared.lock();
    loop {
        waiting.jobs.retain(|job| !job.reply.is_closed());
        if let Some(first) = waiting.jobs.pop_front() {
            let mut batch = vec![first];
            let mut others = VecDeque::with_capacity(waiting.jobs.len());
            for job in waiting.jobs.drain(..) {
                if batch.len() < BATCH && Arc::ptr_eq(&job.target, &batch[0].target) {
                    batch.push(job);
                } else {
                    others.push_back(job);
                }
            }
            waiting.jobs = others;
            return Some(batch);
        }
        if waiting.closed {
            return None;
        }
        waiting = shared.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}
