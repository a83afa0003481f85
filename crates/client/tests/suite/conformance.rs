//! The scripts of vectors/client that every client runs: the same calls, results and errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciphervec_client::{
    Asked, Audience, Bm25, Choices, Client, Collection, Connection, Error, Face, Fusion, GetResult,
    Hybrid, Known, Muvera, MuveraOptions, OnZero, Parts, QueryRequest, Records, Selection, Sparse,
    SparseVector, Tokens, Unknown, block_on,
};
use ciphervec_owner::{Id, Keys, Metric, Mode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Server, connection, keys};

#[derive(serde::Deserialize)]
struct Step {
    call: String,
    with: BTreeMap<String, Box<RawValue>>,
    gives: Option<Value>,
    #[serde(default)]
    leaves: BTreeMap<String, usize>,
    raises: Option<String>,
    says: Option<String>,
}

#[derive(serde::Deserialize)]
struct Script {
    name: String,
    /// The only place where it holds: `server`.
    r#where: Option<String>,
    create: BTreeMap<String, Value>,
    steps: Vec<Step>,
}

#[derive(serde::Deserialize)]
struct Scripts {
    scripts: Vec<Script>,
}

/// What a script passes, which the types of this crate would not all take.
type Given = BTreeMap<String, Box<RawValue>>;
type Found = Result<Value, Error>;

/// The text of a value, with the numbers that JSON has none for.
fn text(value: &RawValue) -> String {
    let mut text = value.get().to_owned();
    for (name, number) in [("inf", "1e999"), ("-inf", "-1e999"), ("nan", "NaN")] {
        text = text.replace(&format!("{{\"$float\": \"{name}\"}}"), number);
        text = text.replace(&format!("{{\"$float\":\"{name}\"}}"), number);
    }
    text
}

pub fn refused<T>(what: &str) -> Result<T, Error> {
    Err(Error::Input(format!("the types of this crate take no such {what}")))
}

fn value(given: &Given, name: &str) -> Option<Value> {
    serde_json::from_str(given.get(name)?.get()).ok()
}

fn ids(given: &Given) -> Result<Option<Vec<Id>>, Error> {
    let Some(names) = value(given, "ids") else { return Ok(None) };
    let names = if let Value::Array(names) = names { names } else { vec![names] };
    let id = |one: &Value| match one {
        Value::String(text) => Ok(Id::from(text.as_str())),
        one => one.as_i64().map_or_else(|| refused("id"), |number| Ok(Id::from(number))),
    };
    names.iter().map(id).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Rows end to end, and which of them are there.
fn vectors(given: &Given, name: &str) -> Result<(Vec<f32>, Option<Vec<bool>>), Error> {
    let Some(raw) = given.get(name) else { return Ok((Vec::new(), None)) };
    let numbers = text(raw).replace("1e999", "\"inf\"").replace("NaN", "\"nan\"");
    let Ok(Value::Array(rows)) = serde_json::from_str::<Value>(&numbers) else {
        return refused(name);
    };
    let number = |one: &Value| match one {
        Value::String(name) => name.parse::<f64>().unwrap_or(f64::NAN) as f32,
        one => one.as_f64().unwrap_or(f64::NAN) as f32,
    };
    let there = rows.iter().map(|row| !row.is_null()).collect();
    let flat = rows.iter().filter_map(Value::as_array).flatten().map(number).collect();
    Ok((flat, Some(there)))
}

fn texts(given: &Given, name: &str, documents: bool) -> Result<Vec<Option<String>>, Error> {
    let Some(raw) = given.get(name) else { return Ok(Vec::new()) };
    let raw = text(raw);
    let one = |raw: &&RawValue| match (raw.get(), documents) {
        ("null", _) => Ok(None),
        (text, true) => serde_json::from_str(text).map(Some).or_else(|_| refused("documents[0]")),
        (text, false) => Ok(Some(text.to_owned())),
    };
    match serde_json::from_str::<Vec<&RawValue>>(&raw) {
        Ok(rows) => rows.iter().map(one).collect(),
        Err(_) if raw.contains("NaN") => refused("metadatas[0]"),
        Err(_) => Ok(vec![Some(raw)]),
    }
}

/// Matrices, and which rows have one.
fn tokens(given: &Given, name: &str) -> (Vec<Tokens>, Option<Vec<bool>>) {
    let Some(Value::Array(rows)) = value(given, name) else { return (Vec::new(), None) };
    let there = rows.iter().map(|row| !row.is_null()).collect();
    let matrix = |one: &Value| {
        let lines: Vec<Vec<f32>> = serde_json::from_value(one.clone()).unwrap();
        Tokens { width: lines[0].len(), values: lines.concat() }
    };
    (rows.iter().filter(|row| !row.is_null()).map(matrix).collect(), Some(there))
}

/// Sparse vectors, none where a row has none.
fn weights(given: &Given, name: &str) -> Vec<Option<SparseVector>> {
    value(given, name).map_or_else(Vec::new, |rows| serde_json::from_value(rows).unwrap())
}

fn hybrid(given: &Given) -> Result<Option<Hybrid>, Error> {
    let fusion = match value(given, "fusion").as_ref().and_then(Value::as_str) {
        None => return Ok(None),
        Some("rrf") => Fusion::Ranks { k: 60.0 },
        Some("sparse") => Fusion::Words,
        Some(_) => return refused("fusion"),
    };
    let asked = match value(given, "query_texts") {
        Some(texts) => Asked::Texts(serde_json::from_value(texts).unwrap()),
        None => Asked::Vectors(weights(given, "sparse").into_iter().flatten().collect()),
    };
    let scans = given.contains_key("query_embeddings");
    if scans && matches!(fusion, Fusion::Words) {
        return refused("fusion");
    }
    Ok(Some(Hybrid::new(asked, fusion)))
}

fn records(given: &Given) -> Result<(Records, Option<Vec<bool>>), Error> {
    let (embeddings, there) = vectors(given, "embeddings")?;
    let (multi, many) = tokens(given, "multi_embeddings");
    let there = there.or(many);
    let records = Records {
        ids: ids(given)?.unwrap_or_default(),
        embeddings,
        metadatas: texts(given, "metadatas", false)?,
        documents: texts(given, "documents", true)?,
        sparse: weights(given, "sparse_embeddings"),
        multi,
        on_zero: match value(given, "on_zero") {
            None => OnZero::Refuse,
            Some(Value::String(what)) if what == "refuse" => OnZero::Refuse,
            Some(Value::String(what)) if what == "skip" => OnZero::Skip,
            _ => return refused("on_zero"),
        },
    };
    Ok((records, there))
}

fn selection(given: &Given) -> Result<Selection, Error> {
    // Nothing equals NaN, which faces leave out of lists: JSON has none.
    let unlisted =
        |text: String| text.replace(", NaN]", "]").replace("NaN, ", "").replace("[NaN]", "[]");
    let filter = given.get("where").map(|raw| unlisted(text(raw)));
    if filter.as_ref().is_some_and(|text| text.contains("NaN")) {
        return refused("NaN");
    }
    Ok(Selection {
        ids: ids(given)?,
        filter,
        document: given.get("where_document").map(|raw| text(raw)),
    })
}

fn audience(given: &Given) -> Result<Option<Audience>, Error> {
    match value(given, "audience") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(who)) if who == "owner" => Ok(Some(Audience::Owner)),
        Some(Value::String(who)) if who == "others" => Ok(Some(Audience::Others)),
        _ => refused("audience"),
    }
}

fn number(given: &Given, name: &str) -> Result<Option<usize>, Error> {
    match value(given, name) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => {
            number.as_u64().map_or_else(|| refused(name), |number| Ok(Some(number as usize)))
        }
    }
}

/// The parts of `include`, or those by default.
fn include(given: &Given, default: &[&str], known: &[&str]) -> Result<Vec<String>, Error> {
    let Some(parts) = value(given, "include") else {
        return Ok(default.iter().map(|part| (*part).to_owned()).collect());
    };
    let parts: Vec<String> = serde_json::from_value(parts).unwrap();
    match parts.iter().find(|part| !known.contains(&part.as_str())) {
        Some(unknown) => refused(unknown),
        None => Ok(parts),
    }
}

fn parts(include: &[String]) -> Parts {
    let has = |part: &str| include.iter().any(|one| one == part);
    let records = has("metadatas") || has("documents");
    let (multi, sparse) = (has(MULTI), has(SPARSE));
    Parts { records, embeddings: has("embeddings"), multi, sparse, ..Parts::default() }
}

fn id_of(id: &Id) -> Value {
    match id {
        Id::Number(number) => json!(number),
        Id::Text(text) => json!(text),
    }
}

fn listed(found: &GetResult, include: &[String]) -> BTreeMap<String, Value> {
    let parsed = |text: &Option<String>| {
        let raw = text.clone().map(|text| RawValue::from_string(text).unwrap());
        serde_json::to_string(&raw).unwrap()
    };
    let all = |one: &dyn Fn(&ciphervec_client::Row) -> Value| {
        found.rows.iter().map(one).collect::<Vec<_>>()
    };
    let mut parts = BTreeMap::from([("ids".to_owned(), json!(all(&|row| id_of(&row.id))))]);
    for part in include {
        let values = match part.as_str() {
            "metadatas" => all(&|row| json!({"raw": parsed(&row.metadata)})),
            "documents" => all(&|row| json!(row.document)),
            "embeddings" => all(&|row| json!(row.embedding)),
            MULTI => all(&|row| {
                let Tokens { width, values } = row.tokens.clone().unwrap_or_default();
                json!(values.chunks(width.max(1)).collect::<Vec<_>>())
            }),
            SPARSE => all(&|row| json!(row.sparse)),
            _ => continue,
        };
        parts.insert(part.clone(), json!(values));
    }
    parts
}

const SPARSE: &str = "sparse_embeddings";
const MULTI: &str = "multi_embeddings";
const ROWS: [&str; 7] = ["ids", "embeddings", "metadatas", "documents", "on_zero", SPARSE, MULTI];
const KNOWN: [(&str, &[&str]); 15] = [
    ("add", &ROWS),
    ("upsert", &ROWS),
    ("update", &["ids", "embeddings", "metadatas", "documents", "remove_fields", SPARSE, MULTI]),
    ("delete", &["ids", "where", "where_document", "missing_ok"]),
    ("get", &["ids", "where", "where_document", "include", "limit", "offset", "audience"]),
    (
        "query",
        &[
            "query_embeddings",
            "n_results",
            "within",
            "ids",
            "where",
            "where_document",
            "include",
            "audience",
            "skip_quarantined",
            "query_multi_embeddings",
            "candidates",
            "query_texts",
            "sparse",
            "fusion",
        ],
    ),
    ("count", &[]),
    ("merge", &["ids", "embeddings", "metadatas", "documents", "known", "unknown", SPARSE, MULTI]),
    ("prefetch", &["queries"]),
    ("recluster", &[]),
    ("optimize", &["reseal"]),
    ("adopt", &["take_over"]),
    ("discard", &["segments"]),
    ("rotate_keys", &["keys", "overlap"]),
    ("rotate_query_key", &[]),
];

fn run(docs: &Collection, host: &Connection, step: &Step) -> Found {
    let given = &step.with;
    let known = KNOWN.iter().find(|(call, _)| *call == step.call).unwrap().1;
    if let Some(unknown) = given.keys().find(|name| !known.contains(&name.as_str())) {
        return refused(unknown);
    }
    let truth = |name: &str| value(given, name) == Some(json!(true));
    match step.call.as_str() {
        "optimize" => Ok(json!(block_on(docs.optimize(host, truth("reseal")))?)),
        "adopt" => Ok(json!(block_on(docs.adopt(host, truth("take_over")))?)),
        "discard" => {
            let segments: Vec<String> = serde_json::from_str(given["segments"].get()).unwrap();
            Ok(json!(block_on(docs.discard(host, &segments))?))
        }
        "rotate_keys" => {
            let Some(Value::Object(named)) = value(given, "keys") else { return refused("keys") };
            let other = Arc::new(Keys::from_master([named["$keys"].as_u64().unwrap() as u8; 32]));
            Ok(json!(block_on(docs.rotate_keys(host, &other, truth("overlap")))?))
        }
        "rotate_query_key" => Ok(json!(block_on(docs.rotate_query_key(host))?)),
        "count" => Ok(json!(block_on(docs.count(host))?)),
        "add" | "upsert" => {
            let (records, there) = records(given)?;
            if there.is_none() {
                return refused("rows without embeddings");
            }
            let added = if step.call == "add" {
                block_on(docs.add(host, records))
            } else {
                block_on(docs.upsert(host, records))
            };
            Ok(json!(added?.iter().map(id_of).collect::<Vec<_>>()))
        }
        "update" => {
            let (records, there) = records(given)?;
            let removed = match value(given, "remove_fields") {
                None => Vec::new(),
                Some(fields) => {
                    serde_json::from_value(fields).or_else(|_| refused("remove_fields"))?
                }
            };
            block_on(docs.update(host, records, there, &removed))?;
            Ok(Value::Null)
        }
        "merge" => {
            let (records, there) = records(given)?;
            let known = match value(given, "known") {
                None => Known::Merge,
                Some(known) if known == "keep" => Known::Keep,
                _ => return refused("known"),
            };
            let unknown = match value(given, "unknown") {
                None => Unknown::Add,
                Some(unknown) if unknown == "skip" => Unknown::Skip,
                _ => return refused("unknown"),
            };
            Ok(json!(block_on(docs.merge(host, records, there, known, unknown))?))
        }
        "prefetch" => match number(given, "queries")? {
            None | Some(0) => refused("queries"),
            Some(queries) => Ok(json!(block_on(docs.prefetch(host, queries))?)),
        },
        "recluster" => {
            let made = block_on(docs.recluster(host, None))?;
            Ok(json!({
                "clusters": made.clusters,
                "rows_each": made.rows_each,
                "probes": made.probes,
                "decoys": made.decoys,
                "unrouted": made.unrouted,
            }))
        }
        "delete" => {
            Ok(json!(block_on(docs.delete(host, &selection(given)?, truth("missing_ok")))?))
        }
        "get" => {
            let include = include(
                given,
                &["metadatas", "documents"],
                &["metadatas", "documents", "embeddings", "ids", MULTI, SPARSE],
            )?;
            let (offset, limit) = (number(given, "offset")?.unwrap_or(0), number(given, "limit")?);
            let found = block_on(docs.get(
                host,
                &selection(given)?,
                parts(&include),
                offset,
                limit,
                audience(given)?,
            ))?;
            Ok(json!(listed(&found, &include)))
        }
        _ => {
            let all = [
                "metadatas",
                "documents",
                "embeddings",
                "ids",
                "scores",
                "distances",
                MULTI,
                SPARSE,
            ];
            let include = include(given, &["distances", "scores"], &all)?;
            let within =
                given.get("within").map(|raw| text(raw).parse::<f64>().unwrap_or(f64::NAN));
            let request = QueryRequest {
                embeddings: vectors(given, "query_embeddings")?.0,
                n_results: number(given, "n_results")?,
                multi: tokens(given, "query_multi_embeddings").0,
                candidates: number(given, "candidates")?,
                hybrid: hybrid(given)?,
                within,
                among: selection(given)?,
                parts: parts(&include),
                audience: audience(given)?,
                flooding: None,
                skip_quarantined: false,
            };
            let found = block_on(docs.query(host, request))?;
            let mut lists: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for hits in found.hits {
                let values = [
                    ("scores", hits.iter().map(|hit| hit.score).collect::<Vec<_>>()),
                    ("distances", hits.iter().map(|hit| hit.distance).collect()),
                ];
                let rows = hits.into_iter().map(|hit| hit.row).collect();
                for (part, list) in listed(&GetResult { rows, owners_only: false }, &include) {
                    lists.entry(part).or_default().push(list);
                }
                for (part, list) in
                    values.into_iter().filter(|(part, _)| include.iter().any(|one| one == part))
                {
                    lists.entry(part.to_owned()).or_default().push(json!(list));
                }
            }
            Ok(json!(lists))
        }
    }
}

/// What came is what a script says, numbers to within the precision of a seal; metadata to the letter.
fn same(came: &Value, right: &Value, part: &str) -> bool {
    match (came, right) {
        (Value::Array(came), Value::Array(right)) => {
            came.len() == right.len()
                && came.iter().zip(right).all(|(came, right)| same(came, right, part))
        }
        (Value::Object(raw), right) if part == "metadatas" => {
            let text = raw["raw"].as_str().unwrap();
            let written: Value = serde_json::from_str(text).unwrap();
            // Of the numbers their kinds too: 1.0 stays, and does not become 1.
            written == *right
                || serde_json::to_string(&written).unwrap() == serde_json::to_string(right).unwrap()
        }
        (Value::Number(came), Value::Number(right)) if part != "ids" => {
            (came.as_f64().unwrap() - right.as_f64().unwrap()).abs() < 2e-3
        }
        (came, right) => came == right,
    }
}

fn check(docs: &Collection, host: &Connection, step: &Step) {
    let found = run(docs, host, step);
    let shown = || format!("{} {:?}", step.call, step.with);
    if let Some(kinds) = &step.raises {
        let error = found.err().unwrap_or_else(|| panic!("{}: nothing is refused", shown()));
        let kind = match &error {
            Error::Input(_) | Error::Rows { .. } => "InvalidInput",
            Error::UnknownId(_) => "UnknownId",
            Error::DuplicateId(_) => "DuplicateId",
            _ => "another",
        };
        assert!(kinds.split('|').any(|one| one == kind), "{}: {error}", shown());
        let (message, says) = (error.to_string(), step.says.clone().unwrap_or_default());
        // What types refuse has no message of this crate's.
        let typed = message.starts_with("the types of this crate");
        assert!(
            typed || says.split('|').any(|one| message.contains(one)),
            "{}: {message}",
            shown()
        );
        return;
    }
    let found = found.unwrap_or_else(|error| panic!("{}: {error}", shown()));
    if !step.leaves.is_empty() {
        let info = block_on(docs.info(host, None)).unwrap();
        let deleted = info.segments.iter().map(|one| one.deleted).sum();
        let left = [
            ("count", info.rows),
            ("segments", info.segments.len()),
            ("deleted", deleted),
            ("epoch", info.epoch as usize),
        ];
        let left: BTreeMap<_, _> = left.map(|(name, count)| (name.to_owned(), count)).into();
        for (name, count) in &step.leaves {
            assert_eq!(left[name], *count, "{}: {name}", shown());
        }
    }
    match &step.gives {
        None => {}
        Some(Value::Object(expected)) => {
            for (part, right) in expected {
                let came = found.get(part).unwrap_or_else(|| panic!("{}: no {part}", shown()));
                assert!(same(came, right, part), "{}: {part} {came} for {right}", shown());
            }
        }
        Some(right) => assert_eq!(found, *right, "{}", shown()),
    }
}

fn choices(name: String, given: &BTreeMap<String, Value>) -> Choices {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    let multi = given.get("multi").map(|given| {
        let count = |key: &str| given[key].as_u64().map(|count| count as u32);
        let options = MuveraOptions {
            k_sim: count("k_sim"),
            repetitions: count("repetitions"),
            d_proj: count("d_proj"),
            dimension: count("dimension"),
            seed: given["seed"].as_u64(),
        };
        Muvera::new(count("width").unwrap(), options).unwrap()
    });
    let dimension = given.get("dimension").and_then(Value::as_u64).map(|count| count as usize);
    let dimension = dimension.or(multi.map(|multi| multi.dimension as usize)).unwrap();
    let mut choices = Choices::new(name, dimension);
    choices.multi = multi;
    choices.sparse = text("sparse").map(|kind| match kind {
        "bm25" => Sparse::Bm25(Bm25::default()),
        _ => Sparse::Vectors,
    });
    choices.metric = text("metric").map_or(Metric::Cosine, |metric| metric.parse().unwrap());
    choices.mode = text("mode").map_or(Mode::Sealed, |mode| mode.parse().unwrap());
    if let Some(fields) = given.get("filterable") {
        choices.filterable = serde_json::from_value(fields.clone()).unwrap();
    }
    choices.originals = given.get("originals").and_then(Value::as_bool);
    choices.routing = given.get("routing").map(|one| serde_json::from_value(one.clone()).unwrap());
    choices
}

#[test]
fn scripts_give_what_they_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/client/calls.json");
    let Scripts { scripts } =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(scripts.iter().map(|script| script.steps.len()).sum::<usize>() >= 200);
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let clients = [
        server.client(&keys()),
        Client::in_folder(Face::Python, folder.path(), Some(keys().into()), false).unwrap(),
        Client::in_memory(Face::Rust, Some(keys().into())).unwrap(),
    ];
    let (host, _warnings) = connection();
    for (client, (number, script)) in
        clients.iter().flat_map(|client| scripts.iter().enumerate().map(move |one| (client, one)))
    {
        if script.r#where.is_some() && !client.place().starts_with("http") {
            continue;
        }
        let docs = block_on(
            client.create_collection(&host, &choices(format!("script-{number}"), &script.create)),
        );
        let docs = docs.unwrap_or_else(|error| panic!("{}: {error}", script.name));
        script.steps.iter().for_each(|step| check(&docs, &host, step));
    }
}
