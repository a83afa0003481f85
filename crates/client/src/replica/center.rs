//! What is taken off rows and queries of an `l2` collection before they are sealed. No distance changes, and errors, which grow with the
//! distance from zero, shrink.

use std::sync::Arc;

use ciphervec_owner::search::Selection;
use ciphervec_owner::{Metric, Mode, SegmentId};

use crate::belief::description::Description;
use crate::change::StoredSegment;
use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::spread::{FEWEST, chosen};

impl Replica {
    /// The collection's center: as it was given, or that of the latest segment that has one. Empty where there is none.
    pub fn center(&self) -> &[f32] {
        let given = &self.description.center;
        if given.is_empty() { self.directory.centre_in_use() } else { given }
    }

    /// The same for these rows, which choose one where they lie far from zero, or from the centers that there are.
    pub fn center_for(&self, rows: &[f32]) -> Vec<f32> {
        match self.chooses_center() {
            true => chosen(&self.description.spec, rows, self.center(), &self.directory.centres()),
            false => self.center().to_vec(),
        }
    }

    /// Whether these rows and the few there are tell a center, which each alone did not: the few are sealed again with them then.
    pub(super) async fn tells_center(
        &mut self,
        host: &dyn Host,
        entries: &[Arc<StoredSegment>],
        rows: &[f32],
    ) -> Result<bool> {
        let few = self.chooses_center() && self.directory.len() < FEWEST;
        if !few
            || entries.is_empty()
            || !self.center().is_empty()
            || !entries.iter().all(|one| self.suits(one, FEWEST))
        {
            return Ok(false);
        }
        let ids: Vec<_> = self.directory.records().map(|(id, ..)| id.clone()).collect();
        let there = self.read_vectors(host, &ids).await?.rows;
        Ok(!self.center_for(&[&there, rows].concat()).is_empty())
    }

    /// Whether rows choose what they are sealed around.
    pub fn chooses_center(&self) -> bool {
        let Description { spec, center, .. } = &*self.description;
        spec.metric() == Metric::L2 && spec.mode() != Mode::Open && center.is_empty()
    }

    /// The rows of the segments around this center, of those allowed.
    pub fn around(&self, center: &[f32], allow: Option<&Selection>) -> Selection {
        let here = |id: &SegmentId| self.directory.centre(*id).unwrap_or_default() == center;
        let segments = self.directory.segments().map(|(id, ..)| id).filter(here);
        let allowed = |id, row: &u32| allow.is_none_or(|allow| allow.allows(id, *row as usize));
        let rows = |id| self.live_rows(id).into_iter().filter(move |row| allowed(id, row));
        self.directory.choose(segments.map(|id| (id, rows(id))))
    }
}
