//! Writers' cards. Public.

use ciphervec_owner::search::WriterCard;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::Result;
use crate::spec::JsIndexSpec;

/// What a writer is given: public, and enough to add vectors that it cannot open.
#[wasm_bindgen(js_name = WriterCard)]
pub struct JsWriterCard(#[wasm_bindgen(skip)] pub WriterCard);

#[wasm_bindgen(js_class = WriterCard)]
impl JsWriterCard {
    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsWriterCard> {
        Ok(JsWriterCard(WriterCard::from_bytes(&arrays::bytes("a writer's card", data)?)?))
    }

    /// What `fromBytes` takes.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.0.to_bytes())
    }

    /// The index it is for.
    #[wasm_bindgen(getter)]
    pub fn spec(&self) -> JsIndexSpec {
        JsIndexSpec(self.0.spec().clone())
    }

    /// The writer's name.
    #[wasm_bindgen(getter)]
    pub fn writer(&self) -> String {
        self.0.writer().to_owned()
    }

    /// The public name of the owner's key.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.0.owner().to_string()
    }

    /// Metadata fields that the server can compare once the owner has made their tags.
    #[wasm_bindgen(getter)]
    pub fn filterable(&self) -> Vec<String> {
        self.0.filterable().to_vec()
    }

    /// 32 hexadecimal digits that name this very card: what a writer pins.
    #[wasm_bindgen(getter)]
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }
}
