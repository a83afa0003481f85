//! One collection in a folder or in memory, and the index that answers its queries.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ciphervec_arith::AlignedBytes;
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::search::{ServerIndex, is_session};
use ciphervec_owner::{Error as SchemeError, IndexSpec, SegmentId};

use crate::belief::trust::Trust;
use crate::change::Listing;
use crate::change::{Change, EVALUATION, TAGS};
use crate::error::{Error, Result};
use crate::host::{Head, Host};
use crate::local::blobs::Blobs;
use crate::store::{Asked, CollectionStore, Evaluated, Receiver, Verified};
use crate::threads::heavy;

/// Bytes of an answer that are handed on at once.
const PIECE: usize = 1 << 20;

/// One collection on this machine.
pub struct LocalStore {
    trust: Trust,
    held: Arc<Mutex<Held>>,
}

struct Held {
    blobs: Blobs,
    listing: Arc<Listing>,
    /// Loaded by the first query.
    searched: Option<Searched>,
    /// Evaluation keys of the session that queries are asked in.
    session: Option<Arc<[u8]>>,
}

/// What queries are answered from.
struct Searched {
    index: ServerIndex,
    /// BLAKE3 of the collection's evaluation keys.
    evaluation: [u8; 32],
    /// Segments that it has not.
    without: HashSet<SegmentId>,
    /// The session whose evaluation keys it has beside those.
    session: Option<u32>,
}

impl LocalStore {
    pub fn new(trust: Trust, blobs: Blobs, listing: Listing) -> Self {
        let held = Held { blobs, listing: Arc::new(listing), searched: None, session: None };
        LocalStore { trust, held: Arc::new(Mutex::new(held)) }
    }

    /// The same, whatever was seen of it before.
    pub fn trusted(&self, trust: Trust) -> Self {
        LocalStore { trust, held: Arc::clone(&self.held) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Where the present one lacks nothing but segments in `without`, it is that one.
    fn searched(&mut self, spec: &IndexSpec, without: &[SegmentId]) -> Result<&mut Searched> {
        let suits = |known: &Searched| known.without.iter().all(|id| without.contains(id));
        if self.searched.as_ref().is_some_and(|known| !suits(known)) {
            self.unload()?;
        }
        let known = match self.searched.take() {
            Some(known) => known,
            None => self.load(spec, without)?,
        };
        Ok(self.searched.insert(known))
    }

    fn load(&mut self, spec: &IndexSpec, without: &[SegmentId]) -> Result<Searched> {
        let keys = self.blobs.attachment(EVALUATION)?;
        let mut index = ServerIndex::new(spec.clone())?;
        if !keys.is_empty() || spec.form().needs_evaluation_keys() {
            heavy(|| index.set_evaluation_keys(&keys))?;
        }
        let mut searched = Searched {
            index,
            evaluation: *blake3::hash(&keys).as_bytes(),
            without: without.iter().copied().collect(),
            session: None,
        };
        let listing = Arc::clone(&self.listing);
        for segment in listing.segments.values().filter(|one| !without.contains(&one.id)) {
            let tags = match segment.has(TAGS) {
                true => Some(self.blobs.read(None, segment.id, TAGS)?),
                false => None,
            };
            searched.add(segment.id, self.blobs.rows(segment.id)?, tags.as_deref())?;
        }
        // Not before all of them are there: where one is damaged, the others are still kept.
        searched.index.heads().for_each(|head| self.blobs.leave(head.id));
        if let Some(keys) = &self.session {
            searched.session = Some(heavy(|| searched.index.set_evaluation_keys(keys))?);
        }
        Ok(searched)
    }

    /// Brings what is searched in step with a change that was made.
    fn follow(&mut self, change: &Change) -> Result<()> {
        let Some(searched) = &mut self.searched else { return Ok(()) };
        searched.index.remove_all(change.remove.iter().copied());
        for added in &change.add {
            let rows = self.blobs.rows(added.id)?;
            searched.add(added.id, rows, added.blobs.get(TAGS).map(|tags| &**tags))?;
            self.blobs.leave(added.id);
        }
        Ok(())
    }

    /// What is searched is loaded anew by the next query.
    fn unload(&mut self) -> Result<()> {
        match self.searched.take() {
            Some(known) => self.blobs.take_back(&known.index),
            None => Ok(()),
        }
    }
}

impl Searched {
    fn add(&mut self, id: SegmentId, rows: AlignedBytes, tags: Option<&[u8]>) -> Result<()> {
        let tags = tags.map(FilterTags::from_bytes).transpose();
        let tags = tags.map_err(|error| Error::Corrupt(error.to_string()))?.unwrap_or_default();
        let found = heavy(|| self.index.add_tagged(rows, tags))?;
        if found != id {
            self.index.remove(found);
            return Error::corrupt(format!("segment {id} holds the rows of segment {found}."));
        }
        Ok(())
    }
}

#[async_trait(?Send)]
impl CollectionStore for LocalStore {
    fn trust(&self) -> &Trust {
        &self.trust
    }

    fn computes(&self) -> bool {
        true
    }

    fn lasts(&self) -> bool {
        matches!(self.held().blobs, Blobs::Folder(_))
    }

    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.held().listing)
    }

    fn newer(&self) -> Option<u64> {
        match &self.held().blobs {
            Blobs::Folder(store) => store.newer(),
            Blobs::Memory(_) => None,
        }
    }

    async fn refresh(&self, _host: &dyn Host) -> Result<bool> {
        let held = &mut *self.held();
        let moved = held.blobs.refresh()?;
        if let (true, Blobs::Folder(store)) = (moved, &held.blobs) {
            held.listing = Arc::new(Blobs::listed(store, Some(&held.listing)));
            held.searched = None;
        }
        Ok(moved)
    }

    async fn commit(&self, _host: &dyn Host, change: &Change) -> Result<()> {
        let held = &mut *self.held();
        let (version, head) = held.blobs.commit(change)?;
        held.listing = Arc::new(held.listing.after(change, version, head));
        if change.attachments.contains_key(EVALUATION) {
            held.session = None;
            return held.unload();
        }
        match held.follow(change) {
            Ok(()) => Ok(()),
            Err(_) => held.unload(), // the next query says what is wrong
        }
    }

    async fn read(&self, _host: &dyn Host, segment: SegmentId, blob: &str) -> Result<Arc<[u8]>> {
        let held = &*self.held();
        held.blobs.read(held.searched.as_ref().map(|searched| &searched.index), segment, blob)
    }

    async fn attachment(&self, _host: &dyn Host, name: &str) -> Result<Vec<u8>> {
        self.held().blobs.attachment(name)
    }

    async fn evaluate(
        &self,
        _host: &dyn Host,
        asked: &Asked<'_>,
        sink: &mut dyn Receiver,
    ) -> Result<Evaluated> {
        let (index, listing) = {
            let held = &mut *self.held();
            let searched = held.searched(asked.spec, asked.without)?;
            (asked.check)(Some(&searched.evaluation))?;
            // A state of its own, so that others may change this one meanwhile.
            (searched.index.clone(), Arc::clone(&held.listing))
        };
        let Asked { query, lender, .. } = *asked;
        let answer = match heavy(|| index.evaluate_beside(query, lender)) {
            Err(SchemeError::NoEvaluationKeys { epoch }) if is_session(epoch) => {
                return Ok(Evaluated::KeysMissing);
            }
            answer => answer?.bytes,
        };
        let said = [
            ("ciphervec-version", listing.version.to_string()),
            ("ciphervec-head", listing.head.clone()),
            ("content-length", answer.len().to_string()),
        ];
        let headers = said.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let mut taken = sink.begin(&Head { status: 200, headers });
        for piece in answer.chunks(PIECE) {
            taken = taken.and_then(|()| sink.take(piece));
        }
        match taken {
            Ok(()) => Ok(Evaluated::Answered(listing.version)),
            Err(lost) => Err(sink.refused().unwrap_or_else(|| Error::server(lost.says))),
        }
    }

    async fn hold(&self, _host: &dyn Host, evaluation: &[u8]) -> Result<bool> {
        let held = &mut *self.held();
        held.session = Some(evaluation.into());
        if let Some(searched) = &mut held.searched {
            if let Some(over) = searched.session.take() {
                searched.index.forget_epoch(over);
            }
            searched.session = Some(heavy(|| searched.index.set_evaluation_keys(evaluation))?);
        }
        Ok(true)
    }

    async fn verify(&self, host: &dyn Host) -> Result<Verified> {
        self.held().blobs.verify(host)
    }

    async fn purge(&self, _host: &dyn Host) -> Result<()> {
        self.held().blobs.purge()
    }
}
