//! Collections on a server, for JavaScript: typed arrays and JSON text cross, and the core does the rest.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use ciphervec_client::{
    Audience, Choices, Client, ClientOptions, Clusters, Collection, Explanation, Face, Fetch,
    Found, GetResult, Info, Known, OnZero, Parts, PrivateFetch, QueryRequest, Records, Row,
    Selection, Unknown,
};
use ciphervec_owner::{Id, Keys, Network};
use js_sys::{Array, Float32Array, Float64Array, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::errors::{Failure, Result};
use crate::host::JsHost;
use crate::keys::JsKeys;
use crate::{ids, security};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** `js/client/src/native.ts` says what these are. */
export type CallHost = object;
export type ClientChoices = object;
export type CollectionFacts = object;
"#;

/// Collections on a server that holds no key.
#[wasm_bindgen(js_name = Client)]
pub struct JsClient(Rc<Client>);

/// One of them.
#[wasm_bindgen(js_name = Collection)]
pub struct JsCollection(Rc<Collection>);

fn maybe(options: &JsValue, key: &str) -> Option<JsValue> {
    let value = Reflect::get(options, &key.into()).ok()?;
    (!value.is_undefined() && !value.is_null()).then_some(value)
}

fn text(options: &JsValue, key: &str) -> Option<String> {
    maybe(options, key)?.as_string()
}

fn number(options: &JsValue, key: &str) -> Option<f64> {
    maybe(options, key)?.as_f64()
}

fn whole(options: &JsValue, key: &str) -> Option<usize> {
    number(options, key).map(|number| number as usize)
}

fn truth(options: &JsValue, key: &str) -> bool {
    maybe(options, key).is_some_and(|value| value.is_truthy())
}

fn texts(options: &JsValue, key: &str) -> Vec<Option<String>> {
    maybe(options, key)
        .map_or_else(Vec::new, |list| arrays::items(&list).map(|one| one.as_string()).collect())
}

fn names(options: &JsValue, key: &str) -> Result<Option<Vec<Id>>> {
    let Some(list) = maybe(options, key) else { return Ok(None) };
    ids::all(&arrays::items(&list).collect::<Vec<_>>()).map(Some)
}

fn floats(options: &JsValue, key: &str) -> Result<Vec<f32>> {
    let Some(array) = maybe(options, key) else { return Ok(Vec::new()) };
    let array: Float32Array =
        array.dyn_into().map_err(|_| Failure::input(format!("{key} must be a Float32Array")))?;
    arrays::rows(&array, 1, None)
}

pub fn records(rows: &JsValue) -> Result<Records> {
    Ok(Records {
        ids: names(rows, "ids")?.unwrap_or_default(),
        embeddings: floats(rows, "embeddings")?,
        metadatas: texts(rows, "metadatas"),
        documents: texts(rows, "documents"),
        on_zero: match text(rows, "onZero").as_deref() {
            Some("skip") => OnZero::Skip,
            _ => OnZero::Refuse,
        },
    })
}

fn selection(which: &JsValue) -> Result<Selection> {
    Ok(Selection {
        ids: names(which, "ids")?,
        filter: text(which, "where"),
        document: text(which, "whereDocument"),
    })
}

fn audience(question: &JsValue) -> Option<Audience> {
    match text(question, "audience")?.as_str() {
        "others" => Some(Audience::Others),
        _ => Some(Audience::Owner),
    }
}

fn parts(question: &JsValue) -> Parts {
    let fetch = match text(question, "fetch").as_deref() {
        Some("private") => Fetch::Private,
        Some("rows") => Fetch::Rows,
        Some("segments") => Fetch::Segments,
        Some("collection") => Fetch::Collection,
        _ => Fetch::Auto,
    };
    Parts { records: truth(question, "records"), embeddings: truth(question, "embeddings"), fetch }
}

fn clusters(given: &JsValue) -> Clusters {
    let default = Clusters::default();
    let count = |key: &str| number(given, key).map(|number| number as u32);
    Clusters {
        count: count("count"),
        probes: count("probes"),
        decoys: count("decoys"),
        recall: number(given, "recall").unwrap_or(default.recall),
        server_learns_queries: truth(given, "serverLearnsQueries"),
    }
}

/// As [`clusters`] takes it.
fn routing(routing: &Clusters) -> JsValue {
    let count = |count: Option<u32>| count.map_or(JsValue::NULL, JsValue::from);
    object(&[
        ("count", count(routing.count)),
        ("probes", count(routing.probes)),
        ("decoys", count(routing.decoys)),
        ("recall", routing.recall.into()),
        ("serverLearnsQueries", routing.server_learns_queries.into()),
    ])
}

fn there(rows: &JsValue) -> Option<Vec<bool>> {
    maybe(rows, "there").map(|list| arrays::items(&list).map(|one| one.is_truthy()).collect())
}

fn choices(given: &JsValue) -> Result<Choices> {
    let name = text(given, "name").unwrap_or_default();
    let mut choices = Choices::new(name, whole(given, "dimension").unwrap_or_default());
    if let Some(metric) = text(given, "metric") {
        choices.metric = metric.parse()?;
    }
    if let Some(mode) = text(given, "mode") {
        choices.mode = mode.parse()?;
    }
    if let Some(precision) = text(given, "precision") {
        choices.precision = precision.parse()?;
    }
    choices.filterable = texts(given, "filterable").into_iter().flatten().collect();
    choices.originals = maybe(given, "originals").map(|value| value.is_truthy());
    choices.routing = maybe(given, "routing").map(|routing| clusters(&routing));
    Ok(choices)
}

/// Ids, metadata as JSON text, documents and vectors, an entry a row; null where they were not read.
fn listed(rows: &[Row], records: bool, embeddings: bool) -> Vec<(&'static str, JsValue)> {
    let texts = |of: fn(&Row) -> &Option<String>| -> JsValue {
        if !records {
            return JsValue::NULL;
        }
        rows.iter()
            .map(|row| of(row).as_deref().map_or(JsValue::NULL, JsValue::from_str))
            .collect::<Array>()
            .into()
    };
    let vector =
        |row: &Row| JsValue::from(Float32Array::from(row.embedding.as_deref().unwrap_or_default()));
    let vectors = match embeddings {
        true => rows.iter().map(vector).collect::<Array>().into(),
        false => JsValue::NULL,
    };
    vec![
        ("ids", ids::outs(rows.iter().map(|row| Some(&row.id))).into()),
        ("metadatas", texts(|row| &row.metadata)),
        ("documents", texts(|row| &row.document)),
        ("embeddings", vectors),
    ]
}

fn strings<'a>(all: impl IntoIterator<Item = &'a String>) -> JsValue {
    all.into_iter().map(|one| JsValue::from_str(one)).collect::<Array>().into()
}

fn table<'a, V: Into<JsValue>>(entries: impl IntoIterator<Item = (&'a String, V)>) -> JsValue {
    let made = Object::new();
    for (name, value) in entries {
        // An object that was just made takes any property.
        let _ = Reflect::set(&made, &name.as_str().into(), &value.into());
    }
    made.into()
}

/// What a question costs, as the page sees it.
fn explained(told: &Explanation) -> JsValue {
    let count = |count: usize| JsValue::from_f64(count as f64);
    let routing = told.routing.as_ref().map_or(JsValue::NULL, |routing| {
        object(&[
            ("clusters", count(routing.clusters)),
            ("rowsEach", count(routing.rows_each)),
            ("probes", count(routing.probes)),
            ("decoys", count(routing.decoys)),
            ("padding", count(routing.padding)),
            ("recall", routing.recall.into()),
        ])
    });
    let traffic = told.traffic.as_ref().map_or(JsValue::NULL, |traffic| {
        let fields = [("up", traffic.up), ("down", traffic.down), ("ahead", traffic.ahead)];
        object(&fields.map(|(name, bytes)| (name, (bytes as f64).into())))
    });
    object(&[
        ("rows", count(told.rows)),
        ("rowsScanned", count(told.rows_scanned)),
        ("unrouted", count(told.unrouted)),
        ("routed", told.routed.into()),
        ("routing", routing),
        ("traffic", traffic),
        ("tokens", count(told.tokens.0)),
        ("tokenBytes", count(told.tokens.1)),
        ("leak", told.leak.as_str().into()),
        ("text", told.to_string().into()),
    ])
}

fn described(info: &Info) -> JsValue {
    let segment = |one: &ciphervec_client::SegmentInfo| {
        object(&[
            ("id", one.id.as_str().into()),
            ("rows", one.rows.into()),
            ("deleted", (one.deleted as f64).into()),
            ("bytes", table(one.bytes.iter().map(|(name, bytes)| (name, *bytes as f64)))),
            ("writer", one.writer.as_deref().map_or(JsValue::NULL, JsValue::from_str)),
        ])
    };
    let state = info.state.as_ref().map_or(JsValue::NULL, |(sequence, lineage)| {
        object(&[("sequence", (*sequence as f64).into()), ("lineage", lineage.as_str().into())])
    });
    let key = info.query_key.map_or(JsValue::NULL, |key| {
        let session = key.session.map_or(JsValue::NULL, |session| f64::from(session).into());
        object(&[
            ("session", session),
            ("queries", (key.queries as f64).into()),
            ("most", (ciphervec_client::QUERIES_PER_KEY as f64).into()),
            ("refused", key.refused.into()),
        ])
    });
    let ignored = |(id, segment): &(Id, String)| {
        object(&[("id", ids::out(id)), ("segment", segment.as_str().into())])
    };
    object(&[
        ("rows", (info.rows as f64).into()),
        ("keyId", info.key_id.as_str().into()),
        ("rotatesFrom", info.rotates_from.as_deref().map_or(JsValue::NULL, JsValue::from_str)),
        ("epoch", info.epoch.into()),
        ("queryKey", key),
        ("version", (info.version as f64).into()),
        ("authenticated", info.authenticated.into()),
        ("state", state),
        ("security", security::statement(&info.security)),
        ("segments", info.segments.iter().map(segment).collect::<Array>().into()),
        ("writers", table(info.writers.iter().map(|(name, rows)| (name, *rows as f64)))),
        ("appended", strings(&info.appended)),
        ("refused", table(info.refused.iter().map(|(id, why)| (id, why.as_str())))),
        ("quarantine", table(info.quarantine.iter().map(|(id, why)| (id, why.as_str())))),
        ("ignored", info.ignored.iter().map(ignored).collect::<Array>().into()),
    ])
}

fn made(keys: Option<Arc<Keys>>, options: &JsValue) -> Result<JsClient> {
    let mut made = ClientOptions {
        keys,
        face: Face::JavaScript,
        ..ClientOptions::new(text(options, "url").unwrap_or_default())
    };
    made.token = text(options, "token");
    made.insecure = truth(options, "insecure");
    if let Some(ms) = number(options, "timeout") {
        made.timeout = Duration::from_secs_f64(ms.max(0.0) / 1e3);
    }
    if let Some(retries) = number(options, "retries") {
        made.retries = retries as u32;
    }
    if let Some(bytes) = number(options, "cacheBytes") {
        made.cache_bytes = bytes as u64;
    }
    Ok(JsClient(Rc::new(Client::new(made)?)))
}

#[wasm_bindgen(js_class = Client)]
impl JsClient {
    /// With the owner's keys. Nothing is sent yet. Throws InvalidInput.
    #[wasm_bindgen(js_name = withKeys)]
    pub fn with_keys(
        keys: &JsKeys,
        #[wasm_bindgen(unchecked_param_type = "ClientChoices")] options: &JsValue,
    ) -> Result<JsClient> {
        made(Some(Arc::clone(&keys.0)), options)
    }

    /// For collections in mode `open`.
    #[wasm_bindgen(js_name = withoutKeys)]
    pub fn without_keys(
        #[wasm_bindgen(unchecked_param_type = "ClientChoices")] options: &JsValue,
    ) -> Result<JsClient> {
        made(None, options)
    }

    /// The server's URL, as it is used.
    #[wasm_bindgen(getter)]
    pub fn url(&self) -> String {
        self.0.place().to_owned()
    }

    /// Makes an empty collection. Throws CollectionExists, InvalidInput.
    #[wasm_bindgen(js_name = createCollection)]
    pub async fn create_collection(&self, host: JsHost, given: JsValue) -> Result<JsCollection> {
        let client = Rc::clone(&self.0);
        Ok(JsCollection(Rc::new(client.create_collection(&host, &choices(&given)?).await?)))
    }

    /// Opens a collection that is there.
    #[wasm_bindgen(js_name = getCollection)]
    pub async fn get_collection(
        &self,
        host: JsHost,
        name: String,
        allow_open: bool,
        expect: Option<String>,
    ) -> Result<JsCollection> {
        let client = Rc::clone(&self.0);
        let opened = client.get_collection(&host, &name, allow_open, expect.as_deref()).await?;
        Ok(JsCollection(Rc::new(opened)))
    }

    /// That a collection may be made of these choices. Throws InvalidInput.
    #[wasm_bindgen(js_name = checkNew)]
    pub fn check_new(&self, given: &JsValue) -> Result<()> {
        Ok(self.0.check_new(&choices(given)?)?)
    }

    /// Name, rows and bytes of every collection that the token may see.
    #[wasm_bindgen(js_name = listCollections)]
    pub async fn list_collections(&self, host: JsHost) -> Result<Array> {
        let client = Rc::clone(&self.0);
        let listed = client.list_collections(&host).await?;
        let row = |row: &ciphervec_client::CollectionRow| {
            object(&[
                ("name", row.name.as_str().into()),
                ("rows", (row.rows as f64).into()),
                ("bytes", (row.bytes as f64).into()),
            ])
        };
        Ok(listed.iter().map(row).collect())
    }

    /// Deletes a collection and everything in it. Throws CollectionNotFound.
    #[wasm_bindgen(js_name = deleteCollection)]
    pub async fn delete_collection(&self, host: JsHost, name: String) -> Result<()> {
        let client = Rc::clone(&self.0);
        Ok(client.delete_collection(&host, &name).await?)
    }

    /// Goes on from an older state of a collection, which whoever keeps it put back from a copy.
    #[wasm_bindgen(js_name = acceptRestore)]
    pub async fn accept_restore(&self, host: JsHost, name: String) -> Result<JsCollection> {
        let client = Rc::clone(&self.0);
        Ok(JsCollection(Rc::new(client.accept_restore(&host, &name).await?)))
    }

    /// Drops what was pinned and seen of a collection.
    pub async fn forget(&self, host: JsHost, name: String) -> Result<()> {
        let client = Rc::clone(&self.0);
        Ok(client.forget(&host, &name).await?)
    }
}

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
        let mut fields = listed(&rows, parts.records, parts.embeddings);
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
            within: number(&question, "within"),
            among: selection(&question)?,
            parts,
            audience: audience(&question),
            flooding: number(&question, "flooding"),
            skip_quarantined: truth(&question, "skipQuarantined"),
        };
        let found = collection.query(&host, request).await?;
        let hits = found.hits.into_iter().map(|hits| {
            let values = |of: fn(&Found) -> f64| -> JsValue {
                Float64Array::from(hits.iter().map(of).collect::<Vec<_>>().as_slice()).into()
            };
            let (distances, scores) = (values(|hit| hit.distance), values(|hit| hit.score));
            let rows: Vec<_> = hits.into_iter().map(|hit| hit.row).collect();
            let mut fields = listed(&rows, parts.records, parts.embeddings);
            fields.extend([("distances", distances), ("scores", scores)]);
            object(&fields)
        });
        let hits: Array = hits.collect();
        Ok(object(&[
            ("hits", hits.into()),
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
