//! Restores: an older state, which the store shows, is gone on from in another history.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::belief::pins::Pin;
use crate::change::{Change, EVALUATION};
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::committing::Following;
use crate::threads::heavy;

impl Replica {
    /// Begins another history with the present state; what it is. `seen` is the state that was seen last, `stated` the segments that it
    /// had in quarantine. If the query key was changed after the present state, a further epoch begins, so that no key that was given up
    /// comes back.
    pub async fn accept_restore(
        &mut self,
        host: &dyn Host,
        seen: Option<&Pin>,
        stated: &[String],
    ) -> Result<Option<Pin>> {
        if !self.description.authenticated {
            return Error::input(
                "its states are not authenticated, so there is nothing to accept: mode \"open\" has no key, and a collection of \
                 release 0.1 gets them by upgrade().",
            );
        }
        // What had failed a check by then has not passed one since.
        for segment in self.entries() {
            if stated.contains(&segment.id.to_string()) {
                self.directory.quarantine(segment.id);
            }
        }
        let present = self.states.present.as_ref();
        if let Some(list) = seen.and_then(|seen| seen.members.as_ref())
            && present.is_some_and(|present| !present.has_members_of(list))
        {
            host.warn(&format!(
                "the members of {} are not those that were seen here, after {} changes of their list. Who was removed since may be a member \
                 again: look at the list, and who changed it.",
                self.name(),
                list.changes
            ));
        }
        let (owner, mut described) = (Arc::clone(&self.owner), Arc::clone(&self.description));
        let mut change = Change::default();
        let epoch = seen.map_or(0, |seen| seen.epoch);
        if epoch > described.epoch.into() && !described.has_key_pair() {
            let epoch = u32::try_from(epoch).unwrap_or(u32::MAX).saturating_add(1);
            described = Arc::new(described.with_epoch(epoch));
            change.meta = Some(described.write(self.face, &owner)?);
            change.attachments = self.evaluation_at(&owner, epoch)?;
        }
        let holder = self.keys.clone();
        let following =
            Following { anew: true, ..Following::of(&owner, &described, holder.as_ref()) };
        self.send_as(host, &mut change, following).await?;
        Ok(self.states.present.as_ref().map(|present| present.pin()))
    }

    /// The evaluation keys of an epoch, as a collection keeps them.
    pub(super) fn evaluation_at(
        &self,
        owner: &ciphervec_owner::search::Owner,
        epoch: u32,
    ) -> Result<BTreeMap<&'static str, Vec<u8>>> {
        let keys =
            heavy(|| owner.evaluation(epoch))?.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(gathered([(EVALUATION, keys)]))
    }
}
