//! Merging: rows of small segments that new rows are sealed together with, so that many small additions don't make as many segments.
//!
//! The segments before a new one are merged with it by size, eight to one; only those whose vectors were kept as they were put in, which
//! costs no precision; and only those at the end, so that rows keep their order.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::search::Origin;
use ciphervec_owner::{Id, Metric};

use crate::change::{ORIGINALS, StoredSegment, WRAP};
use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::batch::Batch;

/// Rows that one addition seals again at most.
const MERGE_ROWS: usize = 4_096;
const FAN: usize = 8;
/// A segment of fewer rows than one of these is of its size.
const SIZES: [usize; 4] = [8, 64, 512, 4_096];

impl Replica {
    /// The segments to be sealed again together with these new rows, oldest first.
    pub async fn mergeable(
        &mut self,
        host: &dyn Host,
        vectors: &[f32],
    ) -> Result<Vec<Arc<StoredSegment>>> {
        let rows = vectors.len() / self.description.spec.dimension();
        if self.description.has_key_pair() || rows >= MERGE_ROWS {
            return Ok(Vec::new());
        }
        let passed_over: HashSet<_> =
            [self.directory.refused(), self.directory.quarantined(), &self.appended]
                .concat()
                .into_iter()
                .collect();
        let mut entries = self.fresh();
        entries.retain(|one| !passed_over.contains(&one.id));
        if self.tells_center(host, &entries, vectors).await? {
            return Ok(entries);
        }
        if self.description.spec.metric() == Metric::L2 {
            let center = self.center_for(vectors);
            let around = |one: &Arc<StoredSegment>| {
                self.directory.centre(one.id).unwrap_or_default() == center
            };
            let apart = entries.iter().rposition(|one| !around(one));
            entries.drain(..apart.map_or(0, |at| at + 1));
        }
        let (mut first, mut total) = (entries.len(), rows);
        for size in SIZES {
            // Beyond what is merged already: segments of this size, which count, and smaller ones among these.
            let (mut at, mut of_size, mut smaller, mut count) = (first, 0, total, 0);
            while let Some(before) =
                at.checked_sub(1).map(|at| &entries[at]).filter(|one| self.suits(one, size))
            {
                let here = before.live();
                if of_size + smaller + here > MERGE_ROWS {
                    break;
                }
                at -= 1;
                if here * FAN < size {
                    smaller += here;
                } else {
                    of_size += here;
                    count += 1;
                }
            }
            if count + usize::from(smaller * FAN >= size) >= FAN {
                (first, total) = (at, of_size + smaller);
            }
        }
        Ok(entries.split_off(first))
    }

    /// How many segments are small enough to be merged.
    pub fn small(&self) -> usize {
        self.fresh().iter().filter(|one| self.suits(one, MERGE_ROWS)).count()
    }

    pub(super) fn suits(&self, one: &StoredSegment, size: usize) -> bool {
        one.live() < size
            && one.has(ORIGINALS)
            && !one.has(WRAP)
            && matches!(self.directory.origin(one.id), Some(Origin::Owner))
    }

    /// The rows of these segments, but for those replaced, and then those of the batch.
    pub async fn joined(
        &mut self,
        host: &dyn Host,
        taken: &[Arc<StoredSegment>],
        batch: &Batch,
        replaced: &[Id],
    ) -> Result<Batch> {
        let gone: HashSet<_> = replaced.iter().collect();
        let names = taken
            .iter()
            .flat_map(|one| self.directory.names(one.id).into_iter().flatten().flatten());
        let mut ids: Vec<_> = names.filter(|id| !gone.contains(id)).cloned().collect();
        let vectors = self.read_vectors(host, &ids).await?;
        let records = self.read_records(host, &ids).await?;
        let mut original = vectors.original;
        original.extend(batch.original.clone().unwrap_or_else(|| vec![true; batch.ids.len()]));
        ids.extend_from_slice(&batch.ids);
        let matrices = vectors.matrices.into_iter().chain(batch.matrices.iter().cloned());
        Ok(Batch {
            matrices: matrices.collect(),
            rows: [vectors.rows, batch.rows.clone()].concat(),
            records: records
                .iter()
                .map(|one| one.to_vec())
                .chain(batch.records.iter().cloned())
                .collect(),
            original: Some(original),
            ids,
            ..Batch::default()
        })
    }
}
