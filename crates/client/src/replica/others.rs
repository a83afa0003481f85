//! Results for others, under query keys that follow each other by themselves.

use ciphervec_owner::search::{Flood, Query, Selection};

use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::view::flooding::{FloodingPlan, uncounted};

impl Replica {
    /// What results for others cost, and how many may still be shown, under the query key that queries are asked under by now.
    pub async fn flooding_plan(&self, host: &dyn Host, deviation: f64) -> Result<FloodingPlan> {
        let session = self.query_keys.next(host, self.owner.key_id()).await?;
        let epoch = session.unwrap_or(self.description.epoch);
        self.view().flooding_plan(host, deviation, self.directory.len(), (epoch, true)).await
    }

    /// Ends a session that has not as many flooded scores left as so many queries of every row take, if a new one has.
    pub async fn renew_for_others(
        &self,
        host: &dyn Host,
        queries: usize,
        deviation: f64,
    ) -> Result<()> {
        let key = self.owner.key_id();
        let Some(epoch) = self.query_keys.next(host, key).await? else { return Ok(()) };
        let plan =
            self.view().flooding_plan(host, deviation, self.directory.len(), (epoch, true)).await?;
        let wanted = (queries * self.directory.len()) as u64;
        if plan.rows_left < wanted && wanted <= plan.rows_an_epoch {
            self.query_keys.end(host, key).await;
        }
        Ok(())
    }

    /// Counts what others are about to see, where the next process finds it.
    pub async fn flood(
        &self,
        host: &dyn Host,
        deviation: f64,
        query: (&Query, u32),
        allow: Option<&Selection>,
    ) -> Result<Flood> {
        if self.store.lasts() && !host.counts() {
            return Err(uncounted());
        }
        self.view().flood(host, deviation, query, allow).await
    }
}
