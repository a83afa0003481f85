//! One collection for JavaScript: what is asked goes to the core, and what it answers comes back as plain objects.

use std::rc::Rc;
use std::sync::Arc;

use ciphervec_client::{
    Collection, Face, Found, GetResult, Known, PrivateFetch, QueryRequest, Unknown,
};
use ciphervec_owner::Network;
use js_sys::{Array, Float64Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::errors::Result;
use crate::host::JsHost;
use crate::ids;
use crate::keys::JsKeys;
use crate::values::{
    audience, choices, described, explained, floats, hybrid, listed, maybe, multi, number, parts,
    ranked_by, records, routing, selection, sparse, strings, texts, there, tokens, truth, whole,
};

/// One collection on a server that holds no key.
#[wasm_bindgen(js_name = Collection)]
pub struct JsCollection(pub(crate) Rc<Collection>);

#[wasm_bindgen(js_class = Collection)]
impl JsCollection {
    /// What it is.
    #[wasm_bindgen(unchecked_return_type = "CollectionFacts")]
    pub fn facts(&self) -> JsValue {
        let (spec, (filterable, originals)) = (self.0.spec(), self.0.settings());
        object(&[
            ("name", spec.collection().into()),
            ("dimension", (spec.dimension() as f64).into()),
            ("metric", spec.metric().as_str().into()),
            ("mode", spec.mode().as_str().into()),
            ("precision", spec.precision().as_str().into()),
            ("scheme", spec.scheme().as_str().into()),
            ("filterable", strings(&filterable)),
            ("originals", originals.into()),
            ("routing", self.0.routing().map_or(JsValue::NULL, routing)),
            ("sparse", self.0.sparse().map_or(JsValue::NULL, ranked_by)),
            ("multi", self.0.multi().map_or(JsValue::NULL, multi)),
        ])
    }

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

    /// Rows by id, by filter, or all of them.
    pub async fn get(&self, host: JsHost, question: JsValue) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let (which, parts) = (selection(&question)?, parts(&question));
        let (offset, limit) = (whole(&question, "offset").unwrap_or(0), whole(&question, "limit"));
        let GetResult { rows, owners_only } =
            collection.get(&host, &which, parts, offset, limit, audience(&question)).await?;
        let mut fields = listed(&rows, parts);
        fields.push(("ownersOnly", owners_only.into()));
        Ok(object(&fields))
    }

    /// The rows closest to each of the queries.
    pub async fn query(&self, host: JsHost, question: JsValue) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let parts = parts(&question);
        let request = QueryRequest {
            embeddings: floats(&question, "queryEmbeddings")?,
            n_results: whole(&question, "nResults"),
            hybrid: hybrid(&question)?,
            within: number(&question, "within"),
            among: selection(&question)?,
            parts,
            audience: audience(&question),
            flooding: number(&question, "flooding"),
            skip_quarantined: truth(&question, "skipQuarantined"),
            multi: tokens(&question, "queryTokens")?,
            candidates: whole(&question, "candidates"),
        };
        let found = collection.query(&host, request).await?;
        let hits = found.hits.into_iter().map(|hits| {
            let values = |of: fn(&Found) -> f64| -> JsValue {
                Float64Array::from(hits.iter().map(of).collect::<Vec<_>>().as_slice()).into()
            };
            let (distances, scores) = (values(|hit| hit.distance), values(|hit| hit.score));
            let rows: Vec<_> = hits.into_iter().map(|hit| hit.row).collect();
            let mut fields = listed(&rows, parts);
            fields.extend([("distances", distances), ("scores", scores)]);
            object(&fields)
        });
        let hits: Array = hits.collect();
        Ok(object(&[
            ("hits", hits.into()),
            ("bounds", Float64Array::from(found.bounds.as_slice()).into()),
            ("ownersOnly", found.owners_only.into()),
            ("checked", found.checked.into()),
            ("flooding", found.flooding.into()),
        ]))
    }

    /// What queries for others cost with noise of this deviation, and how much of it is left.
    #[wasm_bindgen(js_name = floodingPlan)]
    pub async fn flooding_plan(&self, host: JsHost, flooding: f64) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let plan = collection.flooding_plan(&host, flooding).await?;
        let counts = [
            ("queries", plan.queries),
            ("queriesLeft", plan.queries_left),
            ("rowsAnEpoch", plan.rows_an_epoch),
            ("rowsLeft", plan.rows_left),
        ];
        let mut fields = counts.map(|(name, count)| (name, (count as f64).into())).to_vec();
        fields.push(("deviation", plan.deviation.into()));
        Ok(object(&fields))
    }

    /// Fetches halves of answers ahead, for so many questions more; how many are held then.
    pub async fn prefetch(&self, host: JsHost, queries: f64) -> Result<f64> {
        let collection = Rc::clone(&self.0);
        Ok(collection.prefetch(&host, queries as usize).await? as f64)
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

    /// Rows that are there, as far as this client has seen.
    pub async fn count(&self, host: JsHost) -> Result<f64> {
        let collection = Rc::clone(&self.0);
        Ok(collection.count(&host).await? as f64)
    }

    /// Which of these ids are there, a byte each.
    pub async fn has(&self, host: JsHost, wanted: JsValue) -> Result<Uint8Array> {
        let collection = Rc::clone(&self.0);
        let wanted = ids::all(&arrays::items(&wanted).collect::<Vec<_>>())?;
        let there = collection.has(&host, &wanted).await?;
        Ok(arrays::out(&there.into_iter().map(u8::from).collect::<Vec<_>>()))
    }

    /// Takes in what others have committed.
    pub async fn refresh(&self, host: JsHost) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.refresh(&host).await?)
    }

    /// What two people compare to know that they see one history.
    pub async fn checkpoint(&self, host: JsHost) -> Result<String> {
        let collection = Rc::clone(&self.0);
        Ok(collection.checkpoint(&host).await?)
    }

    /// That the history of the collection has the state of this checkpoint.
    pub async fn expect(&self, host: JsHost, checkpoint: String) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.expect(&host, &checkpoint).await?)
    }

    /// Uses a segment again that is in quarantine.
    pub async fn release(&self, host: JsHost, segment: String) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.release(&host, &segment).await?)
    }

    /// What a private fetch of metadata and documents is like, and whether any failed.
    #[wasm_bindgen(js_name = privateFetch)]
    pub async fn private_fetch(&self, host: JsHost) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let PrivateFetch { records, failures, ended } = collection.private_fetch(&host).await?;
        let (table, refused) = match records {
            Ok(table) => {
                let of = [
                    ("rows", table.rows as f64),
                    ("placeBytes", table.place_bytes as f64),
                    ("longRows", table.long_rows as f64),
                    ("longPlaceBytes", table.long_place_bytes as f64),
                    ("tableBytes", table.table_bytes as f64),
                    ("seconds", table.seconds),
                    ("secondsOfTen", table.seconds_of_ten),
                ];
                (object(&of.map(|(name, number)| (name, number.into()))), JsValue::NULL)
            }
            Err(why) => (JsValue::NULL, why.into()),
        };
        Ok(object(&[
            ("table", table),
            ("refused", refused),
            ("failures", failures.into()),
            ("ended", ended.into()),
        ]))
    }

    /// Goes on with private fetches after one that failed.
    #[wasm_bindgen(js_name = resumePrivateFetch)]
    pub async fn resume_private_fetch(&self, host: JsHost) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.resume_private_fetch(&host).await?)
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

    /// What one question costs and shows the server.
    pub async fn explain(&self, host: JsHost) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        Ok(explained(&collection.explain(&host).await?))
    }

    /// What is stored and what protects it.
    pub async fn info(&self, host: JsHost) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        Ok(described(&collection.info(&host, None).await?))
    }
}
