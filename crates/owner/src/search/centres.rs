//! What was taken off the rows of each segment before they were sealed, for the owner.

use super::directory::SegmentDirectory;
use ciphervec_he_secret::lattice::SegmentId;

impl SegmentDirectory {
    /// What was taken off a segment's rows before they were sealed; empty where that is nothing, `None` if it is unknown.
    pub fn centre(&self, id: SegmentId) -> Option<&[f32]> {
        self.entry(id).map(|entry| entry.sidecar.centre.as_slice())
    }

    /// The centres of all segments with rows that count, each once; a query is around one of them.
    pub fn centres(&self) -> Vec<&[f32]> {
        let mut found: Vec<&[f32]> = Vec::new();
        for entry in self.entries() {
            let centre = entry.sidecar.centre.as_slice();
            if !found.contains(&centre)
                && !entry.deleted.iter().all(|gone| *gone)
                && !self.quarantined().contains(&entry.id)
            {
                found.push(centre);
            }
        }
        found
    }

    /// The centre that rows are sealed around: that of the latest of the owner's segments that has one. Empty where none has.
    pub fn centre_in_use(&self) -> &[f32] {
        let mut own = self.entries().iter().rev().filter(|entry| !entry.is_written());
        own.find(|entry| !entry.sidecar.centre.is_empty())
            .map_or(&[], |entry| entry.sidecar.centre.as_slice())
    }
}
