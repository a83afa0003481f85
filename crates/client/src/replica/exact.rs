//! Results for others in mode `sealed` without noise: where all vectors are here, or little to read, hits are chosen and ranked by the
//! vectors themselves.
//!
//! No sealed score has a part in it. Ids, order, distances and omissions are functions of rows and queries alone, and so is what is read.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::Metric;
use ciphervec_owner::search::Hit;

use crate::change::{ORIGINALS, StoredSegment};
use crate::error::Result;
use crate::host::Host;
use crate::matches::{Matches, ranked, threshold};
use crate::replica::Replica;
use crate::replica::asking::Question;
use crate::replica::fetch::Fetch;
use crate::replica::rows::select;
use crate::threads::heavy;

/// Bytes of vectors that are read for a query: beyond it scores are flooded.
const MOST: usize = 128 << 20;

impl Replica {
    /// What is asked, by the vectors as they were put in; `None` where scores have to be flooded instead.
    ///
    /// # Errors
    /// [`crate::Error::Quarantined`], and what reading gives rise to.
    pub async fn ranked_by_vectors(
        &mut self,
        host: &dyn Host,
        question: &Question,
        fetch: Fetch,
    ) -> Result<Option<Vec<Matches>>> {
        self.refresh(host).await?;
        if !self.has_all_vectors(host, fetch).await? {
            return Ok(None);
        }
        self.refuse_held(host, question.skip_quarantined, None).await?;
        let names = question.among.as_ref().map(|ids| {
            let here = ids.iter().filter(|id| self.directory.locate(id).is_some());
            here.cloned().collect::<HashSet<_>>().into_iter().collect()
        });
        let mut ids = select(self, host, names, question.filter.as_ref(), usize::MAX).await?;
        let held = self.directory.quarantined();
        ids.retain(|id| {
            self.directory.locate(id).is_some_and(|(segment, _)| !held.contains(&segment))
        });
        if self.store.fetching().is_some() {
            let mut entries = self.read_entries();
            entries.retain(|one| one.has(ORIGINALS));
            Arc::clone(&self.store).prefetch(host, &entries, ORIGINALS).await?;
        }
        let (metric, dimension) =
            (self.description.spec.metric(), self.description.spec.dimension());
        let threshold =
            question.within.map(|within| threshold(self.description.spec.metric(), within));
        let mut nearest = vec![Vec::new(); question.rows.len() / dimension];
        for (segment, places) in self.by_segment(&ids)? {
            let rows: Vec<_> = places.iter().map(|(_, row, id)| (*row, *id)).collect();
            let kept = self.originals(host, &segment, &rows).await?;
            let Some(vectors) = kept.into_iter().collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            heavy(|| {
                let queries = question.rows.chunks_exact(dimension);
                for (query, nearest) in queries.zip(&mut nearest) {
                    let hits = rows.iter().zip(&vectors).map(|(&(row, id), vector)| {
                        let value = value(metric, &vector.vector, query);
                        Hit { id: id.clone(), segment: segment.id, row, value }
                    });
                    nearest.extend(hits);
                    keep(metric, threshold, question.count, nearest);
                }
            });
        }
        let found = nearest.into_iter().map(|hits| ranked(metric, hits, None, true, true));
        Ok(Some(found.collect()))
    }

    /// Whether the vectors of all rows may be read for a query. It depends on no query.
    async fn has_all_vectors(&self, host: &dyn Host, fetch: Fetch) -> Result<bool> {
        let spec = &self.description.spec;
        let kept =
            |one: &Arc<StoredSegment>| one.may_have(ORIGINALS) && self.writer(one.id).is_none();
        let bytes = self.directory.len().saturating_mul(4 * spec.dimension());
        // Of a routed collection other rows would be found than its clusters have.
        let may = bytes <= MOST
            && spec.metric() != Metric::Hamming
            && self.description.routing.is_none()
            && self.read_entries().iter().all(kept);
        if !may || self.store.fetching().is_none() || self.holds(host, false, true).await? {
            return Ok(may);
        }
        let fetch = if fetch == Fetch::Auto { self.fetch } else { fetch };
        Ok(matches!(fetch, Fetch::Auto | Fetch::Collection) && self.is_little(false, true))
    }
}

/// Drops what is not asked for. Of equally close rows the first ids come first.
fn keep(metric: Metric, threshold: Option<f64>, count: Option<usize>, nearest: &mut Vec<Hit>) {
    let key = |value: f64| if metric.higher_is_closer() { -value } else { value };
    if let Some(threshold) = threshold {
        nearest.retain(|hit| key(hit.value) <= key(threshold));
    }
    nearest.sort_by(|a, b| key(a.value).total_cmp(&key(b.value)).then_with(|| a.id.cmp(&b.id)));
    nearest.truncate(count.unwrap_or(usize::MAX));
}

/// The metric's value: a function of both vectors alone, to the last bit.
fn value(metric: Metric, row: &[f32], query: &[f32]) -> f64 {
    let pairs = || row.iter().zip(query).map(|(x, y)| (f64::from(*x), f64::from(*y)));
    let dot = || pairs().map(|(x, y)| x * y).sum::<f64>();
    match metric {
        Metric::L2 => pairs().map(|(x, y)| (x - y) * (x - y)).sum(),
        Metric::InnerProduct | Metric::Hamming => dot(),
        Metric::Cosine => {
            let (own, other) =
                pairs().fold((0.0, 0.0), |(own, other), (x, y)| (own + x * x, other + y * y));
            (dot() / (own.sqrt() * other.sqrt())).clamp(-1.0, 1.0)
        }
    }
}
