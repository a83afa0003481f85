//! A batch of queries: bytes for the server leave; what opening their answer takes stays in here. Owner only.

use std::sync::Arc;

use ciphervec::search::Query;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;

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
}
