//! Lends the trees of queries to a server's half in the same process: they are expanded once for the answer and its opening.
//! Owner only. Trees are those of the key holder's own evaluation keys, whatever the server's half has.

use super::key_holder::RingKeyHolder;
use super::open::{RingQueries, Trees};
use crate::error::Result;
use crate::index::form::Rows;
use crate::search::form::TreeLender;
use crate::search::root_key::SegmentRootKey;
use ciphervec_he_secret::lattice::ring::{self, AskedLevel, Ciphertext, Expanded, Layout};
use std::sync::{Arc, Mutex, PoisonError};

/// The trees of some queries, as far as they are lent by now.
pub struct RingLender<'a> {
    holder: &'a RingKeyHolder,
    root: &'a SegmentRootKey,
    queries: &'a RingQueries,
    /// What opening takes of them, query by query; empty where it is not known yet.
    found: Mutex<Trees>,
}

impl<'a> RingLender<'a> {
    pub fn new(
        holder: &'a RingKeyHolder,
        root: &'a SegmentRootKey,
        queries: &'a RingQueries,
    ) -> Self {
        let found = queries.pieces.iter().map(|_| Vec::new()).collect();
        RingLender { holder, root, queries, found: Mutex::new(found) }
    }
}

impl TreeLender for RingLender<'_> {
    fn expand(
        &self,
        query: usize,
        pieces: &[Ciphertext],
        layouts: &[Layout],
    ) -> Result<Vec<Expanded>> {
        let RingLender { holder, root, queries, found } = self;
        let keys = holder.held_evaluation(root, queries.epoch);
        let secret = holder.query_key(root, queries.epoch);
        let trees = ring::expand(&holder.ring, &keys, pieces, layouts)?;
        let masks = (holder.rows == Rows::Encrypted).then_some(&holder.masks);
        let asked = trees.iter().map(|tree| AskedLevel::of(&holder.ring, &secret, masks, tree));
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
