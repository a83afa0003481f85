//! Evaluation keys for JavaScript. They are public, and for a server.

use ciphervec_he_secret::lattice::ring::{EvaluationKeys, Ring};
use ciphervec_he_secret::wire::{self, Kind};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::{Failure, Result};

/// What a server needs to answer queries: Galois keys where they are encrypted, the public key of an additively homomorphic
/// scheme, and nothing else. Public.
#[wasm_bindgen(js_name = EvaluationKeys)]
pub struct JsEvaluationKeys {
    bytes: Vec<u8>,
    epoch: u32,
    key_id: String,
}

#[wasm_bindgen(js_class = EvaluationKeys)]
impl JsEvaluationKeys {
    /// Bytes to send.
    #[wasm_bindgen(getter)]
    pub fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// The epoch of the query key they belong to.
    #[wasm_bindgen(getter)]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The public name of the owner's key.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.key_id.clone()
    }

    /// What a server takes.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.bytes)
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsEvaluationKeys> {
        JsEvaluationKeys::read(arrays::bytes("evaluation keys", data)?)
    }
}

impl JsEvaluationKeys {
    pub fn new(bytes: Vec<u8>, epoch: u32, key_id: String) -> Self {
        JsEvaluationKeys { bytes, epoch, key_id }
    }

    fn read(bytes: Vec<u8>) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(JsEvaluationKeys::new(bytes, 0, String::new()));
        }
        // The number of levels, which follows from the dimension, stands in the frame.
        let (_, payload) = wire::open(Kind::EvaluationKeys, &bytes)?;
        let levels = payload.get(44..48).and_then(|bytes| bytes.first_chunk::<4>());
        let Some(levels @ 0..=12) = levels.map(|bytes| u32::from_le_bytes(*bytes)) else {
            return Err(Failure::corrupt("evaluation keys: 0 to 12 levels expected"));
        };
        let keys = EvaluationKeys::from_bytes(&Ring::new()?, &bytes, 1 << levels)?;
        let (epoch, key_id) = (keys.epoch(), keys.key_id().to_string());
        Ok(JsEvaluationKeys { bytes, epoch, key_id })
    }
}
