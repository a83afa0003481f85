//! Lends the trees of queries to a server's half in the same process: they are expanded once for the answer and its opening.
//! Owner only. Trees are those of the key holder's own evaluation keys, whatever the server's half has.

use super::open::{RingQueries, Trees};
use crate::error::Result;
use crate::index::form::Rows;
use ciphervec::search::TreeLender;
use ciphervec_he_secret::lattice::ring::{
    self, AskedLevel, Ciphertext, EvaluationKeys, Expanded, Layout, Masks, QueryKey, Ring,
};
use std::sync::{Arc, Mutex, PoisonError};

/// The secret of queries, and the evaluation keys that their trees are grown with.
type Keys = (Arc<QueryKey>, Arc<EvaluationKeys>);

/// The trees of some queries, as far as they are lent by now.
pub struct RingLender<'a> {
    ring: &'a Ring,
    /// Of sealed rows.
    masks: Option<&'a Masks>,
    /// Makes the keys of the queries' epoch.
    keys: Box<dyn Fn() -> Keys + Sync + 'a>,
    queries: &'a RingQueries,
    /// What opening takes of them, query by query; empty where it is not known yet.
    found: Mutex<Trees>,
}

impl<'a> RingLender<'a> {
    pub fn new(
        (rows, ring, masks): (Rows, &'a Ring, &'a Masks),
        keys: impl Fn() -> Keys + Sync + 'a,
        queries: &'a RingQueries,
    ) -> Self {
        let found = Mutex::new(queries.pieces.iter().map(|_| Vec::new()).collect());
        let masks = (rows == Rows::Encrypted).then_some(masks);
        RingLender { ring, masks, keys: Box::new(keys), queries, found }
    }
}

impl TreeLender for RingLender<'_> {
    fn expand(
        &self,
        query: usize,
        pieces: &[Ciphertext],
        layouts: &[Layout],
    ) -> Result<Vec<Expanded>> {
        let RingLender { ring, masks, keys, queries, found } = self;
        let (secret, keys) = keys();
        let trees = ring::expand(ring, &keys, pieces, layouts)?;
        let asked = trees.iter().map(|tree| AskedLevel::of(ring, &secret, *masks, tree));
        let asked = asked.collect();
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = found.get_mut(query) {
            *place = asked;
        }
        if found.iter().all(|asked| !asked.is_empty()) {
            queries.prepared.get_or_init(|| Arc::new(core::mem::take(&mut *found)));
        }
        Ok(trees)
    }
}
