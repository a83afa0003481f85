//! Collections without a server: in a folder, and in memory.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ciphervec_client::{
    Asked, Bm25, Choices, Client, Clusters, Collection, Connection, Error, Face, Fetch, Fusion,
    Hybrid, Parts, QueryRequest, QueryResult, Records, Selection, Sparse, SparseVector, block_on,
};
use ciphervec_owner::{Keys, Metric, Mode, Network, Precision};

use crate::support::{connection, filled, keys, rows, vectors};

const ROWS: usize = 300;
const DIMENSION: usize = 16;

fn in_folder(folder: &Path) -> Client {
    Client::in_folder(Face::Rust, folder, Some(keys().into()), false).unwrap()
}

fn reader(folder: &Path) -> Client {
    Client::in_folder(Face::Rust, folder, Some(keys().into()), true).unwrap()
}

fn open(client: &Client, host: &Connection, name: &str) -> Result<Collection, Error> {
    block_on(client.get_collection(host, name, false, None))
}

fn asked(docs: &Collection, host: &Connection, seed: u64) -> Result<QueryResult, Error> {
    let request = QueryRequest {
        embeddings: vectors(2, DIMENSION, seed),
        n_results: Some(3),
        parts: Parts {
            records: true,
            embeddings: true,
            multi: false,
            sparse: false,
            fetch: Fetch::Segments,
        },
        ..QueryRequest::default()
    };
    block_on(docs.query(host, request))
}

fn names(found: &QueryResult) -> Vec<Vec<ciphervec_owner::Id>> {
    let of =
        |hits: &Vec<ciphervec_client::Found>| hits.iter().map(|hit| hit.row.id.clone()).collect();
    found.hits.iter().map(of).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn every_mode_and_metric_finds_in_a_folder_and_in_memory_what_is_closest() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let clients =
        [in_folder(folder.path()), Client::in_memory(Face::Rust, Some(keys().into())).unwrap()];
    let rows = || rows(ROWS, DIMENSION, 1);
    for (number, (mode, metric)) in [
        (Mode::Sealed, Metric::Cosine),
        (Mode::Sealed, Metric::L2),
        (Mode::SealedQuery, Metric::InnerProduct),
        (Mode::SealedIndex, Metric::Cosine),
        (Mode::SealedIndex, Metric::Hamming),
        (Mode::Open, Metric::L2),
    ]
    .into_iter()
    .enumerate()
    {
        let precision = Precision::Standard;
        let mut given = rows();
        if metric == Metric::Hamming {
            given.embeddings.iter_mut().for_each(|one| *one = f32::from(*one > 0.0));
        }
        let choices =
            Choices { mode, metric, precision, ..Choices::new(format!("c{number}"), DIMENSION) };
        for client in &clients {
            let docs = filled(client, &host, &choices, given.clone());
            for row in [0, 77, ROWS - 1] {
                let request = QueryRequest {
                    embeddings: given.embeddings[row * DIMENSION..][..DIMENSION].to_vec(),
                    n_results: Some(1),
                    ..QueryRequest::default()
                };
                let found = block_on(docs.query(&host, request)).unwrap();
                let best = &found.hits[0][0];
                if metric == Metric::InnerProduct {
                    assert!(best.score > 0.0);
                } else {
                    assert_eq!(best.row.id, given.ids[row], "{mode:?} {metric:?}");
                    assert!(best.distance.abs() < 2e-3, "{}", best.distance);
                }
            }
        }
    }
}

#[test]
fn a_folder_is_there_for_the_next_process_and_locked_for_another_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (host, _warnings) = connection();
    let client = in_folder(folder.path());
    let choices =
        Choices { filterable: vec!["even".to_owned()], ..Choices::new("docs", DIMENSION) };
    let docs = filled(&client, &host, &choices, rows(ROWS, DIMENSION, 1));
    assert_eq!(block_on(docs.explain(&host)).unwrap().traffic, None);
    let before = asked(&docs, &host, 9).unwrap();
    assert!(before.checked && before.owners_only);
    let lone = QueryRequest { embeddings: vectors(1, DIMENSION, 9), ..QueryRequest::default() };
    block_on(docs.query(&host, lone)).unwrap();
    let told = block_on(docs.explain(&host)).unwrap();
    let traffic = told.traffic.unwrap();
    assert!(traffic.up > 0 && traffic.down > 0 && traffic.ahead == 0);
    assert_eq!((told.rows, told.rows_scanned, told.routed), (ROWS, ROWS, false));
    assert!(
        told.to_string()
            .ends_with("shown to the server: nothing of the question; every segment is touched")
    );
    assert!(matches!(open(&in_folder(folder.path()), &host, "docs"), Err(Error::Locked(_))));
    let again = block_on(client.create_collection(&host, &choices));
    assert!(matches!(again, Err(Error::CollectionExists(_))));
    let beside = open(&reader(folder.path()), &host, "docs").unwrap();
    assert_eq!(names(&asked(&beside, &host, 9).unwrap()), names(&before));

    // A reader follows what the writer commits.
    block_on(docs.add(&host, rows(5, DIMENSION, 2))).unwrap();
    let even = Selection { filter: Some("{\"even\":true}".to_owned()), ..Selection::default() };
    assert_eq!(block_on(docs.delete(&host, &even, false)).unwrap(), ROWS / 2 + 3);
    block_on(beside.refresh(&host)).unwrap();
    assert_eq!(block_on(beside.count(&host)).unwrap(), ROWS / 2 + 2);
    let refused = block_on(beside.add(&host, rows(1, DIMENSION, 3)));
    assert!(matches!(refused, Err(Error::Storage(_))), "{refused:?}");

    let after = names(&asked(&docs, &host, 9).unwrap());
    assert_eq!(names(&asked(&beside, &host, 9).unwrap()), after);
    block_on(docs.optimize(&host, false)).unwrap();
    assert_eq!(names(&asked(&docs, &host, 9).unwrap()), after);
    drop(docs);
    let docs = open(&in_folder(folder.path()), &host, "docs").unwrap();
    assert_eq!(names(&asked(&docs, &host, 9).unwrap()), after);
    let listed = block_on(client.list_collections(&host)).unwrap();
    assert_eq!((listed.len(), listed[0].rows), (1, ROWS as u64 / 2 + 2));
    assert!(listed[0].bytes > 0);
}

#[test]
fn a_folder_put_back_from_a_copy_is_found_out_wherever_it_lies() {
    let (root, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Connection::new(kept.path()).unwrap().on_warning(|_| ());
    let data = root.path().join("data");
    let choices = Choices::new("docs", DIMENSION);
    drop(filled(&in_folder(&data), &host, &choices, rows(ROWS, DIMENSION, 1)));
    let old = root.path().join("old");
    copy(&data, &old);
    let docs = open(&in_folder(&data), &host, "docs").unwrap();
    block_on(docs.add(&host, rows(4, DIMENSION, 2))).unwrap();
    drop(docs);
    let nothing = block_on(in_folder(&data).accept_restore(&host, "docs"));
    assert!(matches!(nothing, Err(Error::Input(_))));

    // Another host, with the same folder of what is remembered.
    let host = Connection::new(kept.path()).unwrap().on_warning(|_| ());
    assert!(matches!(open(&in_folder(&old), &host, "docs"), Err(Error::RolledBack(_))));
    let docs = block_on(in_folder(&old).accept_restore(&host, "docs")).unwrap();
    assert_eq!(block_on(docs.count(&host)).unwrap(), ROWS);
    drop(docs);
    assert!(open(&in_folder(&old), &host, "docs").is_ok());
    // The history that was left is not gone back to.
    assert!(matches!(open(&in_folder(&data), &host, "docs"), Err(Error::RolledBack(_))));
}

#[test]
fn keys_and_query_keys_change_and_the_next_questions_are_answered() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let other = Arc::new(Keys::from_master([9; 32]));
    for client in
        [in_folder(folder.path()), Client::in_memory(Face::Rust, Some(keys().into())).unwrap()]
    {
        let docs =
            filled(&client, &host, &Choices::new("docs", DIMENSION), rows(ROWS, DIMENSION, 1));
        let before = names(&asked(&docs, &host, 9).unwrap());
        block_on(docs.rotate_query_key(&host)).unwrap();
        assert_eq!(names(&asked(&docs, &host, 9).unwrap()), before);
        block_on(docs.rotate_keys(&host, &other, false)).unwrap();
        assert_eq!(names(&asked(&docs, &host, 9).unwrap()), before);
    }
    assert!(matches!(open(&in_folder(folder.path()), &host, "docs"), Err(Error::WrongKey(_))));
    let client = Client::in_folder(Face::Rust, folder.path(), Some(other.into()), false).unwrap();
    assert_eq!(block_on(open(&client, &host, "docs").unwrap().count(&host)).unwrap(), ROWS);
}

#[test]
fn damaged_rows_are_named_and_verified() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let client = in_folder(folder.path());
    let docs = filled(&client, &host, &Choices::new("docs", DIMENSION), rows(ROWS, DIMENSION, 1));
    let verified = block_on(docs.verify(&host)).unwrap();
    assert!(verified.files > 0 && verified.bytes > 0);
    drop(docs);
    let blobs = folder.path().join("docs").join("blobs");
    let largest = fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path());
    let largest = largest.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&largest, bytes).unwrap();
    let docs = open(&client, &host, "docs");
    // Opened or not: what is damaged is said, and nothing is answered from it.
    let said = docs.and_then(|docs| {
        assert!(matches!(block_on(docs.verify(&host)), Err(Error::Corrupt(_))));
        asked(&docs, &host, 9)
    });
    assert!(matches!(said, Err(Error::Corrupt(_))), "{said:?}");
}

#[test]
fn collections_go_and_others_take_their_names() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    for client in
        [in_folder(folder.path()), Client::in_memory(Face::Rust, Some(keys().into())).unwrap()]
    {
        let choices = Choices::new("docs", DIMENSION);
        assert!(matches!(open(&client, &host, "docs"), Err(Error::CollectionNotFound(_))));
        drop(filled(&client, &host, &choices, rows(20, DIMENSION, 1)));
        block_on(client.delete_collection(&host, "docs")).unwrap();
        let gone = block_on(client.delete_collection(&host, "docs"));
        assert!(matches!(gone, Err(Error::CollectionNotFound(_))));
        assert!(block_on(client.list_collections(&host)).unwrap().is_empty());
        let docs = block_on(client.get_or_create_collection(&host, &choices)).unwrap();
        assert_eq!(block_on(docs.count(&host)).unwrap(), 0);
        assert!(matches!(block_on(client.forget(&host, "docs")), Err(Error::Input(_))));
        assert!(matches!(open(&client, &host, "../docs"), Err(Error::Input(_))));
    }
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (path, read_only) in [(&file, false), (&folder.path().join("nowhere"), true)] {
        let refused = Client::in_folder(Face::Rust, path, None, read_only);
        assert!(matches!(refused, Err(Error::Storage(_))));
    }
}

/// The folder that release 0.1 wrote, copied, and its keys.
fn of_release_0_1() -> (tempfile::TempDir, Arc<Keys>) {
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/collections-0.1"));
    let folder = tempfile::tempdir().unwrap();
    copy(&kept.join("db"), folder.path());
    (folder, Arc::new(Keys::load(&kept.join("plain.key"), None).unwrap()))
}

#[test]
fn a_folder_of_release_0_1_is_read_and_upgraded() {
    let (folder, keys) = of_release_0_1();
    let (host, _warnings) = connection();
    let client =
        || Client::in_folder(Face::Rust, folder.path(), Some(Arc::clone(&keys).into()), false);
    let names: Vec<_> = block_on(client().unwrap().list_collections(&host)).unwrap();
    assert_eq!(names.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["faces", "twice"]);
    for name in ["faces", "twice"] {
        let docs = open(&client().unwrap(), &host, name).unwrap();
        let before = block_on(docs.count(&host)).unwrap();
        assert!(before > 0 && !block_on(docs.info(&host, None)).unwrap().authenticated);
        let early = block_on(docs.extend_filterable(&host, &["lang".to_owned()]));
        assert!(matches!(early, Err(Error::Input(_))));
        assert!(block_on(docs.upgrade(&host)).unwrap());
        assert!(!block_on(docs.upgrade(&host)).unwrap());
        drop(docs);
        let docs = open(&client().unwrap(), &host, name).unwrap();
        let info = block_on(docs.info(&host, None)).unwrap();
        assert!(info.authenticated && info.state.is_some());
        assert_eq!(block_on(docs.count(&host)).unwrap(), before);
        block_on(docs.extend_filterable(&host, &["lang".to_owned()])).unwrap();
        block_on(docs.optimize(&host, false)).unwrap();
        assert_eq!(block_on(docs.count(&host)).unwrap(), before);
    }
}

#[test]
fn further_fields_are_filtered_at_once_and_by_tags_once_rows_are_sealed_again() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let docs = filled(
        &in_folder(folder.path()),
        &host,
        &Choices::new("docs", DIMENSION),
        rows(ROWS, DIMENSION, 1),
    );
    let even = || QueryRequest {
        embeddings: vectors(1, DIMENSION, 9),
        n_results: Some(5),
        among: Selection { filter: Some("{\"even\":true}".to_owned()), ..Selection::default() },
        ..QueryRequest::default()
    };
    let before = names(&block_on(docs.query(&host, even())).unwrap());
    let field = ["even".to_owned()];
    block_on(docs.extend_filterable(&host, &field)).unwrap();
    assert!(matches!(block_on(docs.extend_filterable(&host, &field)), Err(Error::Input(_))));
    assert_eq!(names(&block_on(docs.query(&host, even())).unwrap()), before);
    let tags = |docs: &Collection| {
        let info = block_on(docs.info(&host, None)).unwrap();
        info.segments.iter().filter(|one| one.bytes.contains_key("tags")).count()
    };
    assert_eq!(tags(&docs), 0);
    block_on(docs.optimize(&host, false)).unwrap();
    assert!(tags(&docs) > 0);
    assert_eq!(names(&block_on(docs.query(&host, even())).unwrap()), before);
    assert_eq!(block_on(docs.info(&host, None)).unwrap().filterable, field);
}

#[test]
fn rows_are_packed_for_the_network_that_was_named() {
    let (host, _warnings) = connection();
    let client = Client::in_memory(Face::Rust, Some(keys().into())).unwrap();
    let docs = filled(&client, &host, &Choices::new("docs", DIMENSION), rows(ROWS, DIMENSION, 1));
    let before = names(&asked(&docs, &host, 9).unwrap());
    for bytes_per_second in [0.0, f64::NAN, f64::INFINITY] {
        let refused = block_on(docs.pack_for(&host, Network { bytes_per_second, round_trip: 0.0 }));
        assert!(matches!(refused, Err(Error::Input(_))));
    }
    let slow = Network { bytes_per_second: 125e3, round_trip: 0.1 };
    block_on(docs.pack_for(&host, slow)).unwrap();
    block_on(docs.optimize(&host, true)).unwrap();
    assert_eq!(names(&asked(&docs, &host, 9).unwrap()), before);
}

#[test]
fn clusters_go_under_other_keys_in_the_shape_that_they_had() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let routing =
        Clusters { count: Some(4), probes: Some(4), decoys: Some(0), ..Clusters::default() };
    let choices = Choices { routing: Some(routing), ..Choices::new("docs", DIMENSION) };
    let docs = filled(&in_folder(folder.path()), &host, &choices, rows(ROWS, DIMENSION, 1));
    assert_eq!(block_on(docs.recluster(&host, None)).unwrap().clusters, 4);
    let gone = Selection { ids: Some(vec![1000.into(), 1001.into()]), ..Selection::default() };
    block_on(docs.delete(&host, &gone, false)).unwrap();
    block_on(docs.add(&host, rows(3, DIMENSION, 2))).unwrap();
    let shapes = |docs: &Collection| {
        let info = block_on(docs.info(&host, None)).unwrap();
        info.segments.into_iter().map(|one| (one.rows, one.bytes)).collect::<Vec<_>>()
    };
    let (before, shown) = (names(&asked(&docs, &host, 9).unwrap()), shapes(&docs));
    let told = block_on(docs.explain(&host)).unwrap();
    assert_eq!((told.rows, told.unrouted, told.tokens), (ROWS + 1, 3, (0, 0)));
    let routing = told.routing.unwrap();
    assert_eq!((routing.clusters, routing.probes, routing.decoys), (4, 4, 0));
    assert_eq!(routing.padding, 4 * routing.rows_each - (ROWS - 2));
    assert_eq!(told.rows_scanned, 4 * routing.rows_each + 3);
    assert!(told.to_string().contains("there are no decoys"));
    let other = Arc::new(Keys::from_master([9; 32]));
    block_on(docs.rotate_keys(&host, &other, false)).unwrap();
    let clusters = |shapes: &[(u32, std::collections::BTreeMap<String, u64>)]| {
        let largest = shapes.iter().map(|(rows, _)| *rows).max();
        shapes.iter().filter(|(rows, _)| Some(*rows) == largest).cloned().collect::<Vec<_>>()
    };
    assert_eq!(clusters(&shapes(&docs)), clusters(&shown));
    assert_eq!(names(&asked(&docs, &host, 9).unwrap()), before);
    drop(docs);
    let client = Client::in_folder(Face::Rust, folder.path(), Some(other.into()), false).unwrap();
    let docs = open(&client, &host, "docs").unwrap();
    assert_eq!(names(&asked(&docs, &host, 9).unwrap()), before);
    assert_eq!(block_on(docs.count(&host)).unwrap(), ROWS + 1);
    block_on(docs.optimize(&host, true)).unwrap();
    assert_eq!(names(&asked(&docs, &host, 9).unwrap()), before);
}

#[test]
fn without_a_key_it_shows_what_is_stored_and_whether_it_is_sound() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let server = crate::support::Server::start();
    let remote = server.client(&keys());
    let stranger =
        |read_only| Client::in_folder(Face::Rust, folder.path(), None, read_only).unwrap();
    let owners = in_folder(folder.path());
    let open = ciphervec_client::ClientOptions::new(server.url.clone());
    for (owner, other) in [
        (&owners, &stranger(true)),
        (&owners, &stranger(false)),
        (&remote, &Client::new(open).unwrap()),
    ] {
        let name = format!("docs{}", block_on(owner.list_collections(&host)).unwrap().len());
        let mut given = rows(40, DIMENSION, 1);
        given.ids.reverse();
        let docs = filled(owner, &host, &Choices::new(&name, DIMENSION), given.clone());
        let gone = Selection { ids: Some(vec![given.ids[7].clone()]), ..Selection::default() };
        block_on(docs.delete(&host, &gone, false)).unwrap();
        let look = block_on(other.look(&host, &name)).unwrap();
        let [segment] = &look.segments[..] else { panic!("{look:?}") };
        assert_eq!((segment.rows, segment.deleted), (40, 1));
        assert!(segment.bytes["rows"] > 0 && segment.bytes["records"] > 0);
        assert!(String::from_utf8_lossy(&look.meta).contains("key_id"));
        let info = block_on(docs.info(&host, None)).unwrap();
        assert_eq!((look.version, info.stored), (info.version, 40));
        assert_eq!((&segment.id, &segment.bytes), (&info.segments[0].id, &info.segments[0].bytes));
        let found = block_on(other.verify(&host, &name)).unwrap();
        assert!(found.files > 0 && found.bytes > segment.bytes["rows"]);
        given.ids.remove(7);
        assert_eq!(block_on(docs.ids(&host)).unwrap(), given.ids);
        let mixed = [9, 3, 9, 20].map(|at: usize| given.ids[at].clone());
        let sorted = [3, 9, 20].map(|at: usize| given.ids[at].clone());
        let unknown = [&mixed[..], &[ciphervec_owner::Id::from(-1)]].concat();
        assert_eq!(block_on(docs.in_order(&host, &unknown)).unwrap(), sorted);
        assert!(matches!(block_on(other.look(&host, "none")), Err(Error::CollectionNotFound(_))));
    }
    // Bytes of a block are flipped.
    let blobs = folder.path().join("docs0").join("blobs");
    let mut files: Vec<_> = walk(&blobs);
    files.sort_by_key(|path| fs::metadata(path).unwrap().len());
    let largest = files.pop().unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&largest, bytes).unwrap();
    let error = block_on(stranger(true).verify(&host, "docs0")).unwrap_err();
    let name = largest.file_name().unwrap().to_string_lossy().into_owned();
    assert!(matches!(&error, Error::Corrupt(says) if says.contains(&name)), "{error}");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_reader_knows_that_it_is_behind() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let writer = in_folder(folder.path());
    let docs = filled(&writer, &host, &Choices::new("docs", DIMENSION), rows(10, DIMENSION, 1));
    let beside = open(&reader(folder.path()), &host, "docs").unwrap();
    let (version, newer) = block_on(beside.version(&host)).unwrap();
    assert_eq!(newer, None);
    block_on(docs.add(&host, rows(10, DIMENSION, 2))).unwrap();
    assert_eq!(block_on(beside.version(&host)).unwrap(), (version, Some(version + 1)));
    assert_eq!(block_on(docs.version(&host)).unwrap(), (version + 1, None));
    block_on(beside.refresh(&host)).unwrap();
    assert_eq!(block_on(beside.version(&host)).unwrap(), (version + 1, None));
    assert_eq!(block_on(beside.center(&host)).unwrap(), (Vec::new(), false));
}

#[test]
fn words_and_sparse_vectors_find_what_vectors_do_not() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let client = in_folder(folder.path());
    let sparse =
        |row: usize| SparseVector { indices: vec![7, 1000 + row as u32], values: vec![1.0, 2.0] };
    for (name, kind) in [("words", Sparse::Bm25(Bm25::default())), ("vectors", Sparse::Vectors)] {
        let choices = Choices { sparse: Some(kind), ..Choices::new(name, DIMENSION) };
        let docs = block_on(client.create_collection(&host, &choices)).unwrap();
        assert_eq!(docs.sparse(), Some(kind));
        let given = Records {
            documents: (0..ROWS).map(|row| Some(format!("row r{row} of many"))).collect(),
            sparse: match kind {
                Sparse::Vectors => (0..ROWS).map(|row| Some(sparse(row))).collect(),
                Sparse::Bm25(_) => Vec::new(),
            },
            ..rows(ROWS, DIMENSION, 3)
        };
        let ids = block_on(docs.add(&host, given)).unwrap();
        let which = Selection { ids: Some(vec![ids[41].clone()]), ..Selection::default() };
        let parts = Parts { sparse: true, ..Parts::default() };
        let read = block_on(docs.get(&host, &which, parts, 0, None, None));
        match kind {
            Sparse::Vectors => {
                let read = read.unwrap().rows.remove(0);
                assert_eq!((read.sparse, read.document), (Some(sparse(41)), None));
            }
            Sparse::Bm25(_) => assert!(matches!(read, Err(Error::Input(_)))),
        }
        let asked = match kind {
            Sparse::Vectors => Asked::Vectors(vec![sparse(41), sparse(299)]),
            Sparse::Bm25(_) => Asked::Texts(vec!["R41".to_owned(), "row r299".to_owned()]),
        };
        let fusion = Fusion::Weighted { alpha: 0.25 };
        let request = QueryRequest {
            embeddings: vectors(2, DIMENSION, 5),
            n_results: Some(2),
            hybrid: Some(Hybrid::new(asked.clone(), fusion)),
            ..QueryRequest::default()
        };
        let found = block_on(docs.query(&host, request.clone())).unwrap();
        assert_eq!(
            names(&found).concat().iter().step_by(2).collect::<Vec<_>>(),
            [&ids[41], &ids[299]]
        );
        assert!(found.owners_only && found.checked);
        let alone = Hybrid::new(asked.clone(), Fusion::Words);
        let alone = QueryRequest { hybrid: Some(alone), embeddings: Vec::new(), ..request.clone() };
        let found = block_on(docs.query(&host, alone.clone())).unwrap();
        assert_eq!(found.hits[0][0].row.id, ids[41]);
        assert_eq!(found.hits[1][0].row.id, ids[299]);
        // 1 · 1 + 2 · 2 of sparse vectors.
        assert!(kind != Sparse::Vectors || found.hits[0][0].score == 5.0);
        assert!(!found.owners_only && found.checked);
        let idf = Hybrid { idf: true, ..Hybrid::new(asked, Fusion::Words) };
        let idf = block_on(docs.query(&host, QueryRequest { hybrid: Some(idf), ..alone.clone() }));
        match kind {
            Sparse::Bm25(_) => assert!(matches!(idf, Err(Error::Input(_)))),
            Sparse::Vectors => {
                let (all, rare) = (ROWS as f64, |having: f64| {
                    (1.0 + (ROWS as f64 - having + 0.5) / (having + 0.5)).ln()
                });
                let score = idf.unwrap().hits[0][0].score;
                assert!((score - (rare(all) + 4.0 * rare(1.0))).abs() < 1e-12);
            }
        }
        let both = QueryRequest { embeddings: request.embeddings.clone(), ..alone };
        assert!(matches!(block_on(docs.query(&host, both)), Err(Error::Input(_))));
        let wrong = Hybrid::new(Asked::Texts(Vec::new()), fusion);
        let wrong = QueryRequest { hybrid: Some(wrong), ..request };
        assert!(matches!(block_on(docs.query(&host, wrong)), Err(Error::Input(_))));
    }
}
