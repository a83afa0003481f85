//! Re-clustering: every row of a routed collection goes into padded clusters, which count all at once.
//!
//! The new clusters are stored beside the old, some in a commit, and count from the last commit on, which also removes what they were
//! made of: until then every query is answered as before, and what the store sees is padded segments that come in a random order. A
//! client that is ended leaves what it made, and the next call goes on: rows whose cluster is there are passed over, and what was
//! deleted, replaced or added meanwhile is found by where it lies.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use ciphervec_owner::search::SegmentDirectory;
use ciphervec_owner::{Id, SegmentId};

use crate::change::{Change, NewSegment, ORIGINALS, RECORDS, SIDECAR, StoredSegment};
use crate::clusters::choice::Clusters;
use crate::clusters::table::{
    Clustering, NOWHERE, RoutingTable, SLOTS, open_centroids, seal_centroids,
};
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::host::{Host, Progress};
use crate::random::{Draws, random};
use crate::replica::Replica;
use crate::replica::batch::Batch;
use crate::replica::choosing::{block_rows, capacity, choose, room, roomy, routable, widest};
use crate::replica::clustering::{Space, assign};
use crate::replica::padding::{Rows, Shape};

/// What one commit adds, about.
const BATCH_BYTES: usize = 48 << 20;
/// Where others write meanwhile.
const ATTEMPTS: usize = 3;

/// What re-clustering made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clustered {
    /// 0: there are too few rows for any.
    pub clusters: usize,
    /// Of a cluster, padding included.
    pub rows_each: usize,
    /// Clusters that are scanned for a question.
    pub probes: usize,
    /// Clusters that it names beside.
    pub decoys: usize,
    /// The share of the ten nearest rows that so many probes find, measured on questions of the key holder's.
    pub recall: f64,
    /// The same for 1, 2, … probes; empty where the clusters were begun by an earlier call.
    pub recalls: Vec<f64>,
    /// Rows that stayed so, because their records are too long.
    pub unrouted: usize,
}

/// The upkeep of a routed collection; whether that was all there was to do.
pub async fn recluster_all(replica: &mut Replica, host: &dyn Host, every: bool) -> Result<bool> {
    let table = replica.routing.table.as_ref();
    let settled = table.is_some_and(|table| {
        table.active.is_some() && table.plan.is_none() && table.dead.is_empty()
    });
    if settled && !every && replica.fresh().is_empty() {
        return Ok(true);
    }
    Ok(recluster(replica, host, None).await?.clusters > 0)
}

/// One re-clustering.
struct Making<'a> {
    host: &'a dyn Host,
    draws: Draws,
    choice: Clusters,
    questions: Option<Vec<f32>>,
    recalls: Vec<f64>,
    /// The ids of every cluster that is there.
    done: BTreeMap<usize, Vec<Id>>,
    /// And those of segments made beside.
    kept: Vec<Vec<Id>>,
    /// The cluster of each row, as it was chosen just now.
    assigned: Vec<Option<usize>>,
}

/// Clusters every row anew, or goes on where an earlier call was interrupted.
pub async fn recluster(
    replica: &mut Replica,
    host: &dyn Host,
    questions: Option<Vec<f32>>,
) -> Result<Clustered> {
    let Some(choice) = replica.description.routing.clone() else {
        return Error::input(format!(
            "collection {} is not routed: that is chosen when it is made.",
            replica.name()
        ));
    };
    replica.refresh(host).await?;
    replica.adopt(host, false).await?;
    let (done, kept, assigned, recalls) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
    let draws = Draws::new()?;
    Making { host, draws, choice, questions, recalls, done, kept, assigned }.go_on(replica).await
}

impl Making<'_> {
    async fn go_on(&mut self, replica: &mut Replica) -> Result<Clustered> {
        let host = self.host;
        for _ in 0..ATTEMPTS {
            let mut plan = plan_of(replica).cloned();
            if let Some(begun) = &plan
                && !self.resume(replica, begun).await?
            {
                self.abandon(replica).await?;
                plan = None;
            }
            let sources = sources(replica, plan.as_ref())?;
            let rows = self.gather(replica, &sources).await?;
            let plan = match plan {
                Some(plan) => plan,
                None => {
                    let Some(chosen) = self.begin(replica, &rows, &sources).await? else {
                        let unrouted = replica.directory.len();
                        return Ok(Clustered { recall: 1.0, unrouted, ..Clustered::default() });
                    };
                    match chosen {
                        true => plan_of(replica).cloned().ok_or_else(others)?,
                        false => continue, // another client clustered them meanwhile
                    }
                }
            };
            if !self.stage(replica, &plan, rows).await? {
                self.abandon(replica).await?; // rows that changed meanwhile don't fit what was begun
                continue;
            }
            let (plan, done, kept) = (&plan, &self.done, &self.kept);
            let switch =
                async |replica: &mut Replica| switch(replica, host, plan, done, kept).await;
            if !replica.in_turn(host, switch).await? {
                return Err(others());
            }
            replica.store.tidy(host).await?;
            let active = replica.routing.table.as_ref().and_then(|table| table.active.as_ref());
            let active = active.ok_or_else(others)?;
            return Ok(Clustered {
                clusters: active.count(),
                rows_each: active.rows as usize,
                probes: active.probes as usize,
                decoys: active.named() - active.probes as usize,
                recall: active.recall,
                recalls: core::mem::take(&mut self.recalls),
                unrouted: self.kept.iter().map(Vec::len).sum(),
            });
        }
        Err(Error::Conflict(
            "others change these rows faster than they are clustered. Try again.".to_owned(),
        ))
    }

    /// The rows of these segments that are in no cluster yet.
    async fn gather(&self, replica: &mut Replica, sources: &[Arc<StoredSegment>]) -> Result<Rows> {
        let done: HashSet<_> = self.done.values().chain(&self.kept).flatten().collect();
        let ids = sources
            .iter()
            .flat_map(|one| replica.directory.names(one.id).into_iter().flatten().flatten());
        let ids: Vec<_> = ids.filter(|id| !done.contains(id)).cloned().collect();
        replica.cluster_rows(self.host, ids).await
    }

    /// Reads which rows are in the clusters that are there; whether all of it can be used.
    async fn resume(&mut self, replica: &mut Replica, plan: &Clustering) -> Result<bool> {
        self.done.clear();
        self.kept.clear();
        for number in plan.made() {
            let live = Some(plan.live[number] as usize);
            match names(replica, self.host, plan.segments[number], live).await? {
                Some(ids) => self.done.insert(number, ids),
                None => return Ok(false),
            };
        }
        for id in &plan.beside {
            match names(replica, self.host, *id, None).await? {
                Some(ids) => self.kept.push(ids),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Chooses the clusters and commits what they are to be. None where there are too few rows for any; false where clusters that are
    /// not made of these segments are in use by now.
    async fn begin(
        &mut self,
        replica: &mut Replica,
        rows: &Rows,
        sources: &[Arc<StoredSegment>],
    ) -> Result<Option<bool>> {
        let (host, spec) = (self.host, replica.description.spec.clone());
        // Rows of oblivious collections are fetched in private, where their records are not too long for that.
        let room = room(rows).filter(|_| self.choice.oblivious);
        let rows = match room {
            Some(room) => roomy(rows, room, spec.dimension()).0,
            None => routable(rows, spec.dimension()).0,
        };
        let unit = block_rows(replica, rows.ids.len())?;
        let space = Space::of(spec.metric(), &rows.vectors, spec.dimension());
        let width = space.width(spec.dimension());
        let placed = space.rows(&rows.vectors, spec.dimension());
        let Some(chosen) = choose(
            host,
            &mut self.draws,
            (&self.choice, self.questions.as_deref()),
            &placed,
            width,
            unit,
            &space,
        )?
        else {
            return Ok(None);
        };
        let count = chosen.centroids.len() / width;
        let (id_bytes, record_bytes) = widest(&rows, &chosen.assigned, count, spec.dimension());
        let sealed = seal_centroids(&replica.owner, &chosen.centroids)?;
        let mut plan = Clustering {
            rows: chosen.rows as u32,
            probes: chosen.probes as u32,
            decoys: self.choice.decoys_beside(chosen.probes) as u32,
            recall: chosen.recalls[chosen.probes - 1],
            slot: 0,
            width: width as u32,
            digest: *blake3::hash(&sealed).as_bytes(),
            longest: space.longest,
            id_bytes,
            record_bytes: room.unwrap_or(record_bytes),
            apart: room.is_some(),
            secret: random()?,
            segments: vec![NOWHERE; count],
            live: vec![0; count],
            sources: sources.iter().map(|one| one.id).collect(),
            beside: Vec::new(),
        };
        let commit = async |replica: &mut Replica| {
            let mut table = replica.routing.table.clone().unwrap_or_default();
            if !table.clusters().keys().all(|id| plan.sources.contains(id)) {
                return Ok(false);
            }
            if table.plan.is_some() {
                let says = "another client is clustering these rows; let it finish, or try again.";
                return Err(Error::Conflict(says.to_owned()));
            }
            plan.slot = table.slot();
            let mut change = Change::default();
            change.attachments.insert(SLOTS[usize::from(plan.slot)], sealed.clone());
            table.plan = Some(plan.clone());
            replica.routing.next = Some(table);
            replica.commit(host, change, &[]).await?;
            Ok(true)
        };
        let begun = replica.in_turn(host, commit).await?;
        (self.recalls, self.assigned) = (chosen.recalls, chosen.assigned);
        Ok(Some(begun))
    }

    /// Stores the clusters that are not there yet; whether every row found its place.
    async fn stage(
        &mut self,
        replica: &mut Replica,
        plan: &Clustering,
        rows: Rows,
    ) -> Result<bool> {
        let (host, dimension) = (self.host, replica.description.spec.dimension());
        let shape = Shape::of(plan);
        let (rows, large) = match plan.apart {
            true => roomy(&rows, plan.record_bytes, dimension),
            false => routable(&rows, dimension),
        };
        let mut left: Vec<_> =
            (0..plan.count()).filter(|number| !self.done.contains_key(number)).collect();
        let assigned = self.assignment(replica, plan, &rows, &left).await?;
        if assigned.contains(&None) {
            return Ok(false);
        }
        let mut parts: BTreeMap<usize, Vec<usize>> =
            gathered(left.iter().map(|number| (*number, Vec::new())));
        for (row, cluster) in assigned.iter().enumerate() {
            if let Some(part) = cluster.and_then(|cluster| parts.get_mut(&cluster)) {
                part.push(row);
            }
        }
        if !parts.values().all(|part| shape.fits(&rows.take(part, dimension))) {
            return Ok(false);
        }
        self.draws.shuffle(&mut left);
        // One for all of them, however often they are gone on with: they must be packed alike.
        let expected = plan.count() * capacity(shape.rows);
        self.stage_beside(replica, plan, large).await?;
        while !left.is_empty() {
            let mut sealed: Vec<(usize, NewSegment, u32)> = Vec::new();
            let mut size = 0;
            while size < BATCH_BYTES
                && let Some(number) = left.pop()
            {
                host.check()?;
                let part = rows.take(&parts[&number], dimension);
                let new = replica.seal_cluster(&mut self.draws, &part, &shape, expected)?;
                size += new.blobs.values().map(|blob| blob.len()).sum::<usize>();
                sealed.push((number, new, part.ids.len() as u32));
                self.done.insert(number, part.ids);
            }
            let add = async |replica: &mut Replica| {
                let mut table = present(replica, plan)?;
                let mut change = Change::default();
                for (number, new, live) in &sealed {
                    if let Some(plan) = &mut table.plan {
                        // Another client goes on with the same clusters, and was first.
                        if plan.segments[*number] != NOWHERE {
                            return Ok(false);
                        }
                        (plan.segments[*number], plan.live[*number]) = (new.id, *live);
                    }
                    change.add.push(new.clone());
                }
                replica.routing.next = Some(table);
                replica.commit(host, change, &[]).await.map(|()| true)
            };
            if !replica.in_turn(host, add).await? {
                return Err(others());
            }
            let (done, total) = ((plan.count() - left.len()) as u64, Some(plan.count() as u64));
            host.progress(Progress { phase: "seal", done, total, ms: None });
        }
        Ok(true)
    }

    /// The cluster of each row, among those that are left.
    async fn assignment(
        &self,
        replica: &mut Replica,
        plan: &Clustering,
        rows: &Rows,
        left: &[usize],
    ) -> Result<Vec<Option<usize>>> {
        if self.done.is_empty() && rows.ids.len() == self.assigned.len() {
            return Ok(self.assigned.clone());
        }
        if left.is_empty() || rows.ids.is_empty() {
            return Ok(vec![None; rows.ids.len()]);
        }
        let (spec, width) = (&replica.description.spec, plan.width as usize);
        let space = Space { metric: spec.metric(), longest: plan.longest };
        let placed = space.rows(&rows.vectors, spec.dimension());
        let sealed = replica.store.attachment(self.host, SLOTS[usize::from(plan.slot)]).await?;
        let centroids = open_centroids(&replica.owner, &sealed, plan)?;
        let centroids: Vec<_> =
            left.iter().flat_map(|number| &centroids[number * width..][..width]).copied().collect();
        let room = vec![capacity(plan.rows as usize); left.len()];
        let found = assign(self.host, &placed, width, &centroids, &room)?;
        Ok(found.into_iter().map(|at| at.map(|at| left[at])).collect())
    }

    /// Rows that are to stay unrouted, in segments like any other.
    async fn stage_beside(
        &mut self,
        replica: &mut Replica,
        plan: &Clustering,
        rows: Rows,
    ) -> Result<()> {
        let (host, dimension) = (self.host, replica.description.spec.dimension());
        let step = replica.segment_rows();
        for start in (0..rows.ids.len()).step_by(step) {
            let numbers: Vec<_> = (start..rows.ids.len().min(start + step)).collect();
            let Rows { ids, vectors, original, payloads } = rows.take(&numbers, dimension);
            let records = payloads.iter().map(|one| one.to_vec()).collect();
            let batch =
                Batch { ids, rows: vectors, records, original: Some(original), ..Batch::default() };
            let made = replica.seal(&batch, replica.directory.len(), replica.center())?;
            let kept = self.kept.len();
            let commit = async |replica: &mut Replica| {
                let mut table = present(replica, plan)?;
                if table.plan.as_ref().is_some_and(|plan| plan.beside.len() != kept) {
                    return Ok(false);
                }
                table.plan.iter_mut().for_each(|plan| plan.beside.push(made.id));
                replica.routing.next = Some(table);
                let change = Change { add: vec![made.clone()], ..Change::default() };
                replica.commit(host, change, &[]).await.map(|()| true)
            };
            if !replica.in_turn(host, commit).await? {
                return Err(others());
            }
            self.kept.push(batch.ids);
        }
        Ok(())
    }

    /// Takes back what was made and does not count yet.
    async fn abandon(&mut self, replica: &mut Replica) -> Result<()> {
        let host = self.host;
        replica.in_turn(host, async |replica: &mut Replica| abandon(replica, host).await).await?;
        self.done.clear();
        self.kept.clear();
        self.assigned.clear();
        Ok(())
    }
}

fn others() -> Error {
    Error::Conflict(
        "another client has clustered these rows meanwhile. Ask again if that is to be repeated."
            .to_owned(),
    )
}

fn plan_of(replica: &Replica) -> Option<&Clustering> {
    replica.routing.table.as_ref()?.plan.as_ref()
}

/// The table of the latest state, in which this is being made.
fn present(replica: &Replica, plan: &Clustering) -> Result<RoutingTable> {
    let now = replica.routing.table.clone().ok_or_else(others)?;
    let same = now.plan.as_ref().is_some_and(|now| now.secret == plan.secret);
    if same { Ok(now) } else { Err(others()) }
}

/// An error unless what is about to count is listed as it was stored: no state has named it so far.
fn check_staged(replica: &Replica, plan: &Clustering) -> Result<()> {
    let listing = replica.store.listing();
    for id in plan.segments.iter().chain(&plan.beside) {
        let cluster = plan.segments.contains(id);
        let as_stored = |one: &Arc<StoredSegment>| {
            one.deleted.is_empty()
                && one.has(RECORDS) == (plan.record_bytes > 0 || !cluster)
                && (!cluster
                    || one.rows == plan.rows && one.has(ORIGINALS) == replica.description.originals)
        };
        if !listing.segments.get(id).is_some_and(as_stored) {
            return Err(Error::RolledBack(format!(
                "segment {id}, which is to be a cluster of {}, is not listed with the rows and blobs that were stored. Nothing was changed. \
                 Ask the server's operator what happened.",
                replica.name()
            )));
        }
    }
    Ok(())
}

/// What the clusters are made of: all that opens.
fn sources(replica: &Replica, plan: Option<&Clustering>) -> Result<Vec<Arc<StoredSegment>>> {
    let held = replica.directory.quarantined();
    let passed_over = |id: &SegmentId| held.contains(id) || replica.reasons.contains_key(id);
    let mut entries = replica.entries();
    if let Some(held) = entries
        .iter()
        .find(|one| replica.routing.cluster_of(one.id).is_some() && passed_over(&one.id))
    {
        return Error::input(format!(
            "segment {} is a cluster and in quarantine: its rows would be lost. See info(), and release() it once it was restored.",
            held.id
        ));
    }
    entries.retain(|one| {
        !passed_over(&one.id)
            && !replica.routing.staged().contains(&one.id)
            && plan.is_none_or(|plan| plan.sources.contains(&one.id))
    });
    Ok(entries)
}

/// The ids of a segment that does not count yet, of so many rows; none if it is not there.
async fn names(
    replica: &mut Replica,
    host: &dyn Host,
    id: SegmentId,
    live: Option<usize>,
) -> Result<Option<Vec<Id>>> {
    if !replica.store.listing().segments.contains_key(&id) {
        return Ok(None);
    }
    let sidecar = replica.read(host, id, SIDECAR).await?;
    let mut directory = SegmentDirectory::new();
    directory.add(&replica.owner, id, &sidecar, &[])?;
    let names = directory.names(id).into_iter().flatten().flatten().cloned();
    Ok(Some(names.take(live.unwrap_or(usize::MAX)).collect()))
}

/// Lets the clusters count, and removes what they were made of, in one commit. False where they are not those that were made here, or
/// other ones count by now.
async fn switch(
    replica: &mut Replica,
    host: &dyn Host,
    begun: &Clustering,
    done: &BTreeMap<usize, Vec<Id>>,
    kept: &[Vec<Id>],
) -> Result<bool> {
    let mut table = present(replica, begun)?;
    let Some(plan) = table.plan.take() else { return Err(others()) };
    let sources: BTreeSet<_> = gathered(plan.sources.iter().copied());
    let whole = !plan.segments.contains(&NOWHERE) && done.len() == plan.count();
    let all = whole && kept.len() == plan.beside.len();
    if !all || !table.clusters().keys().all(|id| sources.contains(id)) {
        return Ok(false);
    }
    check_staged(replica, &plan)?;
    // Rows that were deleted or replaced since they were sealed again: they lie elsewhere, or nowhere.
    let elsewhere = |ids: &[Id]| -> Vec<u32> {
        let there = |id: &Id| {
            replica.directory.locate(id).is_some_and(|(segment, _)| sources.contains(&segment))
        };
        (0u32..).zip(ids).filter(|(_, id)| !there(id)).map(|(row, _)| row).collect()
    };
    let dead = done.iter();
    let dead = dead.map(|(number, ids)| (*number as u32, gathered(elsewhere(ids))));
    let dead = gathered(dead.filter(|(_, gone): &(_, BTreeSet<_>)| !gone.is_empty()));
    let remove =
        replica.entries().iter().map(|one| one.id).filter(|id| sources.contains(id)).collect();
    let mut change = Change { remove, ..Change::default() };
    for (id, ids) in plan.beside.iter().zip(kept) {
        let gone = elsewhere(ids);
        if gone.len() == ids.len() {
            change.remove.push(*id);
        } else if !gone.is_empty() {
            change.delete_rows.insert(*id, gone);
        }
    }
    replica.drop_rows(&mut change, &[])?;
    change.hide_rows.clear(); // of clusters that go
    if let Some(active) = &table.active {
        let over = seal_centroids(&replica.owner, &[])?;
        change.attachments.insert(SLOTS[usize::from(active.slot)], over);
    }
    let adopted = plan.segments.iter().chain(&plan.beside).copied();
    change.adopted = adopted.filter(|id| !change.remove.contains(id)).collect();
    replica.routing.next = Some(RoutingTable {
        generation: table.generation + 1,
        active: Some(Clustering { sources: Vec::new(), beside: Vec::new(), ..plan }),
        plan: None,
        dead,
    });
    replica.send(host, &mut change).await?;
    replica.load(host).await.map(|()| true)
}

/// Removes the clusters of an interrupted call, if there are any.
pub(super) async fn abandon(replica: &mut Replica, host: &dyn Host) -> Result<()> {
    let Some(mut table) = replica.routing.table.clone() else { return Ok(()) };
    let Some(plan) = table.plan.take() else { return Ok(()) };
    let staged = replica.routing.staged();
    let remove =
        replica.entries().iter().map(|one| one.id).filter(|id| staged.contains(id)).collect();
    let mut change = Change { remove, ..Change::default() };
    let over = seal_centroids(&replica.owner, &[])?;
    change.attachments.insert(SLOTS[usize::from(plan.slot)], over);
    replica.routing.next = Some(table);
    replica.send(host, &mut change).await?;
    replica.load(host).await
}
