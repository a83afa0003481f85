//! Query keys: which key queries are asked under, and how many it has served.
//!
//! A server that answers wrongly and watches what becomes of the answer learns of the query key. So a key serves few queries, and a
//! client takes the next one by itself: a *session*, an epoch drawn at random from the upper half of all epochs, whose evaluation keys
//! it hands to the server with no more than the permission to query.
//!
//! Queries are counted before they leave, those that are sent again too. Where a server is asked and the host keeps things durably, but
//! for browsers, the processes of one user share a session: they take queries of it a few at a time, written down before the first of them
//! is asked. What a process took and did not use is lost, and no two have the same; a fork has none of its parent's. Elsewhere counts are
//! in memory, and a client that is opened again begins another session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciphervec_owner::KeyId;

use crate::belief::session_book::{Session, SessionBook};
use crate::error::{Error, Result};
use crate::host::Host;

/// Queries that one key serves, at most; each row of a batch is one.
pub const QUERIES_PER_KEY: usize = 1024;
/// The first epoch that is a session.
const SESSIONS: u32 = 1 << 31;
/// Queries that a process takes at once.
const LARGEST_BLOCK: usize = 32;

#[derive(Default)]
struct Counts {
    process: u64,
    key: Option<KeyId>,
    epoch: Option<u32>,
    /// Queries that are counted, as far as is known here.
    used: usize,
    /// Those of them that are this client's to ask.
    left: usize,
    /// How many it takes next.
    block: usize,
    /// Whether whatever session is written down is over, which could not be written down.
    over: bool,
    refused: bool,
    asked_outside: usize,
}

/// The keys that one client asks the queries of one collection under. Clones share their counts.
#[derive(Clone)]
pub struct QueryKeys {
    counts: Arc<Mutex<Counts>>,
    /// For every process.
    book: Option<Arc<SessionBook>>,
    /// That one key serves.
    most: usize,
}

/// What queries are asked under by now.
#[derive(Clone, Copy, Debug)]
pub struct QueryKey {
    /// Null before the first, and where the server takes none.
    pub session: Option<u32>,
    /// Queries that it has served.
    pub queries: usize,
    /// Queries that it serves.
    pub most: usize,
    /// Whether the server takes no sessions: queries are asked under the collection's own epoch.
    pub refused: bool,
}

impl Counts {
    /// Those of this process. A fork has none of its parent's.
    fn of(&mut self, process: u64) -> &mut Self {
        if self.process != process {
            self.forget();
            self.process = process;
        }
        self
    }

    fn forget(&mut self) {
        (self.key, self.epoch, self.used, self.left, self.block) = (None, None, 0, 0, 1);
    }
}

impl QueryKeys {
    /// Of which each serves `most` queries. Counted in `book` where that lasts, otherwise in memory alone.
    pub fn new(book: Option<SessionBook>, most: usize) -> Self {
        QueryKeys { counts: Arc::default(), book: book.map(Arc::new), most }
    }

    /// Queries that one key serves.
    pub fn most(&self) -> usize {
        self.most
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book(&self, host: &dyn Host) -> Option<Arc<SessionBook>> {
        self.book.clone().filter(|_| host.durable())
    }

    /// The present one, as far as is known here.
    pub fn present(&self, host: &dyn Host) -> QueryKey {
        let counts = &mut *self.counts();
        let Counts { epoch, used, left, refused, asked_outside, .. } = *counts.of(host.process());
        let queries = if refused { asked_outside } else { used - left };
        QueryKey { session: epoch, queries, most: self.most, refused }
    }

    /// The same, with what other processes have asked.
    pub async fn look(&self, host: &dyn Host) -> Result<QueryKey> {
        let key = self.counts().of(host.process()).key;
        if let (Some(book), Some(key)) = (self.book(host), key)
            && let Some(session) = book.look(host, key).await?
        {
            let counts = &mut *self.counts();
            if counts.epoch == Some(session.epoch) {
                counts.used = counts.used.max(session.used);
            }
        }
        Ok(self.present(host))
    }

    /// The session that the next query is asked in, as far as any process has begun one.
    pub async fn next(&self, host: &dyn Host, key: KeyId) -> Result<Option<u32>> {
        match (self.present(host).session, self.book(host)) {
            (None, Some(book)) => Ok(book.look(host, key).await?.map(|session| session.epoch)),
            (session, _) => Ok(session),
        }
    }

    /// The session under which so many queries may be asked now, and whether it was drawn just now. They are counted. An error where
    /// that can't be written down: nothing may be asked then.
    pub async fn take(&self, host: &dyn Host, key: KeyId, queries: usize) -> Result<(u32, bool)> {
        let (most, over) = {
            let counts = &mut *self.counts();
            let counts = counts.of(host.process());
            if counts.key != Some(key) {
                counts.forget();
                counts.key = Some(key);
            }
            if let Some(epoch) = counts.epoch.filter(|_| counts.left >= queries) {
                counts.left -= queries;
                return Ok((epoch, false));
            }
            (queries.max(counts.block), counts.over)
        };
        let drawn = u32::from_le_bytes(crate::random::random()?) | SESSIONS;
        let mut count = queries;
        let mut took = |before: Option<Session>, most: usize| {
            let suits = |one: &Session| one.used.saturating_add(queries) <= self.most;
            let before = before.filter(suits).unwrap_or(Session { epoch: drawn, used: 0 });
            count = queries.max(most.min(self.most - before.used));
            Session { epoch: before.epoch, used: before.used + count }
        };
        let session = match self.book(host) {
            Some(book) => {
                let next = |before: Option<Session>| Ok(took(before.filter(|_| !over), most));
                book.change(host, key, next).await?
            }
            None => {
                let counts = self.counts();
                took(counts.epoch.map(|epoch| Session { epoch, used: counts.used }), queries)
            }
        };
        let counts = &mut *self.counts();
        let counts = counts.of(host.process());
        if counts.epoch != Some(session.epoch) {
            counts.left = 0;
        }
        (counts.key, counts.epoch, counts.used) = (Some(key), Some(session.epoch), session.used);
        counts.left += count - queries;
        counts.block = (2 * counts.block).min(LARGEST_BLOCK);
        counts.over = false;
        Ok((session.epoch, session.used == count))
    }

    /// Counts queries that are about to be sent once more. An error where their session is over or has not as many left.
    pub async fn again(&self, host: &dyn Host, epoch: u32, queries: usize) -> Result<()> {
        if epoch < SESSIONS {
            return Ok(());
        }
        let served = || {
            let says = "the query key has served as many queries as it may. Ask again.";
            Error::Conflict(says.to_owned())
        };
        let book = self.book(host);
        let key = {
            let counts = &mut *self.counts();
            let counts = counts.of(host.process());
            let Some(key) = counts.key.filter(|_| counts.epoch == Some(epoch)) else {
                return Err(served());
            };
            if counts.left >= queries {
                counts.left -= queries;
                return Ok(());
            }
            if book.is_none() {
                if counts.used + queries > self.most {
                    return Err(served());
                }
                counts.used += queries;
                return Ok(());
            }
            key
        };
        let Some(book) = book else { return Err(served()) };
        let more = |before: Option<Session>| {
            let suits =
                |one: &Session| one.epoch == epoch && one.used.saturating_add(queries) <= self.most;
            let before = before.filter(suits).ok_or_else(served)?;
            Ok(Session { epoch, used: before.used + queries })
        };
        let session = book.change(host, key, more).await?;
        let counts = &mut *self.counts();
        if counts.epoch == Some(epoch) {
            counts.used = session.used;
        }
        Ok(())
    }

    /// Lets the next query begin a session, of every process; of this client alone, with a warning, where that can't be written down.
    pub async fn end(&self, host: &dyn Host, key: KeyId) {
        let book = self.book(host);
        {
            let counts = &mut *self.counts();
            let counts = counts.of(host.process());
            counts.forget();
            counts.asked_outside = 0;
            counts.over = book.is_some(); // whatever becomes of this call
        }
        let Some(book) = book else { return };
        match book.end(host, key).await {
            Ok(()) => self.counts().over = false,
            Err(error) => host
                .warn(&format!("that the query key has ended could not be written down: {error}")),
        }
    }

    /// The server takes no sessions.
    pub async fn refuse(&self, host: &dyn Host, key: KeyId) {
        self.end(host, key).await;
        self.counts().refused = true;
    }

    /// Counts queries under the collection's own epoch, which only a change of it ends; how many there are, where that is to be said.
    pub fn ask_outside(&self, queries: usize) -> Option<usize> {
        let before = self.counts().asked_outside;
        let now = before + queries;
        self.counts().asked_outside = now;
        (before / self.most != now / self.most).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use ciphervec_owner::{IndexSpec, Keys, Metric, Mode, Precision};
    use futures_lite::future::block_on;

    use super::*;
    use crate::belief::vault::Vault;
    use crate::host::fake::Fake;

    fn shared() -> QueryKeys {
        let vault = Arc::new(Vault::new(&Keys::from_master([7; 32])).unwrap());
        let spec = IndexSpec::new("docs", 8, Metric::Cosine, Mode::Sealed, Precision::Standard);
        QueryKeys::new(Some(SessionBook::new(vault, &spec.unwrap())), QUERIES_PER_KEY)
    }

    fn used(keys: &QueryKeys, host: &Fake) -> usize {
        let id = KeyId::default();
        let book = keys.book.as_ref().unwrap();
        block_on(book.look(host, id)).unwrap().map_or(0, |session| session.used)
    }

    #[test]
    fn a_key_serves_so_many_queries_and_no_more() {
        for keys in [QueryKeys::new(None, QUERIES_PER_KEY), shared()] {
            let (host, id) = (Fake::default(), KeyId::default());
            let take = |queries| block_on(keys.take(&host, id, queries)).unwrap();
            let again = |epoch, queries| block_on(keys.again(&host, epoch, queries));
            let (first, fresh) = take(1000);
            assert!(fresh && first >= SESSIONS);
            assert_eq!(take(24), (first, false));
            assert!(matches!(again(first, 1), Err(Error::Conflict(_))));
            let (second, fresh) = take(1);
            assert!(fresh && second != first);
            let spare = keys.counts().left;
            again(second, 1023).unwrap_or_else(|_| assert!(spare > 0));
            again(second, 1023 - spare).unwrap_or(());
            assert!(matches!(again(second, 1023), Err(Error::Conflict(_))));
            block_on(keys.end(&host, id));
            assert!(matches!(again(second, 1), Err(Error::Conflict(_))));
            assert!(take(1).1);
            assert!(again(3, 1_000_000).is_ok());
        }
    }

    #[test]
    fn processes_share_a_session_and_no_two_have_the_same_query() {
        let (host, id) = (Fake::default(), KeyId::default());
        let (one, two) = (shared(), shared());
        let other = Fake::beside(&host);
        let (epoch, fresh) = block_on(one.take(&host, id, 1)).unwrap();
        assert!(fresh);
        assert_eq!(block_on(two.take(&other, id, 1)).unwrap(), (epoch, false));
        assert_eq!(used(&one, &host), 2);
        // Each takes more and more of them at once, none is asked that is not written down.
        let (mut asked, mut blocks) = (2, Vec::new());
        for _ in 0..100 {
            for (keys, host) in [(&one, &host), (&two, &other)] {
                let before = used(keys, host);
                assert_eq!(block_on(keys.take(host, id, 1)).unwrap().0, epoch);
                asked += 1;
                assert!(used(keys, host) >= asked);
                blocks.extend(Some(used(keys, host) - before).filter(|block| *block > 0));
            }
        }
        assert_eq!(blocks.iter().max(), Some(&LARGEST_BLOCK));
        let left = one.counts().left;
        assert_eq!(block_on(one.look(&host)).unwrap().queries, used(&one, &host) - left);
        // What one ends has ended for the other, once it has no query left.
        block_on(one.end(&host, id));
        let next = block_on(one.take(&host, id, 1)).unwrap();
        assert!(next.1 && next.0 != epoch);
        let left = two.counts().left;
        for _ in 0..left {
            assert_eq!(block_on(two.take(&other, id, 1)).unwrap().0, epoch);
        }
        assert_eq!(block_on(two.take(&other, id, 1)).unwrap().0, next.0);
        assert!(matches!(block_on(two.again(&other, epoch, 1)), Err(Error::Conflict(_))));
    }

    #[test]
    fn a_fork_has_none_of_its_parents_queries() {
        for (keys, lasting) in [(shared(), true), (QueryKeys::new(None, QUERIES_PER_KEY), false)] {
            let (host, id) = (Fake::default(), KeyId::default());
            for _ in 0..9 {
                block_on(keys.take(&host, id, 1)).unwrap();
            }
            let parent = keys.present(&host);
            host.process.set(7);
            assert_eq!(keys.present(&host).session, None);
            assert!(block_on(keys.again(&host, parent.session.unwrap(), 1)).is_err());
            let before = if lasting { used(&keys, &host) } else { 0 };
            let (epoch, fresh) = block_on(keys.take(&host, id, 1)).unwrap();
            assert_eq!((Some(epoch) == parent.session, fresh), (lasting, !lasting));
            assert!(!lasting || used(&keys, &host) == before + 1);
        }
    }

    #[test]
    fn a_storage_that_takes_nothing_has_nothing_asked_and_nothing_go_on() {
        let (host, id) = (Fake::default(), KeyId::default());
        let keys = shared();
        let (epoch, _) = block_on(keys.take(&host, id, 1)).unwrap();
        host.full.set(true);
        assert!(matches!(block_on(keys.take(&host, id, 1)), Err(Error::Storage(_))));
        host.full.set(false);
        // Nobody else may write meanwhile, and the call that waits for that is ended.
        host.held.set(true);
        block_on(keys.end(&host, id));
        assert!(host.warned.borrow()[0].contains("could not be written down"));
        host.held.set(false);
        let (next, fresh) = block_on(keys.take(&host, id, 1)).unwrap();
        assert!(fresh && next != epoch);
        // What is damaged is no session.
        let entry = keys.book.as_ref().map(|_| host.kept.borrow().keys().next().cloned()).unwrap();
        block_on(host.put(&entry.unwrap(), b"rubbish")).unwrap();
        assert!(block_on(shared().take(&host, id, 1)).unwrap().1);
    }
}
