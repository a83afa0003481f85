//! Scoring: the parts of an answer enter; they are checked, ranked by estimates and settled; hits leave. Owner only.

use super::directory::{Entry, SegmentDirectory, Selection};
use super::flood::Flood;
use super::form::{Estimates, Exactness, Opening};
use super::owner::Owner;
use super::query::Query;
use super::rank::{Hit, Ranking, Retrieval};
use crate::error::{Error, Result};
use ciphervec_he::lattice::SegmentId;
use std::time::Instant;

/// The widest error of any precision, many times over.
const SLACK: f64 = 0.01;

/// Where the owner spent its time, in seconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct OwnerTimings {
    /// Removing masks and decrypting.
    pub decrypt: f64,
    /// Selecting the hits.
    pub rank: f64,
}

/// What an answer says, one list of hits a query, closest first.
pub struct Opened {
    /// The hits.
    pub hits: Vec<Vec<Hit>>,
    /// Whether all of it depends on rows and queries alone: every segment that was ranked is
    /// [`super::Exactness::Exact`].
    pub exact: bool,
    /// Writers' segments that failed their check and were passed over.
    pub disqualified: Vec<SegmentId>,
    /// Where the time went.
    pub timings: OwnerTimings,
}

/// The part of an answer that belongs to one segment.
pub(super) struct Part<'a> {
    pub entry: usize,
    pub matching: Option<Vec<bool>>,
    pub answers: &'a [u8],
}

/// What was asked, and of whom.
pub(super) struct Asked<'a> {
    pub owner: &'a Owner,
    pub query: &'a Query,
    pub directory: &'a SegmentDirectory,
    pub retrieval: Retrieval,
    pub selection: Option<&'a Selection>,
    /// What is added before anything is ranked, for others to see.
    pub flood: Option<&'a Flood>,
}

/// The hits of every query.
///
/// A segment of a writer's that fails its check is left out: its writer had a say in what it is checked with. Another one
/// that does refuses the answer as a whole.
///
/// # Errors
/// [`Error::Tampered`], or [`Error::Mismatched`] if somebody else made the query; damaged answers.
pub(super) fn hits(asked: &Asked<'_>, opening: &dyn Opening, parts: &[Part<'_>]) -> Result<Opened> {
    let entries = asked.directory.entries();
    let mut timings = OwnerTimings::default();
    let mut disqualified: Vec<SegmentId> = Vec::new();
    loop {
        let left: Vec<&Part<'_>> =
            parts.iter().filter(|part| !disqualified.contains(&entries[part.entry].id)).collect();
        let mut failed = Vec::new();
        let mut rankings = rank(asked, opening, &left, &mut failed, &mut timings)?;
        if failed.is_empty() {
            settle(asked, opening, &left, &mut rankings, &mut failed, &mut timings)?;
        }
        if failed.is_empty() {
            let start = Instant::now();
            let ranked = |part: &&Part<'_>| entries[part.entry].deleted.contains(&false);
            let exact = left.iter().copied().filter(|part| ranked(part));
            let exact = { exact }.all(|part| entries[part.entry].exactness == Exactness::Exact);
            let hits = rankings.into_iter().map(Ranking::finish).collect();
            timings.rank += start.elapsed().as_secs_f64();
            return Ok(Opened { hits, exact, disqualified, timings });
        }
        let own = failed.iter().filter(|entry| !entry.is_written()).map(|entry| entry.id);
        let segments: Vec<SegmentId> = own.collect();
        if !segments.is_empty() {
            return Err(match asked.query.foreign {
                true => Error::Mismatched { segments },
                false => Error::Tampered { segments },
            });
        }
        disqualified.extend(failed.iter().map(|entry| entry.id));
    }
}

/// Ranks by estimates; segments that fail their check go to `failed`.
fn rank<'a>(
    asked: &Asked<'a>,
    opening: &dyn Opening,
    parts: &[&Part<'_>],
    failed: &mut Vec<&'a Entry>,
    timings: &mut OwnerTimings,
) -> Result<Vec<Ranking<'a>>> {
    let Asked { owner, query, directory, retrieval, selection, flood } = *asked;
    let (metric, step) = (owner.spec().metric(), owner.rounding());
    let ranking = |&norm: &f64| Ranking::new(metric, retrieval, step, norm, directory.entries());
    let mut rankings: Vec<Ranking<'a>> = query.norms.iter().map(ranking).collect();
    for part in parts {
        let entry = &directory.entries()[part.entry];
        let (start, mut ranked) = (Instant::now(), 0.0);
        let scored =
            opening.estimate(&entry.opened(owner), part.answers, &mut |index, estimates| {
                expect_cosines(query, entry, estimates)?;
                let start = Instant::now();
                let matching = part.matching.as_deref();
                let flooded = flood.map(|flood| {
                    // Two pieces of one segment would get the same noise.
                    assert_eq!(estimates.first, 0, "a form that is flooded opens segments whole");
                    flood.add(part.entry, index, estimates.cosines)
                });
                match &flooded {
                    Some(flooded) => {
                        let shown = Estimates::settled(flooded);
                        rankings[index].visit(part.entry, &shown, matching, selection);
                    }
                    None => rankings[index].visit(part.entry, estimates, matching, selection),
                }
                ranked += start.elapsed().as_secs_f64();
                Ok(())
            });
        refuse(scored, entry, failed)?;
        timings.decrypt += start.elapsed().as_secs_f64() - ranked;
        timings.rank += ranked;
    }
    rankings.iter_mut().for_each(Ranking::close);
    Ok(rankings)
}

/// Takes the noise off those that may be hits.
fn settle<'a>(
    asked: &Asked<'a>,
    opening: &dyn Opening,
    parts: &[&Part<'_>],
    rankings: &mut [Ranking<'_>],
    failed: &mut Vec<&'a Entry>,
    timings: &mut OwnerTimings,
) -> Result<()> {
    let start = Instant::now();
    for part in parts {
        let entry = &asked.directory.entries()[part.entry];
        let mut sums = Vec::new();
        for (query, ranking) in rankings.iter().enumerate() {
            sums.extend(ranking.unsettled(part.entry, query));
        }
        if sums.is_empty() {
            continue;
        }
        let settled = opening.settle(&entry.opened(asked.owner), &sums);
        if let Some(settled) = refuse(settled, entry, failed)? {
            let mut settled = settled.into_iter();
            for ranking in rankings.iter_mut() {
                ranking.settle(part.entry, &mut settled);
            }
        }
    }
    timings.decrypt += start.elapsed().as_secs_f64();
    Ok(())
}

/// A failed check goes to `failed`, other errors go on.
fn refuse<'a, T>(
    outcome: Result<T>,
    entry: &'a Entry,
    failed: &mut Vec<&'a Entry>,
) -> Result<Option<T>> {
    match outcome {
        Err(Error::Tampered { .. }) => {
            failed.push(entry);
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}

/// Refuses scores of live rows that no rows have. An answer to another query opens to uniform noise, of which in the compact
/// form one score in eight is beyond. Deleted rows may have been taken out, and then open to noise as well.
fn expect_cosines(query: &Query, entry: &Entry, estimates: &Estimates<'_>) -> Result<()> {
    let largest = match estimates.largest {
        Some(largest) => largest,
        None if query.foreign => 1.0 + SLACK,
        None => return Ok(()),
    };
    if -largest <= estimates.extent.0 && estimates.extent.1 <= largest {
        return Ok(());
    }
    let deleted = &entry.deleted[estimates.first..];
    let mut live = estimates.cosines.iter().zip(deleted).filter(|(_, deleted)| !**deleted);
    if live.all(|(cosine, _)| cosine.abs() <= largest) {
        return Ok(());
    }
    Err(Error::Tampered { segments: vec![entry.id] })
}
