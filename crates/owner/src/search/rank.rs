//! Ranks estimates, settles those that may be closest or within a threshold, and returns hits. Owner only.
//!
//! An estimate bounds a score from both sides. A row is dropped only when no value between the bounds could make it a hit,
//! so that what is returned depends on the settled scores alone.

use super::directory::Entry;
use super::form::{Estimates, ExactCosine, RowSum};
use crate::index::metric::Metric;
use crate::protect::id::Id;
use ciphervec_he_secret::lattice::SegmentId;
use core::ops::Range;

/// Rows that are looked at together.
const LOOK: usize = 64;
/// Rows that are settled at least for the closest one, see [`Retrieval::Closest`].
const EVEN: usize = 64;
/// What rounding in doubles is off by, many times over.
const MARGIN: f64 = 1e-9;

/// What the owner wants to know: top-k or range search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Retrieval {
    /// The `k` closest records.
    TopK(usize),
    /// Every record whose value is at least (cosine, inner product) or at most (l2, hamming) this.
    Range(f64),
    /// The closest record, if its value is at least (or at most) this. As many rows are settled however many are that
    /// near, for whoever times the answer: 64 of them. More only where the estimates leave more than that in doubt, whose
    /// number may show.
    Closest(f64),
}

/// One record found.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    /// The record.
    pub id: Id,
    /// The segment it lies in.
    pub segment: SegmentId,
    /// Its row there.
    pub row: u32,
    /// The metric's value, of an exact cosine, or of one that was rounded.
    pub value: f64,
}

/// One row that may become a hit. Its key, of which smaller is closer, is one between two bounds until it is settled.
#[derive(Clone, Copy)]
struct Candidate {
    closest: f64,
    farthest: f64,
    cosine: f64,
    /// What settling takes; then the integer that the cosine is.
    integer: i64,
    entry: u32,
    row: u32,
    /// Whether its cosine is exact, or is rounded on its way out.
    exact: bool,
    /// Whether it is to be settled.
    open: bool,
}

/// What a ranking was at some point.
pub(super) struct Checkpoint {
    kept: Vec<Candidate>,
    room: usize,
    limit: f64,
}

/// Collects candidates of one query over all segments.
pub(super) struct Ranking<'a> {
    metric: Metric,
    retrieval: Retrieval,
    step: f64,
    query_norm: f64,
    entries: &'a [Entry],
    kept: Vec<Candidate>,
    /// How many are kept before those are dropped that can't be hits.
    room: usize,
    /// Nothing beyond this can still be a hit, or is settled beside one.
    limit: f64,
    /// Whether those that are settled for the closest one were chosen, and none came since.
    chosen: bool,
}

impl<'a> Ranking<'a> {
    /// `step` is what cosines that are not exact are rounded to on their way out.
    pub fn new(
        metric: Metric,
        retrieval: Retrieval,
        step: f64,
        query_norm: f64,
        entries: &'a [Entry],
    ) -> Self {
        let mut ranking = Ranking {
            metric,
            retrieval,
            step,
            query_norm,
            entries,
            kept: Vec::new(),
            room: usize::MAX,
            limit: f64::INFINITY,
            chosen: false,
        };
        match retrieval {
            Retrieval::TopK(k) => ranking.room = k.max(16).saturating_mul(2),
            Retrieval::Closest(_) => ranking.room = 2 * EVEN,
            Retrieval::Range(threshold) => ranking.limit = ranking.sign(threshold),
        }
        ranking
    }

    /// Looks at estimates of one segment, of which only rows can be hits that all of `among` have.
    pub fn visit(&mut self, index: usize, estimates: &Estimates<'_>, among: [Option<&[bool]>; 2]) {
        if estimates.extent.1 < self.cut(estimates) {
            return;
        }
        for (start, cosines) in (0..).step_by(LOOK).zip(estimates.cosines.chunks(LOOK)) {
            let cut = self.cut(estimates);
            // Nearly all rows are far away, and nothing else is asked of them.
            if !cosines.iter().fold(false, |near, &cosine| near | (cosine >= cut)) {
                continue;
            }
            for (place, &cosine) in (start..).zip(cosines) {
                if cosine >= cut {
                    self.look(index, estimates, (place, cosine), among);
                }
            }
        }
    }

    /// No row of a smaller cosine can be a hit, whatever its norm.
    fn cut(&self, estimates: &Estimates<'_>) -> f64 {
        match self.metric {
            // A smaller value is reported as one that is smaller by up to half a step less.
            Metric::Cosine => -self.limit - estimates.slack - self.step - MARGIN,
            Metric::InnerProduct | Metric::L2 | Metric::Hamming => f64::NEG_INFINITY,
        }
    }

    /// Looks at the estimate of one row.
    fn look(
        &mut self,
        index: usize,
        estimates: &Estimates<'_>,
        (place, cosine): (usize, f64),
        among: [Option<&[bool]>; 2],
    ) {
        let entry = &self.entries[index];
        let exact = !estimates.sums.is_empty();
        let (row, slack) = (estimates.first + place, estimates.slack);
        let left_out = among.iter().flatten().any(|rows| rows.get(row) != Some(&true));
        if left_out || entry.deleted[row] {
            return;
        }
        let norm = entry.norm(row);
        let closest = self.key(cosine + slack, norm, exact);
        let beyond = match self.retrieval {
            // Of equally close rows the first ones stay, which settling may tell apart.
            Retrieval::TopK(_) if !exact => closest >= self.limit,
            _ => closest > self.limit,
        };
        if beyond {
            return;
        }
        let farthest = self.key(cosine - slack, norm, exact);
        let integer = if exact { estimates.sums[place] } else { 0 };
        let (entry, row) = (index as u32, row as u32);
        let open = exact;
        self.kept.push(Candidate { closest, farthest, cosine, integer, entry, row, exact, open });
        self.chosen = false;
        match self.retrieval {
            Retrieval::TopK(k) if self.kept.len() >= self.room => self.prune(k),
            Retrieval::Closest(_) if self.kept.len() >= self.room => self.choose(),
            _ => {}
        }
    }

    /// What rows are ordered by, and compared with a threshold.
    fn key(&self, cosine: f64, norm: f64, exact: bool) -> f64 {
        match self.retrieval {
            // Whole bits tie too often to rank by: the cosine still knows better, or equally well.
            Retrieval::TopK(_) | Retrieval::Closest(_) if self.metric.compares_signs() => -cosine,
            Retrieval::TopK(_) | Retrieval::Closest(_) => {
                self.sign(self.metric.value(cosine, norm, self.query_norm))
            }
            // A threshold compares what is reported, so that no answer depends on digits that are not shown.
            Retrieval::Range(_) => self.sign(self.value(cosine, norm, exact)),
        }
    }

    /// Smaller is closer.
    fn sign(&self, value: f64) -> f64 {
        if self.metric.higher_is_closer() { -value } else { value }
    }

    /// What is reported: the metric of the cosine, rounded where it is not exact.
    fn value(&self, cosine: f64, norm: f64, exact: bool) -> f64 {
        let cosine = if exact || self.step == 0.0 {
            cosine
        } else {
            (cosine / self.step).round() * self.step
        };
        // Sign vectors all have the norm √d, which their sidecar need not say.
        let norm = if self.metric.compares_signs() { self.query_norm } else { norm };
        self.metric.value(cosine, norm, self.query_norm)
    }

    /// Drops those that k others are closer than in any case.
    fn prune(&mut self, k: usize) {
        if k == 0 {
            self.kept.clear();
            self.limit = f64::NEG_INFINITY;
        } else if self.kept.len() > k {
            let (_, kth, _) =
                self.kept.select_nth_unstable_by(k - 1, |a, b| a.farthest.total_cmp(&b.farthest));
            self.limit = kth.farthest;
            self.kept.retain(|kept| kept.closest <= self.limit);
            self.room = 2 * self.kept.len().max(16);
        }
    }

    /// Keeps those that are settled for the closest one: all that may be it, and others next to them, so that their number says
    /// little.
    fn choose(&mut self) {
        self.kept.sort_unstable_by(|a, b| a.closest.total_cmp(&b.closest));
        let farthest = self.kept.iter().map(|kept| kept.farthest).fold(f64::INFINITY, f64::min);
        let possible = self.kept.partition_point(|kept| kept.closest <= farthest);
        self.kept.truncate(possible.next_power_of_two().max(EVEN));
        if self.kept.len() >= EVEN {
            self.limit = self.kept.last().map_or(farthest, |last| last.closest.max(farthest));
        }
        self.room = 2 * self.kept.len().max(EVEN);
        self.chosen = true;
    }

    /// What it is now, to come back to.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { kept: self.kept.clone(), room: self.room, limit: self.limit }
    }

    /// Forgets what was looked at since.
    pub fn back_to(&mut self, checkpoint: Checkpoint) {
        Checkpoint { kept: self.kept, room: self.room, limit: self.limit } = checkpoint;
        self.chosen = false;
    }

    /// What can't be a hit goes, the rest is ordered by segments.
    pub fn close(&mut self) {
        match self.retrieval {
            Retrieval::TopK(k) => self.prune(k),
            Retrieval::Closest(_) if !self.chosen => self.choose(),
            _ => {}
        }
        self.kept.sort_unstable_by_key(|kept| (kept.entry, kept.row));
    }

    fn of_segment(&self, index: usize) -> Range<usize> {
        let first = self.kept.partition_point(|kept| (kept.entry as usize) < index);
        first..self.kept.partition_point(|kept| kept.entry as usize <= index)
    }

    /// The estimates of a segment that are to be settled, of the query with this number.
    pub fn unsettled(&self, index: usize, query: usize) -> impl Iterator<Item = RowSum> {
        let kept = self.kept[self.of_segment(index)].iter().filter(|kept| kept.open);
        kept.map(move |kept| RowSum { query, row: kept.row, sum: kept.integer })
    }

    /// Takes in what [`Self::unsettled`] gave, settled and in that order.
    pub fn settle(&mut self, index: usize, settled: &mut impl Iterator<Item = ExactCosine>) {
        for at in self.of_segment(index) {
            let kept = self.kept[at];
            if !kept.open {
                continue;
            }
            let Some(ExactCosine { integer, cosine }) = settled.next() else { return };
            let norm = self.entries[index].norm(kept.row as usize);
            let key = self.key(cosine, norm, true);
            self.kept[at] =
                Candidate { closest: key, farthest: key, cosine, integer, open: false, ..kept };
        }
    }

    /// The hits, closest first; ties in the order of segments and rows.
    pub fn finish(mut self) -> Vec<Hit> {
        self.kept.retain(|kept| kept.closest <= self.limit);
        self.kept.sort_by(|a, b| {
            let integers = b.integer.cmp(&a.integer);
            let places = (a.entry, a.row).cmp(&(b.entry, b.row));
            a.closest.total_cmp(&b.closest).then(integers).then(places)
        });
        match self.retrieval {
            Retrieval::TopK(k) => self.kept.truncate(k),
            Retrieval::Closest(_) => self.kept.truncate(1),
            Retrieval::Range(_) => {}
        }
        let hits = self.kept.iter().map(|kept| {
            let entry = &self.entries[kept.entry as usize];
            let row = kept.row as usize;
            let value = self.value(kept.cosine, entry.norm(row), kept.exact);
            Hit { id: entry.sidecar.ids[row].clone(), segment: entry.id, row: kept.row, value }
        });
        let near = |hit: &Hit| match self.retrieval {
            Retrieval::Closest(threshold) => self.sign(hit.value) <= self.sign(threshold),
            Retrieval::TopK(_) | Retrieval::Range(_) => true,
        };
        hits.filter(near).collect()
    }
}
