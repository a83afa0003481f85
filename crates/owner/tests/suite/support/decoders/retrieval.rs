//! Private retrieval for tests of hostile bytes: its keys, and a valid object of every kind.

use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::retrieval::{
    RetrievalAnswer, RetrievalKey, RetrievalQuery, SelectorKeys, Shape, Table, answer,
};
use ciphervec_he_secret::lattice::ring::Ring;
use std::sync::LazyLock;

/// One key, a table of seven records, and two fetches from it.
pub struct Retrieval {
    ring: Ring,
    key: RetrievalKey,
    keys: SelectorKeys,
    table: Table,
    pub evaluation_keys: Vec<u8>,
    pub query: Vec<u8>,
    pub answer: Vec<u8>,
}

pub static RETRIEVAL: LazyLock<Retrieval> =
    LazyLock::new(|| Retrieval::try_new().expect("a key can be made"));

const WANTED: [usize; 2] = [1, 6];

impl Retrieval {
    fn try_new() -> ciphervec_he_secret::Result<Self> {
        let (ring, master) = (Ring::new()?, MasterKey::from_bytes([4; 32]));
        let key = RetrievalKey::derive(&ring, &master, b"fuzz", 0);
        let keys = key.selector_keys(&ring, &master, b"fuzz");
        let shape = Shape::new([1; 16], 7, 3000)?;
        let table = Table::new(&ring, shape, |record, out| out.fill(record as u8));
        let query = key.ask(&ring, &shape, &WANTED)?;
        let answered = answer(&ring, &keys, std::slice::from_ref(&table), &query)?;
        Ok(Retrieval {
            evaluation_keys: keys.to_bytes(),
            query: query.to_bytes(&shape),
            answer: answered.to_bytes(&shape),
            ring,
            key,
            keys,
            table,
        })
    }

    /// Evaluation keys, as a server reads them.
    pub fn read_keys(&self, bytes: &[u8]) -> bool {
        SelectorKeys::from_bytes(&self.ring, bytes).is_ok_and(|keys| {
            assert_eq!(keys.to_bytes(), bytes);
            true
        })
    }

    /// A query, as a server reads it; of one that is as long as the valid one, the answer too: any outcome but a panic will do.
    pub fn read_query(&self, bytes: &[u8]) -> bool {
        let (shape, epoch) = (self.table.shape(), RetrievalQuery::epoch_of(bytes));
        RetrievalQuery::from_bytes(&self.ring, bytes, shape).is_ok_and(|query| {
            assert!(epoch.is_ok());
            assert_eq!(query.to_bytes(shape), bytes);
            let _ = answer(&self.ring, &self.keys, std::slice::from_ref(&self.table), &query);
            true
        })
    }

    /// An answer, which is decrypted too.
    pub fn read_answer(&self, bytes: &[u8]) -> bool {
        let shape = self.table.shape();
        RetrievalAnswer::from_bytes(bytes, shape, WANTED.len()).is_ok_and(|answer| {
            assert_eq!(answer.to_bytes(shape), bytes);
            let _ = self.key.open(&self.ring, shape, &WANTED, &answer);
            true
        })
    }
}
