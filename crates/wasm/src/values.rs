//! Values of JavaScript to the core's and back. An option that is left out, or null, is the core's default.

use ciphervec_client::{
    Asked, Audience, Bm25, Choices, Clusters, Explanation, Fetch, Fusion, Hybrid, Info, Muvera,
    MuveraOptions, OnZero, Parts, Records, Row, Selection, Sparse, SparseVector, Tokens, WINDOW,
};
use ciphervec_owner::Id;
use js_sys::{Array, Float32Array, Object, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::errors::{Failure, Result};
use crate::{ids, security};

pub fn maybe(options: &JsValue, key: &str) -> Option<JsValue> {
    let value = Reflect::get(options, &key.into()).ok()?;
    (!value.is_undefined() && !value.is_null()).then_some(value)
}

pub fn text(options: &JsValue, key: &str) -> Option<String> {
    maybe(options, key)?.as_string()
}

pub fn number(options: &JsValue, key: &str) -> Option<f64> {
    maybe(options, key)?.as_f64()
}

pub fn whole(options: &JsValue, key: &str) -> Option<usize> {
    number(options, key).map(|number| number as usize)
}

pub fn truth(options: &JsValue, key: &str) -> bool {
    maybe(options, key).is_some_and(|value| value.is_truthy())
}

pub fn texts(options: &JsValue, key: &str) -> Vec<Option<String>> {
    maybe(options, key)
        .map_or_else(Vec::new, |list| arrays::items(&list).map(|one| one.as_string()).collect())
}

pub fn names(options: &JsValue, key: &str) -> Result<Option<Vec<Id>>> {
    let Some(list) = maybe(options, key) else { return Ok(None) };
    ids::all(&arrays::items(&list).collect::<Vec<_>>()).map(Some)
}

pub fn floats(options: &JsValue, key: &str) -> Result<Vec<f32>> {
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
        sparse: maybe(rows, "sparse").map_or_else(
            || Ok(Vec::new()),
            |list| arrays::items(&list).map(one_sparse).collect(),
        )?,
        multi: tokens(rows, "multi")?,
        on_zero: match text(rows, "onZero").as_deref() {
            Some("skip") => OnZero::Skip,
            _ => OnZero::Refuse,
        },
    })
}

/// Matrices, each of a width and numbers.
pub fn tokens(options: &JsValue, key: &str) -> Result<Vec<Tokens>> {
    let Some(list) = maybe(options, key) else { return Ok(Vec::new()) };
    let one = |given: JsValue| {
        let width = whole(&given, "width").unwrap_or_default();
        Ok(Tokens { width, values: floats(&given, "values")? })
    };
    arrays::items(&list).map(one).collect()
}

/// As [`tokens`] takes it.
fn matrix(Tokens { width, values }: &Tokens) -> JsValue {
    let numbers = Float32Array::from(values.as_slice());
    object(&[("width", (*width as f64).into()), ("values", numbers.into())])
}

/// How many vectors become one.
fn muvera(given: &JsValue) -> Result<Muvera> {
    let count = |key: &str| number(given, key).map(|number| number as u32);
    let options = MuveraOptions {
        k_sim: count("kSim"),
        repetitions: count("repetitions"),
        d_proj: count("dProj"),
        dimension: count("dimension"),
        seed: number(given, "seed").map(|number| number as u64),
    };
    Ok(Muvera::new(count("width").unwrap_or_default(), options)?)
}

/// As it is told.
pub fn multi(of: Muvera) -> JsValue {
    let count = |count: u32| JsValue::from(count);
    object(&[
        ("width", count(of.width)),
        ("kSim", count(of.k_sim)),
        ("repetitions", count(of.repetitions)),
        ("dProj", count(of.d_proj)),
        ("dimension", count(of.dimension)),
        ("seed", (of.seed.unwrap_or_default() as f64).into()),
    ])
}

/// A sparse vector, or none.
fn one_sparse(given: JsValue) -> Result<Option<SparseVector>> {
    if given.is_null() {
        return Ok(None);
    }
    let indices: Uint32Array = maybe(&given, "indices")
        .and_then(|array| array.dyn_into().ok())
        .ok_or_else(|| Failure::input("the indices of a sparse vector must be a Uint32Array"))?;
    Ok(Some(SparseVector { indices: indices.to_vec(), values: floats(&given, "values")? }))
}

/// As [`one_sparse`] takes it.
fn weights(sparse: Option<&SparseVector>) -> JsValue {
    sparse.map_or(JsValue::NULL, |SparseVector { indices, values }| {
        object(&[
            ("indices", Uint32Array::from(indices.as_slice()).into()),
            ("values", Float32Array::from(values.as_slice()).into()),
        ])
    })
}

/// What rows are ranked by: the figures of BM25, or sparse vectors.
pub fn sparse(given: &JsValue) -> Sparse {
    match number(given, "k1").zip(number(given, "b")) {
        Some((k1, b)) => Sparse::Bm25(Bm25 { k1, b }),
        None => Sparse::Vectors,
    }
}

/// As [`sparse`] takes it.
pub fn ranked_by(sparse: Sparse) -> JsValue {
    match sparse {
        Sparse::Bm25(Bm25 { k1, b }) => object(&[("k1", k1.into()), ("b", b.into())]),
        Sparse::Vectors => "vectors".into(),
    }
}

/// What is asked beside vectors.
pub fn hybrid(question: &JsValue) -> Result<Option<Hybrid>> {
    let Some(given) = maybe(question, "hybrid") else { return Ok(None) };
    let asked = match maybe(&given, "vectors") {
        Some(list) => {
            let vectors = arrays::items(&list).map(one_sparse).collect::<Result<Vec<_>>>()?;
            Asked::Vectors(vectors.into_iter().flatten().collect())
        }
        None => Asked::Texts(texts(&given, "texts").into_iter().flatten().collect()),
    };
    let fusion = match (number(&given, "k"), number(&given, "alpha")) {
        (Some(k), _) => Fusion::Ranks { k },
        (None, Some(alpha)) => Fusion::Weighted { alpha },
        (None, None) => Fusion::Words,
    };
    let window = whole(&given, "window").unwrap_or(WINDOW);
    Ok(Some(Hybrid { asked, fusion, window, idf: truth(&given, "idf") }))
}

pub fn selection(which: &JsValue) -> Result<Selection> {
    Ok(Selection {
        ids: names(which, "ids")?,
        filter: text(which, "where"),
        document: text(which, "whereDocument"),
    })
}

pub fn audience(question: &JsValue) -> Option<Audience> {
    match text(question, "audience")?.as_str() {
        "others" => Some(Audience::Others),
        _ => Some(Audience::Owner),
    }
}

pub fn parts(question: &JsValue) -> Parts {
    let fetch = match text(question, "fetch").as_deref() {
        Some("private") => Fetch::Private,
        Some("rows") => Fetch::Rows,
        Some("segments") => Fetch::Segments,
        Some("collection") => Fetch::Collection,
        _ => Fetch::Auto,
    };
    Parts {
        records: truth(question, "records"),
        embeddings: truth(question, "embeddings"),
        multi: truth(question, "multi"),
        sparse: truth(question, "sparseVectors"),
        fetch,
    }
}

pub fn clusters(given: &JsValue) -> Clusters {
    let default = Clusters::default();
    let count = |key: &str| number(given, key).map(|number| number as u32);
    Clusters {
        count: count("count"),
        probes: count("probes"),
        decoys: count("decoys"),
        recall: number(given, "recall").unwrap_or(default.recall),
        server_learns_queries: truth(given, "serverLearnsQueries"),
        oblivious: truth(given, "oblivious"),
    }
}

/// As [`clusters`] takes it.
pub fn routing(routing: &Clusters) -> JsValue {
    let count = |count: Option<u32>| count.map_or(JsValue::NULL, JsValue::from);
    object(&[
        ("count", count(routing.count)),
        ("probes", count(routing.probes)),
        ("decoys", count(routing.decoys)),
        ("recall", routing.recall.into()),
        ("serverLearnsQueries", routing.server_learns_queries.into()),
        ("oblivious", routing.oblivious.into()),
    ])
}

pub fn there(rows: &JsValue) -> Option<Vec<bool>> {
    maybe(rows, "there").map(|list| arrays::items(&list).map(|one| one.is_truthy()).collect())
}

pub fn choices(given: &JsValue) -> Result<Choices> {
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
    choices.sparse = maybe(given, "sparse").map(|given| sparse(&given));
    choices.multi = maybe(given, "multi").map(|given| muvera(&given)).transpose()?;
    if let (Some(multi), None) = (choices.multi, whole(given, "dimension")) {
        choices.dimension = multi.dimension as usize;
    }
    Ok(choices)
}

/// Ids, metadata as JSON text, documents, vectors, matrices and sparse vectors, an entry a row; null where they were not read.
pub fn listed(rows: &[Row], parts: Parts) -> Vec<(&'static str, JsValue)> {
    let Parts { records, embeddings, multi, sparse, .. } = parts;
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
    let matrices = match multi {
        true => rows
            .iter()
            .filter_map(|row| Some(matrix(row.tokens.as_ref()?)))
            .collect::<Array>()
            .into(),
        false => JsValue::NULL,
    };
    let sparse = match sparse {
        true => rows.iter().map(|row| weights(row.sparse.as_ref())).collect::<Array>().into(),
        false => JsValue::NULL,
    };
    vec![
        ("ids", ids::outs(rows.iter().map(|row| Some(&row.id))).into()),
        ("metadatas", texts(|row| &row.metadata)),
        ("documents", texts(|row| &row.document)),
        ("embeddings", vectors),
        ("matrices", matrices),
        ("weights", sparse),
    ]
}

pub fn strings<'a>(all: impl IntoIterator<Item = &'a String>) -> JsValue {
    all.into_iter().map(|one| JsValue::from_str(one)).collect::<Array>().into()
}

pub fn table<'a, V: Into<JsValue>>(entries: impl IntoIterator<Item = (&'a String, V)>) -> JsValue {
    let made = Object::new();
    for (name, value) in entries {
        // An object that was just made takes any property.
        let _ = Reflect::set(&made, &name.as_str().into(), &value.into());
    }
    made.into()
}

/// What a question costs, as the page sees it.
pub fn explained(told: &Explanation) -> JsValue {
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

pub fn described(info: &Info) -> JsValue {
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
    let author = info.author.as_ref().map_or(JsValue::NULL, |(author, members)| {
        object(&[
            ("name", author.name.as_str().into()),
            ("fingerprint", author.fingerprint.as_str().into()),
            ("members", (*members as f64).into()),
        ])
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
        ("author", author),
        ("security", security::statement(&info.security)),
        ("segments", info.segments.iter().map(segment).collect::<Array>().into()),
        ("writers", table(info.writers.iter().map(|(name, rows)| (name, *rows as f64)))),
        ("appended", strings(&info.appended)),
        ("refused", table(info.refused.iter().map(|(id, why)| (id, why.as_str())))),
        ("quarantine", table(info.quarantine.iter().map(|(id, why)| (id, why.as_str())))),
        ("ignored", info.ignored.iter().map(ignored).collect::<Array>().into()),
    ])
}
