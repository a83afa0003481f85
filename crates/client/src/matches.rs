//! Matches: the hits of one query, with the distances and scores that a metric's values stand for.
//!
//! | metric | distance (lower is closer) | score (higher is closer) |
//! |---|---|---|
//! | cosine | 1 − cos(q, x), 0 to 2 | cos(q, x), −1 to 1 |
//! | inner product | 1 − q·x, any real | q·x |
//! | l2 | \|q − x\|², squared Euclidean | −\|q − x\|² |
//! | hamming | number of differing bits | −(number of them) |

use ciphervec_owner::search::{Hit, Retrieval};
use ciphervec_owner::{Id, Metric, SegmentId};

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

impl Matches {
    /// The closest alone.
    pub fn truncate(&mut self, count: usize) {
        self.ids.truncate(count);
        self.distances.truncate(count);
        self.scores.truncate(count);
    }
}

/// What an answer is opened for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The most hits of each query; left out, all of them.
    pub count: Option<usize>,
    /// The largest distance. With a `count` of one, the time that opening takes does not tell how many rows are that near.
    pub within: Option<f64>,
    /// The only rows.
    pub among: Option<Vec<Id>>,
}

/// The hits of one query, the closest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits {
    /// Their ids.
    pub ids: Vec<Id>,
    /// Lower is closer.
    pub distances: Vec<f64>,
    /// Higher is closer.
    pub scores: Vec<f64>,
}

impl From<Matches> for Hits {
    fn from(Matches { ids, distances, scores, .. }: Matches) -> Self {
        Hits { ids, distances, scores }
    }
}

/// An answer, opened.
#[derive(Clone, Debug)]
pub struct OpenedAnswer {
    /// Of each query.
    pub hits: Vec<Hits>,
    /// Whether ids, order and scores depend on rows and queries alone.
    pub exact: bool,
    /// Whether every block of rows that it rests on was checked.
    pub checked: bool,
    /// Whether scores carry noise of the key, and so are the owner's own.
    pub owners_only: bool,
    /// Writers' segments that were passed over: they failed their check or, in an answer to a query of somebody else's, have none.
    pub disqualified: Vec<SegmentId>,
}

/// Reads the scores of a metric: the similarity under cosine and ip, the distance under l2 and hamming. Rows that are not exact are
/// ranked at full precision and reported rounded; under ip and l2 neighbours closer than that are put in the reported order.
pub fn ranked(
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

/// The nearest of several answers to one question, about different rows.
pub fn nearest(parts: Vec<Matches>, count: Option<usize>) -> Matches {
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

/// What is asked of an answer: so many hits of each query at most, at that distance at most; without either, of so many rows all.
pub fn retrieval(
    metric: Metric,
    count: Option<usize>,
    within: Option<f64>,
    rows: usize,
) -> Retrieval {
    match (within, count) {
        (Some(within), _) => Retrieval::Range(threshold(metric, within)),
        (None, count) => Retrieval::TopK(count.unwrap_or(rows.max(1))),
    }
}

/// The value of the metric at a distance.
pub fn threshold(metric: Metric, within: f64) -> f64 {
    if metric.higher_is_closer() { 1.0 - within } else { within }
}

/// What is asked of an answer about so many rows.
pub fn asked_of(metric: Metric, wanted: &Wanted, rows: usize) -> Retrieval {
    match (wanted.within, wanted.count) {
        (Some(within), Some(1)) => Retrieval::Closest(threshold(metric, within)),
        (within, count) => retrieval(metric, count, within, rows),
    }
}
