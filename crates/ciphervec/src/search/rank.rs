//! Ranking: scores enter; the closest rows, or all within a threshold, leave. Owner only.

use super::directory::{Entry, Selection};
use crate::index::metric::Metric;
use crate::protect::id::Id;
use ciphervec_he::lattice::SegmentId;

/// What the owner wants to know: top-k or range search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Retrieval {
    /// The `k` closest records.
    TopK(usize),
    /// Every record whose value is at least (cosine, inner product) or at most (l2, hamming) this.
    Range(f64),
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
    /// The metric's value, computed from the rounded cosine.
    pub value: f64,
}

/// One row that may become a hit. `key` orders: smaller is closer.
#[derive(Clone, Copy)]
struct Candidate {
    key: f64,
    cosine: f64,
    entry: u32,
    row: u32,
}

/// Collects candidates of one query over all segments.
pub(super) struct Ranking<'a> {
    metric: Metric,
    retrieval: Retrieval,
    step: f64,
    query_norm: f64,
    entries: &'a [Entry],
    kept: Vec<Candidate>,
    /// Nothing beyond this can still be a hit.
    limit: f64,
}

impl<'a> Ranking<'a> {
    /// `step` is what cosines are rounded to on their way out.
    pub fn new(
        metric: Metric,
        retrieval: Retrieval,
        step: f64,
        query_norm: f64,
        entries: &'a [Entry],
    ) -> Self {
        Ranking {
            metric,
            retrieval,
            step,
            query_norm,
            entries,
            kept: Vec::new(),
            limit: f64::INFINITY,
        }
    }

    /// Looks at the cosines of one segment, in full precision.
    pub fn visit(
        &mut self,
        index: usize,
        cosines: &[f64],
        matching: Option<&[bool]>,
        selection: Option<&Selection>,
    ) {
        let entry = &self.entries[index];
        for (row, &cosine) in cosines.iter().enumerate() {
            let key = match self.retrieval {
                // Whole bits tie too often to rank by: the cosine still knows better, or equally well.
                Retrieval::TopK(_) if self.metric.compares_signs() => -cosine,
                Retrieval::TopK(_) => {
                    self.sign(self.metric.value(cosine, entry.norm(row), self.query_norm))
                }
                // A threshold compares what is reported, so that no answer depends on digits that are not shown.
                Retrieval::Range(_) => self.sign(self.value(cosine, entry.norm(row))),
            };
            let beyond = match self.retrieval {
                Retrieval::TopK(_) => key >= self.limit,
                Retrieval::Range(threshold) => key > self.sign(threshold),
            };
            if beyond
                || entry.deleted[row]
                || matching.is_some_and(|matching| !matching[row])
                || selection.is_some_and(|selection| !selection.allows(entry.id, row))
            {
                continue;
            }
            self.kept.push(Candidate { key, cosine, entry: index as u32, row: row as u32 });
            if let Retrieval::TopK(k) = self.retrieval
                && self.kept.len() >= 2 * k.max(16)
            {
                self.prune(k);
            }
        }
    }

    /// Smaller is closer.
    fn sign(&self, value: f64) -> f64 {
        if self.metric.higher_is_closer() { -value } else { value }
    }

    /// What is reported: the metric of the rounded cosine.
    fn value(&self, cosine: f64, norm: f64) -> f64 {
        let rounded =
            if self.step == 0.0 { cosine } else { (cosine / self.step).round() * self.step };
        // Sign vectors all have the norm √d, which their sidecar need not say.
        let norm = if self.metric.compares_signs() { self.query_norm } else { norm };
        self.metric.value(rounded, norm, self.query_norm)
    }

    fn prune(&mut self, k: usize) {
        if k == 0 {
            self.kept.clear();
            self.limit = f64::NEG_INFINITY;
        } else if self.kept.len() > k {
            self.kept.select_nth_unstable_by(k - 1, |a, b| a.key.total_cmp(&b.key));
            self.kept.truncate(k);
            self.limit =
                self.kept.iter().fold(f64::NEG_INFINITY, |limit, kept| limit.max(kept.key));
        }
    }

    /// The hits, closest first; ties in the order of segments and rows.
    pub fn finish(mut self) -> Vec<Hit> {
        if let Retrieval::TopK(k) = self.retrieval {
            self.prune(k);
        }
        self.kept
            .sort_by(|a, b| a.key.total_cmp(&b.key).then((a.entry, a.row).cmp(&(b.entry, b.row))));
        let hits = self.kept.iter().map(|kept| {
            let entry = &self.entries[kept.entry as usize];
            let row = kept.row as usize;
            let value = self.value(kept.cosine, entry.norm(row));
            Hit { id: entry.sidecar.ids[row].clone(), segment: entry.id, row: kept.row, value }
        });
        hits.collect()
    }
}
