//! Routed questions: which segments a question names, and asking about these.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::SegmentId;
use ciphervec_owner::search::{Fold, Opened, Selection};

use crate::change::{ROUTING, StoredSegment};
use crate::clusters::table::{RoutingTable, SLOTS, open_centroids};
use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::asking::{Message, Under, fetched, open, query_epoch, sealed};
use crate::replica::clustering::{Space, squared};
use crate::replica::opened_routing::OpenedRouting;
use crate::sorting::ordered;
use crate::sorting::sort_by;

/// Attempts at a question about clusters, where segments come faster than they are asked about.
const ROUTED: usize = 3;

/// The segments that a question is about.
pub struct Named {
    /// In a random order.
    pub segments: Vec<SegmentId>,
    /// Beside these all clusters, by id, and those that the server is to answer about without learning which.
    pub folded: Option<(Vec<SegmentId>, Vec<SegmentId>)>,
}

impl Replica {
    /// Reads the table that goes with the state, in place of what was here.
    pub async fn open_routing(&mut self, host: &dyn Host) -> Result<()> {
        self.routing = OpenedRouting::default();
        let state = self.states.present.as_ref().map(|signed| signed.record.routing);
        if state.is_none_or(|routing| routing == [0; 32]) {
            return Ok(());
        }
        let sealed = self.store.attachment(host, ROUTING).await?;
        self.states.check_attachment(ROUTING, blake3::hash(&sealed).as_bytes())?;
        self.routing.take(RoutingTable::open(&self.owner, &sealed)?);
        Ok(())
    }

    /// Those of the committed segments that are neither clusters nor to become some: all of them, where nothing is clustered.
    pub fn fresh(&self) -> Vec<Arc<StoredSegment>> {
        let mut entries = self.entries();
        let routed =
            |id| self.routing.cluster_of(id).is_some() || self.routing.staged().contains(&id);
        entries.retain(|one| !routed(one.id));
        entries
    }

    /// The segments that every question is about.
    pub fn unrouted(&self) -> Vec<SegmentId> {
        let fresh = self.fresh().into_iter().map(|one| one.id);
        fresh.filter(|id| !self.reasons.contains_key(id)).collect()
    }

    /// The segments that a question names: the clusters that it and they choose, whatever rows a filter allows. The clusters of a
    /// tenant's rows would be what all questions about them have in common. Of an oblivious collection they are folded, or, if that is
    /// to be, answered about as a `whole`.
    pub async fn name_segments(
        &mut self,
        host: &dyn Host,
        question: &[f32],
        whole: bool,
    ) -> Result<Named> {
        let (mut found, mut folded) = (self.unrouted(), None);
        let centroids = self.centroids(host).await?;
        let active = self.routing.table.as_ref().and_then(|table| table.active.as_ref());
        if let Some(active) = active.filter(|_| self.is_oblivious() && whole) {
            found.extend(&active.segments);
        } else if let Some(active) = active {
            let space = Space { metric: self.description.spec.metric(), longest: active.longest };
            let far = squared(&space.questions(question), &centroids, active.width as usize);
            let near = ordered(active.count(), &|a, b| far[a].total_cmp(&far[b]));
            let near = active.name(&near).into_iter().map(|cluster| active.segments[cluster]);
            if self.is_oblivious() {
                let mut clusters = active.segments.clone();
                sort_by(&mut clusters, |a, b| a.0.cmp(&b.0));
                folded = Some((clusters, near.collect()));
            } else {
                found.extend(near);
            }
        }
        crate::random::Draws::new()?.shuffle(&mut found);
        Ok(Named { segments: found, folded })
    }

    /// The centroids of the clusters in use; none where there are none.
    pub(super) async fn centroids(&mut self, host: &dyn Host) -> Result<Arc<[f32]>> {
        let active = self.routing.table.as_ref().and_then(|table| table.active.as_ref());
        let Some(active) = active else { return Ok(Arc::from([])) };
        if let Some((digest, centroids)) = &self.routing.centroids
            && *digest == active.digest
        {
            return Ok(Arc::clone(centroids));
        }
        let sealed = self.store.attachment(host, SLOTS[usize::from(active.slot)]).await?;
        let centroids: Arc<[f32]> = open_centroids(&self.owner, &sealed, active)?.into();
        self.routing.centroids = Some((active.digest, Arc::clone(&centroids)));
        Ok(centroids)
    }

    /// Warns that rows which pass were not scanned, of a question that found fewer than it wanted.
    pub fn say_missed(&self, host: &dyn Host, named: &[SegmentId], allow: &Selection) {
        let asked: HashSet<_> = named.iter().collect();
        let (mut all, mut missed) = (0, 0);
        for (segment, rows) in allow.counts() {
            all += rows;
            missed += if asked.contains(&segment) { 0 } else { rows };
        }
        if missed > 0 {
            host.warn(&format!(
                "{missed} of the {all} rows that pass lie in clusters that this question doesn't scan. Filters and ids choose among the \
                 rows of the clusters near a question: clusters that a filter chose would show the server whose rows it is about. Keep \
                 rows that are always filtered to a few in a collection of their own, or don't route this one."
            ));
        }
    }
}

/// Asks one question about the segments that it names. [`Error::Conflict`] when rows go meanwhile.
pub async fn routed(
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
