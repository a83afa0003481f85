//! Routed collections whose server does not learn which clusters a question is about.

use std::cell::RefCell;

use ciphervec_client::{
    Choices, Client, Clusters, Collection, Connection, Error, Face, Fetch, GetResult, Host, Parts,
    QueryRequest, Records, Selection, block_on,
};
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::{Id, Metric, Mode, Network};

use crate::support::{Faulty, Server, connection, filled, keys, rows, vectors};

const D: usize = 16;
/// So many that a cluster has more than a check has one a row of.
const ROWS: usize = 2000;

/// Rows around some middles.
fn around(count: usize) -> Records {
    let mut given = rows(count, D, 5);
    let centers = vectors(12, D, 9);
    for (row, vector) in given.embeddings.chunks_mut(D).enumerate() {
        let center = &centers[row % 12 * D..][..D];
        vector.iter_mut().zip(center).for_each(|(x, c)| *x = 0.2 * *x + c);
    }
    given
}

/// Over a network that is slow enough for answers to be folded.
fn oblivious(name: &str, mode: Mode, metric: Metric) -> Choices {
    let routing =
        Clusters { count: Some(12), probes: Some(2), oblivious: true, ..Clusters::default() };
    let network = Some(Network { bytes_per_second: 1e5, round_trip: 0.001 });
    Choices { mode, metric, network, routing: Some(routing), ..Choices::new(name, D) }
}

fn request(embedding: &[f32]) -> QueryRequest {
    let embeddings = embedding.to_vec();
    QueryRequest { embeddings, n_results: Some(3), ..QueryRequest::default() }
}

fn nearest(docs: &Collection, host: &dyn Host, embedding: &[f32]) -> Option<Id> {
    let found = block_on(docs.query(host, request(embedding))).unwrap();
    assert!(found.checked);
    found.hits[0].first().map(|hit| hit.row.id.clone())
}

#[test]
fn rows_are_found_in_clusters_and_beside_them_in_every_store() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (host, _) = connection();
    for (mode, metric) in [(Mode::Sealed, Metric::Cosine), (Mode::SealedQuery, Metric::L2)] {
        for client in [
            server.client(&keys()),
            Client::in_folder(Face::Rust, folder.path(), Some(keys().into()), false).unwrap(),
        ] {
            let given = around(ROWS);
            let choices = oblivious(mode.as_str(), mode, metric);
            let docs = filled(&client, &host, &choices, given.clone());
            // Not clustered yet.
            assert_eq!(nearest(&docs, &host, &given.embeddings[..D]), Some(given.ids[0].clone()));
            let made = block_on(docs.recluster(&host, None)).unwrap();
            assert_eq!((made.clusters, made.probes, made.decoys, made.unrouted), (12, 2, 0, 0));
            let later = rows(5, D, 77);
            block_on(docs.add(&host, later.clone())).unwrap();
            let asked = given.ids.iter().zip(given.embeddings.chunks(D)).step_by(130);
            let (asked, missed): (Vec<_>, Vec<_>) =
                asked.partition(|(id, row)| nearest(&docs, &host, row).as_ref() == Some(*id));
            assert!(missed.len() * 5 <= asked.len(), "{mode:?}: {} missed", missed.len());
            for (id, row) in later.ids.iter().zip(later.embeddings.chunks(D)) {
                assert_eq!(nearest(&docs, &host, row).as_ref(), Some(id));
            }
            let told = block_on(docs.explain(&host)).unwrap();
            assert_eq!(told.rows_scanned, told.unrouted + 12 * told.routing.unwrap().rows_each);
            assert!(told.leak.contains("nothing of which clusters"), "{}", told.leak);
        }
    }
}

/// What a server sees of questions of any kind: names of all segments, the same bytes before what is encrypted, as many behind.
#[test]
fn questions_about_any_clusters_look_alike() {
    let server = Server::start();
    let (host, _) = connection();
    let given = around(ROWS);
    let choices = oblivious("notes", Mode::Sealed, Metric::Cosine);
    let docs = filled(&server.client(&keys()), &host, &choices, given.clone());
    block_on(docs.recluster(&host, None)).unwrap();
    let asked = RefCell::new(Vec::new());
    let watched = Faulty::new(|_, request| {
        let seen = (request.url.to_owned(), request.body.unwrap_or_default().to_vec());
        asked.borrow_mut().push(seen);
        None
    });
    let theirs =
        block_on(server.client(&keys()).get_collection(&watched, "notes", false, None)).unwrap();
    nearest(&theirs, &watched, &given.embeddings[..D]); // keys are sent, and the centroids read
    asked.borrow_mut().clear();
    for row in given.embeddings.chunks(D).step_by(97) {
        nearest(&theirs, &watched, row);
    }
    let asked = asked.take();
    assert_eq!(asked.len(), ROWS.div_ceil(97), "one request a question");
    let (url, first) = &asked[0];
    assert!(url.ends_with("/query"));
    let clear = 64 + 19 + 4 + 16 * 12;
    for (other, bytes) in &asked {
        assert_eq!((other, bytes.len(), &bytes[..32]), (url, first.len(), &first[..32]));
        assert_eq!(bytes[64..clear], first[64..clear]);
    }
}

/// With other words in the answer about a chosen cluster.
fn wrong(path: &str, body: Vec<u8>) -> Vec<u8> {
    if !path.ends_with("/query") {
        return body;
    }
    let (version, header, payload) = wire::open_version(Kind::Response, u16::MAX, &body).unwrap();
    let mut frame = vec![0; body.len() - payload.len()];
    frame.extend_from_slice(payload);
    let end = frame.len();
    frame[end - 40..end - 20].iter_mut().for_each(|byte| *byte ^= 0x55);
    header.seal_version(version, &mut frame);
    frame
}

/// One word of the answer about a chosen cluster is another: that ends such questions without a second one, a commit or
/// anything else that a server could see, for every client of the user's.
#[test]
fn a_changed_cluster_ends_them_and_shows_in_nothing_else() {
    let server = Server::start();
    let (host, _) = connection();
    let given = around(ROWS);
    let choices = oblivious("notes", Mode::Sealed, Metric::Cosine);
    let docs = filled(&server.client(&keys()), &host, &choices, given.clone());
    block_on(docs.recluster(&host, None)).unwrap();
    let lies = Faulty::altering(wrong);
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    let ask = || block_on(theirs.query(&lies, request(&given.embeddings[..D])));
    block_on(docs.refresh(&host)).unwrap();
    let version = block_on(docs.info(&host, None)).unwrap().version;
    let error = ask().err().unwrap();
    assert!(matches!(error, Error::FetchEnded(_)), "{error:?}");
    let sent = lies.sent.get();
    assert!(matches!(ask(), Err(Error::FetchEnded(_))));
    assert_eq!(lies.sent.get(), sent, "nothing is asked");
    block_on(docs.refresh(&host)).unwrap();
    let info = block_on(docs.info(&host, None)).unwrap();
    assert!(info.quarantine.is_empty(), "{:?}", info.quarantine);
    assert_eq!(info.version, version, "nothing is committed");
    // The answers are right to others, whose storage is their own.
    assert!(nearest(&docs, &host, &given.embeddings[..D]).is_some());
    block_on(theirs.resume_private_fetch(&lies)).unwrap();
    assert!(matches!(ask(), Err(Error::FetchEnded(_))));
}

/// A collection that is opened anew, by a client that remembers nothing beyond its process, asks nothing either.
#[test]
fn a_failure_ends_them_for_a_collection_that_is_opened_again() {
    let server = Server::start();
    let (host, _) = connection();
    let given = around(ROWS);
    let choices = oblivious("notes", Mode::Sealed, Metric::Cosine);
    let docs = filled(&server.client(&keys()), &host, &choices, given.clone());
    block_on(docs.recluster(&host, None)).unwrap();
    let lies = Faulty::altering(wrong);
    lies.durable.set(false);
    let client = server.client(&keys());
    for turn in 0..3 {
        let theirs = block_on(client.get_collection(&lies, "notes", false, None)).unwrap();
        let sent = lies.sent.get();
        let error = block_on(theirs.query(&lies, request(&given.embeddings[..D]))).err().unwrap();
        assert!(matches!(error, Error::FetchEnded(_)), "{error:?}");
        assert!(turn == 0 || lies.sent.get() == sent, "asked in turn {turn}");
        let told = block_on(theirs.private_fetch(&lies)).unwrap();
        assert_eq!((told.failures, told.ended), (1, true));
    }
}

/// A server that holds answers back until many are on their way gets one failure of them all: who has learnt of it opens none.
#[test]
fn answers_that_were_on_their_way_are_not_opened_after_a_failure() {
    let server = Server::start();
    let (host, _) = connection();
    let given = around(ROWS);
    let choices = oblivious("notes", Mode::Sealed, Metric::Cosine);
    let docs = filled(&server.client(&keys()), &host, &choices, given.clone());
    block_on(docs.recluster(&host, None)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = || Connection::new(folder.path()).unwrap().on_warning(|_| ());
    let lies = Faulty::altering(wrong).keeping(state());
    let open = |host: &dyn Host| {
        block_on(server.client(&keys()).get_collection(host, "notes", false, None)).unwrap()
    };
    let theirs = open(&lies);
    let ask = |docs: &Collection, host: &dyn Host| {
        block_on(docs.query(host, request(&given.embeddings[..D])))
    };
    // Two processes of one user: the answer to the first is held until the second has failed.
    let held = Faulty::altering(|path, body| {
        if path.ends_with("/query") {
            assert!(matches!(ask(&theirs, &lies), Err(Error::FetchEnded(_))));
        }
        wrong(path, body)
    });
    let held = held.keeping(state());
    let first = open(&held);
    assert!(matches!(ask(&first, &held), Err(Error::FetchEnded(_))));
    assert_eq!(block_on(first.private_fetch(&held)).unwrap().failures, 1);
}

/// Rows with documents of 1,000 to 3,000 bytes, but for one of 9,000.
fn documents(count: usize) -> Records {
    let length = |row: usize| if row == 7 { 9000 } else { 1000 + row * 37 % 2001 };
    let document = |row| Some(format!("{row} {}", "x".repeat(length(row))));
    Records { documents: (0..count).map(document).collect(), ..around(count) }
}

fn parts(fetch: Fetch) -> Parts {
    Parts { records: true, fetch, ..Parts::default() }
}

/// Rows by id, as the call says.
fn read(docs: &Collection, host: &dyn Host, ids: &[i64], parts: Parts) -> Result<GetResult, Error> {
    let ids = ids.iter().map(|id| Id::from(*id)).collect();
    let which = Selection { ids: Some(ids), ..Selection::default() };
    block_on(docs.get(host, &which, parts, 0, None, None))
}

/// A client with a storage of its own has fetched no records. It asks for hits' documents without being told how.
#[test]
fn documents_of_hits_are_fetched_in_private() {
    let server = Server::start();
    let (host, _) = connection();
    let given = documents(400);
    let choices = oblivious("notes", Mode::Sealed, Metric::Cosine);
    let docs = filled(&server.client(&keys()), &host, &choices, given.clone());
    let made = block_on(docs.recluster(&host, None)).unwrap();
    assert_eq!((made.clusters, made.unrouted), (12, 1), "the long one takes no room in clusters");
    block_on(docs.add(&host, rows(5, D, 77))).unwrap();
    let seen = RefCell::new(Vec::new());
    let watched = Faulty::new(|_, request| {
        let headers = format!("{:?}", request.headers);
        seen.borrow_mut().push((request.url.clone(), request.body.map_or(0, <[u8]>::len), headers));
        None
    });
    let theirs =
        block_on(server.client(&keys()).get_collection(&watched, "notes", false, None)).unwrap();
    let ask = |row: usize| {
        let embedding = &given.embeddings[row * D..][..D];
        let asked = QueryRequest { parts: parts(Fetch::Auto), ..request(embedding) };
        block_on(theirs.query(&watched, asked)).unwrap()
    };
    ask(0); // keys are sent, the table is made, and the centroids read
    let mut views = Vec::new();
    for row in (0..400).step_by(57).chain([7]) {
        seen.borrow_mut().clear();
        let found = ask(row);
        let plain = QueryRequest {
            parts: parts(Fetch::Segments),
            ..request(&given.embeddings[row * D..][..D])
        };
        assert_eq!(found, block_on(docs.query(&host, plain)).unwrap());
        let hits = found.hits[0].iter().filter(|hit| hit.row.document.is_some());
        assert_eq!(hits.count(), 3);
        views.push(seen.take());
    }
    assert!(views.iter().all(|view| *view == views[0]), "{views:?}");
    let paths = |what: &str| views[0].iter().filter(|(url, ..)| url.contains(what)).count();
    // One of the table of all rows, one of that of the long one; no segment is named.
    let told = block_on(theirs.private_fetch(&watched)).unwrap().records.unwrap();
    assert_eq!(paths("/fetch/records/"), 1 + usize::from(told.long_rows > 0));
    assert_eq!((paths("/query"), paths("/segments/"), paths("/blobs")), (1, 0, 0));
}

/// In clusters and beside them, with vectors as they were put in, after changes, and by row where that is asked for.
#[test]
fn every_row_of_clusters_comes_as_it_was_put_in() {
    let server = Server::start();
    let (host, _) = connection();
    let given = documents(300);
    let choices = oblivious("notes", Mode::SealedQuery, Metric::Cosine);
    let docs = filled(&server.client(&keys()), &host, &choices, given.clone());
    block_on(docs.recluster(&host, None)).unwrap();
    let (there, _) = connection();
    let theirs =
        block_on(server.client(&keys()).get_collection(&there, "notes", false, None)).unwrap();
    let both = |fetch| Parts { embeddings: true, ..parts(fetch) };
    let same = |ids: &[i64]| {
        let plain = read(&docs, &host, ids, both(Fetch::Segments)).unwrap();
        assert_eq!(read(&theirs, &there, ids, both(Fetch::Private)).unwrap(), plain, "{ids:?}");
        let (rows, whole) = (parts(Fetch::Rows), parts(Fetch::Segments));
        let by_row = read(&theirs, &there, ids, rows).unwrap();
        assert_eq!(by_row, read(&docs, &host, ids, whole).unwrap());
        plain.rows
    };
    let rows = same(&[5000, 5007, 5299, 5123]);
    for row in &rows {
        let Id::Number(id) = row.id else { panic!("{row:?}") };
        let at = id as usize - 5000;
        assert_eq!(row.document, given.documents[at]);
        assert_eq!(row.embedding.as_deref(), Some(&given.embeddings[at * D..][..D]));
    }
    // Deleted and replaced rows, which the server is not told of.
    let which = Selection { ids: Some(vec![Id::from(5001)]), ..Selection::default() };
    block_on(docs.delete(&host, &which, false)).unwrap();
    let changed = Records {
        ids: vec![Id::from(5002)],
        metadatas: vec![Some("{\"n\":5.0}".to_owned())],
        documents: vec![Some("another".to_owned())],
        ..Records::default()
    };
    block_on(docs.update(&host, changed, None, &[])).unwrap();
    let rows = same(&[5000, 5001, 5002, 5003]);
    assert_eq!((rows.len(), rows[1].document.as_deref()), (3, Some("another")));
    // Filters are tested on records that are filled up, and clusters that are made anew are as these.
    let which = Selection { filter: Some("{\"n\":5.0}".to_owned()), ..Selection::default() };
    let found = block_on(theirs.get(&there, &which, parts(Fetch::Auto), 0, None, None)).unwrap();
    let ids: Vec<_> = found.rows.iter().map(|row| row.id.clone()).collect();
    assert!(ids.contains(&Id::from(5002)) && ids.contains(&Id::from(5005)), "{ids:?}");
    block_on(docs.recluster(&host, None)).unwrap();
    assert_eq!(same(&[5000, 5002, 5298]).len(), 3);
}

#[test]
fn what_can_t_be_fetched_in_private_is_refused_by_name() {
    let server = Server::start();
    let (host, _) = connection();
    let client = server.client(&keys());
    let private = |docs: &Collection, ids: &[i64]| {
        let refused = read(docs, &host, ids, parts(Fetch::Private));
        let Err(Error::Input(says)) = refused else { panic!("{refused:?}") };
        let told = block_on(docs.private_fetch(&host)).unwrap();
        assert!(says.contains(told.records.as_ref().unwrap_err()), "{says}");
        says
    };
    let choices = oblivious("named", Mode::Sealed, Metric::Cosine);
    let routing = Clusters { oblivious: false, ..choices.routing.clone().unwrap() };
    let choices = Choices { routing: Some(routing), ..choices };
    let docs = filled(&client, &host, &choices, documents(300));
    block_on(docs.recluster(&host, None)).unwrap();
    assert!(private(&docs, &[5000]).contains("its queries name clusters to the server anyway"));
    assert!(read(&docs, &host, &[5000], parts(Fetch::Rows)).is_err());
    // Records that no table holds stay as they were.
    let long = Records {
        documents: (0..60).map(|row| Some(format!("{row:>20000}"))).collect(),
        ..around(60)
    };
    let mut choices = oblivious("long", Mode::Sealed, Metric::Cosine);
    choices.routing.iter_mut().for_each(|routing| routing.count = Some(3));
    let docs = filled(&client, &host, &choices, long);
    block_on(docs.recluster(&host, None)).unwrap();
    assert!(private(&docs, &[5000]).contains("too long to be fetched"));
    let found = read(&docs, &host, &[5003], parts(Fetch::Segments)).unwrap();
    assert!(found.rows[0].document.as_ref().is_some_and(|text| text.ends_with(" 3")));
}

#[test]
fn choices_that_do_not_go_together_are_refused() {
    let server = Server::start();
    let client = server.client(&keys());
    let sealed = oblivious("notes", Mode::Sealed, Metric::Cosine);
    assert!(client.check_new(&sealed).is_ok());
    assert!(client.check_new(&oblivious("notes", Mode::SealedQuery, Metric::Cosine)).is_ok());
    let routing = Clusters { decoys: Some(2), ..sealed.routing.clone().unwrap() };
    for (choices, says) in [
        (Choices { routing: Some(routing), ..sealed }, "needs no decoys"),
        (oblivious("notes", Mode::Sealed, Metric::Hamming), "always be exact"),
        (oblivious("notes", Mode::SealedIndex, Metric::Cosine), "the server sees the queries"),
    ] {
        let error = client.check_new(&choices).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}
