//! What is taken off rows and queries of an `l2` collection before they are sealed. No distance changes, and errors, which grow with the
//! distance from zero, shrink.

use std::sync::Arc;

use crate::belief::description::Description;
use crate::change::StoredSegment;
use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::view::spread::{FEWEST, centred};

impl Replica {
    /// The collection's center: as it was given, or that of the latest segment that has one. Empty where there is none.
    pub fn center(&self) -> &[f32] {
        self.view().center(&self.description.center)
    }

    /// The same for these rows, which choose one where they lie far from zero, or from the centers that there are.
    pub fn center_for(&self, rows: &[f32]) -> Vec<f32> {
        self.view().center_for(&self.description.center, rows)
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
        centred(spec) && center.is_empty()
    }
}
