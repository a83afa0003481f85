//! Records and vectors of rows that were found, read in the way that was decided.

use std::sync::Arc;

use ciphervec_owner::Id;

use crate::error::Result;
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::fetching::Way;
use crate::replica::read::Vectors;

impl Replica {
    /// Records and vectors of these rows, as far as they are wanted.
    pub async fn read_parts(
        &mut self,
        host: &dyn Host,
        ids: &[Id],
        (records, vectors): (bool, bool),
        way: Way,
    ) -> Result<(Vec<Arc<[u8]>>, Option<Vectors>)> {
        match way {
            Way::Private(bound) => {
                let wanted = (records, vectors);
                let (records, rows) = self.fetch_private(host, ids, wanted, bound).await?;
                let kept = Vectors { rows, original: vec![true; ids.len()] };
                Ok((records, vectors.then_some(kept)))
            }
            Way::All => self.read_whole(host, ids, (records, vectors)).await,
            Way::Segments | Way::Rows => {
                let vectors =
                    if vectors { Some(self.read_vectors(host, ids).await?) } else { None };
                let records = match (records, way) {
                    (false, _) => Vec::new(),
                    (true, Way::Rows) => self.fetch_rows(host, ids).await?,
                    (true, _) => self.read_records(host, ids).await?,
                };
                Ok((records, vectors))
            }
        }
    }
}
