//! A card and rows enter, sealed segments leave that only the card's owner opens. The writer's side; no secret is kept.

use std::rc::Rc;

use ciphervec::search::WriterCard;
use ciphervec_client::Writer;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::host::JsHost;
use crate::spec::JsIndexSpec;
use crate::{arrays, client};

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

/// Adds rows to a collection and opens none.
#[wasm_bindgen(js_name = Writer)]
pub struct JsWriter(Rc<Writer>);

#[wasm_bindgen(js_class = Writer)]
impl JsWriter {
    /// The holder of a card, of this fingerprint if one is given. Throws PinMismatch, CorruptData, UnsupportedVersion.
    #[wasm_bindgen(constructor)]
    pub fn new(card: &Uint8Array, fingerprint: Option<String>) -> Result<JsWriter> {
        let card = arrays::bytes("a writer's card", card)?;
        Ok(JsWriter(Rc::new(Writer::new(&card, fingerprint.as_deref())?)))
    }

    /// What it writes to, and as whom.
    #[wasm_bindgen(getter)]
    pub fn card(&self) -> JsWriterCard {
        JsWriterCard(self.0.card().clone())
    }

    /// Seals rows and keeps nothing: the bytes of a batch, and how many rows it has.
    #[wasm_bindgen(unchecked_return_type = "{ bytes: Uint8Array; rows: number }")]
    pub fn seal(&self, host: &JsHost, rows: &JsValue) -> Result<JsValue> {
        let (bytes, rows) = self.0.seal(host, client::records(rows)?)?;
        Ok(arrays::object(&[("bytes", arrays::out(&bytes).into()), ("rows", (rows as f64).into())]))
    }

    /// Adds a sealed batch to the collection; segments that are there already are not added twice.
    pub async fn send(
        &self,
        host: JsHost,
        url: String,
        token: Option<String>,
        insecure: bool,
        batch: Uint8Array,
    ) -> Result<()> {
        let writer = Rc::clone(&self.0);
        let batch = arrays::bytes("a sealed batch", &batch)?;
        Ok(writer.send(&host, &url, token.as_deref(), insecure, &batch).await?)
    }
}
