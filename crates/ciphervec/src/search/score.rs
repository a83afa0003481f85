//! Scoring: the parts of an answer enter as they come; they are checked, ranked by estimates and settled; hits leave. Owner only.

use super::directory::{Entry, SegmentDirectory, Selection};
use super::flood::Flood;
use super::form::{AnswerPart, Estimates, Exactness, Opening};
use super::owner::Owner;
use super::query::Query;
use super::rank::{Checkpoint, Hit, Ranking, Retrieval};
use super::stopwatch::Stopwatch;
use crate::error::{Error, Result};
use ciphervec_he::lattice::SegmentId;

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
/// checked with. Another one that does refuses the answer as a whole.
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
            timings: OwnerTimings::default(),
        }
    }

    fn entry(&self, index: usize) -> &'a Entry {
        &self.asked.directory.entries()[index]
    }

    /// A segment comes, part by part.
    pub fn begin(&mut self, index: usize) {
        if self.entry(index).is_written() {
            self.before = self.rankings.iter().map(Ranking::checkpoint).collect();
        }
    }

    /// Ranks a part of its answers by estimates; whether the rest is wanted too.
    ///
    /// # Errors
    /// Damaged answers.
    pub fn part(
        &mut self,
        index: usize,
        part: &AnswerPart<'_>,
        matching: Option<&[bool]>,
    ) -> Result<bool> {
        let Asked { owner, query, directory, selection, flood, .. } = self.asked;
        let entry = self.entry(index);
        let (start, mut ranked) = (Stopwatch::start(), 0.0);
        let rankings = &mut self.rankings;
        let opened = entry.opened(owner, directory);
        let scored = self.opening.estimate(&opened, part, &mut |of, estimates| {
            expect_cosines(query, entry, estimates)?;
            let start = Stopwatch::start();
            let flooded = flood.map(|flood| flood.add(estimates.cosines));
            match &flooded {
                Some(flooded) => {
                    let shown = Estimates { first: estimates.first, ..Estimates::settled(flooded) };
                    rankings[of].visit(index, &shown, matching, selection);
                }
                None => rankings[of].visit(index, estimates, matching, selection),
            }
            ranked += start.seconds();
            Ok(())
        });
        self.timings.decrypt += start.seconds() - ranked;
        self.timings.rank += ranked;
        self.keeps(index, scored)
    }

    /// The segment has come; a writer's is settled here, while it can still be left out.
    ///
    /// # Errors
    /// Damaged answers.
    pub fn end(&mut self, index: usize) -> Result<()> {
        let entry = self.entry(index);
        if entry.is_written() {
            let settled = self.settle(index);
            if !self.keeps(index, settled)? {
                return Ok(());
            }
            self.before.clear();
        }
        let ranked = entry.deleted.contains(&false);
        let exact = !ranked || entry.exactness == Exactness::Exact;
        let checked = !ranked || entry.is_checked(self.asked.owner);
        self.exact &= exact;
        self.checked &= checked;
        Ok(())
    }

    /// Whether a segment stays in: not if its check has failed.
    fn keeps(&mut self, index: usize, outcome: Result<()>) -> Result<bool> {
        let entry = self.entry(index);
        match outcome {
            Ok(()) => Ok(true),
            Err(Error::Tampered { .. }) if entry.is_written() => {
                self.disqualified.push(entry.id);
                let before = std::mem::take(&mut self.before);
                for (ranking, before) in self.rankings.iter_mut().zip(before) {
                    ranking.back_to(before);
                }
                Ok(false)
            }
            Err(Error::Tampered { .. }) => {
                self.failed.push(entry.id);
                Ok(false)
            }
            Err(error) => Err(error),
        }
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
        let settled = self.opening.settle(&entry.opened(owner, directory), &sums)?;
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
            if !self.failed.is_empty() {
                break;
            }
            let settled = self.settle(index);
            self.keeps(index, settled)?;
        }
        if !self.failed.is_empty() {
            let segments = self.failed;
            return Err(match self.asked.query.foreign {
                true => Error::Mismatched { segments },
                false => Error::Tampered { segments },
            });
        }
        let start = Stopwatch::start();
        let hits = self.rankings.into_iter().map(Ranking::finish).collect();
        let mut timings = self.timings;
        timings.rank += start.seconds();
        let Scoring { exact, checked, disqualified, .. } = self;
        Ok(Opened { hits, exact, checked, disqualified, timings })
    }
}

/// Refuses scores of live rows that no rows have. An answer to another query opens to uniform noise, of which in the compact
/// form one score in eight is beyond. Deleted rows that a server of release 0.1 has taken out open to noise as well.
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
