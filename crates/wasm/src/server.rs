//! The server's half for JavaScript, which holds no secret, for a page that stores a sealed index itself.

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::search::ServerIndex;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::spec::JsIndexSpec;
use crate::{arrays, memory, segment};

/// The half that searches. It holds sealed segments and public evaluation keys, never a secret.
#[wasm_bindgen(js_name = ServerIndex)]
pub struct JsServerIndex(ServerIndex);

#[wasm_bindgen(js_class = ServerIndex)]
impl JsServerIndex {
    /// An empty one.
    #[wasm_bindgen(constructor)]
    pub fn new(spec: &JsIndexSpec) -> Result<JsServerIndex> {
        Ok(JsServerIndex(ServerIndex::new(spec.0.clone())?))
    }

    /// Vectors held.
    #[wasm_bindgen(getter)]
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Bytes of the segments held.
    #[wasm_bindgen(getter)]
    pub fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// Takes in a segment and the tags of its filterable fields; returns its id. Throws CorruptData, or InvalidInput when it
    /// is another index's or held already.
    pub fn add(&mut self, segment: &Uint8Array, tags: Option<Uint8Array>) -> Result<Uint8Array> {
        let tags = tags.map(|tags| arrays::bytes("filter tags", &tags)).transpose()?;
        let tags = tags.map(|tags| FilterTags::from_bytes(&tags)).transpose()?;
        memory::expect("a segment", u64::from(segment.length()))?;
        let mut bytes = AlignedBytes::zeroed(segment.length() as usize);
        segment.copy_to(&mut bytes);
        let id = self.0.add_tagged(bytes, tags.unwrap_or_default())?;
        Ok(arrays::out(&id.0))
    }

    /// Drops a segment; whether it was held.
    pub fn remove(&mut self, segment_id: &[u8]) -> Result<bool> {
        Ok(self.0.remove(segment::id(segment_id)?))
    }

    /// Takes in what `Owner.evaluation` made.
    #[wasm_bindgen(js_name = setEvaluationKeys)]
    pub fn set_evaluation_keys(&mut self, data: &Uint8Array) -> Result<()> {
        if data.length() > 0 || self.0.spec().form().needs_evaluation_keys() {
            self.0.set_evaluation_keys(&arrays::bytes("evaluation keys", data)?)?;
        }
        Ok(())
    }

    /// The answer to a query, encrypted unless the mode is open.
    pub fn evaluate(&self, query: &Uint8Array) -> Result<Uint8Array> {
        Ok(arrays::out(&self.0.evaluate(&arrays::bytes("a query", query)?)?.bytes))
    }
}
