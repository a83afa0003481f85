//! Rotation: the same rows under other keys, segment by segment, in commits that whoever comes next can go on from.
//!
//! The first commit makes the new keys those of the collection and keeps the old ones beside, encrypted under the new. From then on the
//! new keys open everything. Each further commit puts one segment under them, and the last forgets the old keys. The public masks stay,
//! so that one index on the server holds segments of both.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::search::{Origin, Owner, RotationState};
use ciphervec_owner::sharing::{Fingerprint, Identity};
use ciphervec_owner::{Keys, Mode, SegmentId};

use crate::belief::description::Description;
use crate::belief::holder::Holder;
use crate::change::{Change, StoredSegment};
use crate::clusters::table::{SLOTS, seal_centroids};
use crate::error::{Error, Result};
use crate::host::{Host, Progress};
use crate::replica::Replica;
use crate::replica::committing::Following;
use crate::replica::compaction::Resealed;
use crate::replica::recluster::abandon;
use crate::threads::heavy;

/// How a collection gets other keys.
#[derive(Default)]
pub struct Rekeyed {
    /// Whether those before open it until all is under the new ones.
    pub overlap: bool,
    /// Who is a member no more.
    removed: Option<Fingerprint>,
}

impl Rekeyed {
    /// With the removal of this member.
    pub fn without(member: Fingerprint) -> Self {
        Rekeyed { overlap: false, removed: Some(member) }
    }
}

impl Replica {
    /// Seals everything again under other keys; what an earlier call began is finished.
    pub async fn rotate_keys(
        &mut self,
        host: &dyn Host,
        keys: &Arc<Keys>,
        overlap: bool,
    ) -> Result<()> {
        if self.description.spec.mode() == Mode::Open {
            return Error::input(format!(
                "mode {} has no keys to change: nothing in it is sealed.",
                self.face.quoted("open")
            ));
        }
        if overlap && self.description.members.is_some() {
            return Error::input(format!(
                "{} has members, to whom the new keys are sealed: overlap is for holders of keys.",
                self.name()
            ));
        }
        let present = self.description.key_id == keys.key_id().to_string();
        if !present || self.description.members.is_none() {
            self.change_keys(host, keys, &Rekeyed { overlap, ..Rekeyed::default() }).await?;
        }
        self.finish_rotation(host).await?;
        self.handed_over(host, keys).await
    }

    /// Puts other keys into force. What is there stays under those before, but under schemes with a key pair, where a server has one key.
    pub(super) async fn change_keys(
        &mut self,
        host: &dyn Host,
        keys: &Arc<Keys>,
        how: &Rekeyed,
    ) -> Result<()> {
        self.in_turn(host, async |replica: &mut Replica| abandon(replica, host).await).await?;
        if self.description.has_key_pair() {
            let at_once = async |replica: &mut Replica| replica.at_once(host, keys, how).await;
            return self.in_turn(host, at_once).await;
        }
        if self.description.members.is_some() && self.description.rotates_from().is_some() {
            self.finish_rotation(host).await?; // one former key is kept, and no more
        }
        self.in_turn(host, async |replica: &mut Replica| replica.begin(host, keys, how).await)
            .await?;
        if let Some(Holder::Keys(held)) = &self.keys
            && held.key_id() != keys.key_id()
        {
            // Begun by an earlier call, and opened with the keys before.
            let described = Arc::clone(&self.description);
            self.take(host, described, Arc::clone(keys)).await?;
        }
        Ok(())
    }

    /// Seals what is under former keys again, and forgets these.
    pub async fn finish_rotation(&mut self, host: &dyn Host) -> Result<()> {
        if !self.description.has_key_pair() {
            self.in_turn(host, async |replica: &mut Replica| abandon(replica, host).await).await?;
            self.go_on(host).await?;
            self.in_turn(host, async |replica: &mut Replica| replica.end(host).await).await?;
        }
        self.store.tidy(host).await
    }

    /// One commit for everything: a server's half has one public key.
    async fn at_once(&mut self, host: &dyn Host, keys: &Arc<Keys>, how: &Rekeyed) -> Result<()> {
        let present = Arc::clone(&self.description);
        if present.key_id == keys.key_id().to_string() {
            return Ok(());
        }
        if !self.directory.refused().is_empty() {
            return Error::input(format!(
                "some writers' segments don't open and would be lost with the key pair. See info(), and {} them first.",
                self.face.named("discard")
            ));
        }
        let owner = heavy(|| Owner::new(keys, present.spec.clone()))?;
        let attachments = present.beside(&owner)?;
        let members = self.rekeyed(host, keys, how.removed.as_ref())?;
        let described = present.under(&owner).rekeyed(members);
        let entries = self.entries();
        let remove = entries.iter().map(|one| one.id).collect();
        let meta = Some(described.write(self.face, &owner)?);
        let mut change = Change { remove, meta, attachments, ..Change::default() };
        let (expected, center) = (self.directory.len(), self.center().to_vec());
        let (mut done, total) = (0, Some(expected as u64));
        for one in &entries {
            host.check()?;
            let batch = self.live(host, one).await?;
            if !batch.ids.is_empty() {
                change.add.push(self.seal_under(&owner, &batch, expected, &center)?);
            }
            done += batch.ids.len() as u64;
            host.progress(Progress { phase: "seal", done, total, ms: None });
        }
        self.following = Some(Holder::Keys(Arc::clone(keys)));
        let holder = self.keys.clone();
        let following = Following::of(&owner, &described, holder.as_ref());
        self.send_as(host, &mut change, following).await?;
        self.take(host, Arc::new(described), Arc::clone(keys)).await
    }

    async fn begin(&mut self, host: &dyn Host, keys: &Arc<Keys>, how: &Rekeyed) -> Result<()> {
        let present = Arc::clone(&self.description);
        let (face, id) = (self.face, keys.key_id().to_string());
        if present.key_id == id {
            return Ok(()); // begun, or even ended, by an earlier call
        }
        if present.rotates_from().is_some() {
            let rotate = face.named("rotate_keys");
            return Error::input(format!(
                "the collection is being given the keys {}; finish that with {rotate} of these before going on to {id}.",
                present.key_id
            ));
        }
        let held = self.present_keys()?;
        let members = self.rekeyed(host, keys, how.removed.as_ref())?;
        let state = RotationState { mask_seed: Some(*self.owner.mask_seed()), previous: None };
        let owner = heavy(|| Owner::with_rotation(keys, present.spec.clone(), &state))?;
        let described = present.rotating((&owner, keys), (&self.owner, &held), how.overlap)?;
        let described = described.rekeyed(members);
        let mut change = Change {
            meta: Some(described.write(face, &owner)?),
            attachments: self.evaluation_at(&owner, described.epoch)?,
            ..Change::default()
        };
        // Before the commit: a process that ends right after it leaves what was seen to clients with the new keys.
        self.hand_over(host, keys).await?;
        self.following = Some(Holder::Keys(Arc::clone(keys)));
        self.reroute(host, &owner, &mut change).await?;
        let holder = self.keys.clone();
        let following = Following::of(&owner, &described, holder.as_ref());
        self.send_as(host, &mut change, following).await?;
        self.take(host, Arc::new(described), Arc::clone(keys)).await
    }

    /// The routing table and the centroids go under the new keys.
    async fn reroute(
        &mut self,
        host: &dyn Host,
        following: &Owner,
        change: &mut Change,
    ) -> Result<()> {
        let centroids = self.centroids(host).await?;
        self.routing.next.clone_from(&self.routing.table);
        if let Some(active) = self.routing.next.as_mut().and_then(|table| table.active.as_mut()) {
            let sealed = seal_centroids(following, &centroids)?;
            active.digest = *blake3::hash(&sealed).as_bytes();
            change.attachments.insert(SLOTS[usize::from(active.slot)], sealed);
        }
        Ok(())
    }

    /// Goes on with other keys, which a commit has put into force.
    async fn take(
        &mut self,
        host: &dyn Host,
        described: Arc<Description>,
        keys: Arc<Keys>,
    ) -> Result<()> {
        self.description = described;
        let gone = |by: &Arc<Identity>| {
            let list = self.description.members.as_ref();
            list.is_some_and(|list| list.member(&by.member_fingerprint()).is_none())
        };
        if self.keys.as_ref().and_then(Holder::identity).is_some_and(gone) {
            (self.in_step, self.following) = (false, None); // who left reads nothing more, as the next call says
            return Ok(());
        }
        if !matches!(self.keys, Some(Holder::Member(_))) {
            self.keys = Some(Holder::Keys(keys));
        }
        self.load(host).await
    }

    /// Segments that are not under the new keys yet, but for those that don't open.
    fn left(&self) -> Vec<Arc<StoredSegment>> {
        let refused: HashSet<_> = self.directory.refused().iter().copied().collect();
        let mut entries = self.entries();
        entries.retain(|one| {
            !matches!(self.directory.origin(one.id), Some(Origin::Owner))
                && !refused.contains(&one.id)
        });
        entries
    }

    async fn go_on(&mut self, host: &dyn Host) -> Result<()> {
        let left = self.left();
        let total = left.iter().map(|one| u64::from(one.rows)).sum();
        let mut done = 0;
        for one in left {
            host.check()?;
            self.put_under(host, one.id).await?;
            done += u64::from(one.rows);
            host.progress(Progress { phase: "seal", done, total: Some(total), ms: None });
        }
        Ok(())
    }

    /// Another process that finishes the same rotation may have done it already.
    async fn put_under(&mut self, host: &dyn Host, id: SegmentId) -> Result<()> {
        let mut resealed = Resealed::default();
        self.in_turn(host, async |replica: &mut Replica| {
            let mut these = replica.left();
            these.retain(|one| one.id == id);
            match these.is_empty() {
                true => Ok(()),
                false => replica.reseal(host, &these, &mut resealed).await,
            }
        })
        .await
    }

    async fn end(&mut self, host: &dyn Host) -> Result<()> {
        if self.description.rotates_from().is_none() {
            return Ok(());
        }
        // From writers with old cards, meanwhile.
        while let Some(one) = self.left().first().cloned() {
            self.reseal(host, &[one], &mut Resealed::default()).await?;
        }
        self.describe(host, self.description.rotated(), Change::default()).await
    }

    /// Begins the next epoch: a new query key, with its own evaluation keys.
    pub async fn rotate_query_key(&mut self, host: &dyn Host) -> Result<()> {
        if self.description.has_key_pair() {
            return Error::input(format!(
                "scheme {} has a key pair for each collection: queries are plain and vectors stay under it. For a new pair, add the rows \
                 to a new collection, or give this one other keys.",
                self.face.quoted(self.description.spec.scheme().as_str())
            ));
        }
        let owner = Arc::clone(&self.owner);
        let described = self.description.with_epoch(self.description.epoch.saturating_add(1));
        let mut change = Change {
            meta: Some(described.write(self.face, &owner)?),
            attachments: self.evaluation_at(&owner, described.epoch)?,
            ..Change::default()
        };
        let holder = self.keys.clone();
        let following = Following::of(&owner, &described, holder.as_ref());
        self.send_as(host, &mut change, following).await?;
        self.query_keys.end(host, self.owner.key_id()).await;
        self.description = Arc::new(described);
        self.took(host).await
    }
}
