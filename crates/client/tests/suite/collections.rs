//! Collections on a server, by one client and by several.

use std::cell::Cell;
use std::collections::HashSet;

use ciphervec_client::{
    Choices, Client, ClientOptions, Collection, Connection, Error, Fetch, Host, Parts,
    QueryRequest, Records, Selection, block_on,
};
use ciphervec_owner::{Id, Metric, Mode};

use crate::support::{Faulty, Server, client, connection, filled, keys, rows, vectors};

const D: usize = 16;
const EVERYTHING: Parts =
    Parts { records: true, embeddings: true, multi: false, sparse: false, fetch: Fetch::Segments };

fn ask(embedding: Vec<f32>, count: usize) -> QueryRequest {
    QueryRequest {
        embeddings: embedding,
        n_results: Some(count),
        parts: EVERYTHING,
        ..QueryRequest::default()
    }
}

#[test]
fn rows_of_every_mode_and_metric_are_found_again() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _warnings) = connection();
    for mode in [Mode::Sealed, Mode::SealedQuery, Mode::SealedIndex, Mode::Open] {
        for metric in [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming] {
            let name = format!("{}-{}", mode.as_str(), metric.as_str());
            let mut given = rows(300, D, 3);
            if metric == Metric::Hamming {
                given.embeddings.iter_mut().for_each(|x| *x = x.signum());
            }
            let choices = Choices { metric, mode, ..Choices::new(&name, D) };
            let docs = filled(&client, &host, &choices, given.clone());
            let wanted = &given.embeddings[17 * D..18 * D];
            let found = block_on(docs.query(&host, ask(wanted.to_vec(), 3))).unwrap();
            let best = if metric == Metric::InnerProduct {
                let product = |row: &[f32]| row.iter().zip(wanted).map(|(a, b)| a * b).sum::<f32>();
                let products: Vec<_> = given.embeddings.chunks(D).map(product).collect();
                (0..300).max_by(|a, b| products[*a].total_cmp(&products[*b])).unwrap()
            } else {
                17
            };
            let hit = &found.hits[0][0];
            assert_eq!(hit.row.id, given.ids[best], "{name}");
            assert_eq!(hit.row.document.as_deref(), given.documents[best].as_deref(), "{name}");
            assert_eq!(hit.row.metadata, given.metadatas[best], "{name}: 1.0 stays 1.0");
            assert_eq!(
                hit.row.embedding.as_deref(),
                Some(&given.embeddings[best * D..][..D]),
                "{name}"
            );
            assert_eq!(found.hits[0].len(), 3);
        }
    }
    let listed = block_on(client.list_collections(&host)).unwrap();
    assert_eq!(listed.len(), 16);
    assert!(listed.iter().all(|row| row.rows == 300));
}

#[test]
fn what_one_client_commits_the_other_sees() {
    let server = Server::start();
    let (one, other) = (server.client(&keys()), server.client(&keys()));
    let ((here, _), (there, _)) = (connection(), connection());
    let mine = filled(&one, &here, &Choices::new("notes", D), rows(20, D, 1));
    let theirs = block_on(other.get_collection(&there, "notes", false, None)).unwrap();
    assert_eq!(block_on(theirs.count(&there)).unwrap(), 20);
    block_on(theirs.add(&there, rows(5, D, 2))).unwrap();
    let gone =
        Selection { ids: Some(vec![Id::from(1000), Id::from(2001)]), ..Selection::default() };
    assert_eq!(block_on(theirs.delete(&there, &gone, false)).unwrap(), 2);
    // Behind by two commits: taken in, and tried again.
    block_on(mine.upsert(&here, rows(3, D, 2))).unwrap();
    assert_eq!(block_on(mine.count(&here)).unwrap(), 24);
    block_on(theirs.refresh(&there)).unwrap();
    assert_eq!(block_on(theirs.count(&there)).unwrap(), 24);
    assert_eq!(
        block_on(mine.checkpoint(&here)).unwrap(),
        block_on(theirs.checkpoint(&there)).unwrap()
    );
    let updated = Records {
        ids: vec![Id::from(1003)],
        metadatas: vec![Some("{\"n\":7}".to_owned())],
        ..Records::default()
    };
    block_on(mine.update(&here, updated, None, &["even".to_owned()])).unwrap();
    let which = Selection { filter: Some("{\"n\":7}".to_owned()), ..Selection::default() };
    let found = block_on(theirs.get(&there, &which, EVERYTHING, 0, None, None)).unwrap();
    let ids: Vec<_> = found.rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids, [Id::from(1007), Id::from(1003)]);
    assert_eq!(found.rows[1].metadata.as_deref(), Some("{\"n\":7}"));
    assert_eq!(found.rows[1].embedding.as_deref(), Some(&vectors(20, D, 1)[3 * D..4 * D]));
}

#[test]
fn single_rows_become_few_segments() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _warnings) = connection();
    let docs = block_on(client.create_collection(&host, &Choices::new("notes", D))).unwrap();
    let all = rows(40, D, 1);
    for row in 0..40 {
        let one = Records {
            ids: vec![all.ids[row].clone()],
            embeddings: all.embeddings[row * D..][..D].to_vec(),
            metadatas: vec![all.metadatas[row].clone()],
            documents: vec![all.documents[row].clone()],
            ..Records::default()
        };
        block_on(docs.add(&host, one)).unwrap();
    }
    let info = block_on(docs.info(&host, None)).unwrap();
    assert_eq!(info.rows, 40);
    assert!(info.segments.len() <= 14, "{} segments", info.segments.len());
    let found =
        block_on(docs.get(&host, &Selection::default(), EVERYTHING, 0, None, None)).unwrap();
    let embeddings: Vec<_> =
        found.rows.iter().flat_map(|row| row.embedding.clone().unwrap()).collect();
    assert_eq!(embeddings, all.embeddings, "in the order of insertion, as they were put in");
    for (row, embedding) in all.embeddings.chunks(D).enumerate() {
        let found = block_on(docs.query(&host, ask(embedding.to_vec(), 1))).unwrap();
        assert_eq!(found.hits[0][0].row.id, all.ids[row]);
    }
}

#[test]
fn large_answers_are_opened_as_they_come() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _warnings) = connection();
    let docs = filled(&client, &host, &Choices::new("notes", D), rows(3000, D, 1));
    let queries = vectors(512, D, 1);
    let found = block_on(docs.query(&host, ask(queries, 1))).unwrap();
    for (row, hits) in found.hits.iter().enumerate() {
        assert_eq!(hits[0].row.id, Id::from(1000 + row as i64));
    }
    assert!(found.checked && found.owners_only);
}

#[test]
fn other_keys_and_other_choices_are_refused() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let choices = Choices::new("notes", D);
    filled(&server.client(&keys()), &host, &choices, rows(2, D, 1));
    let ((elsewhere, _), (theirs, _)) = (connection(), connection());
    let strangers =
        server.client(&std::sync::Arc::new(ciphervec_owner::Keys::from_master([8; 32])));
    let opened = block_on(strangers.get_collection(&theirs, "notes", false, None));
    assert!(matches!(opened, Err(Error::WrongKey(_))), "{:?}", opened.err());
    let same = server.client(&keys());
    assert!(block_on(same.get_or_create_collection(&elsewhere, &choices)).is_ok());
    let other = Choices { dimension: D + 1, ..choices.clone() };
    let refused = block_on(same.get_or_create_collection(&elsewhere, &other)).err().unwrap();
    assert!(refused.to_string().contains("dimension 16, not 17"), "{refused}");
    let again = block_on(same.create_collection(&elsewhere, &choices));
    assert!(matches!(again, Err(Error::CollectionExists(_))));
    let missing = block_on(same.get_collection(&elsewhere, "letters", false, None)).err().unwrap();
    assert!(
        matches!(&missing, Error::CollectionNotFound(says) if says.contains("\"notes\"")),
        "{missing}"
    );
    block_on(same.delete_collection(&elsewhere, "notes")).unwrap();
    assert!(matches!(
        block_on(same.delete_collection(&elsewhere, "notes")),
        Err(Error::CollectionNotFound(_))
    ));
}

#[test]
fn a_server_that_is_away_is_named() {
    let (host, _warnings) = connection();
    let away = client("http://127.0.0.1:9", &keys());
    let error = block_on(away.list_collections(&host)).err().unwrap();
    assert!(matches!(error, Error::Server { acted: false, .. }), "{error}");
    assert!(error.to_string().contains("http://127.0.0.1:9 did not answer"), "{error}");
}

#[test]
fn what_was_seen_outlasts_the_process_in_a_folder() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let first = Connection::new(folder.path()).unwrap();
    filled(&server.client(&keys()), &first, &Choices::new("notes", D), rows(4, D, 1));
    drop(first);
    let second = Connection::new(folder.path()).unwrap();
    let docs =
        block_on(server.client(&keys()).get_collection(&second, "notes", false, None)).unwrap();
    assert_eq!(block_on(docs.count(&second)).unwrap(), 4);
    // Under other keys nothing of it opens, and that is said: the wrong ones were given.
    let strangers =
        server.client(&std::sync::Arc::new(ciphervec_owner::Keys::from_master([8; 32])));
    let opened = block_on(strangers.get_collection(&second, "notes", false, None));
    assert!(matches!(opened, Err(Error::WrongKey(_))), "{:?}", opened.err());
    // Nothing of a name or a text is legible there.
    for entry in walk(folder.path()) {
        let bytes = std::fs::read(&entry).unwrap();
        assert!(!bytes.windows(5).any(|part| part == b"notes"), "{}", entry.display());
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Each with a storage of its own user's.
#[test]
fn the_next_process_goes_on_with_a_session_and_brings_no_keys_again() {
    let server = Server::start();
    let state = tempfile::tempdir().unwrap();
    let asked = |state: &std::path::Path, seed: u64| {
        let brought = Cell::new(0);
        let host =
            Faulty::over(Connection::new(state).unwrap().on_warning(|_| ()), |_, request| {
                brought.set(brought.get() + usize::from(request.url.ends_with("/query-keys")));
                None
            });
        let docs = block_on(server.client(&keys()).get_collection(&host, "docs", false, None));
        let docs = docs.unwrap();
        let request = QueryRequest { embeddings: vectors(1, 16, seed), ..QueryRequest::default() };
        block_on(docs.query(&host, request)).unwrap();
        let key = block_on(docs.info(&host, None)).unwrap().query_key.unwrap();
        (brought.get(), key.session.unwrap(), key.queries)
    };
    let (host, _warnings) = connection();
    filled(&server.client(&keys()), &host, &Choices::new("docs", 16), rows(30, 16, 1));
    let (brought, session, _) = asked(state.path(), 1);
    assert_eq!(brought, 1);
    for number in 2..5 {
        assert_eq!(asked(state.path(), number), (0, session, number as usize));
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let (brought, other, _) = asked(elsewhere.path(), 1);
    assert!(brought == 1 && other != session);
}

#[test]
fn what_was_erased_leaves_what_clients_keep_of_segments_too() {
    let server = Server::start();
    let (writer, reader) = (server.client(&keys()), server.client(&keys()));
    let ((host, _told), (other, _heard)) = (connection(), connection());
    let docs = filled(&writer, &host, &Choices::new("docs", D), rows(60, D, 1));
    let seen = block_on(reader.get_collection(&other, "docs", false, None)).unwrap();
    let read = |docs: &Collection, host: &Connection| {
        let found =
            block_on(docs.get(host, &Selection::default(), EVERYTHING, 0, None, None)).unwrap();
        let kept = block_on(host.list("blobs/")).unwrap();
        (found.rows.len(), kept.into_iter().map(|(name, _)| name).collect::<HashSet<_>>())
    };
    let before = [read(&docs, &host), read(&seen, &other)];
    let seventh = Selection { ids: Some(vec![Id::from(1007)]), ..Selection::default() };
    block_on(docs.delete(&host, &seventh, false)).unwrap();
    block_on(docs.optimize(&host, true)).unwrap();
    let after = [read(&docs, &host), read(&seen, &other)];
    for ((rows, kept), (left, now)) in before.iter().zip(&after) {
        assert_eq!((*rows, *left), (60, 59));
        assert!(!kept.is_empty() && !now.is_empty());
        assert!(kept.is_disjoint(now), "sealed rows that were erased are kept");
    }
}

#[test]
fn a_key_serves_as_few_queries_as_the_user_wants() {
    let server = Server::start();
    let options = |most| ClientOptions {
        keys: Some(keys().into()),
        queries_per_key: most,
        ..ClientOptions::new(server.url.clone())
    };
    for most in [0, 1025] {
        assert!(matches!(Client::new(options(most)), Err(Error::Input(_))));
    }
    let (host, _warnings) = connection();
    let client = Client::new(options(3)).unwrap();
    let docs = filled(&client, &host, &Choices::new("docs", 16), rows(30, 16, 1));
    let mut sessions = Vec::new();
    for (queries, spent) in [(1, 1), (1, 2), (2, 2), (1, 3), (7, 1)] {
        let request =
            QueryRequest { embeddings: vectors(queries, 16, 5), ..QueryRequest::default() };
        assert_eq!(block_on(docs.query(&host, request)).unwrap().hits.len(), queries);
        let key = block_on(docs.info(&host, None)).unwrap().query_key.unwrap();
        assert_eq!((key.queries, key.most), (spent, 3));
        sessions.push(key.session);
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 3);
}
