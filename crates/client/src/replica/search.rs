//! Search: queries and a filter go to the server in a message; hits come of its answer.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::protect::filter::FilterTag;
use ciphervec_owner::search::{
    AnswerFormat, AnswerOpener, Flood, Fold, OpenOptions, Opened, Owner, Query, QueryOptions,
    Retrieval, Selection, Token, WORDS_VERSION,
};
use ciphervec_owner::{Error as SchemeError, Id, Mode, SegmentId};

use crate::error::Result;
use crate::host::{Host, Progress};
use crate::matches::{Matches, nearest, ranked, retrieval};
use crate::records::Filter;
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::asking::{
    Answer, Kept, Sent, Streamed, answered, done, fetched, most_bytes, query_epoch,
};
use crate::replica::prefetch;
use crate::replica::routing::Named;
use crate::replica::traffic::Traffic;
use crate::threads::{heavy, runner};

/// Queries sent in one message; a longer batch takes several.
pub const QUERY_ROWS: usize = 1024;
/// Bytes of an answer that are held as a whole; a longer one is opened as it comes.
const WHOLE: usize = 4 << 20;
/// Bytes of an answer that this process computes.
pub const LOCAL: usize = 16 << 20;
/// The same of one that is opened as it comes, under schemes whose answers say how long they are.
const MAX_ANSWER: u64 = 1 << 40;
/// Attempts at a question about clusters, where segments come faster than they are asked about.
const ROUTED: usize = 3;
/// Bytes of an answer, a row, nearly.
pub const LEAST_WORD: usize = 3;

/// What is asked.
pub struct Question {
    pub rows: Vec<f32>,
    pub count: Option<usize>,
    pub within: Option<f64>,
    pub filter: Option<Filter>,
    pub among: Option<Vec<Id>>,
    /// Of the noise that every score carries, for others.
    pub flood: Option<f64>,
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
    allow: Option<Arc<Selection>>,
    /// What the replica had lost when these were chosen: rows that go later may be back elsewhere, with other metadata.
    losses: u64,
    /// That of the segments that it is about.
    center: Vec<f32>,
}

/// A message, sealed.
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
    // What others are shown costs each row that is ranked, so that the rows must be known first.
    let all_by_tags = centers.len() < 2
        && question.among.is_none()
        && question.flood.is_none()
        && filter.is_none_or(|filter| filter.is_complete() && usable);
    let mut allow = match filter.filter(|_| !all_by_tags) {
        Some(filter) => {
            let rows = alone.matching(host, filter, believed, usize::MAX).await?;
            Some(alone.directory.choose(rows))
        }
        None => None,
    };
    if let Some(among) = &question.among {
        let places = among.iter().filter_map(|id| alone.directory.locate(id));
        let passing = places.filter(|(segment, row)| {
            allow.as_ref().is_none_or(|allow| allow.allows(*segment, *row as usize))
        });
        allow = Some(alone.directory.choose(passing.map(|(segment, row)| (segment, [row]))));
    }
    if alone.directory.is_empty()
        || allow.as_ref().is_some_and(|rows| rows.counts().next().is_none())
    {
        let none = Matches { exact: true, checked: true, ..Matches::default() };
        return Ok(vec![none; count]);
    }
    let (allow, losses) = (allow.map(Arc::new), alone.losses);
    let mut message =
        Message { question, held, tags: Vec::new(), allow, losses, center: Vec::new() };
    if centers.len() > 1 {
        // Of each center's rows its own query: rows that came before there was one, or by a writer with a card of another time.
        let allowed = message.allow.take();
        let mut parts = vec![Vec::new(); count];
        let mut traffic: Option<Traffic> = None;
        for center in centers {
            let rows = alone.view().around(&center, allowed.as_deref());
            if rows.counts().next().is_some() {
                (message.allow, message.center) = (Some(Arc::new(rows)), center);
                let found = ask_all(alone, host, &message).await?;
                traffic = match (traffic, alone.traffic) {
                    (Some(before), Some(now)) if count == 1 => Some(before.and(now)),
                    (before, now) => now.or(before),
                };
                parts.iter_mut().zip(found).for_each(|(part, found)| part.push(found));
            }
        }
        alone.traffic = traffic;
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
            let rows = alone.matching(host, filter, false, usize::MAX).await?;
            message.allow = Some(Arc::new(alone.directory.choose(rows)));
            message.losses = alone.losses;
            return ask_all(alone, host, &message).await;
        }
    }
    Ok(found)
}

/// Queries that are sent in one message. An answer that this process computes is held as a whole.
fn message_rows(replica: &Replica) -> usize {
    match replica.store.computes() {
        true => (LOCAL / (replica.directory.len().max(1) * LEAST_WORD)).clamp(1, QUERY_ROWS),
        false => QUERY_ROWS,
    }
}

async fn ask_all(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
) -> Result<Vec<Matches>> {
    let dimension = alone.description.spec.dimension();
    let mut found = Vec::new();
    // Of a routed collection each question has clusters of its own, which the others must not share.
    let routed = alone.description.routing.is_some();
    let step = if routed { 1 } else { message_rows(alone).min(alone.query_keys.most()) };
    for rows in message.question.rows.chunks(step * dimension) {
        found.extend(ask(alone, host, message, rows).await?);
    }
    Ok(found)
}

/// One message to the server and back. [`Error::Conflict`] when the collection has changed too much meanwhile.
async fn ask(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
    rows: &[f32],
) -> Result<Vec<Matches>> {
    let (metric, dimension) = (alone.description.spec.metric(), alone.description.spec.dimension());
    let (queries, Question { count, flood, .. }) = (rows.len() / dimension, message.question);
    if let Some(deviation) = flood {
        alone.renew_for_others(host, queries, *deviation).await?;
    }
    let opened = if alone.description.routing.is_some() {
        routed(alone, host, message, rows).await?
    } else {
        let ahead = if flood.is_none() { prefetch::taken(alone, host, queries)? } else { None };
        let large = alone.directory.len() * queries * LEAST_WORD > WHOLE;
        if ahead.is_none() && large {
            let epoch = query_epoch(alone, host, queries).await?;
            let asked = sealed(alone, host, message, rows, Under { epoch, ..Under::default() })?;
            streamed(alone, host, &asked).await?
        } else {
            whole(alone, host, message, rows, ahead).await?
        }
    };
    pass_over(alone, host, &opened.disqualified).await?;
    let Opened { hits, exact, checked, .. } = opened;
    Ok(hits.into_iter().map(|hits| ranked(metric, hits, *count, exact, checked)).collect())
}

/// Puts writers' segments into quarantine that failed their check in an answer, and says so.
pub async fn pass_over(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    disqualified: &[SegmentId],
) -> Result<()> {
    if disqualified.is_empty() {
        return Ok(());
    }
    alone.hold(host, disqualified, "a writer's segment failed its check").await?;
    for id in disqualified {
        host.warn(&alone.view().passed_over(*id));
    }
    Ok(())
}

/// To be called right before an answer is opened: which rows its filter chooses is the owner's word, and nothing is passed over that
/// nobody was told of.
async fn before_opening(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    asked: &Asked<'_>,
) -> Result<Option<Flood>> {
    if !asked.message.tags.is_empty() && alone.states.present.is_some() {
        let masks = alone.tagged(host, &asked.message.tags).await?;
        asked.query.expect_matching(masks);
    }
    let Message { question, held, allow, losses, .. } = asked.message;
    if allow.is_some() && alone.losses != *losses {
        return Err(alone.too_fast());
    }
    alone.refuse_held(host, question.skip_quarantined, Some(held)).await?;
    let Some(deviation) = question.flood else { return Ok(None) };
    alone.flood(host, deviation, (&asked.query, asked.epoch), allow.as_deref()).await.map(Some)
}

/// What a query is made under.
#[derive(Default)]
struct Under<'a> {
    epoch: u32,
    /// Halves of its answer that are here.
    tokens: Option<Vec<Token>>,
    /// The only segments that it is about.
    named: Option<&'a [SegmentId]>,
    /// Clusters that it is about beside.
    fold: Option<Fold<'a>>,
}

/// What the server answers in.
pub fn format_of(replica: &Replica) -> AnswerFormat {
    let known = replica.store.listing().query_version;
    if known < u64::from(WORDS_VERSION) { AnswerFormat::First } else { AnswerFormat::Short }
}

/// The query of a message.
fn sealed<'a>(
    alone: &Alone<'_>,
    host: &dyn Host,
    message: &'a Message<'a>,
    rows: &[f32],
    Under { epoch, tokens, named, fold }: Under<'_>,
) -> Result<Asked<'a>> {
    let began = host.now();
    let options = QueryOptions {
        epoch,
        tags: &message.tags,
        segments: named,
        format: format_of(alone),
        centre: &message.center,
        tokens,
        fold,
    };
    let query = {
        let (owner, directory) = (&alone.owner, &alone.directory);
        Arc::new(heavy(|| owner.query(rows, directory, options))?)
    };
    let bytes = query.to_bytes().len() as u64;
    done(host, "encrypt", bytes, Some(bytes), began);
    let Question { count, within, .. } = message.question;
    let metric = alone.description.spec.metric();
    let retrieval = retrieval(metric, *count, *within, alone.directory.len());
    Ok(Asked { message, query, owner: Arc::clone(&alone.owner), epoch, retrieval })
}

impl Asked<'_> {
    /// As it is sent; what opening its answer takes is made ready meanwhile.
    fn sent(&self, alone: &Alone<'_>, host: &dyn Host) -> Sent<'_> {
        // In this process it is made with the answer.
        if !alone.store.computes() {
            let levels = alone.directory.levels(self.query.segments());
            let (owner, query) = (Arc::clone(&self.owner), Arc::clone(&self.query));
            // Opening says what is wrong with it.
            host.meanwhile(Box::new(move || drop(owner.prepare(&query, &levels))));
        }
        Sent {
            bytes: self.query.to_bytes(),
            rows: self.query.len(),
            named: self.query.segments(),
            epoch: self.epoch,
            owner: &self.owner,
            query: Some(&self.query),
            ahead: self.query.ahead(),
        }
    }
}

/// Asks about every segment, and opens the answer once it is there; with halves of it that are here, as long as they go with it.
async fn whole(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
    rows: &[f32],
    mut ahead: Option<(u32, Vec<Token>)>,
) -> Result<Opened> {
    let queries = rows.len() / alone.description.spec.dimension();
    let (asked, known, losses, version, data) = loop {
        // What was fetched ahead was counted then.
        let (epoch, tokens) = match ahead.take() {
            Some((epoch, tokens)) => (epoch, Some(tokens)),
            None => (query_epoch(alone, host, queries).await?, None),
        };
        let asked =
            sealed(alone, host, message, rows, Under { epoch, tokens, ..Under::default() })?;
        let (known, losses) = (alone.attached(), alone.losses);
        let sent = asked.sent(alone, host);
        let (version, data) = fetched(alone, host, &sent).await?;
        if asked.query.ahead() == 0 {
            break (asked, known, losses, version, data);
        }
        match heavy(|| asked.owner.complete(&asked.query, &data)) {
            Ok(data) => break (asked, known, losses, version, data),
            // The server's rows or keys have changed: the question is asked whole, under another mask.
            Err(SchemeError::Token { .. }) => alone.tokens.clear(),
            Err(error) => return Err(alone.checked(host, error).await),
        }
    };
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
    open(alone, host, &asked, &data, &newer).await
}

/// Asks one question about the segments that it names. [`Error::Conflict`] when rows go meanwhile.
async fn routed(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
    rows: &[f32],
) -> Result<Opened> {
    let mut turn = 1;
    loop {
        let whole = message.question.flood.is_some() || !alone.folds_now();
        if !whole {
            alone.expect_unbroken(host).await?; // before anything is sent
        }
        let epoch = query_epoch(alone, host, 1).await?;
        let losses = alone.losses;
        let Named { segments, folded } = alone.name_segments(host, rows, whole).await?;
        let fold = folded.as_ref().map(|(clusters, chosen)| Fold { clusters, chosen });
        let under = Under { epoch, named: Some(&segments), fold, ..Under::default() };
        let asked = sealed(alone, host, message, rows, under)?;
        let sent = asked.sent(alone, host);
        let (version, data) = fetched(alone, host, &sent).await?;
        if version > alone.store.listing().version {
            alone.refresh(host).await?;
        }
        let all = alone.unrouted().iter().all(|id| segments.contains(id));
        // What came after the last attempt need not be in the answer.
        if alone.losses == losses && (all || turn == ROUTED) {
            if !whole {
                alone.expect_unbroken(host).await?;
            }
            let opened = open(alone, host, &asked, &data, &[]).await?;
            let found = opened.hits.iter().map(Vec::len).sum::<usize>();
            if let (Some(count), Some(allow)) = (message.question.count, &message.allow)
                && found < allow.counts().map(|(_, rows)| rows).sum::<usize>().min(count)
            {
                alone.say_missed(host, asked.query.segments().unwrap_or_default(), allow);
            }
            return Ok(opened);
        }
        // Rows went, and may be back in a segment that was not asked about; or some came since.
        if turn == ROUTED {
            return Err(alone.too_fast());
        }
        turn += 1;
    }
}

/// Opens an answer that is here. Segments in `newer` may be missing in it.
async fn open(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    asked: &Asked<'_>,
    data: &[u8],
    newer: &[SegmentId],
) -> Result<Opened> {
    let flood = before_opening(alone, host, asked).await?;
    let began = host.now();
    let options = OpenOptions {
        retrieval: asked.retrieval,
        selection: asked.message.allow.as_deref(),
        newer,
        flood: flood.as_ref(),
    };
    let (owner, directory) = (&alone.owner, &alone.directory);
    let opened = heavy(|| owner.open(&asked.query, data, directory, options));
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return Err(alone.failed(host, &asked.query, error).await),
    };
    done(host, "open", data.len() as u64, Some(data.len() as u64), began);
    Ok(opened)
}

/// As [`whole`], for an answer that is opened as it comes. It has to be one of the state that it was asked about: a conflict says that
/// others were faster.
async fn streamed(alone: &mut Alone<'_>, host: &dyn Host, asked: &Asked<'_>) -> Result<Opened> {
    let flood = before_opening(alone, host, asked).await?.map(Arc::new);
    let both = (Arc::clone(&asked.owner), Arc::clone(&asked.query));
    let selection = asked.message.allow.clone();
    let (directory, retrieval) = (alone.directory.snapshot(), asked.retrieval);
    let fresh = move || {
        let (both, selection, flood) = (both.clone(), selection.clone(), flood.clone());
        AnswerOpener::new(both, directory.snapshot(), retrieval, selection, flood, &runner)
    };
    let expected = Some((alone.store.listing().version, alone.too_fast()));
    let kept = Kept::Opener(Box::new(Streamed { fresh: Box::new(fresh), opener: None, expected }));
    let most = most_bytes(alone, asked.query.len(), None).unwrap_or(MAX_ANSWER);
    let mut sink = Answer::new(host, asked.query.to_bytes().len(), most, kept);
    let sent = asked.sent(alone, host);
    let ended = match answered(alone, host, &sent, &mut sink).await {
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
            alone.note(&sent, came);
            let ms = Some((spent + host.now().saturating_sub(began)).as_secs_f64() * 1e3);
            host.progress(Progress { phase: "open", done: came, total: Some(came), ms });
            Ok(opened)
        }
        Err(error) => Err(alone.checked(host, error).await),
    }
}
