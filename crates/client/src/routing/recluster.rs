//! Re-clustering: every row of a routed collection goes into padded clusters, which count all at once.
//!
//! The new clusters are stored beside the old, some in a commit, and count from the last commit on, which also removes what they were
//! made of: until then every query is answered as before, and what the store sees is padded segments that come in a random order. A
//! client that is ended leaves what it made, and the next call goes on: rows whose cluster is there are passed over, and what was
//! deleted, replaced or added meanwhile is found by where it lies.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use ciphervec::search::{Expected, SegmentDirectory};
use ciphervec::{Id, SegmentId};

use crate::change::{Change, NewSegment, SIDECAR, StoredSegment};
use crate::error::{Error, Result};
use crate::host::{Host, Progress};
use crate::random::{Draws, random};
use crate::replica::batch::Batch;
use crate::replica::{KEY_PAIR_ROWS, Replica, SEGMENT_ROWS};
use crate::routing::clustering::{Neighbors, QUESTIONS, Space, assign, learn};
use crate::routing::clusters::Clusters;
use crate::routing::padding::{Rows, SPARE_BYTES, Shape, id_bytes, packed_bytes};
use crate::routing::table::{
    Clustering, NOWHERE, RoutingTable, SLOTS, open_centroids, seal_centroids,
};

/// Of so many rows of a cluster one is padding at least: there is room for ids of every length.
const SPARE: usize = 64;
/// Clusters hold so many times as many rows as there are; more room for balance is more padding, and was measured to find no more.
const SLACK: f64 = 1.05;
/// A record of more bytes, and of more than sixteen times the usual, stays unrouted: it would be padding in every cluster.
const LARGE: usize = 16 << 10;
/// What one commit adds, about.
const BATCH_BYTES: usize = 48 << 20;
/// Where others write meanwhile.
const ATTEMPTS: usize = 3;
/// Clusters that are worth it.
const LEAST: usize = 4;
/// Rows of one, at least.
const LEAST_ROWS: usize = 32;
/// Of the ring that segments are packed in.
const DEGREE: usize = 4096;

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

/// Clusters that are chosen.
struct Chosen {
    rows: usize,
    centroids: Vec<f32>,
    assigned: Vec<Option<usize>>,
    probes: usize,
    recalls: Vec<f64>,
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
            let (done, kept) = (&self.done, &self.kept);
            let switch = async |replica: &mut Replica| switch(replica, host, done, kept).await;
            replica.in_turn(host, switch).await?;
            self.purge(replica).await;
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
    async fn gather(
        &self,
        replica: &mut Replica,
        sources: &[Arc<StoredSegment>],
    ) -> Result<Rows> {
        let done: HashSet<_> = self.done.values().chain(&self.kept).flatten().collect();
        let ids = sources
            .iter()
            .flat_map(|one| replica.directory.names(one.id).into_iter().flatten().flatten());
        let ids: Vec<_> = ids.filter(|id| !done.contains(id)).cloned().collect();
        let vectors = replica.read_vectors(self.host, &ids).await?;
        let payloads = replica.read_records(self.host, &ids).await?;
        Ok(Rows { ids, vectors: vectors.rows, original: vectors.original, payloads })
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
        let rows = routable(rows, spec.dimension()).0;
        let unit = block_rows(replica, rows.ids.len())?;
        let space = Space::of(spec.metric(), &rows.vectors, spec.dimension());
        let width = space.width(spec.dimension());
        let placed = space.rows(&rows.vectors, spec.dimension());
        let Some(chosen) = self.choose(&placed, width, unit, &space)? else { return Ok(None) };
        let count = chosen.centroids.len() / width;
        let (id_bytes, record_bytes) = widest(&rows, &chosen.assigned, count, spec.dimension());
        let sealed = seal_centroids(&replica.owner, &chosen.centroids)?;
        let mut plan = Clustering {
            rows: chosen.rows as u32,
            probes: chosen.probes as u32,
            decoys: self.choice.decoys.unwrap_or(chosen.probes as u32),
            recall: chosen.recalls[chosen.probes - 1],
            slot: 0,
            width: width as u32,
            digest: *blake3::hash(&sealed).as_bytes(),
            longest: space.longest,
            id_bytes,
            record_bytes,
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
            change.routing = Some(table);
            replica.commit(host, change, &[]).await?;
            Ok(true)
        };
        let begun = replica.in_turn(host, commit).await?;
        (self.recalls, self.assigned) = (chosen.recalls, chosen.assigned);
        Ok(Some(begun))
    }

    /// The cheapest of what reaches the recall that is asked for. None where there are too few rows.
    fn choose(
        &mut self,
        rows: &[f32],
        width: usize,
        unit: usize,
        space: &Space,
    ) -> Result<Option<Chosen>> {
        let (all, choice) = (rows.len() / width, &self.choice);
        let own = self.questions.is_none().then(|| self.draws.sample(QUESTIONS.min(all), all));
        let asked = match (&self.questions, &own) {
            (Some(questions), _) => {
                let dimension = width - (space.width(width) - width);
                questions.chunks_exact(dimension).flat_map(|one| space.questions(one)).collect()
            }
            (None, own) => own
                .iter()
                .flatten()
                .flat_map(|at| &rows[at * width..][..width])
                .copied()
                .collect::<Vec<_>>(),
        };
        // Rows that were clustered are easier to find than what is asked later.
        let harder = if own.is_some() { 0.4 * (1.0 - choice.recall) } else { 0.0 };
        let wanted = choice.recall + harder;
        let mut near = None;
        let mut best: Option<(usize, Chosen)> = None;
        let blocks: &[usize] = if choice.count.is_some() { &[1] } else { &[1, 2, 4] };
        for blocks in blocks {
            let (each, count) = match choice.count {
                None => {
                    let each = unit * blocks;
                    let room = capacity(each).max(1);
                    (each, (all as f64 * SLACK / room as f64).ceil() as usize)
                }
                Some(count) => {
                    let count = count as usize;
                    let least = (all as f64 * SLACK / count as f64 / (1.0 - 1.0 / SPARE as f64)).ceil();
                    (cluster_rows(least as usize + 1, unit), count)
                }
            };
            let least = if choice.count.is_none() { LEAST } else { 2 };
            if count < least || all < 2 * count || each < 2 {
                continue;
            }
            let centroids = learn(self.host, rows, width, count, SLACK)?;
            let assigned = assign(self.host, rows, width, &centroids, &vec![capacity(each); count])?;
            if assigned.contains(&None) {
                continue;
            }
            if near.is_none() {
                near = Some(Neighbors::new(self.host, rows, width, asked.clone(), own.as_deref())?);
            }
            let Some(near) = &near else { continue };
            let recalls = near.recalls(&assigned, &centroids, width);
            let enough = recalls.iter().position(|recall| *recall >= wanted);
            let probes = enough.map_or(count, |at| at + 1);
            let probes = choice.probes.map_or(probes, |probes| probes as usize).min(count);
            let decoys = choice.decoys.map_or(probes, |decoys| decoys as usize);
            let named = count.min(probes + probes * decoys.div_ceil(probes)); // whole groups
            let cost = named * answer(each, unit);
            if choice.count.is_none() && cost >= answer(all, unit) {
                continue; // all of it costs no more, and shows nothing
            }
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, Chosen { rows: each, centroids, assigned, probes, recalls }));
            }
        }
        Ok(best.map(|(_, chosen)| chosen))
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
        let (rows, large) = routable(&rows, dimension);
        let mut left: Vec<_> =
            (0..plan.count()).filter(|number| !self.done.contains_key(number)).collect();
        let assigned = self.assignment(replica, plan, &rows, &left).await?;
        if assigned.contains(&None) {
            return Ok(false);
        }
        let mut parts: BTreeMap<usize, Vec<usize>> =
            left.iter().map(|number| (*number, Vec::new())).collect();
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
                let mut table = present(replica, Some(plan))?;
                let mut change = Change::default();
                for (number, new, live) in &sealed {
                    if let Some(plan) = &mut table.plan {
                        (plan.segments[*number], plan.live[*number]) = (new.id, *live);
                    }
                    change.add.push(new.clone());
                }
                change.routing = Some(table);
                replica.commit(host, change, &[]).await
            };
            replica.in_turn(host, add).await?;
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
        let step = if replica.description.has_key_pair() { KEY_PAIR_ROWS } else { SEGMENT_ROWS };
        for start in (0..rows.ids.len()).step_by(step) {
            let numbers: Vec<_> = (start..rows.ids.len().min(start + step)).collect();
            let Rows { ids, vectors, original, payloads } = rows.take(&numbers, dimension);
            let records = payloads.iter().map(|one| one.to_vec()).collect();
            let batch =
                Batch { ids, rows: vectors, records, original: Some(original), ..Batch::default() };
            let made = replica.seal(&batch, replica.directory.len(), replica.center())?;
            let commit = async |replica: &mut Replica| {
                let mut table = present(replica, Some(plan))?;
                table.plan.iter_mut().for_each(|plan| plan.beside.push(made.id));
                let mut change = Change { routing: Some(table), ..Change::default() };
                change.add.push(made.clone());
                replica.commit(host, change, &[]).await
            };
            replica.in_turn(host, commit).await?;
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

    /// The change is made, whatever becomes of that.
    async fn purge(&self, replica: &Replica) {
        if let Err(error) = replica.store.purge(self.host).await {
            self.host.warn(&format!(
                "the rows of {} are clustered, and what they were made of stays with the server until it is purged: {error}",
                replica.name()
            ));
        }
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
fn present(replica: &Replica, plan: Option<&Clustering>) -> Result<RoutingTable> {
    let now = plan_of(replica).ok_or_else(others)?;
    if plan.is_some_and(|plan| plan.secret != now.secret) {
        return Err(others());
    }
    replica.routing.table.clone().ok_or_else(others)
}

/// What the clusters are made of: all that opens and is the owner's own. Rows of writers stay unrouted until they are adopted.
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
            && replica.writer(one.id).is_none()
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

/// Lets the clusters count, and removes what they were made of, in one commit.
async fn switch(
    replica: &mut Replica,
    host: &dyn Host,
    done: &BTreeMap<usize, Vec<Id>>,
    kept: &[Vec<Id>],
) -> Result<()> {
    let mut table = present(replica, None)?;
    let Some(plan) = table.plan.take() else { return Err(others()) };
    let sources: BTreeSet<_> = plan.sources.iter().copied().collect();
    // Rows that were deleted or replaced since they were sealed again: they lie elsewhere, or nowhere.
    let elsewhere = |ids: &[Id]| -> Vec<u32> {
        let there = |id: &Id| {
            replica.directory.locate(id).is_some_and(|(segment, _)| sources.contains(&segment))
        };
        (0u32..).zip(ids).filter(|(_, id)| !there(id)).map(|(row, _)| row).collect()
    };
    let dead = done.iter().map(|(number, ids)| (*number as u32, elsewhere(ids)));
    let dead = dead.filter(|(_, gone)| !gone.is_empty()).collect();
    let mut change = Change::default();
    change.remove = replica.entries().iter().map(|one| one.id).collect();
    change.remove.retain(|id| sources.contains(id));
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
    change.routing = Some(RoutingTable {
        generation: table.generation + 1,
        active: Some(Clustering { sources: Vec::new(), beside: Vec::new(), ..plan }),
        plan: None,
        dead,
    });
    replica.send(host, &mut change).await?;
    replica.load(host).await
}

/// Removes the clusters of an interrupted call, if there are any.
async fn abandon(replica: &mut Replica, host: &dyn Host) -> Result<()> {
    let Some(mut table) = replica.routing.table.clone() else { return Ok(()) };
    let Some(plan) = table.plan.take() else { return Ok(()) };
    let mut change = Change::default();
    change.remove = replica.entries().iter().map(|one| one.id).collect();
    change.remove.retain(|id| replica.routing.staged().contains(id));
    let over = seal_centroids(&replica.owner, &[])?;
    change.attachments.insert(SLOTS[usize::from(plan.slot)], over);
    change.routing = Some(table);
    replica.send(host, &mut change).await?;
    replica.load(host).await
}

/// Rows that a cluster of so many takes from outside.
fn capacity(rows: usize) -> usize {
    rows - (rows / SPARE).max(1).min(rows)
}

/// Rows of a block of the ring as segments are packed here: what a cluster's rows are a multiple of.
fn block_rows(replica: &Replica, rows: usize) -> Result<usize> {
    let dimension = replica.description.spec.dimension();
    let padded = dimension.next_power_of_two().min(DEGREE);
    let (sample, ids) = (vec![1f32; DEGREE * dimension], (0..DEGREE as i64).map(Id::Number));
    let expected = Expected { rows: rows.max(DEGREE), network: replica.description.network };
    let ids: Vec<_> = ids.collect();
    let sealed = replica.owner.seal_around(&sample, &ids, &expected, replica.center())?;
    Ok(((DEGREE << sealed.level) / padded).max(1))
}

/// Numbers of an answer about so many rows: one a row, and a whole polynomial a block.
fn answer(rows: usize, unit: usize) -> usize {
    rows + DEGREE * rows.div_ceil(unit)
}

/// Full blocks; a power of two where not even one is filled, which is packed for fewer rows.
fn cluster_rows(least: usize, unit: usize) -> usize {
    match least >= unit {
        true => least.next_multiple_of(unit),
        false => LEAST_ROWS.max(least.next_power_of_two()),
    }
}

/// Rows whose records are of a usual length, and the others.
fn routable(rows: &Rows, dimension: usize) -> (Rows, Rows) {
    let mut lengths: Vec<_> = rows.payloads.iter().map(|one| one.len()).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    let most = LARGE.max(16 * median);
    let (usual, large): (Vec<_>, Vec<_>) =
        (0..rows.ids.len()).partition(|row| rows.payloads[*row].len() <= most);
    (rows.take(&usual, dimension), rows.take(&large, dimension))
}

/// Bytes that the ids and the records of any cluster fit into, rounded up so that they tell little of the rows.
fn widest(rows: &Rows, assigned: &[Option<usize>], count: usize, dimension: usize) -> (u64, u64) {
    let mut parts = vec![Vec::new(); count];
    for (row, cluster) in assigned.iter().enumerate() {
        cluster.iter().for_each(|cluster| parts[*cluster].push(row));
    }
    let (mut texts, mut records) = (0, 0);
    for part in parts {
        let part = rows.take(&part, dimension);
        texts = texts.max(id_bytes(&part.ids));
        records = records.max(packed_bytes(&part.payloads));
    }
    (if texts > 0 { rounded(texts + SPARE_BYTES) } else { 0 }, rounded(records))
}

/// Up to three bits after the first: at most an eighth more (Nikitin et al., PETS 2019, round in this way).
fn rounded(size: u64) -> u64 {
    let bits = u64::BITS - size.leading_zeros();
    size.next_multiple_of(1 << bits.saturating_sub(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_tell_little() {
        assert_eq!([0, 15, 16, 17, 100, 1000].map(rounded), [0, 15, 16, 18, 104, 1024]);
        assert_eq!([1, 2, 63, 128, 1024].map(capacity), [0, 1, 62, 126, 1008]);
        assert_eq!(cluster_rows(20, 64), 32);
        assert_eq!(cluster_rows(65, 64), 128);
    }
}
