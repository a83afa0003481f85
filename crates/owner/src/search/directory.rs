//! Which id is at which row of which segment, its norm, and whether it is deleted. Owner only.

use super::centre;
use super::form::{self, Exactness, Kept, OpenedSegment};
use super::opened_sidecar::{OpenedSidecar, Origin};
use super::owner::Owner;
use super::root_key::SegmentRootKey;
use crate::error::{Error, Result};
use crate::protect::consumed::{Consumed, Refusal, Written};
use crate::protect::id::Id;
use crate::protect::sidecar::Sidecar;
use ciphervec_he_secret::lattice::SegmentId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Rows of an index up to which the secrets of its segments are kept between queries: some 100 bytes a row.
const KEPT_ROWS: usize = 1 << 20;

/// One segment as the owner knows it. A copy shares what it is made of.
#[derive(Clone)]
pub(super) struct Entry {
    pub id: SegmentId,
    pub sidecar: Arc<Sidecar>,
    pub deleted: Arc<Vec<bool>>,
    pub secrets: Arc<OnceLock<Kept>>,
    pub exactness: Exactness,
    /// The key it is sealed under, where that is not the owner's.
    root: Option<Arc<SegmentRootKey>>,
    origin: Origin,
    written: Option<Written>,
    /// Whether the owner has said that it belongs to the index.
    authenticated: bool,
}

/// What becomes of a row whose id is known already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The segment is new: the row takes the id over from a writer's, and is an error where the owner sealed both.
    New,
    /// The segment was stored: the row takes the id over. Two of the owner's are reported.
    Stored,
    /// A writer added the segment and the owner has not authenticated it yet: the row is set aside if the other one is
    /// authenticated, and takes the id over if not.
    Appended,
}

/// A segment as a store keeps it, for the owner.
#[derive(Clone, Copy, Debug)]
pub struct StoredSidecar<'a> {
    /// The sealed sidecar.
    pub sidecar: &'a [u8],
    /// The wrapped key, if a writer sealed the segment.
    pub wrap: Option<&'a [u8]>,
    /// Rows that are gone.
    pub deleted: &'a [u32],
    /// Rows that are there and were set aside.
    pub aside: &'a [u32],
}

impl Entry {
    /// The segment, to open answers about it.
    /// Its secrets are derived anew where it was `chosen` out of the server's sight, whether or not they are here: the next question
    /// comes once an answer is opened, and its time must not tell which clusters were chosen before.
    pub fn opened<'a>(
        &'a self,
        owner: &'a Owner,
        directory: &SegmentDirectory,
        chosen: bool,
    ) -> OpenedSegment<'a> {
        OpenedSegment {
            id: self.id,
            rows: self.deleted.len(),
            level: self.sidecar.level,
            root: self.root.as_deref().unwrap_or_else(|| owner.root()),
            witness: &self.sidecar.witness,
            secrets: &self.secrets,
            keep: !chosen && directory.rows <= KEPT_ROWS,
        }
    }

    fn unchecked_blocks(&self, owner: &Owner) -> Option<usize> {
        let Entry { sidecar, deleted, .. } = self;
        owner.form().unchecked_blocks(&sidecar.witness, deleted.len(), sidecar.level)
    }

    /// Whether all that is said of its rows is checked.
    pub fn is_checked(&self, owner: &Owner) -> bool {
        self.unchecked_blocks(owner) == Some(0)
    }

    /// Whether a writer sealed it, who may have sealed anything.
    pub fn is_written(&self) -> bool {
        matches!(self.origin, Origin::Writer(_))
    }

    pub fn norm(&self, row: usize) -> f64 {
        self.sidecar.norms.get(row).map_or(1.0, |&norm| f64::from(norm))
    }
}

/// Centres of an index whose appended segments are taken in.
const MOST_CENTRES: usize = 4;

/// Rows of an index that has more than any: a number that 32 bits hold.
const MANY: usize = 1 << 30;

/// The owner's view of an index: which id lies where. Built from sidecars, which the server cannot read.
#[derive(Default)]
pub struct SegmentDirectory {
    entries: Vec<Entry>,
    /// Where each segment is in `entries`.
    positions: HashMap<SegmentId, usize>,
    places: HashMap<Id, (SegmentId, u32)>,
    /// Live rows whose id came again in a later segment: gone for every reader, not yet deleted where they lie.
    shadowed: Vec<(Id, SegmentId, u32)>,
    /// Rows that do not count, because their id was authenticated elsewhere before they came.
    aside: Vec<(Id, SegmentId, u32)>,
    /// Ids that two of the owner's segments have.
    repeated: Vec<Id>,
    /// Segments that do not open: answers about them are passed over.
    refused: Vec<SegmentId>,
    /// Segments of writers that count no more, whoever sends them again.
    consumed: Consumed,
    /// Segments that failed a check: answers about them are passed over, their rows are not decrypted.
    quarantined: Vec<SegmentId>,
    /// Of all segments.
    rows: usize,
}

impl SegmentDirectory {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns a segment of the owner's from its sidecar; `deleted` lists rows that are gone.
    ///
    /// An id that is known from a writer's segment is taken over: the later segment has it. Two segments of the owner's
    /// never share one.
    ///
    /// # Errors
    /// A sidecar that does not open, a segment or an id that is known already, rows beyond the segment.
    pub fn add(
        &mut self,
        owner: &Owner,
        id: SegmentId,
        sidecar: &[u8],
        deleted: &[u32],
    ) -> Result<()> {
        let stored = StoredSidecar { sidecar, wrap: None, deleted, aside: &[] };
        self.attach_stored(owner, id, &stored, Standing::New)
    }

    /// Learns a segment of a writer's from its sidecar and the wrapped key it is sealed under. Ids that are known are
    /// taken over from the segments before, whoever sealed those: the newest row counts, as with an upsert.
    ///
    /// # Errors
    /// A wrap that is not addressed to the owner or to this segment; otherwise as [`Self::add`].
    pub fn add_written(
        &mut self,
        owner: &Owner,
        id: SegmentId,
        sidecar: &[u8],
        wrap: &[u8],
        deleted: &[u32],
    ) -> Result<()> {
        let stored = StoredSidecar { sidecar, wrap: Some(wrap), deleted, aside: &[] };
        self.attach_stored(owner, id, &stored, Standing::Stored)
    }

    /// Learns a segment from what a store keeps of it; `standing` says what becomes of ids that are known already.
    ///
    /// # Errors
    /// As [`Self::add`] and [`Self::add_written`]; a segment that was appended and had been consumed before.
    pub fn attach_stored(
        &mut self,
        owner: &Owner,
        id: SegmentId,
        stored: &StoredSidecar<'_>,
        standing: Standing,
    ) -> Result<()> {
        let opened = owner.open_sidecar(id, stored.sidecar, stored.wrap)?;
        self.attach_opened(owner, opened, (stored.deleted, stored.aside), standing)
    }

    /// As [`Self::attach_stored`], from a sidecar that was opened before; beside it rows that are gone, and rows that were set
    /// aside.
    ///
    /// # Errors
    /// As [`Self::attach_stored`], but what opening raises.
    pub fn attach_opened(
        &mut self,
        owner: &Owner,
        opened: OpenedSidecar,
        rows: (&[u32], &[u32]),
        standing: Standing,
    ) -> Result<()> {
        let id = opened.id;
        if let Some(written) = &opened.written {
            if standing == Standing::Appended {
                self.expect_new(id, written)?;
            }
            expect_packing(owner, id, &opened.sidecar)?;
            if standing == Standing::Appended {
                self.expect_few_centres(id, &opened.sidecar.centre)?;
            }
        }
        self.attach(owner, opened, rows, standing)
    }

    /// From now on segments in this list do not count when they are appended: their owner consumed them.
    pub fn expect_unconsumed(&mut self, consumed: Consumed) {
        self.consumed = consumed;
    }

    /// Each centre costs a query, and who may add could make any number.
    fn expect_few_centres(&self, id: SegmentId, centre: &[f32]) -> Result<()> {
        let known = self.centres();
        if known.len() < MOST_CENTRES || known.contains(&centre) {
            return Ok(());
        }
        let detail = format!(
            "its rows were sealed less another centre than the {MOST_CENTRES} there are; its writer needs a new card"
        );
        Err(Error::Directory { segment: id.to_string(), detail })
    }

    fn expect_new(&self, id: SegmentId, written: &Written) -> Result<()> {
        let detail = match self.consumed.refusal(written) {
            None => return Ok(()),
            Some(Refusal::Consumed) => {
                "its rows were adopted or discarded before, and it was sent again".to_owned()
            }
            Some(Refusal::BeforeMark(mark)) => format!(
                "writer {:?} sealed it at {} ms by its clock, and of what it sealed before {mark} ms nobody can tell \
                 whether it was taken in already; seal the rows again, and check the writer's clock",
                written.writer, written.time
            ),
        };
        Err(Error::Consumed { segment: id.to_string(), detail })
    }

    /// Passes over a segment that does not open: neither its rows nor answers about them count.
    pub fn refuse(&mut self, id: SegmentId) {
        if !self.refused.contains(&id) {
            self.refused.push(id);
        }
    }

    /// Segments that are passed over.
    pub fn refused(&self) -> &[SegmentId] {
        &self.refused
    }

    /// Passes over a segment that failed a check, until it is released.
    pub fn quarantine(&mut self, id: SegmentId) {
        if !self.quarantined.contains(&id) {
            self.quarantined.push(id);
        }
    }

    /// Takes a segment out of quarantine; whether it was there.
    pub fn release(&mut self, id: SegmentId) -> bool {
        let before = self.quarantined.len();
        self.quarantined.retain(|quarantined| *quarantined != id);
        self.quarantined.len() != before
    }

    /// Segments in quarantine.
    pub fn quarantined(&self) -> &[SegmentId] {
        &self.quarantined
    }

    /// What results from a segment say about its noise; `None` if it is unknown.
    pub fn exactness(&self, id: SegmentId) -> Option<Exactness> {
        self.entry(id).map(|entry| entry.exactness)
    }

    /// Blocks that nothing is checked about, answers or stored words: those of segments that were sealed before there were
    /// check sums.
    pub fn unchecked_blocks(&self, owner: &Owner) -> usize {
        self.entries.iter().filter_map(|entry| entry.unchecked_blocks(owner)).sum()
    }

    /// The segments that these blocks are of: sealing them again gives them sums.
    pub fn unchecked(&self, owner: &Owner) -> impl Iterator<Item = SegmentId> {
        let lacking =
            |entry: &&Entry| entry.unchecked_blocks(owner).is_some_and(|blocks| blocks > 0);
        self.entries.iter().filter(lacking).map(|entry| entry.id)
    }

    fn attach(
        &mut self,
        owner: &Owner,
        opened: OpenedSidecar,
        (deleted, aside): (&[u32], &[u32]),
        standing: Standing,
    ) -> Result<()> {
        let OpenedSidecar { id, sidecar, root, origin, written } = opened;
        if self.entry(id).is_some() {
            return Err(Error::DuplicateSegment(id.to_string()));
        }
        centre::check(owner.spec(), &sidecar.centre)?;
        let mut flags = vec![false; sidecar.rows as usize];
        for &row in deleted.iter().chain(aside) {
            *flags.get_mut(row as usize).ok_or_else(|| Error::Range {
                what: "a deleted row",
                expected: format!("below {}", sidecar.rows),
                actual: row.to_string(),
            })? = true;
        }
        let live = |flags: &[bool]| -> Vec<(Id, u32)> {
            let rows = sidecar.ids.iter().zip(0..).zip(flags);
            rows.filter(|(_, gone)| !**gone).map(|((name, row), _)| (name.clone(), row)).collect()
        };
        let mut names = HashSet::with_capacity(sidecar.ids.len());
        if live(&flags).into_iter().any(|(name, _)| !names.insert(name)) {
            return Err(Error::Directory {
                segment: id.to_string(),
                detail: "its sidecar names one id twice".to_owned(),
            });
        }
        let named = |row: &u32| sidecar.ids.get(*row as usize).map(|name| (name.clone(), id, *row));
        let mut set_aside: Vec<_> = aside.iter().filter_map(named).collect();
        let (mut taken, mut repeated) = (Vec::new(), Vec::new());
        for (name, row) in live(&flags) {
            let Some(&(segment, at)) = self.places.get(&name) else { continue };
            let known = self.entry(segment);
            if standing == Standing::Appended && known.is_some_and(|known| known.authenticated) {
                if let Some(flag) = flags.get_mut(row as usize) {
                    *flag = true;
                }
                set_aside.push((name, id, row));
                continue;
            }
            if written.is_none() && !self.is_written(segment) {
                if standing == Standing::New {
                    return Err(Error::DuplicateId(name));
                }
                repeated.push(name.clone());
            }
            taken.push((name, segment, at));
        }
        for (_, segment, row) in &taken {
            self.flag(*segment, *row);
        }
        self.shadowed.extend(taken);
        self.aside.extend(set_aside);
        self.repeated.extend(repeated);
        let places = live(&flags);
        self.places.reserve(places.len());
        self.places.extend(places.into_iter().map(|(name, row)| (name, (id, row))));
        let (secrets, exactness) = (Arc::default(), owner.form().exactness(&sidecar.witness));
        let authenticated = standing != Standing::Appended;
        let (sidecar, deleted) = (Arc::new(sidecar), Arc::new(flags));
        self.rows += deleted.len();
        let entry = Entry {
            id,
            sidecar,
            deleted,
            secrets,
            exactness,
            root,
            origin,
            written,
            authenticated,
        };
        self.positions.insert(id, self.entries.len());
        self.entries.push(entry);
        Ok(())
    }

    /// Forgets a segment; whether it was known.
    pub fn remove(&mut self, id: SegmentId) -> bool {
        self.release(id);
        let Some(index) = self.positions.remove(&id) else {
            let before = self.refused.len();
            self.refused.retain(|refused| *refused != id);
            return self.refused.len() != before;
        };
        let entry = self.entries.remove(index);
        self.rows -= entry.deleted.len();
        self.positions.values_mut().filter(|at| **at > index).for_each(|at| *at -= 1);
        self.shadowed.retain(|(_, segment, _)| *segment != id);
        self.aside.retain(|(_, segment, _)| *segment != id);
        for name in &entry.sidecar.ids {
            if self.places.get(name).is_some_and(|(segment, _)| *segment == id) {
                self.places.remove(name);
            }
        }
        true
    }

    /// Marks a record as gone: it is never returned again. Its place, or `None` if it is unknown.
    pub fn mark_deleted(&mut self, name: &Id) -> Option<(SegmentId, u32)> {
        let (segment, row) = self.places.remove(name)?;
        self.flag(segment, row);
        Some((segment, row))
    }

    fn flag(&mut self, segment: SegmentId, row: u32) {
        if let Some(entry) = self.entry_mut(segment) {
            Arc::make_mut(&mut entry.deleted)[row as usize] = true;
        }
    }

    /// Rows that a later segment has taken the id of, to be deleted with the next commit.
    pub fn shadowed(&self) -> impl Iterator<Item = (SegmentId, u32)> {
        self.shadowed.iter().map(|(_, segment, row)| (*segment, *row))
    }

    /// Forgets [`Self::shadowed`] and [`Self::repeated`], once a commit has deleted these rows.
    pub fn settle(&mut self) {
        self.shadowed.clear();
        self.repeated.clear();
    }

    /// Rows that are there and do not count: their id was authenticated elsewhere before they came.
    pub fn aside(&self) -> impl Iterator<Item = (&Id, SegmentId, u32)> {
        self.aside.iter().map(|(name, segment, row)| (name, *segment, *row))
    }

    /// Ids that two of the owner's segments have, of which the later row counts.
    pub fn repeated(&self) -> &[Id] {
        &self.repeated
    }

    /// Lets the rows that were set aside take their ids over, the latest of each, but for those in quarantine.
    pub fn take_over(&mut self) {
        let aside = std::mem::take(&mut self.aside);
        let held = |(_, segment, _): &(Id, SegmentId, u32)| self.quarantined.contains(segment);
        let (held, aside): (Vec<_>, Vec<_>) = aside.into_iter().partition(held);
        self.aside = held;
        for (name, segment, row) in aside {
            if let Some((old, at)) = self.places.insert(name.clone(), (segment, row)) {
                self.flag(old, at);
                self.shadowed.push((name, old, at));
            }
            if let Some(entry) = self.entry_mut(segment)
                && let Some(flag) = Arc::make_mut(&mut entry.deleted).get_mut(row as usize)
            {
                *flag = false;
            }
        }
    }

    /// Notes that the owner has authenticated every segment.
    pub fn authenticate(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.authenticated = true);
    }

    /// Segments that the owner has not authenticated.
    pub fn appended(&self) -> impl Iterator<Item = SegmentId> {
        self.entries.iter().filter(|entry| !entry.authenticated).map(|entry| entry.id)
    }

    /// Who sealed a segment; `None` if it is unknown.
    pub fn origin(&self, id: SegmentId) -> Option<&Origin> {
        self.entry(id).map(|entry| &entry.origin)
    }

    /// Who sealed a segment of a writer's, and when; `None` for the owner's, and where it is unknown.
    pub fn written(&self, id: SegmentId) -> Option<&Written> {
        self.entry(id).and_then(|entry| entry.written.as_ref())
    }

    /// The key a segment is sealed under, where that is not the owner's own.
    pub fn root(&self, id: SegmentId) -> Option<&Arc<SegmentRootKey>> {
        self.entry(id).and_then(|entry| entry.root.as_ref())
    }

    fn is_written(&self, id: SegmentId) -> bool {
        matches!(self.origin(id), Some(Origin::Writer(_)))
    }

    /// Where a record lies.
    pub fn locate(&self, name: &Id) -> Option<(SegmentId, u32)> {
        self.places.get(name).copied()
    }

    /// Live records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether no record is live.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Live records with their places, in the order of segments and rows.
    pub fn records(&self) -> impl Iterator<Item = (&Id, SegmentId, u32)> {
        self.entries.iter().flat_map(|entry| {
            let rows = entry.sidecar.ids.iter().enumerate().filter(|(row, _)| !entry.deleted[*row]);
            rows.map(|(row, name)| (name, entry.id, row as u32))
        })
    }

    /// The name of each row of a segment, `None` where it is deleted; `None` if the segment is unknown.
    pub fn names(&self, id: SegmentId) -> Option<impl Iterator<Item = Option<&Id>>> {
        let entry = self.entry(id)?;
        let rows = entry.sidecar.ids.iter().zip(entry.deleted.iter());
        Some(rows.map(|(name, gone)| (!gone).then_some(name)))
    }

    /// The norm a record had before it was scaled to unit length.
    pub fn norm(&self, name: &Id) -> Option<f64> {
        let (segment, row) = self.locate(name)?;
        self.entry(segment).map(|entry| entry.norm(row as usize))
    }

    /// Segments with their rows, deleted ones included, and levels.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentId, u32, u8)> {
        self.entries.iter().map(|entry| (entry.id, entry.sidecar.rows, entry.sidecar.level))
    }

    /// Where a segment is among the entries.
    pub(super) fn position(&self, id: SegmentId) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    /// What opening an answer takes of it, as it is now: which segments there are, with their rows. It knows no place of
    /// any id, and shares everything else.
    pub fn snapshot(&self) -> Self {
        SegmentDirectory {
            entries: self.entries.clone(),
            positions: self.positions.clone(),
            refused: self.refused.clone(),
            quarantined: self.quarantined.clone(),
            rows: self.rows,
            ..Self::default()
        }
    }

    /// The levels of these segments, or of all; each once.
    pub fn levels(&self, segments: Option<&[SegmentId]>) -> Vec<u8> {
        let named = |id: &SegmentId| segments.is_none_or(|named| named.contains(id));
        let of_entries = self.entries.iter().filter(|entry| named(&entry.id));
        let mut levels: Vec<u8> = of_entries.map(|entry| entry.sidecar.level).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// The deepest level of any segment: what a query must reach.
    pub fn top_level(&self) -> u8 {
        self.entries.iter().map(|entry| entry.sidecar.level).max().unwrap_or(0)
    }

    pub(super) fn entry(&self, id: SegmentId) -> Option<&Entry> {
        self.positions.get(&id).and_then(|&at| self.entries.get(at))
    }

    fn entry_mut(&mut self, id: SegmentId) -> Option<&mut Entry> {
        let at = *self.positions.get(&id)?;
        self.entries.get_mut(at)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// Refuses a writer's segment whose packing costs every query. How many rows there are by now is not asked: deleting some must
/// not make others refused.
fn expect_packing(owner: &Owner, id: SegmentId, sidecar: &Sidecar) -> Result<()> {
    let (spec, rows) = (owner.spec(), sidecar.rows as usize);
    if form::of(spec).may_pack(spec, rows, sidecar.level, MANY)? {
        return Ok(());
    }
    Err(Error::Directory {
        segment: id.to_string(),
        detail: format!(
            "its {rows} rows are packed for level {} of the query tree, which costs every query precision and them nothing; \
             discard it",
            sidecar.level
        ),
    })
}
