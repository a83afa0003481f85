//! The routing table: which segment is which cluster, and which of its rows count.
//!
//! Sealed as one record, of a length that says no more than how many clusters there are. Little-endian: version u32 | generation u32 |
//! the clusters in use, if 1 u8 is before them | those being made, likewise | dead rows u32, and pairs of u32, cluster and row, filled up
//! to a power of two.
//!
//! - *Clusters*: their number u32; rows of each u32; probes u32; decoys u32; recall f64; slot u8 (0: `centroids-a`, 1:
//!   `centroids-b`); numbers of a centroid u32; BLAKE3 of the attachment that has them 32; the longest row f64, under ip; bytes of a
//!   segment's ids u64 and records u64; from version 2 on, whether records are by row u8; secret of the groups 32; for each its segment
//!   16, or zeros, and the rows that count u32; number of segments that they are made of u32, 16 each; number of segments made beside
//!   u32, 16 each.
//! - The table is the record of segment 0 … 0 1 and id `ciphervec routing table`, the two attachments with centroids, float32 row by
//!   row, those of segment 0 … 0 2 and id `ciphervec centroids`. Centroids in use are in one, those being made in the other, or an
//!   empty record. There are 64 pairs or more, filled up with ones.
//! - A cluster is a segment whose rows after the last that counts are padding. Its `records` and `originals` have one record each, of
//!   row 0 and the id `ciphervec records of a cluster`: number of rows u32; the length of each u32; their bytes; zeros. By row, each
//!   row has a record under its own id, padding too: length u32; bytes; zeros up to the bytes of records, for `originals` 5 and 4 a
//!   number. The state sets segments that are being made aside, whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ciphervec_owner::protect::records::{Place, RecordBatch, open_record, seal_records};
use ciphervec_owner::search::Owner;
use ciphervec_owner::{Error as SchemeError, Id, SegmentId};
use shake::{ExtendableOutput, Shake256, Update, XofReader};

use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::sorting::ordered;

/// Version 1 had no clusters whose records are sealed by themselves.
const VERSION: u32 = 2;
/// The attachments that hold the centroids in use and those of the clusters being made, in turns.
pub const SLOTS: [&str; 2] = ["centroids-a", "centroids-b"];

/// A cluster that is not there yet.
pub const NOWHERE: SegmentId = SegmentId([0; 16]);
/// The table and the centroids are sealed as the records of segments that never exist.
const TABLE: ([u8; 16], &str) = (place(1), "ciphervec routing table");
const CENTROIDS: ([u8; 16], &str) = (place(2), "ciphervec centroids");
const LEAST_DEAD: usize = 64;
const UNUSED: u32 = u32::MAX;

const fn place(last: u8) -> [u8; 16] {
    let mut place = [0; 16];
    place[15] = last;
    place
}

/// Clusters, in use or being made: their shape, which everybody sees, and what only the key holder knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// Of each cluster, padding included.
    pub rows: u32,
    pub probes: u32,
    pub decoys: u32,
    /// Of the ten nearest rows, measured on a sample when the clusters were made.
    pub recall: f64,
    pub slot: u8,
    /// Numbers of a centroid: the dimension, and one more under metric ip.
    pub width: u32,
    /// BLAKE3 of the sealed centroids.
    pub digest: [u8; 32],
    /// The longest vector, under metric ip.
    pub longest: f64,
    /// What the ids of a segment take in its sidecar, and the records: the same in every one.
    pub id_bytes: u64,
    pub record_bytes: u64,
    /// Whether each row's record is sealed by itself, to be fetched in private; `record_bytes` is the room of one then.
    pub apart: bool,
    /// What groups are drawn by.
    pub secret: [u8; 32],
    pub segments: Vec<SegmentId>,
    /// Rows of each that count, from the first; those behind are padding.
    pub live: Vec<u32>,
    /// The segments that these clusters take the place of.
    pub sources: Vec<SegmentId>,
    /// Segments made of rows that stay unrouted.
    pub beside: Vec<SegmentId>,
}

impl Clustering {
    /// How many clusters.
    pub fn count(&self) -> usize {
        self.segments.len()
    }

    /// The clusters that are there.
    pub fn made(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().enumerate().filter(|(_, id)| **id != NOWHERE).map(|(number, _)| number)
    }

    /// Clusters of a group: one and its decoys. Decoys that are no multiple of the probes are as many more.
    pub fn size(&self) -> usize {
        let decoys = self.decoys.div_ceil(self.probes.max(1)) as usize;
        self.count().min(1 + decoys).max(1)
    }

    /// Rows of all clusters that nobody put in.
    pub fn padding(&self) -> usize {
        self.made().map(|number| (self.rows - self.live[number]) as usize).sum()
    }

    /// Groups that a question names: one for each probe.
    fn groups(&self) -> usize {
        (self.probes as usize).min(self.count() / self.size())
    }

    /// Clusters that a question names, those that make no group included.
    pub fn named(&self) -> usize {
        self.groups() * self.size() + self.count() % self.size()
    }

    /// The clusters, a group behind another, in an order that can't be told from chance without the secret. It is as long as the
    /// clusters are: a cluster is never named without the others of its group, so that no number of questions, however related, tells
    /// it from them.
    fn order(&self) -> Vec<usize> {
        let mut stream = Shake256::default().chain(self.secret).finalize_xof();
        let mut draw = || {
            let mut bytes = [0; 8];
            stream.read(&mut bytes);
            u64::from_le_bytes(bytes)
        };
        let drawn: Vec<_> = self.segments.iter().map(|_| draw()).collect();
        ordered(self.count(), &|a, b| drawn[a].cmp(&drawn[b]))
    }

    /// The clusters that a question names: the groups of the nearest ones, `near` being all of them in order, as many groups for every
    /// question, and what makes no group.
    pub fn name(&self, near: &[usize]) -> Vec<usize> {
        let (order, size) = (self.order(), self.size());
        let left = self.count() / size; // the number of what makes no group
        let mut group = vec![left; self.count()];
        order.iter().enumerate().for_each(|(at, cluster)| group[*cluster] = at / size);
        let mut found: Vec<usize> = Vec::new();
        for one in near.iter().map(|cluster| group[*cluster]) {
            if found.len() < self.groups() && one < left && !found.contains(&one) {
                found.push(one);
            }
        }
        found.push(left);
        let of = |one: &usize| order.iter().skip(one * size).take(size).copied();
        found.iter().flat_map(of).collect()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let numbers = [self.count() as u32, self.rows, self.probes, self.decoys];
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(self.recall.to_le_bytes());
        out.push(self.slot);
        out.extend(self.width.to_le_bytes());
        out.extend(self.digest);
        out.extend(self.longest.to_le_bytes());
        out.extend(self.id_bytes.to_le_bytes());
        out.extend(self.record_bytes.to_le_bytes());
        out.push(u8::from(self.apart));
        out.extend(self.secret);
        for (id, live) in self.segments.iter().zip(&self.live) {
            out.extend(id.0);
            out.extend(live.to_le_bytes());
        }
        for list in [&self.sources, &self.beside] {
            out.extend((list.len() as u32).to_le_bytes());
            list.iter().for_each(|id| out.extend(id.0));
        }
    }
}

/// What is in use, what is being made, and which rows of the first don't count any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutingTable {
    pub generation: u32,
    pub active: Option<Clustering>,
    pub plan: Option<Clustering>,
    /// Rows of clusters that were deleted or replaced: the server is not told.
    pub dead: BTreeMap<u32, BTreeSet<u32>>,
}

impl RoutingTable {
    /// The segments in use, and which cluster each is.
    pub fn clusters(&self) -> HashMap<SegmentId, usize> {
        let active = self.active.iter().flat_map(|active| active.segments.iter().enumerate());
        active.map(|(number, id)| (*id, number)).collect()
    }

    /// The segments made that don't count yet.
    pub fn staged(&self) -> BTreeSet<SegmentId> {
        let plan = self.plan.iter().flat_map(|plan| plan.segments.iter().chain(&plan.beside));
        gathered(plan.filter(|id| **id != NOWHERE).copied())
    }

    /// Where the next centroids go.
    pub fn slot(&self) -> u8 {
        self.active.as_ref().map_or(0, |active| 1 - active.slot)
    }

    /// The rows of a cluster in use that don't count.
    pub fn hidden(&self, cluster: usize) -> Vec<u32> {
        let Some(active) = &self.active else { return Vec::new() };
        let dead = self.dead.get(&(cluster as u32)).into_iter().flatten().copied();
        let hidden: BTreeSet<_> = gathered((active.live[cluster]..active.rows).chain(dead));
        hidden.into_iter().collect()
    }

    /// The same once these rows, by cluster, are gone.
    pub fn with_dead(mut self, rows: impl IntoIterator<Item = (usize, Vec<u32>)>) -> Self {
        for (cluster, gone) in rows {
            self.dead.entry(cluster as u32).or_default().extend(gone);
        }
        self
    }

    /// The same once a cluster was sealed again as this segment, without the rows that were dead.
    pub fn with_made(mut self, cluster: usize, segment: SegmentId, live: usize) -> Self {
        self.dead.remove(&(cluster as u32));
        if let Some(active) = &mut self.active {
            active.segments[cluster] = segment;
            active.live[cluster] = live as u32;
        }
        self
    }

    /// The attachment.
    pub fn seal(&self, owner: &Owner) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        content.extend(VERSION.to_le_bytes());
        content.extend(self.generation.to_le_bytes());
        for part in [&self.active, &self.plan] {
            content.push(u8::from(part.is_some()));
            part.iter().for_each(|part| part.write(&mut content));
        }
        let pairs = self
            .dead
            .iter()
            .flat_map(|(cluster, rows)| rows.iter().map(move |row| [*cluster, *row]));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.resize(pairs.len().next_power_of_two().max(LEAST_DEAD), [UNUSED; 2]);
        content.extend((pairs.len() as u32).to_le_bytes());
        pairs.as_flattened().iter().for_each(|number| content.extend(number.to_le_bytes()));
        sealed(owner, TABLE, content)
    }

    /// Reads it back.
    pub fn open(owner: &Owner, data: &[u8]) -> Result<Self> {
        Self::read(&opened(owner, TABLE, data)?)
    }

    fn read(data: &[u8]) -> Result<Self> {
        let mut from = Reader(data);
        let version = from.u32()?;
        if !(1..=VERSION).contains(&version) {
            return Err(Error::Version(format!(
                "the routing table has version {version}; this ciphervec reads 1 to {VERSION}. Upgrade ciphervec."
            )));
        }
        let generation = from.u32()?;
        let active = from.clustering(version)?;
        let plan = from.clustering(version)?;
        let mut dead: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for _ in 0..from.u32()? {
            let (cluster, row) = (from.u32()?, from.u32()?);
            if cluster != UNUSED {
                dead.entry(cluster).or_default().insert(row);
            }
        }
        let clusters = active.as_ref().map_or(0, Clustering::count);
        if !from.0.is_empty() || dead.keys().any(|cluster| *cluster as usize >= clusters) {
            return damaged();
        }
        Ok(RoutingTable { generation, active, plan, dead })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.0.split_first_chunk() {
            Some((first, rest)) => {
                self.0 = rest;
                Ok(*first)
            }
            None => damaged(),
        }
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Result<f64> {
        self.take().map(f64::from_le_bytes)
    }

    fn ids(&mut self) -> Result<Vec<SegmentId>> {
        (0..self.u32()?).map(|_| Ok(SegmentId(self.take()?))).collect()
    }

    fn clustering(&mut self, version: u32) -> Result<Option<Clustering>> {
        let [there] = self.take()?;
        if there == 0 {
            return Ok(None);
        }
        let count = self.u32()?;
        let (rows, probes, decoys, recall) = (self.u32()?, self.u32()?, self.u32()?, self.f64()?);
        let ([slot], width) = (self.take()?, self.u32()?);
        let (digest, longest) = (self.take()?, self.f64()?);
        let (id_bytes, record_bytes) = (self.u64()?, self.u64()?);
        let apart = version > 1 && self.take()? == [1];
        let secret = self.take()?;
        let entries = (0..count).map(|_| Ok((SegmentId(self.take()?), self.u32()?)));
        let (segments, live): (Vec<_>, Vec<_>) =
            entries.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let (sources, beside) = (self.ids()?, self.ids()?);
        if usize::from(slot) >= SLOTS.len() || live.iter().any(|live| *live > rows) {
            return damaged();
        }
        Ok(Some(Clustering {
            rows,
            probes,
            decoys,
            recall,
            slot,
            width,
            digest,
            longest,
            id_bytes,
            record_bytes,
            apart,
            secret,
            segments,
            live,
            sources,
            beside,
        }))
    }
}

fn damaged<T>() -> Result<T> {
    Error::corrupt(
        "the routing table is not one: it ends early, late or names what is not there. Restore it from a copy.",
    )
}

fn sealed(owner: &Owner, (segment, name): ([u8; 16], &str), content: Vec<u8>) -> Result<Vec<u8>> {
    let binding = owner.spec().binding();
    let place = Place { collection: &binding, segment: &segment };
    seal_records(owner.aead(), place, &[(Id::from(name), content)])
        .map_err(|error| SchemeError::Envelope(error).into())
}

fn opened(owner: &Owner, (segment, name): ([u8; 16], &str), data: &[u8]) -> Result<Vec<u8>> {
    let batch = RecordBatch::parse(data)
        .map_err(ciphervec_owner::protect::aead::EnvelopeError::from)
        .map_err(SchemeError::from)?;
    let Some(sealed) = batch.ciphertext(0) else { return damaged() };
    let binding = owner.spec().binding();
    let place = Place { collection: &binding, segment: &segment };
    let opened = open_record(owner.aead(), place, &Id::from(name), 0, sealed);
    Ok(opened.map_err(SchemeError::Envelope)?.to_vec())
}

/// The attachment that holds centroids, one behind another; none at all where they are over.
pub fn seal_centroids(owner: &Owner, centroids: &[f32]) -> Result<Vec<u8>> {
    sealed(owner, CENTROIDS, centroids.iter().flat_map(|number| number.to_le_bytes()).collect())
}

/// Reads them back, compared with the table.
pub fn open_centroids(owner: &Owner, data: &[u8], clustering: &Clustering) -> Result<Vec<f32>> {
    let other = || {
        Error::corrupt(
            "the centroids are not those of the routing table. Restore them from a copy.",
        )
    };
    if *blake3::hash(data).as_bytes() != clustering.digest {
        return other();
    }
    let bytes = opened(owner, CENTROIDS, data)?;
    let centroids: Vec<_> =
        bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    match centroids.len() == clustering.count() * clustering.width as usize {
        true => Ok(centroids),
        false => other(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clustering(count: u8, probes: u32, decoys: u32) -> Clustering {
        Clustering {
            rows: 32,
            probes,
            decoys,
            recall: 0.95,
            slot: 1,
            width: 4,
            digest: [3; 32],
            longest: 1.5,
            id_bytes: 9,
            record_bytes: 0,
            apart: count == 9,
            secret: *b"0123456789abcdef0123456789abcdef",
            segments: (1..=count).map(|id| SegmentId([id; 16])).collect(),
            live: (0..u32::from(count)).collect(),
            sources: vec![SegmentId([77; 16])],
            beside: Vec::new(),
        }
    }

    #[test]
    fn groups_are_those_of_the_python_client() {
        let one = clustering(11, 2, 3);
        // Clustering.order of python/ciphervec/collections/routing/table.py for this secret
        assert_eq!(one.order(), [1, 6, 8, 3, 10, 7, 5, 9, 0, 2, 4]);
        assert_eq!((one.size(), one.groups(), one.named()), (3, 2, 8));
        let near: Vec<_> = (0..11).collect();
        assert_eq!(one.name(&near), [5, 9, 0, 1, 6, 8, 2, 4]);
    }

    #[test]
    fn a_table_is_read_as_it_was_written_and_not_otherwise() {
        let table = RoutingTable {
            generation: 5,
            active: Some(clustering(9, 2, 2)),
            plan: Some(clustering(3, 1, 1)),
            dead: BTreeMap::from([(2, BTreeSet::from([0, 1])), (8, BTreeSet::from([3]))]),
        };
        let mut bytes = Vec::new();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(5u32.to_le_bytes());
        for part in [&table.active, &table.plan] {
            bytes.push(1);
            part.as_ref().unwrap().write(&mut bytes);
        }
        bytes.extend(4u32.to_le_bytes());
        for number in [2, 0, 2, 1, 8, 3, UNUSED, UNUSED] {
            bytes.extend(u32::to_le_bytes(number));
        }
        assert_eq!(RoutingTable::read(&bytes).unwrap(), table);
        assert_eq!(table.hidden(2).len(), 32);
        assert_eq!(
            table.hidden(8),
            (8..32).chain([3]).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        );
        for cut in 0..bytes.len() {
            assert!(RoutingTable::read(&bytes[..cut]).is_err());
        }
        // Version 1, of a table whose only clusters were sealed as it knew them.
        let mut plan = Vec::new();
        clustering(3, 1, 1).write(&mut plan);
        plan.remove(16 + 8 + 1 + 4 + 32 + 8 + 8 + 8);
        let former = [&1u32.to_le_bytes()[..], &5u32.to_le_bytes(), &[0, 1], &plan, &[0; 4]];
        let former = RoutingTable::read(&former.concat()).unwrap();
        assert_eq!((former.active, former.plan), (None, Some(clustering(3, 1, 1))));
        assert!(
            RoutingTable::read(&3u32.to_le_bytes())
                .is_err_and(|error| { error.to_string().contains("reads 1 to 2") })
        );
    }
}
