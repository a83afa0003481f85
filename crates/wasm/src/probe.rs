//! Plain queries of a device without a key, for JavaScript. It needs the public description alone.

use ciphervec_owner::search::Probe;
use js_sys::{Float32Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::Result;
use crate::spec::JsIndexSpec;

/// Asks an index whose queries are plain.
#[wasm_bindgen(js_name = Probe)]
pub struct JsProbe(Probe);

#[wasm_bindgen(js_class = Probe)]
impl JsProbe {
    /// For the index of a description; `publicKey` is that of an additively homomorphic scheme.
    #[wasm_bindgen(constructor)]
    pub fn new(spec: &JsIndexSpec, public_key: Option<Uint8Array>) -> Result<JsProbe> {
        let key = public_key.map(|key| arrays::bytes("a public key", &key)).transpose()?;
        Ok(JsProbe(Probe::new(spec.0.clone(), key.as_deref())?))
    }

    /// Query bytes of the rows: normalised and rounded, not encrypted.
    pub fn query(&self, vectors: &Float32Array) -> Result<Uint8Array> {
        let rows = arrays::rows(vectors, self.0.spec().dimension(), None)?;
        Ok(arrays::out(&self.0.query(&rows)?))
    }
}
