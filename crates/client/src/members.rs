//! Members of a collection, for whoever opened it: owners change the list, everybody reads it.

use std::sync::Arc;

use ciphervec_owner::members::{Change, MemberCard, Role};
use ciphervec_owner::sharing::Identity;

use crate::collection::Collection;
use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::membership::MemberInfo;

/// One change of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// founded, added, removed or rekeyed.
    pub what: &'static str,
    /// Whom it is about, by name; none where the keys alone were changed.
    pub who: Option<String>,
    /// The role given.
    pub role: Option<Role>,
    /// Who signed it, by name.
    pub by: String,
    /// When, by that person's word: seconds since 1970.
    pub time: u64,
}

impl Collection {
    /// Begins a list of members with this person, an owner: from then on commits are signed, and clients open the collection by their
    /// identities. Whoever has the keys still reads until these are changed.
    ///
    /// # Errors
    /// [`crate::Error::Input`] where there is a list, and in mode `open`.
    pub async fn found_members(&self, host: &dyn Host, by: &Arc<Identity>) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let found = async |replica: &mut Replica| replica.found_members(host, by).await;
        alone.in_turn(host, found).await
    }

    /// Adds the holder of a card, or gives them another role.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for anybody but an owner; [`crate::Error::Scheme`] for what is no member's card, a name that is taken,
    /// and where no owner would be left.
    pub async fn add_member(&self, host: &dyn Host, card: &[u8], role: Role) -> Result<MemberInfo> {
        let card = MemberCard::from_bytes(card)?;
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let add = async |replica: &mut Replica| replica.add_member(host, &card, role).await;
        alone.in_turn(host, add).await.map(|member| MemberInfo::of(&member))
    }

    /// Gives a member, by name or fingerprint, another role.
    ///
    /// # Errors
    /// As [`Self::add_member`].
    pub async fn appoint_member(
        &self,
        host: &dyn Host,
        who: &str,
        role: Role,
    ) -> Result<MemberInfo> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let appoint = async |replica: &mut Replica| replica.appoint(host, who, role).await;
        alone.in_turn(host, appoint).await.map(|member| MemberInfo::of(&member))
    }

    /// Removes a member, by name or fingerprint. New keys are drawn in the same commit, which the person does not get: nothing that is
    /// sealed from then on opens for them. What is older stays under the keys before until [`Self::reseal`]. A change of keys that is
    /// under way is finished first.
    ///
    /// # Errors
    /// As [`Self::add_member`].
    pub async fn remove_member(&self, host: &dyn Host, who: &str) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.remove_member(host, who).await
    }

    /// Seals what is still under the keys before a removal again, a segment a commit. Nothing where there is none.
    ///
    /// # Errors
    /// As [`Self::optimize`].
    pub async fn reseal(&self, host: &dyn Host) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.finish_rotation(host).await
    }

    /// Who is on the list; nobody where there is none.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub async fn members(&self, host: &dyn Host) -> Result<Vec<MemberInfo>> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let list = alone.description.members.as_ref();
        Ok(list.map_or_else(Vec::new, |list| list.members().iter().map(MemberInfo::of).collect()))
    }

    /// Every change of the list, the oldest first.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub async fn member_changes(&self, host: &dyn Host) -> Result<Vec<MemberChange>> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let Some(list) = alone.description.members.clone() else { return Ok(Vec::new()) };
        let mut names = std::collections::HashMap::new();
        let mut changes = Vec::with_capacity(list.changes().len());
        for entry in list.changes() {
            if let Change::Found(one, _) | Change::Admit(one) = &entry.change {
                names.insert(one.fingerprint(), one.name.clone());
            }
            let (what, who, role) = match &entry.change {
                Change::Found(one, _) => ("founded", Some(one.fingerprint()), Some(one.role)),
                Change::Admit(one) => ("added", Some(one.fingerprint()), Some(one.role)),
                Change::Remove(who, _) => ("removed", Some(*who), None),
                Change::Rekey(_) => ("rekeyed", None, None),
            };
            let who = who.and_then(|who| names.get(&who).cloned());
            let by = names.get(&entry.author).cloned().unwrap_or_default();
            changes.push(MemberChange { what, who, role, by, time: entry.time });
        }
        Ok(changes)
    }
}
