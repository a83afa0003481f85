//! What changes a collection, for JavaScript: rows, keys, how it is stored. Not in the module of a page that only searches.

use std::rc::Rc;
use std::sync::Arc;

use ciphervec_client::{Face, Known, Unknown};
use ciphervec_owner::Network;
use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::collection::JsCollection;
use crate::errors::Result;
use crate::host::JsHost;
use crate::ids;
use crate::keys::JsKeys;
use crate::values::{choices, floats, maybe, records, selection, sparse, texts, there, truth};

#[wasm_bindgen(js_class = Collection)]
impl JsCollection {
    /// That it was chosen so. Throws InvalidInput.
    #[wasm_bindgen(js_name = checkChoices)]
    pub async fn check_choices(&self, given: JsValue) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.check_choices(Face::JavaScript, &choices(&given)?).await?)
    }

    /// Seals and stores new rows; their ids.
    pub async fn add(&self, host: JsHost, rows: JsValue) -> Result<Array> {
        let (collection, rows) = (Rc::clone(&self.0), records(&rows)?);
        Ok(ids::outs(collection.add(&host, rows).await?.iter().map(Some)))
    }

    /// As `add`, but a row whose id is here is replaced.
    pub async fn upsert(&self, host: JsHost, rows: JsValue) -> Result<Array> {
        let (collection, rows) = (Rc::clone(&self.0), records(&rows)?);
        Ok(ids::outs(collection.upsert(&host, rows).await?.iter().map(Some)))
    }

    /// Changes rows that are here.
    pub async fn update(&self, host: JsHost, rows: JsValue) -> Result<()> {
        let collection = Rc::clone(&self.0);
        let removed: Vec<_> = texts(&rows, "removeFields").into_iter().flatten().collect();
        Ok(collection.update(&host, records(&rows)?, there(&rows), &removed).await?)
    }

    /// Adds the rows that are not here and lays the others over what is here; how many were written.
    pub async fn merge(&self, host: JsHost, rows: JsValue) -> Result<f64> {
        let collection = Rc::clone(&self.0);
        let known = if truth(&rows, "keep") { Known::Keep } else { Known::Merge };
        let unknown = if truth(&rows, "skip") { Unknown::Skip } else { Unknown::Add };
        Ok(collection.merge(&host, records(&rows)?, there(&rows), known, unknown).await? as f64)
    }

    /// Deletes rows by id, by filter, or both; how many.
    pub async fn delete(&self, host: JsHost, which: JsValue) -> Result<f64> {
        let collection = Rc::clone(&self.0);
        Ok(collection.delete(&host, &selection(&which)?, truth(&which, "missingOk")).await? as f64)
    }

    /// Puts every row into clusters.
    pub async fn recluster(&self, host: JsHost, given: JsValue) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let questions =
            maybe(&given, "questions").map(|_| floats(&given, "questions")).transpose()?;
        let made = collection.recluster(&host, questions).await?;
        let counts = [
            ("clusters", made.clusters),
            ("rowsEach", made.rows_each),
            ("probes", made.probes),
            ("decoys", made.decoys),
            ("unrouted", made.unrouted),
        ];
        let mut fields = counts.map(|(name, count)| (name, (count as f64).into())).to_vec();
        let recalls: Array = made.recalls.iter().map(|one| JsValue::from(*one)).collect();
        fields.extend([("recall", made.recall.into()), ("recalls", recalls.into())]);
        Ok(object(&fields))
    }

    /// Uses a segment again that is in quarantine.
    pub async fn release(&self, host: JsHost, segment: String) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.release(&host, &segment).await?)
    }

    /// The bytes of a card for somebody who may add rows and read none, and its fingerprint.
    #[wasm_bindgen(js_name = writerCard)]
    pub async fn writer_card(&self, host: JsHost, writer: String) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let (bytes, fingerprint) = collection.writer_card(&host, &writer).await?;
        Ok(object(&[("bytes", arrays::out(&bytes).into()), ("fingerprint", fingerprint.into())]))
    }

    /// Has the server read and check every stored block.
    pub async fn verify(&self, host: JsHost) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let found = collection.verify(&host).await?;
        let fields = [("files", found.files), ("bytes", found.bytes), ("strays", found.strays)];
        Ok(object(&fields.map(|(name, count)| (name, (count as f64).into()))))
    }

    /// Has the server delete what no present state needs.
    pub async fn purge(&self, host: JsHost) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.purge(&host).await?)
    }

    /// Merges small segments and drops deleted rows; or seals every row again.
    pub async fn optimize(&self, host: JsHost, reseal: bool) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.optimize(&host, reseal).await?)
    }

    /// Packs rows for what answers travel over: those that come from now on, and others with `optimize`.
    #[wasm_bindgen(js_name = packFor)]
    pub async fn pack_for(&self, host: JsHost, megabits: f64, latency_ms: f64) -> Result<()> {
        let collection = Rc::clone(&self.0);
        let network = Network { bytes_per_second: megabits * 125e3, round_trip: latency_ms / 1e3 };
        Ok(collection.pack_for(&host, network).await?)
    }

    /// Authenticates a collection of a release before 0.2; whether it was not yet.
    pub async fn upgrade(&self, host: JsHost) -> Result<bool> {
        let collection = Rc::clone(&self.0);
        Ok(collection.upgrade(&host).await?)
    }

    /// Lets the server test equality on further metadata fields.
    #[wasm_bindgen(js_name = extendFilterable)]
    pub async fn extend_filterable(&self, host: JsHost, fields: JsValue) -> Result<()> {
        let collection = Rc::clone(&self.0);
        let fields: Vec<_> = arrays::items(&fields).filter_map(|one| one.as_string()).collect();
        Ok(collection.extend_filterable(&host, &fields).await?)
    }

    /// Ranks rows by this beside their vectors.
    #[wasm_bindgen(js_name = setSparse)]
    pub async fn set_sparse(&self, host: JsHost, given: JsValue) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.set_sparse(&host, sparse(&given)).await?)
    }

    /// Seals the rows that writers added again as the owner's own; how many.
    pub async fn adopt(&self, host: JsHost, take_over: bool) -> Result<f64> {
        let collection = Rc::clone(&self.0);
        Ok(collection.adopt(&host, take_over).await? as f64)
    }

    /// Removes segments that writers sealed; how many rows went.
    pub async fn discard(&self, host: JsHost, segments: JsValue) -> Result<f64> {
        let collection = Rc::clone(&self.0);
        let segments: Vec<_> = arrays::items(&segments).filter_map(|one| one.as_string()).collect();
        Ok(collection.discard(&host, &segments).await? as f64)
    }

    /// Seals everything again under new keys, each segment in a commit of its own.
    #[wasm_bindgen(js_name = rotateKeys)]
    pub async fn rotate_keys(&self, host: JsHost, keys: &JsKeys, overlap: bool) -> Result<()> {
        let (collection, keys) = (Rc::clone(&self.0), Arc::clone(&keys.0));
        Ok(collection.rotate_keys(&host, &keys, overlap).await?)
    }

    /// Begins the next epoch: a new query key.
    #[wasm_bindgen(js_name = rotateQueryKey)]
    pub async fn rotate_query_key(&self, host: JsHost) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.rotate_query_key(&host).await?)
    }
}
