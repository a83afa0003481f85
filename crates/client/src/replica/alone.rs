//! A replica that several calls share, one after the other.

use std::future::Future;
use std::ops::{Deref, DerefMut};

use async_lock::{Mutex, MutexGuard};

use crate::replica::Replica;

/// A replica that nobody else uses, but for the time that a query is on its way.
pub struct Alone<'a> {
    lock: &'a Mutex<Replica>,
    guard: Option<MutexGuard<'a, Replica>>,
}

impl<'a> Alone<'a> {
    pub async fn new(lock: &'a Mutex<Replica>) -> Self {
        Alone { lock, guard: Some(lock.lock().await) }
    }

    /// Lets others go on meanwhile. What follows begins with [`Replica::settle`].
    pub async fn apart<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.guard = None;
        let done = work.await;
        self.guard = Some(self.lock.lock().await);
        done
    }
}

/// Between letting go and taking back nothing of the replica is used.
fn nobody() -> ! {
    unreachable!("a replica is used while it is let go")
}

impl Deref for Alone<'_> {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        match &self.guard {
            Some(guard) => guard,
            None => nobody(),
        }
    }
}

impl DerefMut for Alone<'_> {
    fn deref_mut(&mut self) -> &mut Replica {
        match &mut self.guard {
            Some(guard) => guard,
            None => nobody(),
        }
    }
}
