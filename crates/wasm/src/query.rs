//! A batch of queries for JavaScript: bytes for the server, and what opening their answer takes, which stays in here. Owner
//! only.

use std::sync::Arc;

use ciphervec_owner::search::Query;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::errors::{Failure, Result};
use crate::{arrays, segment};

/// Queries that were sealed together. Keep it until their answer is opened.
#[wasm_bindgen(js_name = SealedQuery)]
pub struct JsSealedQuery(#[wasm_bindgen(skip)] pub Arc<Query>);

#[wasm_bindgen(js_class = SealedQuery)]
impl JsSealedQuery {
    /// Bytes to send.
    #[wasm_bindgen(getter)]
    pub fn nbytes(&self) -> usize {
        self.0.to_bytes().len()
    }

    /// Queries in the batch.
    #[wasm_bindgen(getter)]
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// What a server takes.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(self.0.to_bytes())
    }

    /// Says which rows the filter chooses by the owner's own tags: the ids of all segments, and for each a mask of a byte a row.
    /// An answer about others is refused. Only the first word counts.
    #[wasm_bindgen(js_name = expectMatching)]
    pub fn expect_matching(
        &self,
        segment_ids: Vec<Uint8Array>,
        masks: Vec<Uint8Array>,
    ) -> Result<()> {
        if segment_ids.len() != masks.len() {
            let (masks, ids) = (masks.len(), segment_ids.len());
            let message = format!("one mask per segment expected, got {masks} for {ids}");
            return Err(Failure::input(message));
        }
        let chosen = |mask: &Uint8Array| {
            let mask = arrays::bytes("a mask", mask)?;
            Ok(mask.into_iter().map(|one| one != 0).collect())
        };
        let masks = masks.iter().map(chosen).collect::<Result<Vec<_>>>()?;
        self.0.expect_matching(segment::ids(&segment_ids)?.into_iter().zip(masks));
        Ok(())
    }
}
