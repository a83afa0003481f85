//! What the Python package had first: results for others, key pairs, centers, copies, what embeds texts.

use std::path::Path;
use std::sync::Arc;

use ciphervec_client::{
    Audience, Choices, Client, Collection, Connection, Error, Face, Host, QueryRequest, Records,
    Selection, block_on,
};
use ciphervec_owner::{Keys, Metric, Mode, Scheme};

use crate::support::{Server, connection, filled, keys, rows, vectors};

const ROWS: usize = 60;
const DIMENSION: usize = 8;
const WIDE: f64 = 1.0 / 16.0;

fn in_folder(folder: &Path, keys: Option<Arc<Keys>>) -> Client {
    Client::in_folder(Face::Rust, folder, keys.map(Into::into), false).unwrap()
}

fn in_memory() -> Client {
    Client::in_memory(Face::Rust, Some(keys().into())).unwrap()
}

fn opened(client: &Client, host: &Connection, name: &str) -> Result<Collection, Error> {
    block_on(client.get_collection(host, name, false, None))
}

fn request(embeddings: Vec<f32>, count: usize) -> QueryRequest {
    QueryRequest { embeddings, n_results: Some(count), ..QueryRequest::default() }
}

fn ids(
    docs: &Collection,
    host: &dyn Host,
    query: &[f32],
    count: usize,
) -> Vec<ciphervec_owner::Id> {
    let found = block_on(docs.query(host, request(query.to_vec(), count))).unwrap();
    found.hits[0].iter().map(|hit| hit.row.id.clone()).collect()
}

#[test]
fn others_are_shown_flooded_scores_until_their_noise_hides_no_more() {
    let (db, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Connection::new(state.path()).unwrap().on_warning(|_| {});
    let client = in_folder(db.path(), Some(keys()));
    let docs = filled(&client, &host, &Choices::new("docs", DIMENSION), rows(ROWS, DIMENSION, 1));
    let ask = |docs: &Collection, host: &dyn Host, flooding: f64, parts: bool| {
        let mut asked = request(vectors(1, DIMENSION, 9), ROWS);
        (asked.audience, asked.flooding) = (Some(Audience::Others), Some(flooding));
        asked.parts.embeddings = parts;
        block_on(docs.query(host, asked))
    };
    let before = block_on(docs.flooding_plan(&host, WIDE)).unwrap();
    assert_eq!(before.queries, before.queries_left);
    let exact = block_on(docs.query(&host, request(vectors(1, DIMENSION, 9), ROWS))).unwrap();
    let flooded = ask(&docs, &host, WIDE, false).unwrap();
    assert!(exact.owners_only && !flooded.owners_only);
    let off: Vec<f64> = flooded.hits[0]
        .iter()
        .map(|hit| {
            let same = exact.hits[0].iter().find(|one| one.row.id == hit.row.id).unwrap();
            (hit.score - same.score).abs()
        })
        .collect();
    let spread = (off.iter().map(|x| x * x).sum::<f64>() / off.len() as f64).sqrt();
    assert!((0.5 * WIDE..2.0 * WIDE).contains(&spread), "{spread}");
    // Each was counted, as often as there were queries.
    let after = block_on(docs.flooding_plan(&host, WIDE)).unwrap();
    assert_eq!(after.queries_left, before.queries_left - 1);
    assert_eq!(after.rows_left, before.rows_an_epoch - ROWS as u64);
    for wrong in [0.0, 0.1, f64::NAN] {
        assert!(matches!(ask(&docs, &host, wrong, false), Err(Error::Input(_))), "{wrong}");
    }
    assert!(matches!(ask(&docs, &host, WIDE, true), Err(Error::Input(_))));
    // 256 times as much is told with a sixteenth of the noise.
    let narrow = 1.0 / 4096.0;
    let ends = (0..300).map(|_| ask(&docs, &host, narrow, false)).find(Result::is_err);
    assert!(matches!(ends, Some(Err(Error::Exhausted(_)))));
    let left = block_on(docs.flooding_plan(&host, WIDE)).unwrap().queries_left;
    drop((docs, client));

    // Another process knows; one that remembers nothing shows nothing; of another collection nothing was shown.
    let client = in_folder(db.path(), Some(keys()));
    let docs = opened(&client, &host, "docs").unwrap();
    assert_eq!(block_on(docs.flooding_plan(&host, WIDE)).unwrap().queries_left, left);
    let (forgetful, _warnings) = connection();
    assert!(matches!(ask(&docs, &forgetful, WIDE, false), Err(Error::Storage(_))));
    let other = filled(&client, &host, &Choices::new("other", DIMENSION), rows(5, DIMENSION, 1));
    assert_eq!(
        block_on(other.flooding_plan(&host, WIDE)).unwrap().queries_left,
        before.queries_left
    );
    // What was counted and then damaged is no count.
    let counted = std::fs::read_dir(state.path().join("flooding")).unwrap();
    for file in counted.map(|file| file.unwrap().path()).filter(|path| path.extension().is_none()) {
        std::fs::write(file, b"{\"keys\":{}").unwrap();
    }
    assert!(matches!(ask(&docs, &host, WIDE, false), Err(Error::Corrupt(_))));
    let choices = Choices { mode: Mode::SealedQuery, ..Choices::new("query", DIMENSION) };
    let noisy = filled(&client, &host, &choices, rows(5, DIMENSION, 1));
    assert!(matches!(ask(&noisy, &host, WIDE, false), Err(Error::Input(_))));
}

#[test]
fn schemes_with_a_key_pair_are_made_opened_and_given_other_keys() {
    let (host, _warnings) = connection();
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    for (scheme, bits) in [(Scheme::OkamotoUchiyama, Some(2048)), (Scheme::ElGamal, None)] {
        let name = format!("docs-{}", scheme.as_str());
        let choices =
            Choices { mode: Mode::SealedIndex, scheme, bits, ..Choices::new(&name, DIMENSION) };
        let given = rows(20, DIMENSION, 1);
        let query = given.embeddings[7 * DIMENSION..][..DIMENSION].to_vec();
        for client in [in_folder(folder.path(), Some(keys())), server.client(&keys())] {
            let docs = filled(&client, &host, &choices, given.clone());
            assert_eq!(ids(&docs, &host, &query, 1), [given.ids[7].clone()]);
            let refused = block_on(docs.rotate_query_key(&host));
            assert!(matches!(refused, Err(Error::Input(_))), "{refused:?}");
            let other = Arc::new(Keys::from_master([9; 32]));
            block_on(docs.rotate_keys(&host, &other, false)).unwrap();
            block_on(docs.rotate_keys(&host, &other, false)).unwrap();
            assert_eq!(ids(&docs, &host, &query, 1), [given.ids[7].clone()]);
            drop(docs);
            assert!(matches!(opened(&client, &host, &name), Err(Error::WrongKey(_))));
            block_on(client.delete_collection(&host, &name)).unwrap();
        }
        let wrong = Choices { mode: Mode::Sealed, ..choices };
        let made = block_on(in_memory().create_collection(&host, &wrong));
        assert!(made.is_err());
    }
}

/// Rows of two numbers around a place.
fn around(place: [f32; 2], count: usize, first: usize, seed: u64) -> Records {
    let spread = vectors(count, 2, seed);
    Records {
        ids: (first..first + count).map(|id| (id as i64).into()).collect(),
        embeddings: spread.chunks(2).flat_map(|x| [place[0] + x[0], place[1] + x[1]]).collect(),
        ..Records::default()
    }
}

fn nearest(all: &[Records], query: &[f32], count: usize) -> Vec<ciphervec_owner::Id> {
    let mut found: Vec<_> = all
        .iter()
        .flat_map(|part| part.ids.iter().zip(part.embeddings.chunks(2)))
        .map(|(id, row)| {
            let far: f64 =
                row.iter().zip(query).map(|(x, q)| (f64::from(*x) - f64::from(*q)).powi(2)).sum();
            (far, id.clone())
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().take(count).map(|(_, id)| id).collect()
}

#[test]
fn rows_that_come_later_and_lie_elsewhere_are_found() {
    let (host, _warnings) = connection();
    let choices = Choices { metric: Metric::L2, ..Choices::new("places", 2) };
    let client = in_memory();
    // In Paris, and then in Sydney, and then some one by one.
    let mut parts = vec![around([48.8, 2.3], 100, 0, 1), around([-3.4e3, 1.5e4], 100, 100, 2)];
    let docs = filled(&client, &host, &choices, parts[0].clone());
    block_on(docs.add(&host, parts[1].clone())).unwrap();
    for id in 200..220 {
        let one = around([9.0e4, 7.0e4], 1, id, id as u64);
        block_on(docs.add(&host, one.clone())).unwrap();
        parts.push(one);
    }
    for part in &parts[..2] {
        for query in part.embeddings.chunks(2).step_by(17) {
            let query = [query[0] + 0.01, query[1] - 0.01];
            assert_eq!(ids(&docs, &host, &query, 5), nearest(&parts, &query, 5), "{query:?}");
        }
    }
    // However few came at once, what they lie around is found once there are some.
    let alone = filled(
        &client,
        &host,
        &Choices { metric: Metric::L2, ..Choices::new("few", 2) },
        around([2025.0, 1.0e4], 1, 0, 5),
    );
    let mut few = vec![around([2025.0, 1.0e4], 1, 0, 5)];
    for id in 1..20 {
        let one = around([2025.0, 1.0e4], 1, id, 100 + id as u64);
        block_on(alone.add(&host, one.clone())).unwrap();
        few.push(one);
    }
    for part in &few {
        assert_eq!(ids(&alone, &host, &part.embeddings, 5), nearest(&few, &part.embeddings, 5));
    }
}

#[test]
fn rows_whose_distances_do_not_tell_them_apart_are_remarked_on_once() {
    let (host, warnings) = connection();
    let client = in_memory();
    let choices = Choices { metric: Metric::L2, ..Choices::new("apart", 2) };
    let docs = block_on(client.create_collection(&host, &choices)).unwrap();
    // Most of the rows close together, and the others so far away that no center tells the first apart.
    let mut groups = around([3.0e5, 3.0e5], 300, 0, 1);
    for row in groups.embeddings.chunks_mut(2).step_by(7) {
        row.iter_mut().for_each(|x| *x += 1.0e5);
    }
    block_on(docs.add(&host, groups.clone())).unwrap();
    groups.ids = (300..600i64).map(Into::into).collect();
    block_on(docs.add(&host, groups)).unwrap();
    let said: Vec<_> = warnings.try_iter().collect();
    let told = said.iter().filter(|text| text.contains("lie far from their center")).count();
    assert_eq!(told, 1, "{said:?}");
}

#[test]
fn a_copy_needs_no_key_and_answers_as_what_it_was_made_of() {
    let (host, _warnings) = connection();
    let (server, folders) = (Server::start(), tempfile::tempdir().unwrap());
    let source = server.client(&keys());
    let given = rows(ROWS, DIMENSION, 1);
    let choices =
        Choices { filterable: vec!["even".to_owned()], ..Choices::new("docs", DIMENSION) };
    let docs = filled(&source, &host, &choices, given.clone());
    let even = Selection { filter: Some("{\"even\":true}".to_owned()), ..Selection::default() };
    let gone = block_on(docs.delete(&host, &even, false)).unwrap();
    let query = vectors(1, DIMENSION, 5);
    let right = ids(&docs, &host, &query, 9);
    let copies = [
        in_folder(&folders.path().join("one"), None),
        in_folder(&folders.path().join("two"), None),
    ];
    let rows = block_on(source.copy_to(&host, "docs", &copies[0])).unwrap();
    assert_eq!(rows as usize, ROWS - gone);
    assert_eq!(block_on(copies[0].copy_to(&host, "docs", &copies[1])).unwrap(), rows);
    let again = block_on(source.copy_to(&host, "docs", &copies[0]));
    assert!(matches!(again, Err(Error::CollectionExists(_))), "{again:?}");
    let none = block_on(source.copy_to(&host, "nothing", &copies[0]));
    assert!(matches!(none, Err(Error::CollectionNotFound(_))), "{none:?}");
    for folder in ["one", "two"] {
        let (fresh, _warnings) = connection();
        let client = in_folder(&folders.path().join(folder), Some(keys()));
        assert_eq!(ids(&opened(&client, &fresh, "docs").unwrap(), &fresh, &query, 9), right);
    }
    // Half a copy is none.
    let client = in_folder(&folders.path().join("two"), None);
    let segment = std::fs::read_dir(folders.path().join("two/docs")).unwrap();
    let blob = segment.map(|one| one.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let data = std::fs::read_dir(blob).unwrap().map(|one| one.unwrap().path());
    let data = data.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&data).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let three = in_folder(&folders.path().join("three"), None);
    let damaged = block_on(client.copy_to(&host, "docs", &three));
    assert!(matches!(damaged, Err(Error::Corrupt(_))), "{damaged:?}");
    assert!(block_on(three.list_collections(&host)).unwrap().is_empty());
}

#[test]
fn what_embeds_texts_is_kept_sealed_and_is_nobodys_to_read_in_mode_open() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let client = in_folder(folder.path(), Some(keys()));
    let function = r#"{"name": "tiny", "config": {"path": "/secret"}, "named": true}"#;
    let of = |docs: &Collection| block_on(docs.info(&host, None)).unwrap().embedding_function;
    for (name, mode) in [("sealed", Mode::Sealed), ("open", Mode::Open)] {
        let choices = Choices {
            mode,
            embedding_function: Some(function.to_owned()),
            ..Choices::new(name, DIMENSION)
        };
        let docs = block_on(client.create_collection(&host, &choices)).unwrap();
        drop(docs);
        let docs = block_on(client.get_collection(&host, name, true, None)).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&of(&docs).unwrap()).unwrap();
        assert_eq!(kept["name"], "tiny");
        assert_eq!(kept["config"]["path"] == "/secret", mode == Mode::Sealed);
        block_on(docs.set_embedding_function(&host, None)).unwrap();
        assert_eq!(of(&docs), None);
        let refused = block_on(docs.set_embedding_function(&host, Some("tiny")));
        assert!(matches!(refused, Err(Error::Input(_))), "{refused:?}");
    }
}

#[test]
fn filters_find_the_same_on_tables_and_after_changes() {
    let (host, _warnings) = connection();
    let docs = filled(
        &in_memory(),
        &host,
        &Choices::new("docs", 2),
        Records {
            ids: (0..200i64).map(Into::into).collect(),
            embeddings: vectors(200, 2, 1),
            metadatas: (0..200).map(|n| Some(format!("{{\"n\": {n}}}"))).collect(),
            ..Records::default()
        },
    );
    let count = |filter: &str| {
        let which = Selection { filter: Some(filter.to_owned()), ..Selection::default() };
        block_on(docs.get(&host, &which, Default::default(), 0, None, None)).unwrap().rows.len()
    };
    assert_eq!([count("{\"n\": {\"$gte\": 150}}"), count("{\"n\": {\"$lt\": 10}}")], [50, 10]);
    assert_eq!(block_on(docs.info(&host, None)).unwrap().filter_tables.0, 1);
    let ten: Vec<_> = (145..155i64).map(Into::into).collect();
    let which = Selection { ids: Some(ten), ..Selection::default() };
    assert_eq!(block_on(docs.delete(&host, &which, false)).unwrap(), 10);
    assert_eq!(count("{\"n\": {\"$gte\": 150}}"), 45);
    block_on(docs.upsert(
        &host,
        Records {
            ids: vec![3i64.into()],
            embeddings: vectors(1, 2, 2),
            metadatas: vec![Some("{\"n\": 1000}".to_owned())],
            ..Records::default()
        },
    ))
    .unwrap();
    assert_eq!([count("{\"n\": {\"$gte\": 150}}"), count("{\"n\": 3}")], [46, 0]);
}
