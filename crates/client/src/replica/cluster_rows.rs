//! The rows of clusters: read with all that belongs to them, and sealed again in the shape that they had.

use ciphervec_owner::Id;

use crate::change::{Change, ORIGINALS, StoredSegment};
use crate::clusters::table::Clustering;
use crate::error::Result;
use crate::host::Host;
use crate::random::Draws;
use crate::replica::Replica;
use crate::replica::padding::{Rows, Shape};

impl Replica {
    /// Rows with their vectors, metadata and documents.
    pub(super) async fn cluster_rows(&mut self, host: &dyn Host, ids: Vec<Id>) -> Result<Rows> {
        let vectors = self.read_vectors(host, &ids).await?;
        let payloads = self.read_records(host, &ids).await?;
        Ok(Rows { ids, vectors: vectors.rows, original: vectors.original, payloads })
    }

    /// Puts a cluster sealed anew in the place of one, without the rows that are dead.
    pub(super) async fn reseal_cluster(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        (number, active): (usize, Clustering),
    ) -> Result<()> {
        let names = self.directory.names(segment.id).into_iter().flatten().flatten();
        let ids: Vec<_> = names.cloned().collect();
        if ids.is_empty() {
            // Read like the others: that no row of it is left must not show.
            match segment.has(ORIGINALS) {
                true => drop(self.kept_bytes(host, segment, &[]).await?),
                false => drop(self.unseal(host, segment.id, &[]).await?),
            }
            self.records(host, segment, &[]).await?;
        }
        let rows = self.cluster_rows(host, ids).await?;
        let mut draws = Draws::new()?;
        let expected = self.directory.len();
        let sealed = self.seal_cluster(&mut draws, &rows, &Shape::of(&active), expected)?;
        let table = self.routing.table.clone();
        self.routing.next = table.map(|table| table.with_made(number, sealed.id, rows.ids.len()));
        let change = Change { add: vec![sealed], remove: vec![segment.id], ..Change::default() };
        self.commit(host, change, &[]).await
    }
}
