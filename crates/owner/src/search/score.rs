//! Scores the parts of an answer as they come: checks them, ranks estimates and settles them to hits. Owner only.

use super::directory::{Entry, SegmentDirectory};
use super::flood::Flood;
use super::form::{AnswerPart, Estimates, Exactness, Opening};
use super::owner::Owner;
use super::query::Query;
use super::rank::{Checkpoint, Hit, Ranking, Retrieval};
use super::selection::Selection;
use super::stopwatch::Stopwatch;
use crate::error::{Error, Result};
use ciphervec_he_secret::lattice::SegmentId;

/// The widest error of any precision, many times over.
const SLACK: f64 = 0.01;

/// Where the owner spent its time, in seconds, and on how many rows.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct OwnerTimings {
    /// Removing masks and decrypting.
    pub decrypt: f64,
    /// Selecting the hits.
    pub rank: f64,
    /// Rows whose noise was taken off, of all queries together: what takes time by the number of hits.
    pub settled: usize,
}

/// What an answer says, one list of hits a query, closest first.
pub struct Opened {
    /// The hits.
    pub hits: Vec<Vec<Hit>>,
    /// Whether all of it depends on rows and queries alone: every segment that was ranked is
    /// [`super::Exactness::Exact`].
    pub exact: bool,
    /// Whether every block that was ranked was checked: what its rows and the query give is what came.
    pub checked: bool,
    /// Writers' segments that failed their check and were passed over.
    pub disqualified: Vec<SegmentId>,
    /// Where the time went.
    pub timings: OwnerTimings,
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

/// The hits of every query, as far as segments have come.
///
/// A segment of a writer's that fails its check is left out, and what it brought is forgotten: its writer had a say in what it is
/// checked with. Another one that does refuses the answer as a whole. Either is found once all of the segment has come, after the
/// same work as without: when that ends must not tell more than whether.
pub(super) struct Scoring<'a> {
    asked: Asked<'a>,
    opening: Box<dyn Opening + 'a>,
    rankings: Vec<Ranking<'a>>,
    /// What the rankings were before the segment that comes now, if that is a writer's.
    before: Vec<Checkpoint>,
    exact: bool,
    checked: bool,
    disqualified: Vec<SegmentId>,
    failed: Vec<SegmentId>,
    /// The segment that comes now, if its check has failed.
    out: Option<usize>,
    timings: OwnerTimings,
}

impl<'a> Scoring<'a> {
    pub fn new(asked: Asked<'a>, opening: Box<dyn Opening + 'a>) -> Self {
        let Asked { owner, query, directory, retrieval, .. } = asked;
        let (metric, step) = (owner.spec().metric(), owner.rounding());
        let ranking =
            |&norm: &f64| Ranking::new(metric, retrieval, step, norm, directory.entries());
        Scoring {
            rankings: query.norms.iter().map(ranking).collect(),
            asked,
            opening,
            before: Vec::new(),
            exact: true,
            checked: true,
            disqualified: Vec::new(),
            failed: Vec::new(),
            out: None,
            timings: OwnerTimings::default(),
        }
    }

    fn entry(&self, index: usize) -> &'a Entry {
        &self.asked.directory.entries()[index]
    }

    /// Whether no row of a segment can be a hit: each is deleted, or left out by the caller's selection.
    pub fn leaves_out(&self, entry: &Entry) -> bool {
        let Some(selection) = self.asked.selection else { return !entry.deleted.contains(&false) };
        let mut rows = entry.deleted.iter().zip(selection.of(entry.id));
        !rows.any(|(gone, chosen)| *chosen && !gone)
    }

    /// A segment comes, part by part; of it the rows of `matching`, where there is a filter.
    pub fn begin(&mut self, index: usize, matching: Option<&[bool]>) {
        let entry = self.entry(index);
        self.before.clear();
        if entry.is_written() {
            self.before = self.rankings.iter().map(Ranking::checkpoint).collect();
        }
        let chosen = self.asked.query.matching.get().map(|rows| rows.get(&entry.id));
        let other = matching.zip(chosen).is_some_and(|(matching, chosen)| {
            let rows = matching.iter().zip(entry.deleted.iter()).enumerate();
            let differs = |(row, (came, gone)): (usize, (&bool, &bool))| {
                !gone && *came != chosen.is_some_and(|chosen| chosen.get(row) == Some(&true))
            };
            rows.fold(false, |differ, row| differ | differs(row))
        });
        self.out = other.then_some(index);
    }

    /// Ranks a part of its answers by estimates.
    ///
    /// # Errors
    /// Damaged answers.
    pub fn part(
        &mut self,
        index: usize,
        part: &AnswerPart<'_>,
        matching: Option<&[bool]>,
    ) -> Result<()> {
        let Asked { owner, query, directory, selection, flood, .. } = self.asked;
        let entry = self.entry(index);
        let (start, mut ranked, mut cosines) = (Stopwatch::start(), 0.0, true);
        let rankings = &mut self.rankings;
        let chosen = selection.map(|selection| selection.of(entry.id));
        let among = [matching, chosen];
        let opened = entry.opened(owner, directory, part.folded);
        let scored = self.opening.estimate(&opened, part, &mut |of, estimates| {
            cosines &= are_cosines(query, entry, estimates);
            let start = Stopwatch::start();
            let flooded = flood.map(|flood| flood.add(estimates.cosines));
            match &flooded {
                Some(flooded) => {
                    let shown = Estimates { first: estimates.first, ..Estimates::settled(flooded) };
                    rankings[of].visit(index, &shown, among);
                }
                None => rankings[of].visit(index, estimates, among),
            }
            ranked += start.seconds();
            Ok(())
        });
        self.timings.decrypt += start.seconds() - ranked;
        self.timings.rank += ranked;
        self.note(index, scored)?;
        if !cosines {
            self.out = Some(index);
        }
        Ok(())
    }

    /// The segment has come; a writer's is settled here, while it can still be left out.
    ///
    /// # Errors
    /// Damaged answers.
    pub fn end(&mut self, index: usize) -> Result<()> {
        let entry = self.entry(index);
        if entry.is_written() {
            let settled = self.settle(index);
            self.note(index, settled)?;
        }
        if self.out.take().is_some() {
            if entry.is_written() {
                self.disqualified.push(entry.id);
                let before = std::mem::take(&mut self.before);
                for (ranking, before) in self.rankings.iter_mut().zip(before) {
                    ranking.back_to(before);
                }
            } else {
                self.failed.push(entry.id);
            }
            return Ok(());
        }
        let ranked = entry.deleted.contains(&false);
        let exact = !ranked || entry.exactness == Exactness::Exact;
        let checked = !ranked || entry.is_checked(self.asked.owner);
        self.exact &= exact;
        self.checked &= checked;
        Ok(())
    }

    /// Notes that a segment's check has failed.
    fn note(&mut self, index: usize, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::Tampered { .. }) => {
                self.out = Some(index);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Which segments have failed their check until now, of an answer that is no good anyway.
    pub fn failure(mut self) -> Option<Error> {
        self.failed.append(&mut self.disqualified);
        if let Some(index) = self.out {
            self.failed.push(self.entry(index).id);
        }
        let segments = self.failed;
        (!segments.is_empty()).then(|| refused(self.asked.query, segments))
    }

    /// Takes the noise off those of a segment that may be hits.
    fn settle(&mut self, index: usize) -> Result<()> {
        let start = Stopwatch::start();
        self.rankings.iter_mut().for_each(Ranking::close);
        let mut sums = Vec::new();
        for (query, ranking) in self.rankings.iter().enumerate() {
            sums.extend(ranking.unsettled(index, query));
        }
        if sums.is_empty() {
            return Ok(());
        }
        self.timings.settled += sums.len();
        let (entry, Asked { owner, directory, .. }) = (self.entry(index), &self.asked);
        let settled = self.opening.settle(&entry.opened(owner, directory, false), &sums)?;
        let mut settled = settled.into_iter();
        for ranking in &mut self.rankings {
            ranking.settle(index, &mut settled);
        }
        self.timings.decrypt += start.seconds();
        Ok(())
    }

    /// The hits, once every segment has come.
    ///
    /// # Errors
    /// [`Error::Tampered`], or [`Error::Mismatched`] if somebody else made the query.
    pub fn finish(mut self) -> Result<Opened> {
        for index in 0..self.asked.directory.entries().len() {
            let settled = self.settle(index);
            self.note(index, settled)?;
            if self.out.take().is_some() {
                self.failed.push(self.entry(index).id);
            }
        }
        if !self.failed.is_empty() {
            let segments = self.failed;
            return Err(refused(self.asked.query, segments));
        }
        let start = Stopwatch::start();
        let hits = self.rankings.into_iter().map(Ranking::finish).collect();
        let mut timings = self.timings;
        timings.rank += start.seconds();
        let Scoring { exact, checked, disqualified, .. } = self;
        Ok(Opened { hits, exact, checked, disqualified, timings })
    }
}

fn refused(query: &Query, segments: Vec<SegmentId>) -> Error {
    match query.foreign {
        true => Error::Mismatched { segments },
        false => Error::Tampered { segments },
    }
}

/// Whether live rows can have such scores. An answer to another query opens to uniform noise, of which in the compact
/// form one score in eight is beyond. Deleted rows that a server of release 0.1 has taken out open to noise as well.
fn are_cosines(query: &Query, entry: &Entry, estimates: &Estimates<'_>) -> bool {
    let largest = match estimates.largest {
        Some(largest) => largest,
        None if query.foreign => 1.0 + SLACK,
        None => return true,
    };
    if -largest <= estimates.extent.0 && estimates.extent.1 <= largest {
        return true;
    }
    let deleted = &entry.deleted[estimates.first..];
    let mut live = estimates.cosines.iter().zip(deleted).filter(|(_, deleted)| !**deleted);
    live.all(|(cosine, _)| cosine.abs() <= largest)
}
