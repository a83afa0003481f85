//! Writing: rows to write and ids to delete, one commit each.

use std::collections::HashMap;

use ciphervec_owner::search::{Expected, Owner};
use ciphervec_owner::{Id, SegmentId};

use crate::change::{Change, NewSegment, ROWS, SIDECAR};
use crate::error::Result;
use crate::host::{Host, Progress};
use crate::replica::Replica;
use crate::replica::batch::Batch;
use crate::threads::heavy;

impl Replica {
    /// Seals `batch`, and in the same commit drops the rows of the ids in `replaced`. Small segments before it are sealed again together
    /// with it.
    pub async fn write(
        &mut self,
        host: &dyn Host,
        batch: &mut Batch,
        replaced: &[Id],
    ) -> Result<()> {
        let total = batch.ids.len();
        if total == 0 {
            return Ok(());
        }
        let expected = total + self.directory.len() - replaced.len();
        let seals = |done| {
            host.progress(Progress {
                phase: "seal",
                done: done as u64,
                total: Some(total as u64),
                ms: None,
            })
        };
        let taken = match batch.alone || !batch.sealed.is_empty() {
            true => Vec::new(),
            false => self.mergeable(host, &batch.rows).await?,
        };
        let mut change = Change::default();
        if taken.is_empty() {
            if batch.sealed.is_empty() {
                let step = self.segment_rows();
                let center = self.center_for(&batch.rows);
                for start in (0..total).step_by(step) {
                    let stop = total.min(start + step);
                    let part = batch.part(start, stop, self.description.spec.dimension());
                    batch.sealed.push(self.seal(&part, expected, &center)?);
                    seals(stop);
                    host.check()?;
                }
            }
            change.add.clone_from(&batch.sealed);
        } else {
            batch.alone = true; // if others are first, the next attempt touches nothing of theirs
            let whole = self.joined(host, &taken, batch, replaced).await?;
            change.remove = taken.iter().map(|one| one.id).collect();
            change.add.push(self.seal(&whole, expected, &self.center_for(&whole.rows))?);
            seals(total);
        }
        self.drop_rows(&mut change, replaced)?;
        self.commit(host, change, replaced).await
    }

    /// Drops the rows of these ids.
    pub async fn remove(&mut self, host: &dyn Host, ids: &[Id]) -> Result<()> {
        let mut change = Change::default();
        self.drop_rows(&mut change, ids)?;
        self.commit(host, change, ids).await
    }

    pub(super) fn seal(
        &self,
        batch: &Batch,
        expected: usize,
        center: &[f32],
    ) -> Result<NewSegment> {
        self.seal_under(&self.owner, batch, expected, center)
    }

    /// The same under other keys.
    pub(super) fn seal_under(
        &self,
        owner: &Owner,
        batch: &Batch,
        expected: usize,
        center: &[f32],
    ) -> Result<NewSegment> {
        let expected = Expected { rows: expected, network: self.description.network };
        let sealed = heavy(|| owner.seal_around(&batch.rows, &batch.ids, &expected, center))?;
        let mut blobs = self.seal_beside(owner, sealed.id, batch)?;
        blobs.insert(ROWS, sealed.segment.to_vec().into());
        blobs.insert(SIDECAR, sealed.sidecar.into());
        Ok(NewSegment { id: sealed.id, rows: sealed.rows, blobs, deleted: Vec::new() })
    }

    /// Adds the deletion of these ids to `change`, and that of rows whose id another segment has taken over: they would come back when
    /// the later row goes. A segment left without rows is removed altogether.
    pub(super) fn drop_rows(&self, change: &mut Change, ids: &[Id]) -> Result<()> {
        let mut dropped: HashMap<SegmentId, Vec<u32>> = HashMap::new();
        for (segment, row) in self.view().places(ids)?.into_iter().chain(self.directory.shadowed())
        {
            dropped.entry(segment).or_default().push(row);
        }
        let listing = self.store.listing();
        for (id, one) in &listing.segments {
            let Some(mut gone) = dropped.remove(id).filter(|_| !change.remove.contains(id)) else {
                continue;
            };
            if self.routing.cluster_of(*id).is_some() {
                gone.sort_unstable();
                change.hide_rows.insert(*id, gone); // the server would learn which cluster they are of
            } else if gone.len() + one.deleted.len() == one.rows as usize {
                change.remove.push(*id);
            } else {
                gone.sort_unstable();
                change.delete_rows.insert(*id, gone);
            }
        }
        Ok(())
    }
}
