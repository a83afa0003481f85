//! A query of a collection: what is asked goes to the server in messages; hits come of their answers, and parts of rows are read of these.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::search::Opened;
use ciphervec_owner::{Id, Mode};

use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::matches::{Matches, nearest, ranked};
use crate::noting::Noting;
use crate::replica::alone::Alone;
use crate::replica::asking::{LEAST_WORD, LOCAL, Message, QUERY_ROWS, Question, pass_over, whole};
use crate::replica::batch::check_rows;
use crate::replica::fusion::{ByWords, Hybrid, fused};
use crate::replica::late::{CANDIDATES, Late, asked_by, check_asked};
use crate::replica::prefetch;
use crate::replica::request::{Audience, Found, GetResult, Parts, QueryRequest, QueryResult};
use crate::replica::routing::routed;
use crate::replica::rows::{filter_of, rows_of, way};
use crate::replica::streaming::streamed;
use crate::replica::traffic::Traffic;
use crate::replica::{PATIENCE, Replica};
use crate::view::flooding::{DEVIATION, check_deviation};

/// How often a question for others is asked, where others commit meanwhile.
const FLOODED_TURNS: u32 = 3;
/// Bytes of an answer that are held as a whole; a longer one is opened as it comes.
const WHOLE: usize = 4 << 20;

impl Collection {
    /// The rows closest to each of the queries.
    ///
    /// # Errors
    /// [`Error::Rows`] and [`Error::Input`] for what is no query, [`Error::Tampered`] for an answer that is not what the segments give to
    /// it, [`Error::Quarantined`] where segments failed a check before, [`Error::FetchEnded`] for a private fetch that failed.
    pub async fn query(&self, host: &dyn Host, request: QueryRequest) -> Result<QueryResult> {
        let noting = Noting::of(host, "query", self.spec().collection());
        let QueryRequest {
            mut embeddings,
            multi,
            candidates,
            n_results,
            hybrid,
            within,
            among,
            parts,
            audience,
            flooding,
            skip_quarantined,
        } = request;
        let deviation = flooding.unwrap_or(DEVIATION);
        check_deviation(deviation)?;
        let single = !embeddings.is_empty();
        check_asked(self.multi.is_some(), (single, !multi.is_empty()), candidates, within)?;
        if let Some(encoder) = &self.multi {
            embeddings = asked_by(encoder, &multi)?;
        }
        let mut faults = Vec::new();
        check_rows(
            &mut embeddings,
            self.spec().dimension(),
            self.spec().metric(),
            "query_embeddings",
            &mut faults,
        )?;
        if !faults.is_empty() {
            return Err(Error::rows(faults));
        }
        if n_results == Some(0) {
            return Error::input("n_results must be a whole number of at least 1, got 0.");
        }
        if let Some(within) = within.filter(|within| !(*within as f32).is_finite()) {
            return Error::input(format!("within must be a finite number, got {within}."));
        }
        let mut alone = self.alone(host).await?;
        let count = n_results.or(if within.is_none() { Some(10) } else { None });
        if let Some(hybrid) = &hybrid {
            hybrid.check(embeddings.len() / self.spec().dimension())?;
            alone.check_asked(&hybrid.asked)?;
            if within.is_some() {
                return Error::input(
                    "within is a distance of vectors, which a fusion does not rank by. Leave one of both out.",
                );
            }
        }
        let scans = hybrid.as_ref().is_none_or(Hybrid::scans);
        let noisy = scans && alone.description.encrypts_queries();
        let others = audience == Some(Audience::Others);
        if others && scans && self.multi.is_some() && alone.description.encrypts_queries() {
            return Error::input(
                "which rows MaxSim ranks follows from scores that carry noise of the key, so that results are the key owner's own. Ask \
                 without an audience.",
            );
        }
        if others && scans && alone.description.spec.mode() == Mode::SealedQuery {
            return alone.view().refuse_others("results");
        }
        if others && parts.embeddings && alone.description.spec.mode() == Mode::Sealed {
            return alone.view().refuse_others("embeddings");
        }
        let late = self.multi.as_ref().filter(|_| scans).map(|_| Late {
            queries: multi,
            candidates: candidates.unwrap_or(CANDIDATES).max(count.unwrap_or_default()),
            fetch: parts.fetch,
        });
        let question = Question {
            rows: embeddings,
            count: match (&late, &hybrid) {
                (Some(late), _) => Some(late.candidates),
                (None, Some(hybrid)) => count.max(Some(hybrid.window)),
                (None, None) => count,
            },
            within,
            filter: filter_of(&alone, &among)?,
            among: among.ids,
            flood: (others && noisy).then_some(deviation),
            skip_quarantined,
        };
        let (flood, exact) = (question.flood, flooding.is_none());
        let wanted = Wanted { count, late, hybrid, exact, parts };
        let ends = host.now() + PATIENCE;
        let mut turns = 0;
        let Attempt { found, bounds, beside, flooding } = loop {
            turns += 1;
            match attempt(&mut alone, host, &question, &wanted).await {
                // Each turn of a question for others is counted: a server must not have many of them for one.
                Err(Error::Conflict(_))
                    if host.now() < ends && (flood.is_none() || turns < FLOODED_TURNS) =>
                {
                    alone.refresh(host).await?;
                }
                done => break done?,
            }
        };
        let outdated = !noisy && found.iter().any(|one| !one.exact);
        let own = outdated || beside.iter().any(|one| one.owners_only);
        if own && others {
            return alone.view().refuse_outdated();
        }
        let own = own || noisy && flood.is_none();
        let checked = found.iter().all(|one| one.checked);
        let hits = found.into_iter().zip(beside).map(|(matches, beside)| {
            let values = matches.distances.into_iter().zip(matches.scores);
            let found = beside.rows.into_iter().zip(values);
            found.map(|(row, (distance, score))| Found { row, distance, score }).collect()
        });
        let hits: Vec<Vec<Found>> = hits.collect();
        noting.done(hits.len());
        Ok(QueryResult { hits, bounds, owners_only: own, checked, flooding })
    }
}

/// What is made of the hits of a question.
struct Wanted {
    /// The most of each query.
    count: Option<usize>,
    /// Where rows have many vectors.
    late: Option<Late>,
    hybrid: Option<Hybrid>,
    /// Whether a flood gives way to a result by the vectors themselves, where there is one.
    exact: bool,
    parts: Parts,
}

/// What one attempt at a question came to.
struct Attempt {
    found: Vec<Matches>,
    /// How far MaxSim of each query's hits may be off.
    bounds: Vec<f64>,
    /// The parts of the hits that are asked for.
    beside: Vec<GetResult>,
    /// The noise that was added.
    flooding: Option<f64>,
}

/// One attempt at a question, from what the server finds to the parts of rows that are asked for.
async fn attempt(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    question: &Question,
    Wanted { count, late, hybrid, exact, parts }: &Wanted,
) -> Result<Attempt> {
    let (parts, count) = (*parts, *count);
    let queries = match hybrid {
        Some(hybrid) => hybrid.asked.len(),
        None => question.rows.len() / alone.description.spec.dimension(),
    };
    let most = |replica: &Replica, count: usize| queries * count.min(replica.directory.len());
    // Before anything is asked: what is refused then depends on no hit.
    let bound = count.map_or(1, |count| most(alone, count));
    way(alone, host, parts, bound).await?;
    if let Some(late) = late {
        alone.way_of_late(host, late).await?;
    }
    let by_words = hybrid.as_ref().zip(count).filter(|(hybrid, _)| !hybrid.scans());
    let ranked = match question.flood {
        Some(_) if *exact => alone.ranked_by_vectors(host, question, parts.fetch).await?,
        _ => None,
    };
    let flooding = if ranked.is_some() { None } else { question.flood };
    let found = match (ranked, by_words) {
        (Some(found), _) => found,
        (None, Some((hybrid, count))) => words_alone(alone, host, question, hybrid, count).await?,
        (None, None) => searched(alone, host, question).await?,
    };
    let (mut found, mut bounds) = match late {
        Some(late) => alone.ranked_late(host, late, found).await?,
        None => (found, Vec::new()),
    };
    match (late, hybrid) {
        (Some(_), None) => {
            let count = count.unwrap_or(usize::MAX);
            found.iter_mut().for_each(|one| one.truncate(count));
        }
        // Fused scores are others.
        _ => bounds.clear(),
    }
    let found = match (hybrid, count) {
        (Some(hybrid), Some(count)) if hybrid.scans() => {
            with_words(alone, host, question, hybrid, found, count).await?
        }
        _ => found,
    };
    let ids: Vec<Id> = found.iter().flat_map(|one| one.ids.iter().cloned()).collect();
    let bound = count.map_or(ids.len(), |count| most(alone, count).max(ids.len()));
    let GetResult { rows, owners_only } = rows_of(alone, host, ids, parts, bound).await?;
    let mut rows = rows.into_iter();
    let beside = found
        .iter()
        .map(|one| GetResult { rows: rows.by_ref().take(one.ids.len()).collect(), owners_only });
    let beside = beside.collect();
    Ok(Attempt { found, bounds, beside, flooding })
}

/// The order of both, that of vectors and that of words.
async fn with_words(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    question: &Question,
    hybrid: &Hybrid,
    found: Vec<Matches>,
    count: usize,
) -> Result<Vec<Matches>> {
    let looked_at = count.max(hybrid.window);
    let words = alone.ranked_by_words(host, question, hybrid, &found, looked_at).await?;
    Ok(found
        .into_iter()
        .zip(&words)
        .map(|(near, said)| fused(hybrid.fusion, near, said, count))
        .collect())
}

/// The order of words alone. Nobody answers a question, so that the present state is asked for first.
async fn words_alone(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    question: &Question,
    hybrid: &Hybrid,
    count: usize,
) -> Result<Vec<Matches>> {
    alone.refresh(host).await?;
    alone.refuse_held(host, question.skip_quarantined, None).await?;
    let none = vec![Matches::default(); hybrid.asked.len()];
    let words = alone.ranked_by_words(host, question, hybrid, &none, count).await?;
    Ok(words.into_iter().map(ByWords::alone).collect())
}

/// What the server finds; where a filter leaves nothing, why.
async fn searched(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    question: &Question,
) -> Result<Vec<Matches>> {
    let found = search(alone, host, question).await?;
    let nothing = !found.is_empty() && found.iter().all(|one| one.ids.is_empty());
    if let (Some(filter), None, None, true) =
        (&question.filter, question.within, &question.among, nothing)
    {
        alone.say_why(host, filter).await?;
    }
    Ok(found)
}

/// One [`Matches`] per query row.
async fn search(
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
            streamed(alone, host, message, rows).await?
        } else {
            whole(alone, host, message, rows, ahead).await?
        }
    };
    pass_over(alone, host, &opened.disqualified).await?;
    let Opened { hits, exact, checked, .. } = opened;
    Ok(hits.into_iter().map(|hits| ranked(metric, hits, *count, exact, checked)).collect())
}
