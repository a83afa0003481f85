//! Membership: the list of a collection's members is begun, changed and signed, each time in one commit.

use std::sync::Arc;

use ciphervec_owner::Keys;
use ciphervec_owner::decode::hex;
use ciphervec_owner::members::{Member, MemberCard, MemberList, Role};
use ciphervec_owner::sharing::{Fingerprint, Identity};

use crate::belief::description::Description;
use crate::belief::holder::Holder;
use crate::belief::trust::Trust;
use crate::belief::vault::Vault;
use crate::change::Change;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::committing::Following;
use crate::replica::rotation::Rekeyed;

/// One who is on the list of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// The name that the person gave.
    pub name: String,
    /// What names the person's keys, in hexadecimal.
    pub fingerprint: String,
    /// What the person may do.
    pub role: Role,
}

impl MemberInfo {
    pub(crate) fn of(member: &Member) -> Self {
        let fingerprint = hex(&member.fingerprint());
        MemberInfo { name: member.name.clone(), fingerprint, role: member.role }
    }
}

impl Replica {
    /// Begins the list with this person, who is an owner and signs from then on.
    pub async fn found_members(&mut self, host: &dyn Host, by: &Arc<Identity>) -> Result<()> {
        if self.description.members.is_some() {
            return Error::input(format!(
                "{} has members already. One of its owners can add {}.",
                self.name(),
                by.name()
            ));
        }
        let Some(origin) = self.states.present.as_ref().map(|state| state.record.origin) else {
            return Error::input(format!(
                "{} can't have members: nothing in it is authenticated. Mode {} has no key, and a collection of release 0.1 gets states by \
                 {}().",
                self.name(),
                self.face.quoted("open"),
                self.face.named("upgrade")
            ));
        };
        let keys = self.present_keys()?;
        let list = MemberList::found(by, origin, &keys, host.clock().as_secs())?;
        let described = self.description.with_members(self.face, list)?;
        // Before the commit: a process that ends right after it leaves what was seen to this person's clients.
        self.store.trust().hand_over(host, Vault::of_member(by)?).await?;
        self.relist(host, described, by).await?;
        self.keys = Some(Holder::Member(Arc::clone(by)));
        self.load(host).await
    }

    /// Adds the holder of a card, or gives them another role; who it is.
    pub async fn add_member(
        &mut self,
        host: &dyn Host,
        card: &MemberCard,
        role: Role,
    ) -> Result<Member> {
        let (list, by) = self.owned()?;
        let (keys, now) = (self.present_keys()?, host.clock().as_secs());
        let list = list.admit(&by, card, role, &keys, now)?;
        let described = self.description.with_members(self.face, list)?;
        self.relist(host, described, &by).await?;
        self.load(host).await?;
        self.member(&card.fingerprint())
    }

    /// Gives a member another role.
    pub async fn appoint(&mut self, host: &dyn Host, who: &str, role: Role) -> Result<Member> {
        let (list, by) = self.owned()?;
        let who = named(&list, who, &self.name())?;
        let list = list.appoint(&by, &who, role, host.clock().as_secs())?;
        let described = self.description.with_members(self.face, list)?;
        self.relist(host, described, &by).await?;
        self.load(host).await?;
        self.member(&who)
    }

    /// Removes a member: the collection has new keys from that commit on, and what is older stays under those before until it is sealed
    /// again.
    pub async fn remove_member(&mut self, host: &dyn Host, who: &str) -> Result<()> {
        let (list, _) = self.owned()?;
        let who = named(&list, who, &self.name())?;
        self.change_keys(host, &Arc::new(Keys::generate()?), &Rekeyed::without(who)).await
    }

    /// The list under `keys`, where there is one: without somebody, or only rekeyed.
    pub(super) fn rekeyed(
        &self,
        host: &dyn Host,
        keys: &Keys,
        removed: Option<&Fingerprint>,
    ) -> Result<Option<Arc<MemberList>>> {
        if self.description.members.is_none() {
            return Ok(None);
        }
        let ((list, by), now) = (self.owned()?, host.clock().as_secs());
        let list = match removed {
            Some(who) => list.remove(&by, who, keys, now)?,
            None => list.rekey(&by, keys, now)?,
        };
        Ok(Some(Arc::new(list)))
    }

    /// The keys that the collection is sealed under.
    pub(super) fn present_keys(&self) -> Result<Arc<Keys>> {
        self.description.keys(self.face, self.keys.as_ref())
    }

    /// The list, and the owner of the collection who opened it.
    fn owned(&self) -> Result<(Arc<MemberList>, Arc<Identity>)> {
        let Some(list) = self.description.members.clone() else {
            return Error::input(format!(
                "{} has no members; {} begins the list.",
                self.name(),
                self.face.named("found")
            ));
        };
        self.expect_committer()?;
        let by = self.keys.as_ref().and_then(Holder::identity).cloned();
        let owner = by.filter(|by| {
            list.member(&by.member_fingerprint()).is_some_and(|one| one.role == Role::Owner)
        });
        match owner {
            Some(by) => Ok((list, by)),
            None => Error::input(format!(
                "only owners of {} change its members and keys: {}.",
                self.name(),
                owners(&list)
            )),
        }
    }

    fn member(&self, who: &Fingerprint) -> Result<Member> {
        let found = self.description.members.as_ref().and_then(|list| list.member(who)).cloned();
        found.ok_or_else(|| {
            Error::Conflict(format!("the members of {} have changed again.", self.name()))
        })
    }

    async fn relist(
        &mut self,
        host: &dyn Host,
        described: Description,
        by: &Identity,
    ) -> Result<()> {
        let owner = Arc::clone(&self.owner);
        let meta = Some(described.write(self.face, &owner)?);
        let mut change = Change { meta, ..Change::default() };
        let following =
            Following { owner: &owner, described: &described, anew: false, by: Some(by) };
        self.send_as(host, &mut change, following).await?;
        self.description = Arc::new(described);
        Ok(())
    }

    /// Has what was seen here count for clients that come with these keys.
    pub(super) async fn hand_over(&self, host: &dyn Host, keys: &Keys) -> Result<()> {
        match &self.keys {
            Some(Holder::Member(_)) => Ok(()), // whose clients remember it whatever the keys are
            _ => self.store.trust().hand_over(host, Vault::new(keys)?).await,
        }
    }

    /// The same, after a commit.
    pub(super) async fn handed_over(&self, host: &dyn Host, keys: &Keys) -> Result<()> {
        let handed_over = self.hand_over(host, keys);
        Trust::afterwards(host, &format!("the change of keys of {}", self.name()), handed_over)
            .await
    }
}

/// Who is named so, or has this fingerprint.
fn named(list: &MemberList, who: &str, collection: &str) -> Result<Fingerprint> {
    let found = |suits: &dyn Fn(&&Member) -> bool| list.members().iter().find(suits);
    match found(&|one| hex(&one.fingerprint()) == who).or_else(|| found(&|one| one.name == who)) {
        Some(member) => Ok(member.fingerprint()),
        None => {
            let names: Vec<_> = list.members().iter().map(|one| one.name.as_str()).collect();
            Error::input(format!(
                "nobody of the name or fingerprint {who:?} is a member of {collection}; its members are {}.",
                names.join(", ")
            ))
        }
    }
}

fn owners(list: &MemberList) -> String {
    let owners = list.members().iter().filter(|one| one.role == Role::Owner);
    owners.map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ")
}
