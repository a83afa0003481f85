//! A card and rows enter, sealed segments leave that only the card's owner opens. The writer's side; no secret is kept.

use ciphervec::search::{Writer, WriterCard, WrittenSegment};
use js_sys::{Date, Float32Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::spec::JsIndexSpec;
use crate::{arrays, ids};

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

/// Seals for one index and opens nothing.
#[wasm_bindgen(js_name = Writer)]
pub struct JsWriter(Writer);

#[wasm_bindgen(js_class = Writer)]
impl JsWriter {
    /// The holder of a card.
    #[wasm_bindgen(constructor)]
    pub fn new(card: &JsWriterCard) -> Result<JsWriter> {
        Ok(JsWriter(Writer::new(card.0.clone())?))
    }

    /// Seals rows, given one after the other, under a key that is drawn, wrapped and forgotten. `payloads` has one entry a
    /// row, or none at all.
    #[wasm_bindgen(unchecked_return_type = "WrittenSegment")]
    pub fn seal(
        &self,
        vectors: &Float32Array,
        #[wasm_bindgen(unchecked_param_type = "Id[]")] ids: Vec<JsValue>,
        payloads: Vec<Uint8Array>,
        expected: Option<usize>,
    ) -> Result<JsValue> {
        let names = ids::all(&ids)?;
        let rows = arrays::rows(vectors, self.0.card().spec().dimension(), Some(names.len()))?;
        let payloads = payloads.iter().map(|payload| arrays::bytes("a payload", payload));
        let payloads = payloads.collect::<Result<Vec<_>>>()?;
        let expected = expected.unwrap_or(names.len());
        let WrittenSegment { sealed, records, wrap } =
            self.0.seal(&rows, &names, payloads, expected, Date::now() as u64)?;
        let records = records.map_or(JsValue::NULL, |records| arrays::out(&records).into());
        Ok(arrays::object(&[
            ("id", arrays::out(&sealed.id.0).into()),
            ("rows", sealed.rows.into()),
            ("segment", arrays::out(&sealed.segment).into()),
            ("sidecar", arrays::out(&sealed.sidecar).into()),
            ("records", records),
            ("wrap", arrays::out(&wrap).into()),
        ]))
    }
}
