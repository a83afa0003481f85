//! Querying: one attempt at a question, from what the server finds to the parts of rows that are asked for.

use ciphervec_owner::Id;

use crate::error::Result;
use crate::host::Host;
use crate::matches::Matches;
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::fusion::{ByWords, Hybrid, fused};
use crate::replica::late::Late;
use crate::replica::request::{GetResult, Parts};
use crate::replica::rows::{rows_of, way};
use crate::replica::search::{Question, search};

/// What is made of the hits of a question.
pub struct Wanted {
    /// The most of each query.
    pub count: Option<usize>,
    /// Where rows have many vectors.
    pub late: Option<Late>,
    pub hybrid: Option<Hybrid>,
    /// Whether a flood gives way to a result by the vectors themselves, where there is one.
    pub exact: bool,
    pub parts: Parts,
}

/// What one attempt at a question came to.
pub struct Asked {
    pub found: Vec<Matches>,
    /// How far MaxSim of each query's hits may be off.
    pub bounds: Vec<f64>,
    /// The parts of the hits that are asked for.
    pub beside: Vec<GetResult>,
    /// The noise that was added.
    pub flooding: Option<f64>,
}

/// One attempt at a query.
pub async fn asked(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    question: &Question,
    Wanted { count, late, hybrid, exact, parts }: &Wanted,
) -> Result<Asked> {
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
    let way = way(alone, host, parts, bound).await?;
    let GetResult { rows, owners_only } = rows_of(alone, host, ids, parts, way).await?;
    let mut rows = rows.into_iter();
    let beside = found
        .iter()
        .map(|one| GetResult { rows: rows.by_ref().take(one.ids.len()).collect(), owners_only });
    let beside = beside.collect();
    Ok(Asked { found, bounds, beside, flooding })
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
