//! The replica: what the key holder knows of a collection's segments, in step with the store.
//!
//! Order of every change: seal, commit to the store, and only then let the directory know. A commit that fails leaves both as they were.
//! Whatever ends a call, the next one begins with what the store has then: [`Replica::settle`].

pub mod alone;
pub mod asking;
pub mod batch;
pub mod center;
pub mod choosing;
pub mod cluster_rows;
pub mod clustering;
pub mod committing;
pub mod compaction;
pub mod describing;
pub mod exact;
pub mod explaining;
pub mod fetch;
pub mod fetches;
pub mod fetching;
pub mod filtering;
pub mod fusion;
pub mod late;
pub mod membership;
pub mod merging;
pub mod oblivious;
pub mod opened;
pub mod opened_routing;
mod others;
pub mod overlay;
pub mod padding;
pub mod payloads;
pub mod prefetch;
pub mod quarantine;
pub mod query_keys;
pub mod read;
pub mod recluster;
pub mod request;
pub mod restore;
pub mod rotation;
pub mod routing;
pub mod rows;
pub mod streaming;
pub mod tables;
pub mod taking_in;
pub mod traffic;
pub mod words;
pub mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ciphervec_owner::SegmentId;
use ciphervec_owner::protect::consumed::Consumed;
use ciphervec_owner::search::{Origin, Owner, SegmentDirectory, TokenPool};

use crate::belief::description::Description;
use crate::belief::holder::Holder;
use crate::belief::quarantine_book::QuarantineBook;
use crate::belief::state::{Shown, States};
use crate::belief::trust::MASKS;
use crate::change::{CONSUMED, COVERED, Difference, EVALUATION, STATE, StoredSegment};
use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::replica::fetch::Fetch;
use crate::replica::fetches::Fetches;
use crate::replica::opened::Payloads;
use crate::replica::opened_routing::OpenedRouting;
use crate::replica::query_keys::QueryKeys;
use crate::replica::traffic::Traffic;
use crate::store::CollectionStore;
use crate::view::View;
use crate::view::spread::OffCenter;

/// Rows after which another segment begins; under the additively homomorphic schemes, which take seconds for so many, and of rows of many
/// vectors, whose matrices are all held while they are sealed.
pub const SEGMENT_ROWS: usize = 65_536;
pub const LONG_ROWS: usize = 4_096;
/// How often a change, or a query, is tried anew at least because others committed in between.
const TURNS: u32 = 16;
/// For how long it is. A server that tidies up commits as well, many times a second.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a collection is opened with.
pub struct Opened {
    pub face: Face,
    pub keys: Option<Holder>,
    pub store: Arc<dyn CollectionStore>,
    pub description: Description,
    pub fetch: Fetch,
    pub queries_per_key: usize,
}

/// The segments of one collection, from the owner's point of view.
pub struct Replica {
    pub face: Face,
    keys: Option<Holder>,
    /// Given by a commit that may not be made.
    following: Option<Holder>,
    pub store: Arc<dyn CollectionStore>,
    pub description: Arc<Description>,
    pub states: States,
    pub query_keys: QueryKeys,
    pub owner: Arc<Owner>,
    pub directory: SegmentDirectory,
    pub payloads: Payloads,
    pub routing: OpenedRouting,
    /// Halves of answers that were fetched ahead.
    pub tokens: TokenPool,
    /// Of the latest lone question.
    pub traffic: Option<Traffic>,
    pub off_center: OffCenter,
    /// Times that rows went away.
    pub losses: u64,
    /// Why segments are passed over.
    pub reasons: HashMap<SegmentId, String>,
    /// Since the state, and counted.
    pub appended: Vec<SegmentId>,
    in_step: bool,
    /// Deleted rows of every segment that is attached.
    deleted: HashMap<SegmentId, Vec<u32>>,
    /// As listed when all this was right.
    taken: Vec<Arc<StoredSegment>>,
    /// Those in quarantine by the user's storage.
    quarantine: QuarantineBook,
    /// Private ones.
    pub fetches: Fetches,
    /// How rows are read where a call doesn't say.
    pub fetch: Fetch,
    /// The state whose records were all read.
    covered: Option<u64>,
    /// Those by the owner's state.
    stated: HashSet<SegmentId>,
    /// Of which epoch and state the owner was given the evaluation keys that queries are answered with.
    evaluation: Option<(u32, Option<[u8; 32]>)>,
}

impl Replica {
    /// Reads the sidecars.
    pub async fn open(host: &dyn Host, opened: Opened) -> Result<Self> {
        let Opened { face, keys, store, description, fetch, queries_per_key } = opened;
        let owner = Arc::new(description.owner(face, keys.as_ref())?);
        let quarantine = store.trust().quarantine(&description.spec);
        let book = store.trust().sessions(&description.spec);
        // What this process searches itself no other asks; and a page begins a session each time that it is loaded.
        let several = !store.computes() && face != Face::JavaScript;
        let query_keys = QueryKeys::new(Some(book).filter(|_| several), queries_per_key);
        let fetches = Fetches::new(store.trust().fetches(&description.spec));
        let mut replica = Replica {
            face,
            keys,
            following: None,
            states: States::new(face, description.spec.collection()),
            store,
            description: Arc::new(description),
            query_keys,
            owner,
            directory: SegmentDirectory::new(),
            payloads: Payloads::default(),
            routing: OpenedRouting::default(),
            tokens: TokenPool::default(),
            traffic: None,
            off_center: OffCenter::default(),
            losses: 0,
            reasons: HashMap::new(),
            appended: Vec::new(),
            in_step: false,
            deleted: HashMap::new(),
            taken: Vec::new(),
            quarantine,
            fetches,
            fetch,
            covered: None,
            stated: HashSet::new(),
            evaluation: None,
        };
        replica.load(host).await?;
        Ok(replica)
    }

    pub fn name(&self) -> String {
        self.face.quoted(self.description.spec.collection())
    }

    /// What its owner knows of it.
    pub fn view(&self) -> View<'_> {
        View { face: self.face, owner: &self.owner, directory: &self.directory }
    }

    /// The committed segments, oldest first.
    pub fn entries(&self) -> Vec<Arc<StoredSegment>> {
        self.store.listing().segments.values().cloned().collect()
    }

    /// Those that are not passed over.
    pub fn read_entries(&self) -> Vec<Arc<StoredSegment>> {
        let listing = self.store.listing();
        listing
            .segments
            .values()
            .filter(|one| {
                !self.reasons.contains_key(&one.id) && !self.routing.staged().contains(&one.id)
            })
            .cloned()
            .collect()
    }

    /// Segments taken in, those that are passed over included.
    pub fn attached(&self) -> HashSet<SegmentId> {
        self.deleted.keys().copied().collect()
    }

    /// Looks at rows that are to be added, before they are.
    pub fn see(&mut self, host: &dyn Host, rows: &[f32]) -> Result<()> {
        let Description { spec, center, .. } = &*self.description;
        self.off_center.see(host, spec, center, rows);
        self.expect_committer()?;
        host.check()
    }

    /// Whether a segment counts only by the word of the writer of this name.
    pub fn writer(&self, id: SegmentId) -> Option<&str> {
        match self.directory.origin(id) {
            Some(Origin::Writer(name)) => Some(name),
            _ => None,
        }
    }

    /// Runs `step`, which reads the present state and may commit; again on the latest one when others were first.
    pub async fn in_turn<T>(
        &mut self,
        host: &dyn Host,
        mut step: impl AsyncFnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let ends = host.now() + PATIENCE;
        for turn in 0.. {
            match step(self).await {
                Err(Error::Conflict(_)) if turn < TURNS - 1 || host.now() < ends => {
                    step_aside(host, turn).await?;
                    self.refresh(host).await?;
                }
                done => return done,
            }
        }
        Err(self.too_fast())
    }

    pub fn too_fast(&self) -> Error {
        Error::Conflict(format!(
            "collection {} changes faster than a query takes. Ask again.",
            self.name()
        ))
    }

    /// Reads everything again if the last change was interrupted between its commit and its end.
    pub async fn settle(&mut self, host: &dyn Host) -> Result<()> {
        if self.in_step {
            return Ok(());
        }
        self.store.refresh(host).await?;
        self.renew()?;
        self.load(host).await
    }

    /// Takes in what others have committed since: sidecars of new segments, deletions, the epoch.
    pub async fn refresh(&mut self, host: &dyn Host) -> Result<()> {
        let in_step = core::mem::take(&mut self.in_step);
        match self.store.refresh(host).await {
            Ok(true) => {}
            // What was shown before may be what the error is about: the next call looks again.
            Err(error) if error.is_doubtful() => return Err(error),
            unchanged => {
                self.in_step = in_step;
                return unchanged.map(drop);
            }
        }
        // Another client gives the collection new keys, or has given them, or other filterable fields.
        let before = Arc::clone(&self.description);
        self.renew()?;
        if !before.reads_alike(&self.description) {
            return self.load(host).await;
        }
        let shown = match self.grow(host).await {
            Ok(Some(shown)) => shown,
            Ok(None) => return self.load(host).await,
            // Again, where others were faster, or the same error.
            Err(error) if error.is_wrong() || matches!(error, Error::Conflict(_)) => {
                return self.load(host).await;
            }
            Err(error) => return Err(error),
        };
        if shown.state.is_some() && !self.appended.is_empty() && shown.appended.is_empty() {
            self.directory.authenticate();
            self.appended.clear();
        }
        self.attach_appended(host, &shown).await?;
        self.took(host).await
    }

    /// Takes in what is new where nothing else has changed; nothing where everything has to be read anew.
    async fn grow(&mut self, host: &dyn Host) -> Result<Option<Shown>> {
        let routing =
            |replica: &Self| replica.states.present.as_ref().map(|signed| signed.record.routing);
        let routed = routing(self);
        let shown = self.shown(host).await?;
        let since = Difference::between(&self.taken, &self.entries());
        if routing(self) != routed || !self.is_grown(&shown, &since) {
            return Ok(None);
        }
        since.gone.iter().for_each(|segment| self.detach(segment.id));
        // An id may have moved from an old segment to a new one, so rows go before others come.
        self.forget(&since.changed);
        let appended: HashSet<_> = shown.appended.iter().map(|one| one.id).collect();
        let counts =
            |one: &&Arc<StoredSegment>| !appended.contains(&one.id) && !shown.sets_aside(one.id);
        let added: Vec<_> = since.added.iter().filter(counts).cloned().collect();
        self.attach(host, &shown, &added).await?;
        self.check(host, &shown).await?;
        Ok(Some(shown))
    }

    /// Whether all that is new since the state known here are segments, and deletions: not so after a restore, or when rows were set
    /// aside, or rows appended count otherwise by now.
    fn is_grown(&self, shown: &Shown, since: &Difference) -> bool {
        let fewer = |segment: &Arc<StoredSegment>| {
            let before = self.deleted.get(&segment.id);
            before.is_some_and(|rows| {
                rows.iter().any(|row| segment.deleted.binary_search(row).is_err())
            })
        };
        if since.changed.iter().any(fewer)
            || since.added.iter().any(|one| self.deleted.contains_key(&one.id))
        {
            return false;
        }
        if shown.state.is_none() {
            return true;
        }
        let gone: HashSet<_> = since.gone.iter().map(|one| one.id).collect();
        let left: HashSet<_> = shown.appended.iter().map(|one| one.id).collect();
        let mut aside: HashMap<SegmentId, Vec<u32>> = HashMap::new();
        for (_, id, row) in self.directory.aside() {
            aside.entry(id).or_default().push(row);
        }
        aside.values_mut().for_each(|rows| rows.sort_unstable());
        // Whether a segment known here is one of the owner's state by now.
        let counts = |id: &SegmentId| {
            self.deleted.contains_key(id)
                && !gone.contains(id)
                && !left.contains(id)
                && !shown.sets_aside(*id)
        };
        let same = |id: &SegmentId| {
            aside.get(id).map_or(&[][..], Vec::as_slice)
                == shown.aside.get(id).map_or(&[][..], Vec::as_slice)
        };
        aside.keys().chain(shown.aside.keys()).all(|id| !counts(id) || same(id))
            && !self.reasons.keys().any(counts)
            && (left.is_empty() || self.appended.iter().all(|id| left.contains(id)))
            && left.iter().all(|id| {
                !self.deleted.contains_key(id)
                    || self.appended.contains(id)
                    || self.reasons.contains_key(id)
            })
    }

    /// Reads everything again. What is shown may be replaced by others while it is read.
    pub async fn load(&mut self, host: &dyn Host) -> Result<()> {
        let mut doubted = false;
        for turn in 0.. {
            let error = match Box::pin(self.read_all(host)).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let last = turn >= TURNS - 1;
            if error.is_wrong() && self.store.discard(host, None, None).await? && !doubted {
                doubted = true; // blobs kept from another time may be wrong: once more, without them
                self.states.doubt();
                continue;
            }
            if matches!(error, Error::Conflict(_)) && !last {
                step_aside(host, turn).await?; // what was listed is merged into something newer by now
                self.store.refresh(host).await?;
            } else if error.is_wrong() && !last {
                let before = self.store.listing().version;
                self.store.doubt();
                if !self.store.refresh(host).await?
                    || self.store.listing().version == before && turn > 0
                {
                    self.store.doubt(); // shown so twice
                    return Err(error);
                }
            } else {
                return Err(error);
            }
            self.renew()?;
        }
        Ok(())
    }

    async fn read_all(&mut self, host: &dyn Host) -> Result<()> {
        self.in_step = false;
        self.owner = Arc::new(self.description.owner(self.face, self.keys.as_ref())?);
        self.directory = SegmentDirectory::new();
        self.payloads = Payloads::default();
        self.deleted.clear();
        self.reasons.clear();
        self.appended.clear();
        self.taken.clear();
        self.evaluation = None;
        self.losses += 1;
        let shown = self.shown(host).await?;
        self.open_routing(host).await?;
        self.open_key_pair(host).await?;
        let counted = shown.counted.clone();
        self.attach(host, &shown, &counted).await?;
        self.check(host, &shown).await?;
        self.attach_appended(host, &shown).await?;
        self.took(host).await
    }

    /// What the store shows, with the owner's state, under the owner's keys.
    async fn shown(&mut self, host: &dyn Host) -> Result<Shown> {
        let listing = self.store.listing();
        if !self.description.authenticated {
            self.states.without(self.store.trust().state().is_some())?;
            self.store.trust().expect_home(host, None).await?;
            let counted = listing.segments.values().cloned().collect();
            return Ok(Shown { counted, ..Shown::default() });
        }
        let sealed = match self.store.has_attachment(STATE) {
            true => Some(self.store.attachment(host, STATE).await?),
            false => None,
        };
        let signed =
            self.states.open(&self.owner, sealed.as_deref(), &listing.meta, &self.description)?;
        self.store.trust().of_origin(host, &signed.record.origin).await?;
        let list = match self.states.needs_list(&signed) {
            true => Some(self.store.attachment(host, CONSUMED).await?),
            false => None,
        };
        let kept = match self.states.is_new() {
            true => self.store.trust().consumed(host, &signed.record.origin).await?,
            false => Vec::new(),
        };
        let shown = self.states.believe(signed, &listing.segments, list, &kept)?;
        let consumed = Consumed::from_bytes(&self.states.consumed)
            .map_err(ciphervec_owner::Error::Envelope)?;
        self.directory.expect_unconsumed(consumed);
        if let Some(said) = &listing.evaluation {
            (self.states.evaluation_check())(Some(said))?;
        }
        Ok(shown)
    }

    /// Compares what is shown with the owner's state, and that with what was seen before.
    async fn check(&mut self, host: &dyn Host, shown: &Shown) -> Result<()> {
        let Some(state) = &shown.state else { return Ok(()) };
        let news = self.states.news(&shown.counted);
        self.read_covered(host, &news).await?;
        // Another client of this user may have seen more meanwhile.
        self.store.trust().reload(host).await?;
        let warning = self.states.check(shown, self.store.trust().state().as_ref())?;
        if let Some(text) = warning {
            host.warn(&text);
        }
        let (trust, record) = (self.store.trust(), &state.record);
        trust.keep_consumed(host, &record.origin, &self.states.consumed).await?;
        trust.see_state(host, state.pin()).await
    }

    /// Has the bytes of these segments' covered blobs noted.
    async fn read_covered(
        &mut self,
        host: &dyn Host,
        segments: &[Arc<StoredSegment>],
    ) -> Result<()> {
        for (segment, blob) in self.states.missing(segments) {
            self.read(host, segment.id, blob).await?;
        }
        Ok(())
    }

    /// Reads a blob, which is compared with what it was before.
    pub async fn read(
        &mut self,
        host: &dyn Host,
        segment: SegmentId,
        blob: &str,
    ) -> Result<Arc<[u8]>> {
        let data = self.store.read(host, segment, blob).await?;
        self.states.note(segment, blob, &data)?;
        Ok(data)
    }

    fn renew(&mut self) -> Result<()> {
        let listing = self.store.listing();
        let spec = &self.description.spec;
        let name = spec.collection();
        let read = |keys: &Option<Holder>| {
            Description::read(self.face, &listing.meta, name, keys.as_ref())
        };
        let (described, keys) = match read(&self.keys) {
            // The commit that changes the keys was made, and what came after it was not.
            Err(wrong @ Error::WrongKey(_)) if self.following.is_some() => {
                (read(&self.following).map_err(|_| wrong)?, self.following.clone())
            }
            described => (described?, self.keys.clone()),
        };
        if described.spec != *spec {
            return Error::corrupt(format!(
                "collection {} is another one now. Close it and open it again.",
                self.name()
            ));
        }
        (self.description, self.keys) = (Arc::new(described), keys);
        Ok(())
    }

    /// Marks rows of attached segments as deleted that others have deleted.
    fn forget(&mut self, changed: &[Arc<StoredSegment>]) {
        for segment in changed {
            let before: HashSet<_> =
                self.deleted.get(&segment.id).into_iter().flatten().copied().collect();
            let rows: Vec<_> = segment.deleted.iter().filter(|row| !before.contains(row)).collect();
            let names: Vec<_> = self
                .directory
                .names(segment.id)
                .into_iter()
                .flatten()
                .map(|name| name.cloned())
                .collect();
            for name in rows.iter().filter_map(|row| names.get(**row as usize)?.as_ref()) {
                self.directory.mark_deleted(name);
            }
            self.losses += u64::from(!rows.is_empty());
            self.deleted.insert(segment.id, segment.deleted.clone());
        }
    }

    fn detach(&mut self, id: SegmentId) {
        self.directory.remove(id);
        self.deleted.remove(&id);
        self.payloads.forget(id);
        self.reasons.remove(&id);
        self.appended.retain(|one| *one != id);
        self.losses += 1;
    }

    /// What the store lists is taken in.
    async fn took(&mut self, host: &dyn Host) -> Result<()> {
        self.hold_evaluation(host).await?;
        self.taken = self.entries();
        for (segment, blob) in self.store.unkept() {
            if COVERED.contains(&blob.as_str()) && !self.reasons.contains_key(&segment) {
                self.store.keep(host, segment, &blob).await?;
            }
        }
        let stated = self.states.present.iter().flat_map(|signed| &signed.record.quarantine);
        self.stated = stated.map(|id| SegmentId(*id)).collect();
        self.quarantine.reload(host).await?;
        let told: Vec<_> = self.stated.iter().map(SegmentId::to_string).collect();
        self.store.trust().see_stated(host, told.clone()).await?;
        for id in &told {
            self.quarantine.release(host, id).await?;
        }
        self.pass_over();
        self.in_step = true;
        // Until it is seen, the commit that changes the keys may still come: whoever sent it was interrupted.
        let present = &self.description.key_id;
        self.following.take_if(
            |held| matches!(held, Holder::Keys(keys) if keys.key_id().to_string() == *present),
        );
        Ok(())
    }

    /// Holds the server to what it shows beside a state that was found to be the owner's.
    pub async fn pin(&self, host: &dyn Host) -> Result<()> {
        let check = |digest: &[u8; 32]| self.states.check_attachment(EVALUATION, digest);
        self.store.pin_evaluation(host, self.description.epoch, &check).await?;
        if self.description.has_key_pair() {
            return Ok(());
        }
        self.store.trust().pin(host, &[(MASKS.to_owned(), masks(&self.owner))]).await
    }
}

/// The hash of the seed of an owner's public masks, by which a collection is known again under other keys.
pub fn masks(owner: &Owner) -> String {
    blake3::hash(owner.mask_seed()).to_hex().to_string()
}

/// Waits a moment: those who met once should not meet again.
async fn step_aside(host: &dyn Host, turn: u32) -> Result<()> {
    let longest = Duration::from_millis(10) * (1 << turn.min(6));
    host.sleep(longest.min(Duration::from_millis(500)).mul_f64(crate::random::uniform())).await
}
