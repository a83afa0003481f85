//! Both halves of a small index in clusters with a query whose clusters are folded and its answer, and their decoders.

use ciphervec_owner::search::{
    Fold, Owner, Query, QueryOptions, Retrieval, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision, SegmentId};
use std::sync::LazyLock;

const DIMENSION: u32 = 5;
const ROWS: usize = 3;
const CLUSTERS: usize = 3;

/// An index of a few clusters, and one exchange about one of them.
pub struct Folded {
    owner: Owner,
    directory: SegmentDirectory,
    server: ServerIndex,
    question: Query,
    pub query: Vec<u8>,
    pub response: Vec<u8>,
}

pub static FOLDED: LazyLock<Folded> =
    LazyLock::new(|| Folded::new().expect("a small index can be made"));

impl Folded {
    fn new() -> ciphervec_owner::Result<Self> {
        let spec =
            IndexSpec::new("faces", DIMENSION, Metric::L2, Mode::Sealed, Precision::Standard)?;
        let keys = Keys::from_master([7; 32]);
        let owner = Owner::new(&keys, spec.clone())?;
        let (mut directory, mut server) = (SegmentDirectory::new(), ServerIndex::new(spec)?);
        if let Some(keys) = owner.evaluation(0)? {
            server.set_evaluation_keys(&keys.to_bytes())?;
        }
        let rows: Vec<f32> = (0..ROWS * DIMENSION as usize).map(|at| (at as f32).sin()).collect();
        let mut clusters: Vec<SegmentId> = Vec::new();
        for cluster in 0..CLUSTERS {
            let ids: Vec<Id> =
                (0..ROWS).map(|row| Id::from((cluster * ROWS + row) as i64)).collect();
            let sealed = owner.seal(&rows, &ids)?;
            directory.add(&owner, sealed.id, &sealed.sidecar, &[])?;
            clusters.push(server.add(sealed.segment)?);
        }
        let fold = Some(Fold { clusters: &clusters, chosen: &clusters[1..2] });
        let options = QueryOptions { segments: Some(&[]), fold, ..QueryOptions::default() };
        let question = owner.query(&rows[..DIMENSION as usize], &directory, options)?;
        let query = question.to_bytes().to_vec();
        let response = server.evaluate(&query)?.bytes;
        Ok(Self { owner, directory, server, question, query, response })
    }

    /// A query, as a server reads it.
    pub fn read_query(&self, bytes: &[u8]) -> bool {
        self.server.evaluate(bytes).is_ok()
    }

    /// A response, as its owner reads it.
    pub fn read_response(&self, bytes: &[u8]) -> bool {
        let all = Retrieval::TopK(ROWS);
        let opened = self.owner.open(&self.question, bytes, &self.directory, all);
        opened.is_ok_and(|opened| {
            assert!(opened.hits.len() == 1 && opened.hits[0].len() <= ROWS);
            true
        })
    }
}
