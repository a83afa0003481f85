//! Commits: a change goes to the store with the state that it makes, and is taken in where the store has it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use ciphervec_owner::protect::consumed::Consumed;
use ciphervec_owner::search::Owner;
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::{Id, SegmentId};

use crate::belief::description::Description;
use crate::belief::holder::Holder;
use crate::belief::state::{Next, Step};
use crate::belief::trust::Trust;
use crate::change::{Change, EVALUATION, KEY_PAIR, ROUTING, SIDECAR, StoredSegment, WRAP, union};
use crate::clusters::table::RoutingTable;
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::host::Host;
use crate::replica::Replica;
use crate::writing::writing;

/// Under which keys and description a change is made, and whether another history begins with it.
#[derive(Clone, Copy)]
pub(super) struct Following<'a> {
    pub(super) owner: &'a Owner,
    pub(super) described: &'a Description,
    pub(super) anew: bool,
    /// Who signs it, in a collection with members.
    pub(super) by: Option<&'a Identity>,
}

impl<'a> Following<'a> {
    /// Under these keys and description, signed by whoever opened the collection.
    pub(super) fn of(
        owner: &'a Owner,
        described: &'a Description,
        holder: Option<&'a Holder>,
    ) -> Self {
        let by = holder.and_then(Holder::identity).map(|identity| &**identity);
        Following { owner, described, anew: false, by }
    }
}

impl Replica {
    /// Commits `change`, in which the rows of the ids in `dropped` go, and takes it in.
    pub async fn commit(
        &mut self,
        host: &dyn Host,
        mut change: Change,
        dropped: &[Id],
    ) -> Result<()> {
        if change.is_empty() && self.routing.next.is_none() {
            return Ok(());
        }
        let hides = !change.hide_rows.is_empty();
        self.send(host, &mut change).await?;
        for id in dropped {
            self.directory.mark_deleted(id);
        }
        self.losses += u64::from(!dropped.is_empty());
        if !change.delete_rows.is_empty() || !change.remove.is_empty() || hides {
            self.directory.settle();
        }
        for (id, rows) in &change.delete_rows {
            self.deleted.entry(*id).or_default().extend(rows);
        }
        change.remove.iter().for_each(|id| self.detach(*id));
        for added in &change.add {
            let sidecar = added.blobs.get(SIDECAR).map_or(&[][..], |blob| blob);
            if !self.routing.staged().contains(&added.id) {
                let gone = union(&added.deleted, &self.routing.hidden(added.id));
                self.directory.add(&self.owner, added.id, sidecar, &gone)?;
            }
            self.deleted.insert(added.id, added.deleted.clone());
        }
        self.took(host).await
    }

    /// Commits to the store, with the state that the change makes. Out of step from here on, until the caller has taken the change in as
    /// well.
    pub async fn send(&mut self, host: &dyn Host, change: &mut Change) -> Result<()> {
        let (owner, described) = (Arc::clone(&self.owner), Arc::clone(&self.description));
        let holder = self.keys.clone();
        self.send_as(host, change, Following::of(&owner, &described, holder.as_ref())).await
    }

    /// The same, of a change with which the collection is described, sealed or authenticated otherwise.
    pub(super) async fn send_as(
        &mut self,
        host: &dyn Host,
        change: &mut Change,
        following: Following<'_>,
    ) -> Result<()> {
        writing!(self.send_change(host, change, following).await)
    }

    async fn send_change(
        &mut self,
        host: &dyn Host,
        change: &mut Change,
        following: Following<'_>,
    ) -> Result<()> {
        self.expect_committer()?;
        let routing = self.routing.following(core::mem::take(&mut change.hide_rows));
        if let Some(table) = &routing {
            change.attachments.insert(ROUTING, table.seal(following.owner)?);
        }
        let staged = routing.as_ref().or(self.routing.table.as_ref()).map(RoutingTable::staged);
        let staged = staged.unwrap_or_default();
        let next = match following.described.authenticated {
            true => Some(self.next(host, change, following, &staged).await?),
            false => None,
        };
        host.check()?; // the last moment at which nothing has changed
        self.in_step = false;
        let version = self.store.listing().version;
        if let Err(error) = self.store.commit(host, change).await {
            // Refused: the old state stands, here and in the store. Otherwise, or where what came after it failed, the next call looks.
            let unsure = matches!(error, Error::CommitUncertain(_) | Error::Ended(_));
            self.in_step = !unsure && self.store.listing().version == version;
            return Err(error);
        }
        if let Some(table) = routing {
            self.routing.take(table);
        }
        let Some(next) = next else { return Ok(()) };
        let consumed =
            Consumed::from_bytes(&next.consumed).map_err(ciphervec_owner::Error::Envelope)?;
        let origin = next.signed.record.origin;
        let pin = self.states.take(next);
        let what = format!("the change to {}", self.name());
        let (trust, list) = (self.store.trust(), &self.states.consumed);
        let kept = async {
            trust.keep_consumed(host, &origin, list).await?;
            trust.see_state(host, pin).await
        };
        Trust::afterwards(host, &what, kept).await?;
        self.directory.expect_unconsumed(consumed);
        self.directory.authenticate();
        self.appended.clear();
        Ok(())
    }

    /// The state that a change makes.
    async fn next(
        &mut self,
        host: &dyn Host,
        change: &mut Change,
        Following { owner, described, anew, by }: Following<'_>,
        staged: &BTreeSet<SegmentId>,
    ) -> Result<Next> {
        let signer = self.signer(described, by)?;
        let first = self.states.present.is_none();
        let counts = |one: &Arc<StoredSegment>| {
            self.appended.contains(&one.id) || change.adopted.contains(&one.id)
        };
        let appended: Vec<_> = if first {
            self.read_entries()
        } else {
            self.entries().into_iter().filter(counts).collect()
        };
        self.read_covered(host, &appended).await?;
        for added in &change.add {
            for (blob, data) in &added.blobs {
                self.states.note(added.id, blob, data)?;
            }
        }
        let listing = self.store.listing();
        let mut written = Vec::new();
        for id in &change.remove {
            if listing.segments.get(id).is_some_and(|one| one.has(WRAP)) {
                let wrap = self.store.read(host, *id, WRAP).await?;
                written.extend(self.owner.written(*id, &wrap).ok()); // what does not open, opens for nobody
            }
        }
        let mut attached = BTreeMap::new();
        if first {
            for name in [EVALUATION, KEY_PAIR] {
                if self.store.has_attachment(name) && !change.attachments.contains_key(name) {
                    attached.insert(
                        name,
                        *blake3::hash(&self.store.attachment(host, name).await?).as_bytes(),
                    );
                }
            }
        }
        let mut aside = self.aside(&change.remove);
        let made = staged.iter().filter(|id| !change.remove.contains(id));
        aside.extend(made.map(|id| (*id, Vec::new())));
        // What was staged is listed before others that counted first.
        let in_order = (!change.adopted.is_empty()).then(|| {
            let added = change.add.iter().map(|one| one.id);
            listing.segments.keys().copied().chain(added).collect()
        });
        let mut quarantine = self.directory.quarantined().to_vec();
        quarantine.sort_unstable();
        let step = Step {
            appended: &appended,
            aside: &aside,
            quarantine,
            written,
            attached,
            in_order,
            meta: &listing.meta,
            now: host.clock().as_secs(),
            anew,
            signer,
            members: described.members.clone(),
        };
        self.states.next(change, owner, described.epoch, step)
    }

    /// Who signs a state of this description, and after how many changes of the members.
    fn signer<'a>(
        &self,
        described: &Description,
        by: Option<&'a Identity>,
    ) -> Result<Option<(&'a Identity, u32)>> {
        if described.members.is_none() {
            return Ok(None);
        }
        let Some(by) = by else {
            return Error::input(format!(
                "{} has members, who sign what they commit; keys alone read it. Open it with your identity's file.",
                self.name()
            ));
        };
        let before = self.description.members.as_ref().map_or(0, |list| list.changes().len());
        Ok(Some((by, before as u32)))
    }

    /// That who opened it may commit, as far as is known here: before anything is sealed.
    pub fn expect_committer(&self) -> Result<()> {
        let (Some(list), Some(holder)) = (&self.description.members, &self.keys) else {
            return Ok(());
        };
        let by = holder.identity().map(|identity| &**identity);
        self.signer(&self.description, by)?;
        let member = by.and_then(|by| list.member(&by.member_fingerprint()));
        match member.filter(|one| !one.role.commits()) {
            None => Ok(()),
            Some(member) => Error::input(format!(
                "{} is a {} of {}, and may not change it. One of its owners can give you another role.",
                member.name,
                member.role.as_str(),
                self.name()
            )),
        }
    }

    /// Rows that are there and don't count, by segment; none at all: the whole segment.
    fn aside(&self, removed: &[SegmentId]) -> BTreeMap<SegmentId, Vec<u32>> {
        let removed: HashSet<_> = removed.iter().collect();
        let refused = self.directory.refused().iter().filter(|id| !removed.contains(id));
        let mut rows: BTreeMap<_, Vec<u32>> = gathered(refused.map(|id| (*id, Vec::new())));
        for (_, id, row) in self.directory.aside() {
            if !removed.contains(&id) {
                rows.entry(id).or_default().push(row);
            }
        }
        rows.values_mut().for_each(|rows| rows.sort_unstable());
        rows
    }
}
