//! Writers: they seal rows that only the card's owner opens.

use std::rc::Rc;

use ciphervec_client::Writer;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::host::JsHost;
use crate::writer_card::JsWriterCard;
use crate::{arrays, values};

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
        let (bytes, rows) = self.0.seal(host, values::records(rows)?)?;
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
