//! Quarantine: segments that failed a check are not used any more, here, in every session that comes later, and, where this client may
//! commit, in every client of the owner's.

use std::collections::{BTreeMap, HashSet};

use ciphervec_owner::SegmentId;

use crate::change::Change;
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::hex::Hex;
use crate::host::Host;
use crate::replica::Replica;

const SHOWN: usize = 8;

impl Replica {
    /// Why segments are in quarantine.
    pub fn held(&self) -> BTreeMap<String, String> {
        let stated =
            self.stated.iter().map(|id| (id.to_string(), "the owner's state says so".to_owned()));
        gathered(stated.chain(self.quarantine.held()))
    }

    /// Segments that no query is about.
    pub fn unasked(&self) -> Vec<SegmentId> {
        [self.directory.refused(), self.directory.quarantined()].concat()
    }

    /// Passes over what failed a check before: here, in another client of this user's or in another client of the owner's.
    pub(super) fn pass_over(&mut self) {
        let held: HashSet<_> =
            self.held().keys().filter_map(|id| Hex::parse(id)).map(|id| SegmentId(id.0)).collect();
        for id in held.iter().filter(|id| self.deleted.contains_key(id)) {
            self.directory.quarantine(*id);
        }
        // Another client has released the others.
        for id in self.directory.quarantined().to_vec() {
            if !held.contains(&id) {
                self.directory.release(id);
            }
        }
    }

    /// Puts segments into quarantine. What fails of that is no reason to leave out the rest, and [`Self::refuse_held`] counts it. The
    /// query key ends with it: what a server saw fail is said of no other. Their blobs stay in the cache: fetching just those anew would
    /// show a server what failed.
    pub async fn hold(
        &mut self,
        host: &dyn Host,
        segments: &[SegmentId],
        reason: &str,
    ) -> Result<()> {
        segments.iter().for_each(|id| self.directory.quarantine(*id));
        self.query_keys.end(host, self.owner.key_id()).await;
        let mut said = Vec::new();
        for id in segments {
            if let Err(error) = self.quarantine.hold(host, id.to_string(), reason).await {
                said.push(format!("quarantine could not be written down: {error}"));
            }
        }
        // Who may not commit now remembers it, and the next commit says it.
        let _ = self
            .in_turn(host, async |replica| {
                replica.settle(host).await?; // the call may have ended before it did
                replica.say_quarantine(host).await
            })
            .await;
        // Last of all: a program's own way to be warned may end this.
        said.iter().for_each(|text| host.warn(text));
        Ok(())
    }

    /// Uses a segment again.
    pub async fn release(&mut self, host: &dyn Host, segment: &str) -> Result<()> {
        let id = Hex::parse(segment).map(|id| SegmentId(id.0));
        let Some(id) = id.filter(|id| self.directory.quarantined().contains(id)) else {
            return Error::input(format!(
                "segment {} is not in quarantine; collection.info() lists those that are.",
                self.face.quoted(segment)
            ));
        };
        self.directory.release(id);
        self.stated.remove(&id);
        self.quarantine.release(host, segment).await?;
        self.say_quarantine(host).await
    }

    /// Puts into the owner's state what is in quarantine.
    async fn say_quarantine(&mut self, host: &dyn Host) -> Result<()> {
        let Some(state) = &self.states.present else { return Ok(()) };
        let stated: HashSet<_> = state.record.quarantine.iter().map(|id| SegmentId(*id)).collect();
        if stated == self.directory.quarantined().iter().copied().collect() {
            return Ok(());
        }
        self.send(host, &mut Change::default()).await?;
        self.took(host).await
    }

    /// Takes in what failed a check here or in another client with the same storage.
    pub async fn settle_quarantine(&mut self, host: &dyn Host) -> Result<()> {
        if host.durable() {
            self.quarantine.reload(host).await?;
        }
        self.pass_over();
        Ok(())
    }

    /// An error where a query would have to do without segments that failed a check, here or in another client with the same storage.
    /// Writers' segments, and with `skip` all, cost only themselves, and a warning names them. With `since`, only if there are others
    /// than those.
    pub async fn refuse_held(
        &mut self,
        host: &dyn Host,
        skip: bool,
        since: Option<&HashSet<SegmentId>>,
    ) -> Result<()> {
        self.settle_quarantine(host).await?;
        let held = self.directory.quarantined();
        if since.is_some_and(|since| held.iter().all(|id| since.contains(id))) || held.is_empty() {
            return Ok(());
        }
        let few = |names: Vec<String>| {
            let more = if names.len() > SHOWN { ", ..." } else { "" };
            format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
        };
        let own: Vec<_> = held.iter().copied().filter(|id| self.writer(*id).is_none()).collect();
        // Of one that no later session and no other client will know, the failure counts for the whole collection.
        let outlasts = |id: &SegmentId| {
            self.stated.contains(id) || self.quarantine.keeps(host, &id.to_string())
        };
        let kept = own.iter().all(outlasts);
        let passed_over = own.is_empty() || skip && kept;
        if !passed_over {
            let next = if kept {
                format!(
                    "Find out what happened first: whoever shifts answers can watch what follows from them. Then seal their rows again with \
                     optimize(), where their vectors were kept, or use them as they are with release(); a query with {} asks about the \
                     others.",
                    self.face.said("skip_quarantined")
                )
            } else {
                format!(
                    "This client could write that down nowhere: it has no {storage} that takes it, and may not commit. So one failure counts \
                     for the whole collection. Open it with a {storage}, or with a token that may write.",
                    storage = self.face.storage()
                )
            };
            let names = few(own.iter().map(SegmentId::to_string).collect());
            let message = format!(
                "{} of the segments of {} failed a check and are in quarantine: {names}. {next}",
                own.len(),
                self.name()
            );
            return Err(Error::Quarantined { message, segments: own });
        }
        let named = held.iter().map(|id| match self.writer(*id) {
            Some(writer) => format!("{id} of writer {}", self.face.quoted(writer)),
            None => id.to_string(),
        });
        host.warn(&format!(
            "{} of the segments of {} are in quarantine and were passed over: {}. They failed a check.",
            held.len(),
            self.name(),
            few(named.collect())
        ));
        Ok(())
    }
}
