//! Answering queries: from memory, or from the store while what they are about is brought there.

use super::loaded::LoadedState;
use super::{COME_BACK, Collection, LOOKS, Loading};
use crate::storage::error::DatabaseError;
use crate::storage::scan_queue::{Answer, Asked, QueryTimings, Searchable};
use bytes::Bytes;
use ciphervec::search::{Evaluation, OtherKeys, ServerIndex, asked_in};
use ciphervec::store::StoreError;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that the answers of one pass may take together; a single query whose answer takes more is
/// refused.
const MOST_ANSWERED: u64 = 1 << 30;

/// What was loaded is not loaded again for so long: where collections push each other out of
/// memory, that would be all that is ever done.
const LOAD_EVERY: Duration = Duration::from_secs(30);

impl Collection {
    /// Answers a sealed query over all segments. Dropping the future takes the query out of the
    /// queue.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] when too many wait, [`DatabaseError::Invalid`] for bytes that are no
    /// query of this collection, [`DatabaseError::Corrupt`] and [`DatabaseError::Io`] when a
    /// segment cannot be read.
    pub async fn query(self: &Arc<Self>, query: Bytes) -> Result<Answer, DatabaseError> {
        self.ask(Asked { query, keys: None }).await
    }

    /// How many queries a message says it has; at least one.
    pub fn queries_in(&self, message: &[u8]) -> u64 {
        let asked = asked_in(&self.held().description.spec, message);
        asked.map_or(1, |(queries, _)| u64::from(queries.max(1)))
    }

    /// The same for a token, which may have begun sessions.
    ///
    /// # Errors
    /// As [`Collection::query`]; [`DatabaseError::KeysMissing`] for a query of a session whose keys are not here.
    pub async fn query_by(
        self: &Arc<Self>,
        token: &str,
        query: Bytes,
    ) -> Result<Answer, DatabaseError> {
        let held = self.held();
        let index = held.description.spec.id();
        let keys_of = |epoch| {
            let found = self.engine.sessions.get(token, index, epoch);
            found.ok_or(DatabaseError::KeysMissing(epoch))
        };
        let keys = held.index.session_of(&query).map(keys_of).transpose()?;
        self.ask(Asked { query, keys }).await
    }

    /// Takes in the evaluation keys of a session, for this token's queries.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for bytes that are no such keys of this collection's owner,
    /// [`DatabaseError::SessionExists`].
    pub fn put_session_keys(&self, token: &str, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.catch_up();
        let (held, engine) = (self.held(), &self.engine);
        let keys = engine.pool.install(|| held.index.session_keys(bytes));
        let keys = keys.map_err(|error| DatabaseError::Invalid(error.to_string()))?;
        let (index, epoch) = (held.description.spec.id(), keys.epoch());
        let put = engine.sessions.put(token, index, keys);
        put.map_err(|OtherKeys| DatabaseError::SessionExists(epoch))?;
        engine.count_taken();
        Ok(())
    }

    async fn ask(self: &Arc<Self>, query: Asked) -> Result<Answer, DatabaseError> {
        for _ in 0..LOOKS {
            let head = self.held().view.head();
            let answer = self.engine.queue.enter(self.clone(), query.clone())?;
            let ended = |_| Err(DatabaseError::Io("the scan thread ended".to_owned()));
            match answer.await.unwrap_or_else(ended) {
                Err(DatabaseError::Moved(text)) => {
                    let missing = DatabaseError::Corrupt(text);
                    let collection = Arc::clone(self);
                    let waited =
                        tokio::task::spawn_blocking(move || collection.moved_on(head, missing));
                    waited.await.map_err(|error| DatabaseError::Io(error.to_string()))??;
                }
                answer => return answer,
            }
        }
        Err(DatabaseError::Busy { retry_after: COME_BACK })
    }

    fn answer_from(
        &self,
        held: &LoadedState,
        queries: &[&Asked],
    ) -> Vec<Result<Answer, ciphervec::Error>> {
        let (version, head) = (held.view.manifest().version, held.view.head());
        let keys = held.evaluation;
        let cache = &self.engine.cache;
        let before = cache.streamed();
        let pushed_out = self.has_been_loaded(head) && held.index.missing().next().is_some();
        let mut answers = Vec::with_capacity(queries.len());
        let mut rest = queries;
        while !rest.is_empty() {
            let (mut total, mut folds, budget) = (0, 0, cache.budget());
            let fits = rest.iter().take_while(|query| {
                // What does not parse is refused below, in a few bytes.
                total += held.index.answer_len(&query.query).unwrap_or(0);
                folds = held.index.fold_len(&query.query).unwrap_or(0);
                total <= MOST_ANSWERED && folds <= budget
            });
            let fits = fits.count();
            let (group, later) = rest.split_at(fits.max(1));
            rest = later;
            if fits == 0 && folds > budget {
                answers.push(Err(ciphervec::Error::Range {
                    what: "the memory that folding clusters takes",
                    expected: format!(
                        "at most {budget} bytes, which --memory-budget leaves; choose fewer clusters"
                    ),
                    actual: folds.to_string(),
                }));
                continue;
            }
            if fits == 0 {
                answers.push(Err(ciphervec::Error::Range {
                    what: "the length of an answer",
                    expected: format!("at most {MOST_ANSWERED} bytes; send fewer queries at once"),
                    actual: total.to_string(),
                }));
                continue;
            }
            // Those of the ring form are answered one after another: the trees of one at a time.
            let working =
                group.iter().map(|asked| held.index.working_len(&asked.query).unwrap_or(0));
            let working = working.max().unwrap_or(0);
            self.working.fetch_max(working, Ordering::Relaxed);
            cache.begin(!self.fits(held));
            let _trees = cache.set_aside(working);
            answers.extend(evaluated(&held.index, group).into_iter().map(|evaluation| {
                let (bytes, timings) = (evaluation?.bytes.into(), QueryTimings::default());
                Ok(Answer { bytes, version, head, evaluation: keys, timings, degraded: false })
            }));
        }
        let degraded = pushed_out || cache.streamed() > before;
        if degraded && !self.degraded.swap(degraded, Ordering::Relaxed) {
            tracing::warn!(
                collection = self.name,
                bytes = held.index.bytes(),
                budget = cache.budget(),
                "the collection does not fit the memory budget: queries read from the store, slower; \
                 raise --memory-budget"
            );
        }
        self.degraded.store(degraded, Ordering::Relaxed);
        answers.iter_mut().flatten().for_each(|answer| answer.degraded = degraded);
        answers
    }

    /// Whether all of it may be in memory at once, beside the work on its queries.
    fn fits(&self, held: &LoadedState) -> bool {
        let bytes = held.index.bytes() as u64 + self.working.load(Ordering::Relaxed);
        bytes <= self.engine.cache.budget()
    }

    fn loading(&self) -> MutexGuard<'_, Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all of that state was brought into memory once: what is missing has made room for
    /// others since.
    fn has_been_loaded(&self, head: [u8; 32]) -> bool {
        self.loading().done.is_some_and(|(of, _)| of == head)
    }

    /// Loads what is not in memory while queries are answered from the store. One segment at a
    /// time: the passes come between.
    fn load_behind(self: &Arc<Self>) {
        {
            let mut loading = self.loading();
            let head = self.held().view.head();
            let lately = |(of, at): (_, Instant)| of == head && at.elapsed() < LOAD_EVERY;
            if loading.busy || loading.done.is_some_and(lately) {
                return;
            }
            loading.busy = true;
        }
        let collection = Arc::clone(self);
        let load = move || {
            let held = collection.held();
            for source in held.index.missing() {
                if collection.closed.load(Ordering::Acquire) {
                    break;
                }
                collection.engine.pool.install(|| source.load(&held.index));
            }
            let done = Some((held.view.head(), Instant::now()));
            *collection.loading() = Loading { busy: false, done };
        };
        if let Err(error) = thread::Builder::new().name("ciphervec-load".to_owned()).spawn(load) {
            self.loading().busy = false;
            tracing::warn!(collection = self.name, %error, "no thread to load it: queries read from the store");
        }
    }
}

impl Searchable for Collection {
    fn answer(self: Arc<Self>, queries: &[&Asked]) -> Vec<Result<Answer, DatabaseError>> {
        self.catch_up();
        let mut held = self.held();
        loop {
            let answers = self.answer_from(&held, queries);
            let gone = |answer: &Result<Answer, ciphervec::Error>| {
                matches!(answer, Err(ciphervec::Error::Store(StoreError::Missing { .. })))
            };
            let newest = self.held();
            // Files go when no state names them any more: whoever still read the old one asks the
            // new one.
            if answers.iter().any(gone) && newest.view.head() != held.view.head() {
                held = newest;
                continue;
            }
            if self.fits(&held) && held.index.missing().next().is_some() {
                self.load_behind();
            }
            return answers.into_iter().map(|answer| answer.map_err(refused)).collect();
        }
    }
}

/// Queries of sessions share no pass, and so are answered alone.
fn evaluated(index: &ServerIndex, group: &[&Asked]) -> Vec<ciphervec::Result<Evaluation>> {
    if group.iter().all(|asked| asked.keys.is_none()) {
        let queries: Vec<&[u8]> = group.iter().map(|asked| &*asked.query).collect();
        return index.evaluate_many(&queries);
    }
    let answer = |asked: &&Asked| match &asked.keys {
        Some(keys) => index.evaluate_with(&asked.query, keys),
        None => index.evaluate(&asked.query),
    };
    group.iter().map(answer).collect()
}

/// An error of a query is the query's, unless the store is to blame.
fn refused(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error @ StoreError::Missing { .. }) => {
            DatabaseError::Moved(error.to_string())
        }
        ciphervec::Error::Store(error) => error.into(),
        other => DatabaseError::Invalid(other.to_string()),
    }
}
