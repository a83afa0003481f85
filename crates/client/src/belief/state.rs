//! States: what a store shows of a collection is believed if its owner has authenticated it, and if it descends from what was seen
//! before.
//!
//! The owner's client writes a state with each of its commits: which segments there are, in order, with which deletions, under which
//! description and epoch, and after which states. Segments beyond those are ones that writers appended since. A state says nothing
//! about the rows' own words, so that a server may take deleted rows out of them.
//!
//! Nothing here reads from a store: what has to be read first is asked for by [`States::missing`], and told by [`States::note`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ciphervec_owner::decode::DecodeError;
use ciphervec_owner::members::MemberList;
use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::checkpoint::Checkpoint;
use ciphervec_owner::protect::consumed::{Consumed, Written};
use ciphervec_owner::protect::state::{self, SegmentFacts, SetAside, StateRecord};
use ciphervec_owner::search::Owner;
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::{Error as SchemeError, SegmentId};
use indexmap::IndexMap;

use crate::belief::description::Description;
use crate::belief::pins::Pin;
use crate::belief::signed::{ANCESTORS, NONE, Signed, sealed, signer};
use crate::change::{
    COVERED, Change, EVALUATION, KEY_PAIR, ROUTING, STATE, Segments, StoredSegment,
};
use crate::error::{Error, Result};
use crate::face::Face;
use crate::random::random;
use crate::time::minute;

/// What a store shows, sorted by what its owner's state says of it.
#[derive(Default)]
pub struct Shown {
    /// None: a collection of a release before, or of mode `open`, where nothing is authenticated.
    pub state: Option<Arc<Signed>>,
    pub counted: Vec<Arc<StoredSegment>>,
    pub appended: Vec<Arc<StoredSegment>>,
    /// Rows that don't count, by segment; none at all: the whole segment.
    pub aside: HashMap<SegmentId, Vec<u32>>,
}

impl Shown {
    /// Whether the owner set the whole segment aside.
    pub fn sets_aside(&self, id: SegmentId) -> bool {
        self.aside.get(&id).is_some_and(Vec::is_empty)
    }
}

/// A state that was sealed, and is not committed yet.
pub struct Next {
    pub signed: Arc<Signed>,
    counted: Counted,
    pub consumed: Vec<u8>,
}

/// A segment that counts, with its leaf as it was when it was found right.
type Counted = IndexMap<SegmentId, (Arc<StoredSegment>, [u8; 32])>;

/// What a change makes of the state before it, beside what it adds and removes.
pub struct Step<'a> {
    /// Segments that are there and count from then on.
    pub appended: &'a [Arc<StoredSegment>],
    /// Rows that don't count, or whole segments.
    pub aside: &'a BTreeMap<SegmentId, Vec<u32>>,
    /// Segments that failed a check.
    pub quarantine: Vec<SegmentId>,
    /// Writers' segments that it removes.
    pub written: Vec<Written>,
    /// BLAKE3 of the attachments that are there, for the first state; empty for others.
    pub attached: BTreeMap<&'static str, [u8; 32]>,
    /// How the store will list the segments, where some of `appended` are listed before others that counted first.
    pub in_order: Option<Vec<SegmentId>>,
    /// The description as it is stored.
    pub meta: &'a [u8],
    /// Seconds since 1970.
    pub now: u64,
    /// Whether another history begins with it.
    pub anew: bool,
    /// Who signs it, and after how many changes of the members.
    pub signer: Option<(&'a Identity, u32)>,
    /// The members from then on.
    pub members: Option<Arc<MemberList>>,
}

/// What is believed of one collection.
pub struct States {
    face: Face,
    collection: String,
    pub present: Option<Arc<Signed>>,
    /// Writers' segments that count no more, as the state names them; empty: none.
    pub consumed: Vec<u8>,
    /// BLAKE3 of the covered blobs, as they were read.
    digests: HashMap<SegmentId, BTreeMap<&'static str, [u8; 32]>>,
    counted: Counted,
}

impl States {
    pub fn new(face: Face, collection: &str) -> Self {
        Self {
            face,
            collection: collection.to_owned(),
            present: None,
            consumed: Vec::new(),
            digests: HashMap::new(),
            counted: Counted::new(),
        }
    }

    /// That a collection without authenticated states never had any; `pinned` is whether one was seen.
    pub fn without(&self, pinned: bool) -> Result<()> {
        if self.present.is_some() || pinned {
            return self.rolled_back("a description from before its states were authenticated");
        }
        Ok(())
    }

    /// Opens the state that a store shows beside a description. Nothing of it is believed before [`Self::believe`].
    pub fn open(
        &self,
        owner: &Owner,
        sealed: Option<&[u8]>,
        meta: &[u8],
        description: &Description,
    ) -> Result<Arc<Signed>> {
        let Some(sealed) = sealed else { return self.rolled_back("no authenticated state") };
        let signed = match &self.present {
            Some(present) if present.sealed == sealed => Arc::clone(present),
            _ => {
                let (record, members) =
                    (self.authentic(owner, sealed)?, description.members.clone());
                let sequence = record.sequence;
                Signed::new(record, sealed.to_vec(), members)
                    .or_else(|why| self.rolled_back(format!("a state {sequence} {why}")))?
            }
        };
        let StateRecord { sequence, key, origin, .. } = signed.record;
        if key.to_string() != description.key_id {
            return self
                .rolled_back(format!("a state under the keys {key}, not {}", description.key_id));
        }
        if owner.spec().incarnation().is_some_and(|incarnation| *incarnation != origin) {
            return self.rolled_back("the state of another collection of this name");
        }
        let (described, epoch) = (blake3::hash(meta), signed.record.epoch);
        if signed.record.description != *described.as_bytes() || epoch != description.epoch {
            return self.rolled_back(format!(
                "a description of epoch {} that is not the one of state {sequence}, of epoch {epoch}",
                description.epoch
            ));
        }
        Ok(signed)
    }

    fn authentic(&self, owner: &Owner, sealed: &[u8]) -> Result<StateRecord> {
        owner.open_state(sealed).or_else(|error| match error {
            SchemeError::Envelope(EnvelopeError::Decode(DecodeError::Version { .. })) => {
                Err(error.into())
            }
            error => self.rolled_back(format!("a state that its owner did not make ({error})")),
        })
    }

    /// Whether the list of consumed segments has to be read, to believe this state.
    pub fn needs_list(&self, signed: &Signed) -> bool {
        let consumed = signed.record.consumed;
        consumed != NONE && self.present.as_ref().is_none_or(|one| one.record.consumed != consumed)
    }

    /// Whether what was remembered of consumed segments is still to be read.
    pub fn is_new(&self) -> bool {
        self.present.is_none()
    }

    /// Believes a state that was opened, beside the segments that the store lists. `list` is its list of consumed ones, if that was to
    /// be read; those that are known here, or of which `kept` tells, stay consumed whatever copy was put back.
    pub fn believe(
        &mut self,
        signed: Arc<Signed>,
        listed: &Segments,
        list: Option<Vec<u8>>,
        kept: &[u8],
    ) -> Result<Shown> {
        let StateRecord { sequence, consumed, segments, .. } = signed.record;
        let aside: HashMap<_, _> = signed
            .record
            .aside
            .iter()
            .map(|one| (SegmentId(one.segment), one.rows.clone()))
            .collect();
        let mut shown = Shown { state: Some(Arc::clone(&signed)), aside, ..Shown::default() };
        shown.counted = listed.values().filter(|one| !shown.sets_aside(one.id)).cloned().collect();
        let there = shown.counted.len();
        if there < segments as usize {
            return self
                .rolled_back(format!("{there} segments where state {sequence} has {segments}"));
        }
        shown.appended = shown.counted.split_off(segments as usize);
        if self.present.as_ref().is_none_or(|one| one.record.consumed != consumed) {
            let list = list.unwrap_or_default();
            if (consumed != NONE || !list.is_empty()) && *blake3::hash(&list).as_bytes() != consumed
            {
                return self.rolled_back(format!(
                    "another list of consumed segments than that of state {sequence}"
                ));
            }
            let known = if self.consumed.is_empty() { kept } else { &self.consumed };
            self.consumed = united(list, known)?;
        }
        self.present = Some(signed);
        Ok(shown)
    }

    /// A blob was read. An error when it is covered and was another one before.
    pub fn note(&mut self, segment: SegmentId, blob: &str, data: &[u8]) -> Result<()> {
        let Some(blob) = COVERED.into_iter().find(|known| *known == blob) else { return Ok(()) };
        let digest = *blake3::hash(data).as_bytes();
        if *self.digests.entry(segment).or_default().entry(blob).or_insert(digest) != digest {
            let name = self.name();
            return Error::corrupt(format!(
                "the blob {blob} of segment {segment} of collection {name} is another one than before. Ask whoever keeps it what happened, \
                 or restore it from a copy."
            ));
        }
        Ok(())
    }

    /// What was read of blobs may be wrong: none of it is compared with what is read from now on, which the state has to name anew.
    pub fn doubt(&mut self) {
        self.digests.clear();
        self.counted.clear();
    }

    /// Covered blobs of these segments that were not read yet.
    pub fn missing(
        &self,
        segments: &[Arc<StoredSegment>],
    ) -> Vec<(Arc<StoredSegment>, &'static str)> {
        let unread = |one: &StoredSegment, blob| {
            one.has(blob)
                && !self.digests.get(&one.id).is_some_and(|known| known.contains_key(blob))
        };
        let of = |one: &Arc<StoredSegment>| {
            let one = Arc::clone(one);
            COVERED
                .into_iter()
                .filter(|blob| unread(&one, blob))
                .map(|blob| (Arc::clone(&one), blob))
                .collect::<Vec<_>>()
        };
        segments.iter().flat_map(of).collect()
    }

    /// Those of these segments that are not as they were when they were last found right: their blobs are needed by [`Self::check`].
    pub fn news(&self, counted: &[Arc<StoredSegment>]) -> Vec<Arc<StoredSegment>> {
        counted.iter().filter(|one| !self.is_known(one)).cloned().collect()
    }

    fn is_known(&self, one: &Arc<StoredSegment>) -> bool {
        self.counted.get(&one.id).is_some_and(|(known, _)| Arc::ptr_eq(known, one) || known == one)
    }

    /// Compares the segments that count with the state, once their blobs were read, and the state with what was seen before; what the
    /// user is to be told. Nothing where nothing is authenticated.
    pub fn check(&mut self, shown: &Shown, seen: Option<&Pin>) -> Result<Option<String>> {
        let Some(signed) = &shown.state else { return Ok(None) };
        let mut counted = Counted::with_capacity(shown.counted.len());
        let mut changed = Vec::new();
        for one in &shown.counted {
            let known = self.counted.get(&one.id);
            let leaf = match known {
                Some((_, leaf)) if self.is_known(one) => *leaf,
                known => {
                    changed.extend(known.map(|_| one.id.to_string()));
                    self.leaf(one)
                }
            };
            counted.insert(one.id, (Arc::clone(one), leaf));
        }
        let sequence = signed.record.sequence;
        if counted.len() != shown.counted.len() || digest(&counted) != signed.record.segments_digest
        {
            changed.truncate(3);
            let since = if changed.is_empty() {
                String::new()
            } else {
                format!(" (changed since: {})", changed.join(", "))
            };
            return self.rolled_back(format!(
                "segments that are not those of state {sequence}: reordered, replaced, or with other rows deleted{since}"
            ));
        }
        let warning = self.follow(signed, seen)?;
        self.counted = counted;
        Ok(warning)
    }

    /// That an attachment, or the keys which a server says it answers with, is the one of the state, by its BLAKE3.
    pub fn check_attachment(&self, name: &str, digest: &[u8; 32]) -> Result<()> {
        let Some(Signed { record, .. }) = self.present.as_deref() else { return Ok(()) };
        let expected = match name {
            EVALUATION => record.evaluation,
            ROUTING => record.routing,
            _ => record.key_pair,
        };
        if *digest != expected {
            return self
                .rolled_back(format!("another {name} than that of state {}", record.sequence));
        }
        Ok(())
    }

    /// That the evaluation keys that a server says it answers with are those of the present state, whenever that is asked.
    pub fn evaluation_check(&self) -> impl Fn(Option<&[u8; 32]>) -> Result<()> + use<> {
        let (present, shows) = (self.present.clone(), (self.name(), self.next_step()));
        move |digest| match &present {
            Some(signed) if digest != Some(&signed.record.evaluation) => {
                let (name, next) = &shows;
                let says =
                    format!("other evaluation keys than those of state {}", signed.record.sequence);
                Err(rolled_back(name, says, next))
            }
            _ => Ok(()),
        }
    }

    /// The state that a change makes, sealed by its owner and added to it. What it names was read, and its new blobs were noted.
    pub fn next(
        &self,
        change: &mut Change,
        owner: &Owner,
        epoch: u32,
        step: Step<'_>,
    ) -> Result<Next> {
        let before = self.present.as_deref().map(|signed| &signed.record);
        let goes_on = before.filter(|_| !step.anew);
        let counted = self.after(change, &step);
        let mut consumed = self.consumed.clone();
        if !step.written.is_empty() {
            let mut list = Consumed::from_bytes(&consumed).map_err(SchemeError::Envelope)?;
            step.written.into_iter().for_each(|one| list.add(one));
            consumed = list.to_bytes();
        }
        let named = before.map(|before| before.consumed);
        if !consumed.is_empty() && named != Some(*blake3::hash(&consumed).as_bytes()) {
            change.attachments.insert(crate::change::CONSUMED, consumed.clone());
        }
        let attached = |name: &'static str, known: Option<[u8; 32]>| {
            let given = change.attachments.get(name).map(|given| *blake3::hash(given).as_bytes());
            given.or(known).or_else(|| step.attached.get(name).copied()).unwrap_or(NONE)
        };
        let mut ancestors = before.map_or_else(Vec::new, |before| before.ancestors.clone());
        ancestors.extend(self.present.as_ref().map(|signed| signed.name));
        ancestors.drain(..ancestors.len().saturating_sub(ANCESTORS));
        let quarantine = step.quarantine.iter().filter(|id| !change.remove.contains(id));
        let record = StateRecord {
            key: owner.key_id(),
            origin: match (before, owner.spec().incarnation()) {
                (Some(before), _) => before.origin,
                (None, Some(incarnation)) => *incarnation,
                (None, None) => random()?,
            },
            lineage: goes_on.map_or_else(random, |before| Ok(before.lineage))?,
            begun: goes_on.map_or(step.now, |before| before.begun),
            sequence: before.map_or(0, |before| before.sequence.saturating_add(1)),
            epoch,
            segments: counted.len() as u32,
            segments_digest: digest(&counted),
            description: *blake3::hash(change.meta.as_deref().unwrap_or(step.meta)).as_bytes(),
            evaluation: attached(EVALUATION, before.map(|before| before.evaluation)),
            key_pair: if owner.spec().scheme().is_additive() {
                attached(KEY_PAIR, before.map(|before| before.key_pair))
            } else {
                NONE
            },
            ancestors,
            aside: step
                .aside
                .iter()
                .map(|(id, rows)| SetAside { segment: id.0, rows: rows.clone() })
                .collect(),
            routing: attached(ROUTING, before.map(|before| before.routing)),
            consumed: if consumed.is_empty() { NONE } else { *blake3::hash(&consumed).as_bytes() },
            quarantine: quarantine.map(|id| id.0).collect(),
            signed: step.signer.map(|(by, changes)| signer(by, changes)),
        };
        let sealed = sealed(owner, &record, step.signer.map(|(by, _)| by))?;
        change.attachments.insert(STATE, sealed.clone());
        // What others would refuse is never sent.
        let signed = Signed::new(record, sealed, step.members).map_err(|why| {
            Error::Input(format!(
                "{} can't be changed so: it would have a state {why}.",
                self.name()
            ))
        })?;
        Ok(Next { signed, counted, consumed })
    }

    /// The segments that count after a change.
    fn after(&self, change: &Change, step: &Step<'_>) -> Counted {
        let mut counted = self.counted.clone();
        counted.extend(step.appended.iter().map(|one| (one.id, (Arc::clone(one), self.leaf(one)))));
        let gone: HashSet<_> = change.remove.iter().collect();
        let aside = |id: &SegmentId| step.aside.get(id).is_some_and(Vec::is_empty);
        counted.retain(|id, _| !gone.contains(id) && !aside(id));
        for (id, rows) in &change.delete_rows {
            if let Some((one, leaf)) = counted.get_mut(id) {
                let deleted = crate::change::union(&one.deleted, rows);
                *one = Arc::new(StoredSegment { deleted, ..(**one).clone() });
                *leaf = self.leaf(one);
            }
        }
        for added in change.add.iter().filter(|added| !aside(&added.id)) {
            let stored = Arc::new(added.stored());
            let leaf = self.leaf(&stored);
            counted.insert(added.id, (stored, leaf));
        }
        match &step.in_order {
            None => counted,
            Some(ids) => ids.iter().filter_map(|id| counted.swap_remove_entry(id)).collect(),
        }
    }

    /// The commit that was sealed is made.
    pub fn take(&mut self, Next { signed, counted, consumed }: Next) -> Pin {
        let pin = signed.pin();
        (self.present, self.counted, self.consumed) = (Some(signed), counted, consumed);
        pin
    }

    /// Whether the present state is the one that was seen, or comes after it.
    pub fn follows(&self, seen: &Pin) -> bool {
        self.present.as_ref().is_some_and(|present| present.follows(seen))
    }

    /// What two people compare to know that they see one history.
    pub fn checkpoint(&self) -> Result<String> {
        let present = self.authenticated()?;
        Ok(Checkpoint::of(present.record.sequence, &present.name).to_string())
    }

    /// That the state of this checkpoint is the present one, or comes before it.
    pub fn expect(&self, checkpoint: &str) -> Result<()> {
        let (present, name) = (self.authenticated()?, self.name());
        let Some(point) = Checkpoint::parse(checkpoint) else {
            return Error::input(format!(
                "{} is no checkpoint: those have 24 characters, digits and letters but U, as collection.checkpoint() gives them.",
                self.face.quoted(checkpoint)
            ));
        };
        let sequence = present.record.sequence;
        let steps = sequence.checked_sub(point.sequence);
        if present.is_long_after(steps) {
            return Err(Error::RolledBack(format!(
                "state {sequence} of {name} names the {ANCESTORS} states before it, and the checkpoint is of state {}: nobody can tell \
                 whether it is one of its history. Compare a later checkpoint.",
                point.sequence
            )));
        }
        let found = steps.and_then(|steps| present.before(steps));
        if found.is_none_or(|found| !found.starts_with(&point.name)) {
            let saw = if steps.is_none() {
                "what is not shown here yet, or is hidden"
            } else {
                "another history"
            };
            return Err(Error::RolledBack(format!(
                "the store of {name} shows state {sequence}, {}, in whose history there is no {checkpoint}: whoever gave you that saw {saw}. \
                 Read both aloud again; if they differ, believe neither, and ask whoever keeps the collection.",
                self.checkpoint()?
            )));
        }
        Ok(())
    }

    fn authenticated(&self) -> Result<&Signed> {
        self.present.as_deref().ok_or_else(|| {
            let (name, open) = (self.name(), self.face.quoted("open"));
            Error::Input(format!(
                "the states of {name} are not authenticated, so that they have no checkpoints: mode {open} has no key, and a collection of \
                 release 0.1 gets them by {}().",
                self.face.named("upgrade")
            ))
        })
    }

    /// That a state descends from what was seen before; what the user is told where nobody can tell.
    fn follow(&self, shown: &Signed, seen: Option<&Pin>) -> Result<Option<String>> {
        let (now, name) = (shown.pin(), self.name());
        let Some(seen) = seen.filter(|pin| (pin.sequence, &pin.name) != (now.sequence, &now.name))
        else {
            return Ok(None);
        };
        if seen.origin != now.origin {
            return Err(Error::Mismatch(format!(
                "the collection {name} is not the one that was pinned here under this name: it was dropped and made again elsewhere, or \
                 replaced. {}",
                self.next_step()
            )));
        }
        if let Some(members) = &seen.members
            && !shown.goes_on_from(members)
        {
            return self.rolled_back(format!(
                "state {} without the {} changes of its members that were seen here before",
                now.sequence, members.changes
            ));
        }
        if shown.follows(seen) {
            return Ok(None);
        }
        let (sequence, before) = (now.sequence, seen.sequence);
        let steps = sequence.checked_sub(before);
        if shown.is_long_after(steps) && now.lineage == seen.lineage {
            return Ok(Some(format!(
                "{} states of {name} came since this client last looked, more than one can tell the descent of. If its keeper may have put \
                 an older one back meanwhile, compare it with another client.",
                steps.unwrap_or_default()
            )));
        }
        if now.lineage != seen.lineage && !seen.left.contains(&now.lineage) {
            let when = minute(shown.record.begun);
            let who =
                if shown.author.is_some() { "somebody who commits to" } else { "the owner of" };
            return Err(Error::RolledBack(format!(
                "{who} {name} accepted a restore at {when}: state {sequence} does not have what was seen here up to state {before}. \
                 To follow, call client.forget({name})."
            )));
        }
        let what = match steps {
            None => format!("state {sequence}"),
            Some(_) => format!("a state {sequence} of another history"),
        };
        self.rolled_back(format!("{what}, and state {before} was seen before"))
    }

    fn leaf(&self, one: &StoredSegment) -> [u8; 32] {
        let digests = self.digests.get(&one.id).into_iter().flatten();
        let digests: Vec<_> = digests.map(|(name, digest)| ((*name).to_owned(), *digest)).collect();
        let blobs: Vec<_> = one.blobs.keys().cloned().collect();
        let (id, deleted) = (&one.id.0, &one.deleted);
        state::leaf(&SegmentFacts { id, rows: one.rows, deleted, blobs: &blobs, digests: &digests })
    }

    fn name(&self) -> String {
        self.face.quoted(&self.collection)
    }

    fn rolled_back<T>(&self, shows: impl core::fmt::Display) -> Result<T> {
        Err(rolled_back(&self.name(), shows, &self.next_step()))
    }

    fn next_step(&self) -> String {
        let accepts = self.face.accepts(&self.collection);
        format!(
            "Ask whoever keeps it what happened. If a backup was restored on purpose, its owner confirms that with {accepts}."
        )
    }
}

fn rolled_back(name: &str, shows: impl core::fmt::Display, next: &str) -> Error {
    Error::RolledBack(format!(
        "the store of {name} shows {shows}: commits were lost, rolled back or forged, and nothing was taken from it. {next}"
    ))
}

/// A list of consumed segments with those of another.
fn united(list: Vec<u8>, known: &[u8]) -> Result<Vec<u8>> {
    if known.is_empty() || known == list {
        return Ok(list);
    }
    let read = |bytes: &[u8]| Consumed::from_bytes(bytes).map_err(SchemeError::Envelope);
    let mut all = read(&list)?;
    let said = all.clone();
    all.merge(read(known)?);
    Ok(if all == said { list } else { all.to_bytes() })
}

/// What stands for segments in a state.
fn digest(counted: &Counted) -> [u8; 32] {
    state::digest(&counted.values().flat_map(|(_, leaf)| *leaf).collect::<Vec<_>>())
}
