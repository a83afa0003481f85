//! Turns to compute: so many at once, in the order in which they were asked for.

use crate::storage::error::DatabaseError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds on when to come back.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(60);

/// Turns to compute.
pub(super) struct Turns {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
}

/// A turn, until this is dropped.
pub(super) struct Turn(
    #[expect(dead_code, reason = "held, and given back when dropped")] OwnedSemaphorePermit,
);

/// Somebody who waits.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    /// So many at once; so many may wait.
    pub fn new(at_once: usize, queue: usize) -> Self {
        let slots = Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS)));
        Turns { slots, waiting: AtomicUsize::new(0), queue: queue.max(1) }
    }

    /// Those who wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A turn, once it is there. Dropping the future gives it up. `milliseconds` is what one takes,
    /// for those who are told to come back.
    pub async fn take(&self, milliseconds: u64) -> Result<Turn, DatabaseError> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.queue {
            let retry_after = Duration::from_millis(milliseconds).clamp(SOONEST, LATEST);
            return Err(DatabaseError::Busy { retry_after });
        }
        let closed = |_| DatabaseError::Io("the server is closing".to_owned());
        Ok(Turn(Arc::clone(&self.slots).acquire_owned().await.map_err(closed)?))
    }
}
