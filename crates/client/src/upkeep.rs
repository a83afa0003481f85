//! Upkeep of a collection: it is merged, sealed under other keys, and writers' rows in it are taken over.

use std::sync::Arc;

use ciphervec_owner::{Keys, Network};

use crate::belief::choices::check_network;
use crate::collection::Collection;
use crate::error::Result;
use crate::host::Host;
use crate::noting::Noting;
use crate::records::sparse::Sparse;
use crate::replica::Replica;
use crate::replica::explaining::Explanation;
use crate::replica::fetches::PrivateFetch;
use crate::replica::recluster::recluster_all;
use crate::store::Verified;

impl Collection {
    /// Uses a segment again that is in quarantine.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for one that is not.
    pub async fn release(&self, host: &dyn Host, segment: &str) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone
            .in_turn(host, async |replica: &mut Replica| replica.release(host, segment).await)
            .await
    }

    /// Has the server read and check every stored block.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] naming what is damaged.
    pub async fn verify(&self, host: &dyn Host) -> Result<Verified> {
        let noting = Noting::of(host, "verify", self.spec().collection());
        let done = self.alone(host).await?.store.verify(host).await?;
        noting.done(0);
        Ok(done)
    }

    /// Has the server delete what no present state needs.
    ///
    /// # Errors
    /// [`crate::Error::Authentication`] without the permission admin.
    pub async fn purge(&self, host: &dyn Host) -> Result<()> {
        let noting = Noting::of(host, "purge", self.spec().collection());
        self.alone(host).await?.store.purge(host).await?;
        noting.done(0);
        Ok(())
    }

    /// What a private fetch of metadata and documents is like, and whether any failed.
    ///
    /// # Errors
    /// What the server gives rise to.
    pub async fn private_fetch(&self, host: &dyn Host) -> Result<PrivateFetch> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.in_turn(host, async |replica: &mut Replica| replica.private_fetch(host).await).await
    }

    /// Goes on with private fetches after one that failed. What it may have told the server stays counted.
    ///
    /// # Errors
    /// [`crate::Error::Storage`] where that can't be written down.
    pub async fn resume_private_fetch(&self, host: &dyn Host) -> Result<()> {
        self.alone(host).await?.fetches.book.resume(host).await
    }

    /// Merges small segments and drops deleted rows, by unsealing and sealing again under a new nonce. With `reseal` every row is sealed
    /// again, with new noise, at a little of the precision of those that were not kept as they were put in. Each merge is one commit:
    /// ended half-way, the collection is whole. The host is told how many rows are done. A routed collection is clustered anew.
    ///
    /// # Errors
    /// [`crate::Error::Tampered`] for a segment that is not what was sealed, [`crate::Error::Ended`]; what was merged until then stays so.
    pub async fn optimize(&self, host: &dyn Host, reseal: bool) -> Result<()> {
        let noting = Noting::of(host, "optimize", self.spec().collection());
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        if alone.description.routing.is_some() && recluster_all(&mut alone, host, reseal).await? {
            noting.done(0);
            return Ok(());
        }
        alone.optimize(host, reseal).await?;
        noting.done(0);
        Ok(())
    }

    /// What one question costs and shows the server.
    ///
    /// # Errors
    /// What the store's state gives rise to.
    pub async fn explain(&self, host: &dyn Host) -> Result<Explanation> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let key = alone.query_keys.present(host);
        if key.session.is_none() && !key.refused {
            alone.tokens.clear(); // of a key that is over, or another process's
        }
        Ok(alone.explain())
    }

    /// Seals the rows that writers added again as the owner's own, which makes their filter tags; how many. A row whose id the owner had
    /// authenticated before it came goes, unless `take_over` lets it replace the other. [`Self::optimize`] does this too, without that.
    ///
    /// # Errors
    /// As [`Self::optimize`].
    pub async fn adopt(&self, host: &dyn Host, take_over: bool) -> Result<usize> {
        let noting = Noting::of(host, "adopt", self.spec().collection());
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let count = alone.adopt(host, take_over).await?;
        noting.done(count);
        Ok(count)
    }

    /// Removes segments that writers sealed, by the ids that [`Self::info`] lists: those that don't open, or should not have come. How
    /// many rows went.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for other segments; nothing is removed then.
    pub async fn discard(&self, host: &dyn Host, segments: &[String]) -> Result<usize> {
        let noting = Noting::of(host, "discard", self.spec().collection());
        let mut alone = self.alone(host).await?;
        let discard = async |replica: &mut Replica| replica.discard(host, segments).await;
        let count = alone.in_turn(host, discard).await?;
        noting.done(count);
        Ok(count)
    }

    /// Seals everything again under new keys, each segment in a commit of its own.
    ///
    /// Interrupted, it goes on with the next call, to which only the new keys have to be given: from the first commit on they open the
    /// whole collection. The old ones open it meanwhile only with `overlap`, which stores the new keys encrypted under the old until the
    /// end; leave it out if the old ones may be known to others. Afterwards the old keys are refused, writers need new cards, and the
    /// client must be made with the new keys. Under schemes with a key pair all is one commit, with a new pair. The host is told how many
    /// rows are done.
    ///
    /// # Errors
    /// [`crate::Error::Input`] when a change to other keys is under way.
    pub async fn rotate_keys(
        &self,
        host: &dyn Host,
        keys: &Arc<Keys>,
        overlap: bool,
    ) -> Result<()> {
        let noting = Noting::of(host, "rotate-keys", self.spec().collection());
        self.alone(host).await?.rotate_keys(host, keys, overlap).await?;
        noting.done(0);
        Ok(())
    }

    /// Lets the server test equality on further metadata fields, and so see which rows are equal there. Rows that come from now on have
    /// tags for them; those that are here with [`Self::optimize`], until when they are filtered here.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for a field that is filterable already, and for collections of release 0.1 before [`Self::upgrade`].
    pub async fn extend_filterable(&self, host: &dyn Host, fields: &[String]) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let extend = async |replica: &mut Replica| replica.extend_filterable(host, fields).await;
        alone.in_turn(host, extend).await
    }

    /// Packs rows for what answers of modes `sealed` and `sealed-query` travel over: those that come from now on, and those that are here
    /// with [`Self::optimize`].
    ///
    /// # Errors
    /// [`crate::Error::Input`] for a network of which nothing comes.
    pub async fn pack_for(&self, host: &dyn Host, network: Network) -> Result<()> {
        check_network(&network)?;
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone
            .in_turn(host, async |replica: &mut Replica| replica.pack_for(host, network).await)
            .await
    }

    /// What embeds texts, as JSON: sealed with the collection, and read by whoever made it alone. None takes it away.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for what is no JSON object, and for collections of release 0.1 before [`Self::upgrade`].
    pub async fn set_embedding_function(
        &self,
        host: &dyn Host,
        function: Option<&str>,
    ) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let set = async |replica: &mut Replica| replica.embed_by(host, function).await;
        alone.in_turn(host, set).await
    }

    /// Ranks rows by this beside their vectors, those that are here too; or by the same with other figures. Rows that come from now on have
    /// what they are ranked by beside them, the others once they are sealed again.
    ///
    /// # Errors
    /// [`crate::Error::Input`] where they are ranked by something else, or routed.
    pub async fn set_sparse(&self, host: &dyn Host, sparse: Sparse) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let set = async |replica: &mut Replica| replica.rank_by(host, sparse).await;
        alone.in_turn(host, set).await
    }

    /// Authenticates a collection that was made by a release before 0.2, from its present state on; whether it was not yet. Releases
    /// before can't open it afterwards.
    ///
    /// # Errors
    /// [`crate::Error::Input`] in mode `open`.
    pub async fn upgrade(&self, host: &dyn Host) -> Result<bool> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.in_turn(host, async |replica: &mut Replica| replica.upgrade(host).await).await
    }

    /// Begins the next epoch: a new query key, so that one leaked epoch opens no other. Vectors stay as they are.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for schemes with a key pair, whose queries are plain.
    pub async fn rotate_query_key(&self, host: &dyn Host) -> Result<()> {
        let noting = Noting::of(host, "rotate-query-key", self.spec().collection());
        let mut alone = self.alone(host).await?;
        let rotate = async |replica: &mut Replica| replica.rotate_query_key(host).await;
        alone.in_turn(host, rotate).await?;
        noting.done(0);
        Ok(())
    }
}
