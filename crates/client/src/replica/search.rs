//! Search: queries and a filter go to the server in a message; hits come of its answer.

use std::collections::HashSet;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use async_lock::{Mutex, MutexGuard};
use ciphervec::protect::filter::FilterTag;
use ciphervec::search::{
    AnswerFormat, AnswerOpener, Hit, OpenOptions, Opened, Owner, QUERY_VERSION, Query,
    QueryOptions, Retrieval,
};
use ciphervec::{Error as SchemeError, Id, Metric, Mode, SegmentId};

use crate::error::{Error, Result};
use crate::host::{Head, Host, Lost, Progress, Sink};
use crate::records::Filter;
use crate::remote::session::{Receiver, too_long};
use crate::remote::store::{Evaluated, answered_on};
use crate::replica::Replica;
use crate::replica::query_keys::QUERIES_PER_KEY;

/// Queries sent in one message; a longer batch takes several.
const QUERY_ROWS: usize = 1024;
/// Bytes of an answer that are held as a whole; a longer one is opened as it comes.
const WHOLE: usize = 4 << 20;
const MAX_WHOLE: u64 = 1 << 30;
const MAX_ANSWER: u64 = 1 << 40;
/// Bytes of an answer, a row, nearly.
const LEAST_WORD: usize = 3;
/// Servers behind one address may each have to be given the keys.
const SENDS: usize = 4;

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
    async fn apart<T>(&mut self, work: impl Future<Output = T>) -> T {
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

/// The hits of one query, the closest first.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    pub ids: Vec<Id>,
    pub distances: Vec<f64>,
    pub scores: Vec<f64>,
    /// Whether ids, order and scores depend on rows and query alone.
    pub exact: bool,
    /// Whether every block of rows that this rests on was checked.
    pub checked: bool,
}

/// What is asked.
pub struct Question {
    pub rows: Vec<f32>,
    pub count: Option<usize>,
    pub within: Option<f64>,
    pub filter: Option<Filter>,
    pub among: Option<Vec<Id>>,
    /// Ask about the others where segments failed a check before.
    pub skip_quarantined: bool,
}

/// What one message asks, and what its answer is opened under.
struct Message<'a> {
    question: &'a Question,
    /// What was in quarantine when the search began. While it goes on others may find another segment out, which would be passed over
    /// with nobody told.
    held: HashSet<SegmentId>,
    /// That a row must have to be in the answer.
    tags: Vec<FilterTag>,
    /// None for all rows.
    allow: Option<Vec<Id>>,
    /// That of the segments that it is about.
    center: Vec<f32>,
}

/// A message as it is sent.
struct Asked<'a> {
    message: &'a Message<'a>,
    query: Arc<Query>,
    owner: Arc<Owner>,
    epoch: u32,
    retrieval: Retrieval,
}

/// One [`Matches`] per query row.
pub async fn search(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    question: &Question,
) -> Result<Vec<Matches>> {
    let dimension = alone.description.spec.dimension();
    let count = question.rows.len() / dimension;
    if count == 0 {
        return Ok(Vec::new());
    }
    let filter = question.filter.as_ref();
    if filter.is_some() || question.among.is_some() || alone.directory.is_empty() {
        alone.refresh(host).await?;
    }
    alone.refuse_held(host, question.skip_quarantined, None).await?;
    let held: HashSet<_> = alone.directory.quarantined().iter().copied().collect();
    let authenticated = alone.states.present.is_some();
    // A server's tags that no owner authenticates are not used: what followed would depend on the hits.
    let believed = authenticated || alone.description.spec.mode() == Mode::Open;
    // What the server can't test by tags is tested here first, on metadata opened here: also of segments that have no tags under the
    // present key, because a writer sealed them, who can't make any, or the keys are changing.
    let usable =
        filter.is_none() || believed && alone.read_entries().iter().all(|one| alone.has_tags(one));
    let centers: Vec<Vec<f32>> =
        alone.directory.centres().into_iter().map(<[f32]>::to_vec).collect();
    let all_by_tags = centers.len() < 2
        && question.among.is_none()
        && filter.is_none_or(|filter| filter.is_complete() && usable);
    let mut allow = match filter.filter(|_| !all_by_tags) {
        Some(filter) => Some(alone.matching(host, filter, believed, usize::MAX).await?),
        None => None,
    };
    if let Some(among) = &question.among {
        let passing: Option<HashSet<_>> = allow.map(|ids| ids.into_iter().collect());
        let mut seen = HashSet::new();
        let chosen = among.iter().filter(|id| {
            alone.directory.locate(id).is_some()
                && passing.as_ref().is_none_or(|passing| passing.contains(*id))
                && seen.insert(*id)
        });
        allow = Some(chosen.cloned().collect());
    }
    if alone.directory.is_empty() || allow.as_ref().is_some_and(Vec::is_empty) {
        let none = Matches { exact: true, checked: true, ..Matches::default() };
        return Ok(vec![none; count]);
    }
    let mut message = Message { question, held, tags: Vec::new(), allow, center: Vec::new() };
    if centers.len() > 1 {
        // Of each center's rows its own query: rows that came before there was one, or by a writer with a card of another time.
        let allowed: Option<HashSet<_>> = message.allow.take().map(|ids| ids.into_iter().collect());
        let mut parts = vec![Vec::new(); count];
        for center in centers {
            let names = alone.ids_around(&center, allowed.as_ref());
            if !names.is_empty() {
                (message.allow, message.center) = (Some(names), center);
                let found = ask_all(alone, host, &message).await?;
                parts.iter_mut().zip(found).for_each(|(part, found)| part.push(found));
            }
        }
        return Ok(parts.into_iter().map(|part| nearest(part, question.count)).collect());
    }
    message.center = centers.into_iter().next().unwrap_or_default();
    if let Some(filter) = filter.filter(|_| usable) {
        message.tags = alone.wanted(filter);
    }
    let found = ask_all(alone, host, &message).await?;
    if let (Some(filter), None, false) = (filter, &message.allow, authenticated) {
        let names: HashSet<_> = found.iter().flat_map(|one| &one.ids).cloned().collect();
        // In mode `open` tags are the server's; where they are not those of these rows, nothing of them counts.
        if !alone.all_pass(host, filter, &names.into_iter().collect::<Vec<_>>()).await? {
            message.tags.clear();
            message.allow = Some(alone.matching(host, filter, false, usize::MAX).await?);
            return ask_all(alone, host, &message).await;
        }
    }
    Ok(found)
}

async fn ask_all(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
) -> Result<Vec<Matches>> {
    let dimension = alone.description.spec.dimension();
    let mut found = Vec::new();
    for rows in message.question.rows.chunks(QUERY_ROWS.min(QUERIES_PER_KEY) * dimension) {
        found.extend(ask(alone, host, message, rows).await?);
    }
    Ok(found)
}

/// The nearest of several answers to one question, about different rows.
fn nearest(parts: Vec<Matches>, count: Option<usize>) -> Matches {
    let (exact, checked) = (parts.iter().all(|one| one.exact), parts.iter().all(|one| one.checked));
    let hits = parts
        .into_iter()
        .flat_map(|one| one.ids.into_iter().zip(one.distances.into_iter().zip(one.scores)));
    sorted(
        hits.map(|(id, (distance, score))| (id, distance, score)).collect(),
        count,
        exact,
        checked,
    )
}

fn sorted(
    mut hits: Vec<(Id, f64, f64)>,
    count: Option<usize>,
    exact: bool,
    checked: bool,
) -> Matches {
    hits.sort_by(|a, b| a.1.total_cmp(&b.1)); // stable
    hits.truncate(count.unwrap_or(usize::MAX));
    let mut found = Matches { exact, checked, ..Matches::default() };
    for (id, distance, score) in hits {
        found.ids.push(id);
        found.distances.push(distance);
        found.scores.push(score);
    }
    found
}

/// One message to the server and back. [`Error::Conflict`] when the collection has changed too much meanwhile.
async fn ask(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
    rows: &[f32],
) -> Result<Vec<Matches>> {
    let (metric, dimension) = (alone.description.spec.metric(), alone.description.spec.dimension());
    let (queries, Question { count, within, .. }) = (rows.len() / dimension, message.question);
    let began = host.now();
    let known = alone.store.listing().query_version;
    let format =
        if known < u64::from(QUERY_VERSION) { AnswerFormat::First } else { AnswerFormat::Short };
    let epoch = query_epoch(alone, host, queries).await?;
    let options = QueryOptions {
        epoch,
        tags: &message.tags,
        segments: None,
        format,
        centre: &message.center,
        tokens: None,
    };
    let query = Arc::new(alone.owner.query(rows, &alone.directory, options)?);
    let bytes = query.to_bytes().len();
    done(host, "encrypt", bytes as u64, Some(bytes as u64), began);
    let threshold =
        within.map(|within| if metric.higher_is_closer() { 1.0 - within } else { within });
    let retrieval = match (threshold, count) {
        (Some(threshold), _) => Retrieval::Range(threshold),
        (None, count) => Retrieval::TopK(count.unwrap_or_else(|| alone.directory.len().max(1))),
    };
    let large = alone.directory.len() * queries * LEAST_WORD > WHOLE;
    let asked = Asked { message, query, owner: Arc::clone(&alone.owner), epoch, retrieval };
    let opened = if large {
        streamed(alone, host, &asked).await?
    } else {
        whole(alone, host, &asked).await?
    };
    if !opened.disqualified.is_empty() {
        alone.hold(host, &opened.disqualified, "a writer's segment failed its check").await?;
        for id in &opened.disqualified {
            host.warn(&format!(
                "segment {id} of writer {} failed its check and was passed over: its rows were not sealed as they should be, or the answer \
                 about them was changed.",
                alone.face.quoted(alone.writer(*id).unwrap_or_default())
            ));
        }
    }
    let Opened { hits, exact, checked, .. } = opened;
    Ok(hits.into_iter().map(|hits| ranked(metric, hits, *count, exact, checked)).collect())
}

/// Reads the scores of a metric: the similarity under cosine and ip, the distance under l2 and hamming. Rows that are not exact are
/// ranked at full precision and reported rounded; under ip and l2 neighbours closer than that are put in the reported order.
fn ranked(
    metric: Metric,
    mut hits: Vec<Hit>,
    count: Option<usize>,
    exact: bool,
    checked: bool,
) -> Matches {
    hits.truncate(count.unwrap_or(usize::MAX));
    let value = |raw: f64| match metric {
        Metric::Cosine => raw.clamp(-1.0, 1.0), // a perfect match may decode one rounding step beyond
        Metric::InnerProduct => raw,
        Metric::L2 | Metric::Hamming => raw.max(0.0), // so may two equal vectors, to below zero
    };
    let hit = |hit: Hit| {
        let value = value(hit.value);
        let (distance, score) =
            if metric.higher_is_closer() { (1.0 - value, value) } else { (value, 0.0 - value) };
        (hit.id, distance, score)
    };
    sorted(hits.into_iter().map(hit).collect(), None, exact, checked)
}

/// To be called right before an answer is opened: which rows its filter chooses is the owner's word, and nothing is passed over that
/// nobody was told of.
async fn before_opening(alone: &mut Alone<'_>, host: &dyn Host, asked: &Asked<'_>) -> Result<()> {
    if !asked.message.tags.is_empty() && alone.states.present.is_some() {
        let masks = alone.tagged(host, &asked.message.tags).await?;
        asked.query.expect_matching(masks);
    }
    alone
        .refuse_held(host, asked.message.question.skip_quarantined, Some(&asked.message.held))
        .await
}

/// Asks about every segment, and opens the answer once it is there.
async fn whole(alone: &mut Alone<'_>, host: &dyn Host, asked: &Asked<'_>) -> Result<Opened> {
    let (known, losses) = (alone.attached(), alone.losses);
    let mut sink =
        Answer::new(host, asked.query.to_bytes().len(), MAX_WHOLE, Kept::Whole(Vec::new()));
    let version = answered(alone, host, asked, &mut sink).await?;
    alone.settle(host).await?;
    if version > alone.store.listing().version {
        alone.refresh(host).await?;
    }
    let mut newer = Vec::new();
    if version != alone.store.listing().version {
        // Segments that came after the answer can't be in it. Rows that left may have come back in one of those: then the answer is
        // neither the old state's nor the new one's.
        if alone.losses != losses {
            return Err(alone.too_fast());
        }
        newer = alone.attached().difference(&known).copied().collect();
    }
    before_opening(alone, host, asked).await?;
    let began = host.now();
    let Kept::Whole(data) = sink.kept else { return Err(alone.too_fast()) };
    let selection = asked.message.allow.as_ref().map(|names| alone.directory.select(names));
    let options = OpenOptions {
        retrieval: asked.retrieval,
        selection: selection.as_ref(),
        newer: &newer,
        flood: None,
    };
    let opened = alone.owner.open(&asked.query, &data, &alone.directory, options);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return Err(alone.checked(host, error).await),
    };
    done(host, "open", data.len() as u64, Some(data.len() as u64), began);
    Ok(opened)
}

/// As [`whole`], for an answer that is opened as it comes. It has to be one of the state that it was asked about: a conflict says that
/// others were faster.
async fn streamed(alone: &mut Alone<'_>, host: &dyn Host, asked: &Asked<'_>) -> Result<Opened> {
    before_opening(alone, host, asked).await?;
    let both = (Arc::clone(&asked.owner), Arc::clone(&asked.query));
    let selection =
        asked.message.allow.as_ref().map(|names| Arc::new(alone.directory.select(names)));
    let (directory, retrieval) = (alone.directory.snapshot(), asked.retrieval);
    let fresh = move || {
        let (both, selection) = (both.clone(), selection.clone());
        AnswerOpener::new(both, directory.snapshot(), retrieval, selection, None)
    };
    let expected = Some((alone.store.listing().version, alone.too_fast()));
    let kept = Kept::Opener(Box::new(Streamed { fresh: Box::new(fresh), opener: None, expected }));
    let mut sink = Answer::new(host, asked.query.to_bytes().len(), MAX_ANSWER, kept);
    let ended = match answered(alone, host, asked, &mut sink).await {
        Ok(_) => alone.settle(host).await,
        Err(error) => Err(error),
    };
    let began = host.now();
    let (came, spent) = (sink.came, sink.spent);
    let finished = sink.finish();
    let opened = match (ended, finished) {
        // Whatever ended it: what came may have failed its check.
        (
            Err(_),
            Some(Err(error @ (SchemeError::Tampered { .. } | SchemeError::Mismatched { .. }))),
        ) => Err(error),
        (Err(_), Some(Ok(Opened { disqualified: segments, .. }))) if !segments.is_empty() => {
            Err(SchemeError::Tampered { segments })
        }
        (Err(error), _) => return Err(error),
        (Ok(()), Some(opened)) => opened,
        (Ok(()), None) => return Err(alone.too_fast()),
    };
    match opened {
        Ok(opened) => {
            let ms = Some((spent + host.now().saturating_sub(began)).as_secs_f64() * 1e3);
            host.progress(Progress { phase: "open", done: came, total: Some(came), ms });
            Ok(opened)
        }
        Err(error) => Err(alone.checked(host, error).await),
    }
}

/// What is made of an answer while it comes.
enum Kept<'a> {
    Whole(Vec<u8>),
    Opener(Box<Streamed<'a>>),
}

/// An answer that is opened while it comes.
struct Streamed<'a> {
    fresh: Box<dyn Fn() -> AnswerOpener + 'a>,
    opener: Option<AnswerOpener>,
    /// Which state it has to be of, and what is said of another.
    expected: Option<(u64, Error)>,
}

/// Where an answer goes: it tells how long the server took, and what came.
struct Answer<'a> {
    host: &'a dyn Host,
    began: Duration,
    most: u64,
    came: u64,
    total: Option<u64>,
    head: Option<Head>,
    /// On opening it.
    spent: Duration,
    refused: Option<Error>,
    kept: Kept<'a>,
}

impl<'a> Answer<'a> {
    fn new(host: &'a dyn Host, up: usize, most: u64, kept: Kept<'a>) -> Self {
        let began = host.now();
        host.progress(Progress {
            phase: "upload",
            done: up as u64,
            total: Some(up as u64),
            ms: None,
        });
        Answer {
            host,
            began,
            most,
            came: 0,
            total: None,
            head: None,
            spent: Duration::ZERO,
            refused: None,
            kept,
        }
    }

    fn finish(self) -> Option<core::result::Result<Opened, SchemeError>> {
        match self.kept {
            Kept::Opener(streamed) => streamed.opener.map(AnswerOpener::finish),
            Kept::Whole(_) => None,
        }
    }
}

impl Sink for Answer<'_> {
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost> {
        self.head = Some(head.clone());
        self.came = 0;
        self.total = head.header("content-length").and_then(crate::remote::session::count);
        match &mut self.kept {
            Kept::Whole(data) => data.clear(),
            Kept::Opener(streamed) => {
                let Streamed { fresh, opener, expected } = &mut **streamed;
                // Before any of it is opened: which state it is of.
                let now = answered_on(head, "the server").map(|(version, _)| version);
                let wrong = match (now, &expected) {
                    (Err(error), _) => Some(error),
                    (Ok(now), Some((version, _))) if now != *version => {
                        expected.take().map(|(_, error)| error)
                    }
                    (Ok(_), _) => None,
                };
                // What failed its check is said at the end, also where another attempt follows.
                let failed = opener.take().map(AnswerOpener::finish);
                let failed = match failed {
                    Some(Err(
                        error @ (SchemeError::Tampered { .. } | SchemeError::Mismatched { .. }),
                    )) => Some(error),
                    Some(Ok(Opened { disqualified: segments, .. })) if !segments.is_empty() => {
                        Some(SchemeError::Tampered { segments })
                    }
                    _ => None,
                };
                self.refused = failed.map(Error::Scheme).or(wrong);
                if self.refused.is_some() {
                    return Err(Lost::refused("the answer is not taken"));
                }
                *opener = Some(fresh());
            }
        }
        done(self.host, "server", 0, None, self.began);
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost> {
        self.came += piece.len() as u64;
        if self.came > self.most {
            return Err(too_long(self.most));
        }
        match &mut self.kept {
            Kept::Whole(data) => data.extend_from_slice(piece),
            Kept::Opener(streamed) => {
                let began = self.host.now();
                if let Some(opener) = &mut streamed.opener {
                    opener.write(piece);
                }
                self.spent += self.host.now().saturating_sub(began);
            }
        }
        done(self.host, "download", self.came, self.total, self.began);
        Ok(())
    }
}

impl Receiver for Answer<'_> {
    fn answer(&mut self) -> Option<(Head, Vec<u8>)> {
        Some((self.head.take()?, Vec::new()))
    }

    fn refused(&mut self) -> Option<Error> {
        self.refused.take()
    }
}

fn done(host: &dyn Host, phase: &'static str, done: u64, total: Option<u64>, began: Duration) {
    let ms = Some(host.now().saturating_sub(began).as_secs_f64() * 1e3);
    host.progress(Progress { phase, done, total, ms });
}

/// The epoch to make so many queries under: counted, and the server has its evaluation keys as far as is known.
async fn query_epoch(alone: &mut Alone<'_>, host: &dyn Host, queries: usize) -> Result<u32> {
    loop {
        let (keys, name) = (alone.query_keys.clone(), alone.name());
        if !alone.description.encrypts_queries() {
            return Ok(alone.description.epoch);
        }
        if keys.present().refused {
            if let Some(asked) = keys.ask_outside(queries) {
                host.warn(&format!(
                    "{asked} queries of this client were asked under one query key of {name}. Begin another with {}().",
                    alone.face.named("rotate_query_key")
                ));
            }
            return Ok(alone.description.epoch);
        }
        let owner = Arc::clone(&alone.owner);
        let (epoch, fresh) = keys.take(owner.key_id(), queries)?;
        if !fresh {
            return Ok(epoch);
        }
        let held = hand_over(alone, host, &owner, epoch).await?;
        alone.settle(host).await?;
        if !held {
            keys.refuse();
            host.warn(&format!(
                "the server of {name} takes no query keys of its clients: it is of a release before 0.2. Queries are asked under the \
                 collection's own query key, which changes with {}() alone. SECURITY.md says what a server that lies learns of a key; upgrade \
                 the server, or rotate it every {QUERIES_PER_KEY} queries.",
                alone.face.named("rotate_query_key")
            ));
        } else if Arc::ptr_eq(&alone.owner, &owner) {
            return Ok(epoch);
        } // else others have changed the keys
    }
}

/// Has the server answer a message; the commit that the answer was computed on.
async fn answered(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    asked: &Asked<'_>,
    sink: &mut Answer<'_>,
) -> Result<u64> {
    let (keys, store) = (alone.query_keys.clone(), Arc::clone(&alone.store));
    let levels = alone.directory.levels(asked.query.segments());
    let (owner, query) = (Arc::clone(&asked.owner), Arc::clone(&asked.query));
    // The query's tree, which opening the answer takes. Opening says what is wrong with it.
    host.meanwhile(Box::new(move || drop(owner.prepare(&query, &levels))));
    let again = || keys.again(asked.epoch, asked.query.len());
    // By the state that the query was made in: where others move on, `evaluate` tells.
    let check = alone.states.evaluation_check();
    for _ in 0..SENDS {
        let sent =
            alone.apart(store.evaluate(host, asked.query.to_bytes(), &check, sink, &again)).await;
        let sent = match sent {
            Err(Error::Scheme(error)) => return Err(alone.checked(host, error).await),
            sent => sent?,
        };
        if let Evaluated::Answered(version) = sent {
            return Ok(version);
        }
        again()?;
        // Others may have let go of the owner meanwhile, who makes these keys.
        if !Arc::ptr_eq(&alone.owner, &asked.owner) {
            return Err(Error::Conflict("the keys have changed. Ask again.".to_owned()));
        }
        hand_over(alone, host, &asked.owner, asked.epoch).await?;
    }
    Err(Error::server(format!(
        "the server of {} says that it lacks evaluation keys that it was given {SENDS} times. Ask its operator: its memory may be too small \
         for them, or several servers answer under one address.",
        alone.name()
    )))
}

/// Gives the server the evaluation keys of a session; whether it knows sessions.
async fn hand_over(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    owner: &Owner,
    epoch: u32,
) -> Result<bool> {
    let evaluation = owner.evaluation(epoch)?.map(|keys| keys.to_bytes()).unwrap_or_default();
    let store = Arc::clone(&alone.store);
    let held = alone.apart(store.hold(host, &evaluation)).await;
    if held.is_err() {
        alone.query_keys.end(); // it has others of that number, say, or the owner's keys have changed
    }
    held
}
