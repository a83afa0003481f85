//! Merging: rows of small segments that new rows are sealed together with, so that many small additions don't make as many segments.
//!
//! The segments before a new one are merged with it by size, eight to one; only those whose vectors were kept as they were put in, which
//! costs no precision; and only those at the end, so that rows keep their order.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec::Id;
use ciphervec::search::Origin;

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
    /// The segments to be sealed again together with so many new rows, oldest first.
    pub fn mergeable(&self, rows: usize) -> Vec<Arc<StoredSegment>> {
        if self.description.has_key_pair() || rows >= MERGE_ROWS {
            return Vec::new();
        }
        let passed_over: HashSet<_> =
            [self.directory.refused(), self.directory.quarantined(), &self.appended]
                .concat()
                .into_iter()
                .collect();
        let mut entries = self.fresh();
        entries.retain(|one| !passed_over.contains(&one.id));
        let suits = |one: &StoredSegment, size: usize| {
            one.live() < size
                && one.has(ORIGINALS)
                && !one.has(WRAP)
                && matches!(self.directory.origin(one.id), Some(Origin::Owner))
        };
        let (mut first, mut total) = (entries.len(), rows);
        for size in SIZES {
            // Beyond what is merged already: segments of this size, which count, and smaller ones among these.
            let (mut at, mut of_size, mut smaller, mut count) = (first, 0, total, 0);
            while let Some(before) =
                at.checked_sub(1).map(|at| &entries[at]).filter(|one| suits(one, size))
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
        entries.split_off(first)
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
        Ok(Batch {
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
