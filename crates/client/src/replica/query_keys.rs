//! Query keys: which key queries are asked under, and how many it has served.
//!
//! A server that answers wrongly and watches what becomes of the answer learns of the query key. So a key serves few queries, and a
//! client takes the next one by itself: a *session*, an epoch drawn at random from the upper half of all epochs, whose evaluation keys
//! it hands to the server with no more than the permission to query. Counts are kept in memory: a client that is opened again begins
//! another session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciphervec::KeyId;

use crate::error::{Error, Result};

/// Queries that one key serves; each row of a batch is one.
pub const QUERIES_PER_KEY: usize = 1024;
/// The first epoch that is a session.
const SESSIONS: u32 = 1 << 31;

#[derive(Default)]
struct Counts {
    key: Option<KeyId>,
    epoch: Option<u32>,
    used: usize,
    refused: bool,
    asked_outside: usize,
}

/// The keys that one client asks the queries of one collection under. Clones share their counts.
#[derive(Clone, Default)]
pub struct QueryKeys(Arc<Mutex<Counts>>);

/// What queries are asked under by now.
#[derive(Clone, Copy, Debug)]
pub struct QueryKey {
    /// Null before the first, and where the server takes none.
    pub session: Option<u32>,
    /// Queries that it has served.
    pub queries: usize,
    /// Whether the server takes no sessions: queries are asked under the collection's own epoch.
    pub refused: bool,
}

impl QueryKeys {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present one.
    pub fn present(&self) -> QueryKey {
        let Counts { epoch, used, refused, asked_outside, .. } = *self.counts();
        QueryKey { session: epoch, queries: if refused { asked_outside } else { used }, refused }
    }

    /// The session under which so many queries may be asked now, and whether it was drawn just now. They are counted.
    pub fn take(&self, key: KeyId, queries: usize) -> Result<(u32, bool)> {
        let counts = &mut *self.counts();
        let known = counts
            .epoch
            .filter(|_| counts.key == Some(key) && counts.used + queries <= QUERIES_PER_KEY);
        let epoch = match known {
            Some(epoch) => epoch,
            None => {
                let drawn = u32::from_le_bytes(crate::random::random()?) | SESSIONS;
                (counts.key, counts.epoch, counts.used) = (Some(key), Some(drawn), 0);
                drawn
            }
        };
        counts.used += queries;
        Ok((epoch, known.is_none()))
    }

    /// Counts queries that are about to be sent once more. An error where their session is over or has not as many left.
    pub fn again(&self, epoch: u32, queries: usize) -> Result<()> {
        let counts = &mut *self.counts();
        if epoch < SESSIONS {
            return Ok(());
        }
        if counts.epoch != Some(epoch) || counts.used + queries > QUERIES_PER_KEY {
            let says = "the query key has served as many queries as it may. Ask again.";
            return Err(Error::Conflict(says.to_owned()));
        }
        counts.used += queries;
        Ok(())
    }

    /// Lets the next query begin a session.
    pub fn end(&self) {
        let counts = &mut *self.counts();
        (counts.epoch, counts.used, counts.asked_outside) = (None, 0, 0);
    }

    /// The server takes no sessions.
    pub fn refuse(&self) {
        self.end();
        self.counts().refused = true;
    }

    /// Counts queries under the collection's own epoch, which only a change of it ends; how many there are, where that is to be said.
    pub fn ask_outside(&self, queries: usize) -> Option<usize> {
        let before = self.counts().asked_outside;
        let now = before + queries;
        self.counts().asked_outside = now;
        (before / QUERIES_PER_KEY != now / QUERIES_PER_KEY).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_serves_so_many_queries_and_no_more() {
        let (keys, id) = (QueryKeys::default(), KeyId::default());
        let (first, fresh) = keys.take(id, 1000).unwrap();
        assert!(fresh && first >= SESSIONS);
        assert_eq!(keys.take(id, 24).unwrap(), (first, false));
        assert!(matches!(keys.again(first, 1), Err(Error::Conflict(_))));
        let (second, fresh) = keys.take(id, 1).unwrap();
        assert!(fresh);
        keys.again(second, 1023).unwrap();
        assert!(matches!(keys.again(second, 1), Err(Error::Conflict(_))));
        keys.end();
        assert!(matches!(keys.again(second, 1), Err(Error::Conflict(_))));
        assert!(keys.take(id, 1).unwrap().1);
        assert!(keys.again(3, 1_000_000).is_ok());
    }
}
