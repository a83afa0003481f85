//! Routing as of the state that the owner holds: which segment is which cluster, and where these lie.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ciphervec_owner::SegmentId;

use crate::clusters::table::RoutingTable;

/// Empty where nothing is clustered.
#[derive(Default)]
pub struct OpenedRouting {
    pub table: Option<RoutingTable>,
    /// What the next commit makes of it, beside rows that go.
    pub next: Option<RoutingTable>,
    clusters: HashMap<SegmentId, usize>,
    staged: BTreeSet<SegmentId>,
    /// By their digest.
    pub centroids: Option<([u8; 32], Arc<[f32]>)>,
}

impl OpenedRouting {
    /// Goes on with a table, which a commit has put into force.
    pub fn take(&mut self, table: RoutingTable) {
        (self.clusters, self.staged) = (table.clusters(), table.staged());
        self.table = Some(table);
    }

    /// Segments that were made to become clusters and don't count yet.
    pub fn staged(&self) -> &BTreeSet<SegmentId> {
        &self.staged
    }

    /// Which cluster a segment is; none for one that is unrouted.
    pub fn cluster_of(&self, id: SegmentId) -> Option<usize> {
        self.clusters.get(&id).copied()
    }

    /// The clusters of which no row counts any more, where `found` of the clusters are all the others; else none. What is read of all
    /// others is read of these too: the store is not to see which they are.
    pub fn emptied(&self, found: usize) -> Vec<SegmentId> {
        let Some(RoutingTable { active: Some(active), dead, .. }) = &self.table else {
            return Vec::new();
        };
        let gone = |number: usize| dead.get(&(number as u32)).map_or(0, BTreeSet::len);
        let is_empty = |number: &usize| active.live[*number] as usize <= gone(*number);
        let emptied: Vec<_> =
            active.made().filter(is_empty).map(|number| active.segments[number]).collect();
        if found + emptied.len() == active.count() { emptied } else { Vec::new() }
    }

    /// Rows that don't count though the store knows nothing of it.
    pub fn hidden(&self, id: SegmentId) -> Vec<u32> {
        match (self.cluster_of(id), &self.table) {
            (Some(cluster), Some(table)) => table.hidden(cluster),
            _ => Vec::new(),
        }
    }

    /// The table that a commit in which these rows of clusters go makes of this one, if it changes.
    pub fn following(&mut self, gone: BTreeMap<SegmentId, Vec<u32>>) -> Option<RoutingTable> {
        let table = self.next.take();
        if gone.is_empty() {
            return table;
        }
        let rows = gone.into_iter().filter_map(|(id, rows)| Some((self.cluster_of(id)?, rows)));
        Some(table.or_else(|| self.table.clone())?.with_dead(rows))
    }
}
