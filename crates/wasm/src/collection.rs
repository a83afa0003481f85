//! One collection for JavaScript: what is asked goes to the core, and what it answers comes back as plain objects.

use std::rc::Rc;

use ciphervec_client::{Collection, Found, GetResult, PrivateFetch, QueryRequest};
use js_sys::{Array, Float64Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::errors::Result;
use crate::host::JsHost;
use crate::ids;
use crate::values::{
    audience, described, explained, floats, hybrid, listed, multi, number, parts, ranked_by,
    routing, selection, strings, tokens, truth, whole,
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
