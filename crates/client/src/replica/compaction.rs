//! Compaction: worn segments and those of writers become full ones of the owner's, a commit each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ciphervec_owner::search::{Exactness, Expected};
use ciphervec_owner::{Id, KeyId, SegmentId};
use indexmap::IndexMap;

use crate::change::{Change, NewSegment, ORIGINALS, RECORDS, ROWS, StoredSegment, WRAP};
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::{Host, Progress};
use crate::replica::batch::Batch;
use crate::replica::{LONG_ROWS, Replica, SEGMENT_ROWS};
use crate::view::spread::{moved, suits};

/// Segments, and rows of each, whose mean is looked at.
const SEGMENTS: usize = 16;
const ROWS_OF_EACH: usize = 256;
/// Segments whose small blobs are fetched together.
const AHEAD: usize = 1024;

/// The ids of a segment's rows; none where a row does not count.
type Names = Vec<Option<Id>>;

/// The segment that was made of some others. A commit that met another one is sent again with it, and what was deleted since is deleted
/// in it as well, so that others who change rows can't outrun a merge.
#[derive(Default)]
pub struct Resealed {
    /// What it is sealed around, where that is not the collection's center.
    center: Option<Vec<f32>>,
    made: Option<Made>,
}

struct Made {
    key: KeyId,
    /// Of which its rows have tags.
    filterable: Vec<String>,
    names: Vec<(SegmentId, Names)>,
    segment: Option<NewSegment>,
}

/// What each segment is to be sealed around.
struct Centers {
    usual: Vec<f32>,
    own: HashMap<SegmentId, Vec<f32>>,
}

impl Centers {
    fn of(&self, id: SegmentId) -> &[f32] {
        self.own.get(&id).unwrap_or(&self.usual)
    }
}

impl Replica {
    /// Merges small segments and those with deleted rows into full ones, and seals those of writers, of the old kind, without check sums
    /// and packed for fewer rows again; or, with `every`, every segment that opens. Segments in quarantine are made anew of the vectors
    /// that were kept; those of which not all were stay as they are.
    pub async fn optimize(&mut self, host: &dyn Host, every: bool) -> Result<()> {
        let passed_over = self.passed_over(host).await?;
        let around = self.centers(host).await?;
        let mut taken = self.fresh();
        taken.retain(|one| !passed_over.contains(&one.id));
        if !every {
            taken = self.worn(taken, &around)?;
        }
        let mut groups: IndexMap<Vec<u32>, Vec<SegmentId>> = IndexMap::new();
        for one in taken {
            let center = around.of(one.id).iter().map(|x| x.to_bits()).collect();
            groups.entry(center).or_default().push(one.id);
        }
        for (center, ids) in groups {
            let center = center.into_iter().map(f32::from_bits).collect();
            self.merge_all(host, &ids, Some(center)).await?;
        }
        self.store.tidy(host).await
    }

    /// Seals writers' segments again as the owner's own, but for those in quarantine; how many rows they had. Rows that were set aside
    /// go, unless they are to take their ids over.
    pub async fn adopt(&mut self, host: &dyn Host, take_over: bool) -> Result<usize> {
        if take_over {
            self.directory.take_over();
        }
        let held: HashSet<_> = self.directory.quarantined().iter().copied().collect();
        let mut written = self.entries();
        written.retain(|one| self.writer(one.id).is_some() && !held.contains(&one.id));
        let ids: Vec<_> = written.iter().map(|one| one.id).collect();
        let places = self.directory.shadowed().map(|(segment, _)| segment);
        let places = places.chain(self.directory.aside().map(|(_, segment, _)| segment));
        let gone = places.filter(|segment| ids.contains(segment)).count();
        let rows: usize = written.iter().map(|one| one.live()).sum();
        let merged = self.merge_all(host, &ids, None).await;
        if merged.is_err() && take_over {
            self.in_step = false; // read again by the next call, with these rows aside
        }
        merged.map(|()| rows.saturating_sub(gone))
    }

    /// Removes whole segments that a writer sealed, or that are passed over; how many rows they had.
    pub async fn discard(&mut self, host: &dyn Host, segments: &[String]) -> Result<usize> {
        let mut rows = 0;
        let mut remove: Vec<SegmentId> = Vec::new();
        let listing = self.store.listing();
        for text in segments {
            let listed =
                Hex::parse(text).and_then(|id| listing.segments.get(&SegmentId(id.0)).cloned());
            let suits =
                |one: &Arc<StoredSegment>| one.has(WRAP) || self.reasons.contains_key(&one.id);
            let Some(one) = listed.filter(suits) else {
                return Error::input(format!(
                    "segment {} is none that a writer sealed; nothing was removed. info() lists those.",
                    self.face.quoted(text)
                ));
            };
            if !remove.contains(&one.id) {
                rows += one.live();
                remove.push(one.id);
            }
        }
        if !remove.is_empty() {
            self.send(host, &mut Change { remove, ..Change::default() }).await?;
            self.load(host).await?; // rows whose ids these had taken over are back
        }
        Ok(rows)
    }

    /// Puts one new segment in the place of these, in one commit; of a cluster, which comes alone, another one.
    pub(super) async fn reseal(
        &mut self,
        host: &dyn Host,
        taken: &[Arc<StoredSegment>],
        resealed: &mut Resealed,
    ) -> Result<()> {
        if let [one] = taken
            && let Some(number) = self.routing.cluster_of(one.id)
            && let Some(active) = self.routing.table.as_ref().and_then(|table| table.active.clone())
        {
            return self.reseal_cluster(host, one, (number, active)).await;
        }
        let made = self.made_again(host, taken, resealed).await?;
        let mut change = Change {
            add: made.into_iter().collect(),
            remove: taken.iter().map(|one| one.id).collect(),
            ..Change::default()
        };
        self.drop_rows(&mut change, &[])?;
        self.commit(host, change, &[]).await
    }

    /// What these make; nothing if no row of them is live.
    async fn made_again(
        &mut self,
        host: &dyn Host,
        taken: &[Arc<StoredSegment>],
        resealed: &mut Resealed,
    ) -> Result<Option<NewSegment>> {
        let key = self.owner.key_id();
        let names: Vec<_> = taken.iter().map(|one| (one.id, self.names(one.id))).collect();
        let filterable = self.description.filterable.clone();
        let known = resealed.made.as_ref();
        let known = known.filter(|made| made.key == key && made.filterable == filterable);
        let dead = match known.and_then(|made| gone(&made.names, &names)) {
            Some(dead) => dead,
            None => {
                let segment = self.made_of(host, taken, resealed.center.as_deref()).await?;
                resealed.made = Some(Made { key, filterable, names, segment });
                Vec::new()
            }
        };
        let segment = resealed.made.as_ref().and_then(|made| made.segment.clone());
        Ok(segment
            .filter(|segment| dead.len() < segment.rows as usize)
            .map(|segment| NewSegment { deleted: dead, ..segment }))
    }

    async fn made_of(
        &mut self,
        host: &dyn Host,
        taken: &[Arc<StoredSegment>],
        center: Option<&[f32]>,
    ) -> Result<Option<NewSegment>> {
        let mut whole = Batch::default();
        let mut original = Vec::new();
        for (at, one) in taken.iter().enumerate() {
            if at.is_multiple_of(AHEAD) {
                let next = &taken[at..taken.len().min(at + AHEAD)];
                for blob in [ROWS, RECORDS, ORIGINALS] {
                    let having: Vec<_> = next.iter().filter(|one| one.has(blob)).cloned().collect();
                    self.store.prefetch(host, &having, blob).await?;
                }
            }
            let live = self.live(host, one).await?;
            whole.ids.extend(live.ids);
            whole.rows.extend(live.rows);
            whole.records.extend(live.records);
            whole.matrices.extend(live.matrices);
            original.extend(live.original.unwrap_or_default());
        }
        if whole.ids.is_empty() {
            return Ok(None);
        }
        whole.original = Some(original);
        let center = center.map_or_else(|| self.center_for(&whole.rows), <[f32]>::to_vec);
        host.check()?;
        self.seal(&whole, self.directory.len(), &center).map(Some)
    }

    /// The rows of a segment that are not deleted, unsealed, which checks them, and as they were put in where that was kept. Nothing of
    /// what is in quarantine is unsealed: all of it must have been kept.
    pub(super) async fn live(&mut self, host: &dyn Host, segment: &StoredSegment) -> Result<Batch> {
        let dimension = self.description.spec.dimension();
        let names = self.live_names(segment.id);
        let rows: Vec<_> = names.iter().map(|(row, id)| (*row, id)).collect();
        let records = self.records(host, segment, &rows).await?;
        let kept = self.originals(host, segment, &rows).await?;
        let original: Vec<_> = kept.iter().map(Option::is_some).collect();
        let held = self.directory.quarantined().contains(&segment.id);
        let mut vectors = match held && !original.contains(&false) {
            true => vec![0.0; names.len() * dimension],
            false => {
                let rows: Vec<_> = names.iter().map(|(row, _)| *row as usize).collect();
                self.unseal(host, segment.id, &rows).await?
            }
        };
        let each = vectors.chunks_exact_mut(dimension).zip(&kept).zip(&names);
        for ((vector, kept), (_, id)) in each {
            match kept {
                Some(kept) => vector.copy_from_slice(&kept.vector),
                None => self.view().rescale(segment.id, id, vector),
            }
        }
        Ok(Batch {
            ids: names.into_iter().map(|(_, id)| id).collect(),
            rows: vectors,
            records: records.iter().map(|one| one.to_vec()).collect(),
            original: Some(original),
            matrices: kept.into_iter().flatten().filter_map(|kept| kept.matrix).collect(),
            ..Batch::default()
        })
    }

    fn names(&self, id: SegmentId) -> Names {
        self.directory.names(id).into_iter().flatten().map(|name| name.cloned()).collect()
    }

    fn live_names(&self, id: SegmentId) -> Vec<(u32, Id)> {
        (0..).zip(self.names(id)).filter_map(|(row, name)| Some((row, name?))).collect()
    }

    /// Segments whose rows can't be sealed again.
    async fn passed_over(&mut self, host: &dyn Host) -> Result<HashSet<SegmentId>> {
        let held = self.directory.quarantined().to_vec();
        let mut passed_over: HashSet<_> = self.directory.refused().iter().copied().collect();
        for one in self.entries() {
            if !held.contains(&one.id) {
                continue;
            }
            let names = self.live_names(one.id);
            let rows: Vec<_> = names.iter().map(|(row, id)| (*row, id)).collect();
            if self.originals(host, &one, &rows).await?.iter().any(Option::is_none) {
                passed_over.insert(one.id);
            }
        }
        Ok(passed_over)
    }

    /// The center in use, or the mean of the rows where that has moved away from it; but a segment's own where that one would tell its
    /// rows apart no more.
    async fn centers(&mut self, host: &dyn Host) -> Result<Centers> {
        let mut centers = Centers { usual: self.center().to_vec(), own: HashMap::new() };
        if !self.chooses_center() {
            return Ok(centers);
        }
        let held = [self.directory.refused(), self.directory.quarantined()].concat();
        let mut entries = self.fresh();
        entries.retain(|one| !held.contains(&one.id));
        let own = |id| self.directory.centre(id).unwrap_or_default().to_vec();
        let own: Vec<_> = entries.iter().map(|one| (one.id, own(one.id))).collect();
        let step = entries.len().div_ceil(SEGMENTS).max(1);
        let mut some = Vec::new();
        for (at, (id, own)) in own.into_iter().enumerate() {
            if at.is_multiple_of(step) || own != centers.usual {
                let names: Vec<_> = self.live_names(id).into_iter().map(|(_, name)| name).collect();
                let step = names.len().div_ceil(ROWS_OF_EACH).max(1);
                let names: Vec<_> = names.into_iter().step_by(step).collect();
                some.push((id, own, self.read_vectors(host, &names).await?.rows));
            }
        }
        let spec = &self.description.spec;
        if !some.is_empty() {
            let all: Vec<_> = some.iter().flat_map(|(.., rows)| rows).copied().collect();
            centers.usual = moved(spec, &all, &centers.usual);
        }
        for (id, own, rows) in some {
            if !suits(spec, &rows, &centers.usual, &own) {
                centers.own.insert(id, own);
            }
        }
        Ok(centers)
    }

    /// Those worth sealing again: with deleted rows, or small when there are several small ones, or a writer's, or of the old kind, or
    /// without check sums, or packed for an index of another size, or around another center than it is to be.
    fn worn(
        &self,
        entries: Vec<Arc<StoredSegment>>,
        around: &Centers,
    ) -> Result<Vec<Arc<StoredSegment>>> {
        let directory = &self.directory;
        let small = |one: &StoredSegment| one.live() < self.segment_rows() / 2;
        let mut alike: HashMap<Vec<u32>, usize> = HashMap::new();
        let bits = |center: &[f32]| center.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for one in entries.iter().filter(|one| small(one)) {
            *alike.entry(bits(around.of(one.id))).or_default() += 1;
        }
        let expected = Expected { rows: directory.len(), network: self.description.network };
        let mut again: HashSet<_> = directory.shadowed().map(|(segment, _)| segment).collect();
        again.extend(directory.unchecked(&self.owner));
        again.extend(directory.quarantined());
        again.extend(&self.description.untagged);
        for (id, rows, level) in directory.segments() {
            let outdated = directory.exactness(id) == Some(Exactness::Outdated);
            if outdated || !self.owner.suits(rows as usize, level, &expected)? {
                again.insert(id);
            }
        }
        let worn = |one: &Arc<StoredSegment>| {
            let center = around.of(one.id);
            !one.deleted.is_empty()
                || again.contains(&one.id)
                || small(one) && alike.get(&bits(center)).is_some_and(|count| *count > 1)
                || directory.centre(one.id).unwrap_or_default() != center
                || self.writer(one.id).is_some()
        };
        Ok(entries.into_iter().filter(worn).collect())
    }

    pub(super) fn segment_rows(&self) -> usize {
        let long = self.description.has_key_pair() || self.description.multi.is_some();
        if long { LONG_ROWS } else { SEGMENT_ROWS }
    }

    async fn merge_all(
        &mut self,
        host: &dyn Host,
        mut worn: &[SegmentId],
        center: Option<Vec<f32>>,
    ) -> Result<()> {
        let listing = self.store.listing();
        let rows = |id: &SegmentId| listing.segments.get(id).map_or(0, |one| u64::from(one.rows));
        let total = worn.iter().map(rows).sum();
        let mut done = 0;
        while !worn.is_empty() {
            host.check()?;
            let (taken, rest) = worn.split_at(self.first(worn));
            let mut resealed = Resealed { center: center.clone(), made: None };
            self.in_turn(host, async |replica: &mut Replica| {
                let mut these = replica.entries();
                these.retain(|one| taken.contains(&one.id));
                replica.reseal(host, &these, &mut resealed).await
            })
            .await?;
            worn = rest;
            done += taken.iter().map(rows).sum::<u64>();
            host.progress(Progress { phase: "seal", done, total: Some(total), ms: None });
        }
        Ok(())
    }

    /// How many of these make a full segment. Others may have removed some of them already.
    fn first(&self, worn: &[SegmentId]) -> usize {
        let listing = self.store.listing();
        let (mut live, mut count) = (0, 0);
        for id in worn {
            if live >= self.segment_rows() {
                break;
            }
            count += 1;
            live += listing.segments.get(id).map_or(0, |one| one.live());
        }
        count
    }
}

/// Which of the rows that counted don't any more, by their number among these, as all of a segment that others have merged; nothing where
/// further segments, or other rows of them, count by now.
fn gone(before: &[(SegmentId, Names)], now: &[(SegmentId, Names)]) -> Option<Vec<u32>> {
    let mut left: HashMap<_, _> = now.iter().map(|(id, names)| (id, names)).collect();
    let (mut gone, mut row) = (Vec::new(), 0);
    for (id, names) in before {
        let now = left.remove(id);
        for (at, was) in names.iter().enumerate() {
            let name = now.and_then(|now| now.get(at)).and_then(Option::as_ref);
            if name.is_some() && name != was.as_ref() {
                return None;
            }
            if was.is_some() {
                if name.is_none() {
                    gone.push(row);
                }
                row += 1;
            }
        }
    }
    left.is_empty().then_some(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ids: &[i64]) -> Names {
        ids.iter().map(|id| (*id > 0).then(|| Id::from(*id))).collect()
    }

    #[test]
    fn what_went_since_is_counted_among_the_rows_that_were_sealed_again() {
        let [a, b] = [SegmentId([1; 16]), SegmentId([2; 16])];
        let before = [(a, names(&[1, 0, 3])), (b, names(&[4, 5]))];
        assert_eq!(gone(&before, &before), Some(Vec::new()));
        assert_eq!(gone(&before, &[(a, names(&[1, 0, 0])), (b, names(&[0, 5]))]), Some(vec![1, 2]));
        assert_eq!(gone(&before, &[(b, names(&[4, 5]))]), Some(vec![0, 1]), "merged by others");
        assert_eq!(gone(&before, &[]), Some(vec![0, 1, 2, 3]));
        // Not where rows count that were not sealed: other ones, or of another segment.
        assert_eq!(gone(&before, &[(a, names(&[1, 2, 3])), (b, names(&[4, 5]))]), None);
        assert_eq!(gone(&before, &[(a, names(&[3, 0, 3]))]), None);
        assert_eq!(gone(&before[1..], &before), None);
    }
}
