//! One collection on a server, as it was in the latest answer. Sealed blobs come from the cache where they are there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ciphervec_owner::SegmentId;

use crate::belief::trust::{EPOCH, KEY_ID, SESSIONS, Trust};
use crate::change::Listing;
use crate::change::{Change, EVALUATION, KEY_PAIR, STATE, StoredSegment};
use crate::error::{Error, Result};
use crate::face::Face;
use crate::hex::Hex;
use crate::host::Host;
use crate::remote::cache::BlobCache;
use crate::remote::frame::Upload;
use crate::remote::listing::public_parameters;
use crate::remote::problem::{error_of, is_problem};
use crate::remote::session::{Call, Session};
use crate::store::{
    Asked, Check, CollectionStore, Evaluated, Fetching, Lineages, Receiver, Verified, answered_on,
};
use crate::writing::writing;

const MAX_STATE: usize = 64 << 20;
pub(super) const OCTETS: &str = "application/octet-stream";

/// A blob's segment and name.
pub(super) type Blob = (SegmentId, String);

pub(super) struct Kept {
    pub(super) listing: Arc<Listing>,
    /// What is shown was found to be wrong: the next refresh reads it again, whatever it is called.
    doubted: bool,
    /// Fetched, and not found right yet.
    pub(super) fetched: HashMap<Blob, Arc<[u8]>>,
    /// Bytes of these.
    pub(super) waiting: usize,
    /// From the cache, and not found right since.
    pub(super) used: HashSet<Blob>,
    /// By the hash of what they hold, of a change that others were faster than.
    pub(super) uploads: HashMap<[u8; 32], Upload>,
    /// Whether the server gives several blobs at once, as far as is known.
    pub(super) several: bool,
    /// The keys that this client gave the collection in a change that may not have been made.
    pub(super) given: Option<String>,
}

/// One collection on a server.
pub struct RemoteStore {
    face: Face,
    pub(super) session: Arc<Session>,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) trust: Trust,
    pub(super) cache: Arc<BlobCache>,
    lineage: Lineages,
    kept: Mutex<Kept>,
}

impl RemoteStore {
    /// An error when the listing is not what the server has shown before.
    #[expect(clippy::too_many_arguments, reason = "what a store is made of")]
    pub async fn open(
        face: Face,
        host: &dyn Host,
        session: Arc<Session>,
        name: &str,
        trust: Trust,
        cache: Arc<BlobCache>,
        listing: Listing,
        lineage: Lineages,
    ) -> Result<Self> {
        let store = RemoteStore {
            face,
            session,
            name: name.to_owned(),
            path: format!("/v1/collections/{name}"),
            trust,
            cache,
            lineage,
            kept: Mutex::new(Kept {
                listing: Arc::new(listing),
                doubted: false,
                fetched: HashMap::new(),
                waiting: 0,
                used: HashSet::new(),
                uploads: HashMap::new(),
                several: true,
                given: None,
            }),
        };
        let listing = store.listing();
        store.check(host, &listing, store.trust.version()).await?;
        Ok(store)
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn refuse_if_moved(&self, host: &dyn Host, doing: &str) -> Result<()> {
        if self.newer(host).await?.is_some() {
            let says = "it changes faster than it can be read. Try again.";
            return Err(Error::Conflict(format!("{doing}: {says}")));
        }
        Ok(())
    }

    /// The server's state; none when it is the one known here.
    pub async fn newer(&self, host: &dyn Host) -> Result<Option<Listing>> {
        let doing = format!("cannot read {}", self.quoted());
        let (before, doubted) = {
            let kept = self.kept();
            (Arc::clone(&kept.listing), kept.doubted)
        };
        let known = (!doubted).then(|| ("If-None-Match", format!("\"{}\"", before.head)));
        let call = Call { headers: known.into_iter().collect(), also: &[304], ..Call::default() };
        let reply = self.session.call(host, "GET", &self.path, &doing, call).await?;
        if reply.head.status == 304 {
            return Ok(None);
        }
        Listing::read(&reply.body, &self.name, &self.session.url, Some(&before)).map(Some)
    }

    async fn check(&self, host: &dyn Host, listing: &Listing, since: u64) -> Result<()> {
        self.trust.see(host, listing.version, &listing.head, since, false).await?;
        let Some((spec, shown)) = public_parameters(&listing.meta) else { return Ok(()) };
        self.trust.pin(host, &[("spec".to_owned(), spec)]).await?;
        if self.trust.is_personal() {
            return Ok(()); // the list of members says which keys it has, and goes on from the one that was seen
        }
        let moved = self.trust.pinned(KEY_ID).is_some_and(|pinned| pinned != shown);
        if moved && self.kept().given.as_ref() == Some(&shown) {
            self.trust.repin(host, &[(KEY_ID.to_owned(), shown.clone())]).await?;
        } else if moved {
            self.trust.follow(host, &shown, (self.lineage)(&listing.meta).as_ref()).await?;
        }
        self.trust.pin(host, &[(KEY_ID.to_owned(), shown)]).await
    }

    pub(super) fn quoted(&self) -> String {
        self.face.quoted(&self.name)
    }
}

#[async_trait(?Send)]
impl CollectionStore for RemoteStore {
    fn trust(&self) -> &Trust {
        &self.trust
    }

    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.kept().listing)
    }

    fn fetching(&self) -> Option<&dyn Fetching> {
        Some(self)
    }

    async fn refresh(&self, host: &dyn Host) -> Result<bool> {
        self.trust.reload(host).await?;
        let since = self.trust.version();
        let Some(listing) = self.newer(host).await? else {
            // Nothing newer than what is listed here, while another client of this user has seen it.
            let (version, head) = {
                let kept = self.kept();
                (kept.listing.version, kept.listing.head.clone())
            };
            self.trust.see(host, version, &head, since, true).await?;
            return Ok(false);
        };
        self.check(host, &listing, since).await?;
        let (before, moved) = {
            let kept = &mut *self.kept();
            let moved = kept.doubted || listing.version != kept.listing.version;
            kept.doubted = false;
            (core::mem::replace(&mut kept.listing, Arc::new(listing)), moved)
        };
        self.discard_gone(host, &before).await?;
        Ok(moved)
    }

    fn doubt(&self) {
        self.kept().doubted = true;
    }

    async fn commit(&self, host: &dyn Host, change: &Change) -> Result<()> {
        writing!(self.commit_change(host, change).await)
    }

    async fn read(&self, host: &dyn Host, segment: SegmentId, blob: &str) -> Result<Arc<[u8]>> {
        self.read_blob(host, segment, blob).await
    }

    async fn prefetch(
        &self,
        host: &dyn Host,
        segments: &[Arc<StoredSegment>],
        blob: &str,
    ) -> Result<()> {
        self.prefetch_blobs(host, segments, blob).await
    }

    async fn keep(&self, host: &dyn Host, segment: SegmentId, blob: &str) -> Result<()> {
        self.keep_blob(host, segment, blob).await
    }

    async fn discard(
        &self,
        host: &dyn Host,
        segment: Option<SegmentId>,
        blob: Option<&str>,
    ) -> Result<bool> {
        self.discard_blobs(host, segment, blob).await
    }

    fn unkept(&self) -> Vec<Blob> {
        let kept = self.kept();
        kept.fetched.keys().chain(&kept.used).cloned().collect()
    }

    async fn attachment(&self, host: &dyn Host, name: &str) -> Result<Vec<u8>> {
        let doing = format!("cannot read {name} of {}", self.quoted());
        let Some(length) = self.kept().listing.attachments.get(name).copied() else {
            return Error::corrupt(format!(
                "{doing}: {} has none. Use a token with the permission read, or ask its operator.",
                self.session.url
            ));
        };
        let path = format!("{}/attachments/{name}", self.path);
        let data = if name == STATE {
            // It changes with every commit, and so may be a newer one than was listed.
            let call = Call { also: &[404], limit: MAX_STATE, ..Call::default() };
            let reply = self.session.call(host, "GET", &path, &doing, call).await?;
            if reply.head.status != 200 {
                self.refuse_if_moved(host, &doing).await?;
            }
            (reply.head.status == 200).then_some(reply.body)
        } else {
            self.fetch(host, &path, length, &doing).await?
        };
        data.ok_or_else(|| {
            Error::Corrupt(format!(
                "{doing}: {} lists it but does not give it. Ask its operator.",
                self.session.url
            ))
        })
    }

    async fn evaluate(
        &self,
        host: &dyn Host,
        asked: &Asked<'_>,
        sink: &mut dyn Receiver,
    ) -> Result<Evaluated> {
        let doing = format!("cannot query {}", self.quoted());
        let since = self.trust.version();
        let call = Call {
            body: Some(asked.query),
            headers: vec![("Content-Type", OCTETS.to_owned())],
            also: &[400, 409, 422],
            again: Some(asked.again),
            ..Call::default()
        };
        let path = format!("{}/query", self.path);
        let reply = self.session.stream(host, "POST", &path, &doing, call, sink).await?;
        if reply.head.status == 409 && is_problem(&reply, "query-keys-missing") {
            return Ok(Evaluated::KeysMissing);
        }
        if reply.head.status != 200 {
            // Perhaps it does not suit the latest state: a new epoch of the query key, or larger segments.
            if self.newer(host).await?.is_some() {
                return Err(Error::Conflict(format!(
                    "{doing}: it changes faster than a query takes. Ask again."
                )));
            }
            return Err(error_of(&reply, &doing, &self.session.url));
        }
        let (version, head) = answered_on(&reply.head, &self.session.url)?;
        self.trust.see(host, version, &head, since, false).await?;
        if let Some(says) = reply.head.header("ciphervec-evaluation") {
            let said = Hex::<32>::parse(says).map(|digest| digest.0);
            if let Err(error) = (asked.check)(said.as_ref()) {
                // They may be right in the state that the answer, or the server by now, is about.
                if version == self.listing().version && self.newer(host).await?.is_none() {
                    return Err(error);
                }
                return Err(Error::Conflict(format!(
                    "{doing}: its keys change while it is asked. Ask again."
                )));
            }
        }
        Ok(Evaluated::Answered(version))
    }

    async fn hold(&self, host: &dyn Host, evaluation: &[u8]) -> Result<bool> {
        let doing = format!("cannot bring a query key for {}", self.quoted());
        let call = Call {
            body: Some(evaluation),
            headers: vec![("Content-Type", OCTETS.to_owned())],
            also: &[204, 400, 404, 405, 409, 422],
            not_200: true,
            ..Call::default()
        };
        let path = format!("{}/query-keys", self.path);
        let reply = self.session.call(host, "PUT", &path, &doing, call).await?;
        match reply.head.status {
            204 => {
                self.trust.pin(host, &[(SESSIONS.to_owned(), "taken".to_owned())]).await?;
                Ok(true)
            }
            404 | 405 if self.trust.pinned(SESSIONS).is_some() => Err(Error::Mismatch(format!(
                "{doing}: {} took query keys before and refuses them now, which would keep this client under one query key for good. Ask \
                 its operator. If an older release answers there on purpose, call client.forget({}).",
                self.session.url,
                self.quoted()
            ))),
            404 | 405 => Ok(false),
            _ if is_problem(&reply, "exists") || self.newer(host).await?.is_some() => {
                Err(Error::Conflict(format!(
                    "{doing}: it changes faster than a query takes. Ask again."
                )))
            }
            _ => Err(error_of(&reply, &doing, &self.session.url)),
        }
    }

    async fn verify(&self, host: &dyn Host) -> Result<Verified> {
        writing!(self.verify_blocks(host).await)
    }

    async fn purge(&self, host: &dyn Host) -> Result<()> {
        writing!(self.purge_old(host).await)
    }

    async fn tidy(&self, host: &dyn Host) -> Result<()> {
        writing!(self.tidy_up(host).await)
    }

    async fn pin_evaluation(&self, host: &dyn Host, epoch: u32, check: Check<'_>) -> Result<()> {
        let pin = format!("{EPOCH}{epoch}");
        let pinned = self.trust.anew || self.trust.pinned(&pin).is_some();
        if pinned || !self.has_attachment(EVALUATION) {
            return Ok(());
        }
        let digest = match self.listing().evaluation {
            Some(said) => said, // they need not be fetched
            None => *blake3::hash(&self.attachment(host, EVALUATION).await?).as_bytes(),
        };
        check(&digest)?;
        let mut pins = vec![(pin, Hex(digest).to_string())];
        if self.has_attachment(KEY_PAIR) {
            let pair = blake3::hash(&self.attachment(host, KEY_PAIR).await?);
            pins.push(("key pair".to_owned(), pair.to_hex().to_string()));
        }
        self.trust.pin(host, &pins).await
    }
}
