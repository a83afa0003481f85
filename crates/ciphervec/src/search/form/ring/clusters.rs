//! The clusters that a query wants folded, for servers: all of one shape, or none of them.

use crate::error::Result;
use crate::search::entry::{Chosen, SegmentEntry};
use crate::search::message::QueryHead;
use ciphervec_he::lattice::retrieval::ChoiceShape;
use ciphervec_he::wire::Reader;
use std::collections::HashMap;

/// The clusters that a query wants folded.
pub struct Clusters<'a> {
    pub shape: ChoiceShape,
    /// In the query's order; none where one of them is missing, which the asker finds out.
    pub entries: Vec<&'a SegmentEntry>,
}

impl<'a> Clusters<'a> {
    /// Those that a query names first, and the other segments that it is about.
    ///
    /// # Errors
    /// Clusters of several shapes.
    pub fn of(
        head: &QueryHead,
        body: &Reader<'_>,
        chosen: Vec<Chosen<'a>>,
    ) -> Result<(Option<Self>, Vec<Chosen<'a>>)> {
        let Some(shape) = head.fold else { return Ok((None, chosen)) };
        let places = head.clusters().iter().enumerate();
        let places: HashMap<[u8; 16], usize> = places.map(|(at, id)| (id.0, at)).collect();
        let place = |entry: &SegmentEntry| places.get(&entry.head.id.0).copied();
        let (clusters, others): (Vec<_>, Vec<_>) =
            chosen.into_iter().partition(|(entry, _)| place(entry).is_some());
        let mut entries: Vec<_> = clusters.into_iter().map(|(entry, _)| entry).collect();
        entries.sort_by_key(|entry| place(entry));
        let of = |entry: &SegmentEntry| (entry.head.rows, entry.head.level);
        if let Some([first, other]) = entries
            .windows(2)
            .find(|two| of(two[0]) != of(two[1]))
            .map(|two| [of(two[0]), of(two[1])])
        {
            let detail = format!(
                "clusters of {} rows at level {} expected, as the first, one of {} at level {} came",
                first.0, first.1, other.0, other.1
            );
            return Err(body.error(detail).into());
        }
        if entries.len() < shape.clusters() {
            entries.clear();
        }
        Ok((Some(Clusters { shape, entries }), others))
    }

    /// How many of them are answered about.
    pub fn answered(&self) -> usize {
        if self.entries.is_empty() { 0 } else { self.shape.probes() }
    }

    /// One of them, which all look like.
    pub fn first(&self) -> Option<&'a SegmentEntry> {
        self.entries.first().copied()
    }
}
