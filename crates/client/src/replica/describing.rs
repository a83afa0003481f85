//! What a collection is described as, changed in one commit: its filterable fields, its network, and that its owner authenticates it.

use std::sync::Arc;

use ciphervec_owner::{Mode, Network};

use crate::belief::description::Description;
use crate::change::Change;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::records::sparse::Sparse;
use crate::replica::Replica;
use crate::replica::committing::Following;

impl Replica {
    /// Commits another description under the same keys, and goes on with it.
    pub(super) async fn describe(
        &mut self,
        host: &dyn Host,
        described: Description,
        mut change: Change,
    ) -> Result<()> {
        let (owner, holder) = (Arc::clone(&self.owner), self.keys.clone());
        change.meta = Some(described.write(self.face, &owner)?);
        let following = Following::of(&owner, &described, holder.as_ref());
        self.send_as(host, &mut change, following).await?;
        self.description = Arc::new(described);
        self.load(host).await
    }

    /// Lets the server test equality on further fields: of rows that come from now on, and of others once they are sealed again.
    pub async fn extend_filterable(&mut self, host: &dyn Host, fields: &[String]) -> Result<()> {
        if let Some(routing) = &self.description.routing {
            routing.check(self.face, &self.description.spec, fields)?;
        }
        let segments = self.entries().iter().map(|one| one.id).collect();
        let described = self.description.with_filterable(self.face, fields, segments)?;
        self.describe(host, described, Change::default()).await
    }

    /// Packs rows for another network: those that come from now on, and others once they are sealed again.
    pub async fn pack_for(&mut self, host: &dyn Host, network: Network) -> Result<()> {
        if network == self.description.network {
            return Ok(());
        }
        let mut described = (*self.description).clone();
        described.network = network;
        self.describe(host, described, Change::default()).await
    }

    /// Ranks rows by this beside their vectors: those that are here by their records until they are sealed again.
    pub async fn rank_by(&mut self, host: &dyn Host, sparse: Sparse) -> Result<()> {
        let described = self.description.with_sparse(self.face, sparse)?;
        self.describe(host, described, Change::default()).await
    }

    /// Saves what embeds texts.
    pub async fn embed_by(&mut self, host: &dyn Host, function: Option<&str>) -> Result<()> {
        let described = self.description.with_embedding(self.face, function)?;
        self.describe(host, described, Change::default()).await
    }

    /// Authenticates a collection of a release before, from its present state on; whether it had not been. Rows whose id came again go
    /// with that commit.
    pub async fn upgrade(&mut self, host: &dyn Host) -> Result<bool> {
        if self.description.spec.mode() == Mode::Open {
            return Error::input(format!(
                "mode {} has no keys, so nothing in it can be authenticated.",
                self.face.quoted("open")
            ));
        }
        if self.description.authenticated {
            return Ok(false);
        }
        let mut described = (*self.description).clone();
        described.authenticated = true;
        let mut gone = self.entries();
        gone.retain(|one| one.live() == 0);
        let remove = gone.iter().map(|one| one.id).collect();
        let mut change = Change { remove, ..Change::default() };
        self.drop_rows(&mut change, &[])?;
        self.describe(host, described, change).await?;
        Ok(true)
    }
}
