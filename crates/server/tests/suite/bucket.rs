//! Collections in a bucket: in memory, and over the S3 protocol with a stand-in that loses replies.
//! Two writers never lose a commit.

use crate::support::{Client, id_of, runtime};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ciphervec_owner::store::Change;
use ciphervec_owner::{Mode, Precision, Scheme};
use ciphervec_server::{CommitKey, Database, DatabaseError, DatabaseOptions};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::memory::InMemory;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const COMPACT: (Mode, Precision, Scheme) =
    (Mode::SealedIndex, Precision::Standard, Scheme::Lattice);

fn open(store: &Arc<dyn ObjectStore>) -> Arc<Database> {
    let url = "s3://bucket/some/prefix".to_owned();
    let options = DatabaseOptions { url, memory_budget: 1 << 30, threads: 2, queue: 16 };
    Database::open_store(Arc::clone(store), "some/prefix", &options).unwrap()
}

/// As much of S3 as a store needs. Every third write is made and then answered with an error.
#[derive(Default)]
struct StandIn {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    writes: AtomicUsize,
}

fn listing(objects: &BTreeMap<String, Vec<u8>>, prefix: &str) -> String {
    let (mut files, mut folders) = (String::new(), BTreeSet::new());
    let now = jiff::Timestamp::now();
    for (key, value) in objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
        match key[prefix.len()..].split_once('/') {
            Some((folder, _)) => drop(folders.insert(format!("{prefix}{folder}/"))),
            None => files.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>{now:.3}</LastModified><Size>{}</Size><ETag>\"e\"</ETag></Contents>",
                value.len()
            )),
        }
    }
    let folders = folders
        .iter()
        .map(|one| format!("<CommonPrefixes><Prefix>{one}</Prefix></CommonPrefixes>"));
    let folders: String = folders.collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{files}{folders}</ListBucketResult>")
}

async fn serve(State(held): State<Arc<StandIn>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let key = parts.uri.path().trim_start_matches("/bucket").trim_start_matches('/').to_owned();
    let query = parts.uri.query().unwrap_or("");
    let mut objects = held.objects.lock().unwrap();
    match parts.method {
        Method::PUT => {
            let once = parts.headers.contains_key(header::IF_NONE_MATCH);
            if once && objects.contains_key(&key) {
                return StatusCode::PRECONDITION_FAILED.into_response();
            }
            objects.insert(key, body);
            if held.writes.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            [(header::ETAG, "\"e\"")].into_response()
        }
        Method::POST => {
            let text = String::from_utf8(body).unwrap();
            for part in text.split("<Key>").skip(1) {
                objects.remove(part.split("</Key>").next().unwrap());
            }
            "<DeleteResult></DeleteResult>".into_response()
        }
        Method::DELETE => {
            objects.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        _ if query.contains("list-type=2") => {
            let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix="));
            listing(&objects, &prefix.unwrap_or("").replace("%2F", "/")).into_response()
        }
        _ => {
            let Some(value) = objects.get(&key) else {
                return StatusCode::NOT_FOUND.into_response();
            };
            let range = parts.headers.get(header::RANGE).map(|range| range.to_str().unwrap());
            let (status, from, to) = match range
                .and_then(|range| range["bytes=".len()..].split_once('-'))
            {
                Some((from, to)) => {
                    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
                    if from >= value.len() {
                        return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
                    }
                    (StatusCode::PARTIAL_CONTENT, from, (to + 1).min(value.len()))
                }
                None => (StatusCode::OK, 0, value.len()),
            };
            let answer = Response::builder()
                .status(status)
                .header(header::ETAG, "\"e\"")
                .header(header::LAST_MODIFIED, "Sun, 22 Nov 2026 00:00:00 GMT")
                .header(header::CONTENT_LENGTH, to - from)
                .header(
                    header::CONTENT_RANGE,
                    format!("bytes {from}-{}/{}", to.max(1) - 1, value.len()),
                );
            let body = if parts.method == Method::HEAD { vec![] } else { value[from..to].to_vec() };
            answer.body(Body::from(body)).unwrap()
        }
    }
}

/// The stand-in behind the client that a real bucket is behind.
fn s3(runtime: &tokio::runtime::Runtime) -> Arc<dyn ObjectStore> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(serve).with_state(Arc::new(StandIn::default()));
    runtime.spawn(async move { axum::serve(listener, app).await });
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_bucket_name("bucket")
        .with_region("here")
        .with_access_key_id("nobody")
        .with_secret_access_key("nothing");
    Arc::new(store.build().unwrap())
}

#[test]
fn a_collection_in_a_bucket_is_made_filled_searched_dropped_and_made_again() {
    let runtime = runtime();
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), s3(&runtime)];
    for store in stores {
        let database = open(&store);
        assert!(database.ready() && database.names().unwrap().is_empty());
        let mut client = Client::new("faces", COMPACT);
        assert!(matches!(database.get("faces"), Err(DatabaseError::NotFound(_))));
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        let twice = database.create("faces", client.meta(), client.attachments());
        assert!(matches!(twice, Err(DatabaseError::Exists(_))));
        let key = CommitKey { key: [1; 16], digest: [2; 16] };
        let change = client.add(30);
        let first = made.commit(change.clone(), None, Some(key)).unwrap();
        for rows in [1, 2, 3] {
            made.commit(client.add(rows), None, None).unwrap();
        }
        assert_eq!(database.names().unwrap(), ["faces"]);
        let query = client.query(1, 7);
        let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
        let answer = runtime.block_on(made.query(bytes.clone())).unwrap();
        let best = client.best(&query, &answer.bytes);
        made.snapshot("monday").unwrap();
        let again = open(&store).get("faces").unwrap();
        let answer = runtime.block_on(again.query(bytes.clone())).unwrap();
        assert_eq!(client.best(&query, &answer.bytes), best);
        let replayed = again.commit(change, None, Some(key)).unwrap();
        assert_eq!((replayed.head, replayed.replayed), (first.head, true));
        let done = again.compact().unwrap();
        assert!(done.files_after < done.files_before, "{done:?}");
        assert_eq!(client.best(&query, &runtime.block_on(again.query(bytes)).unwrap().bytes), best);
        let report = again.verify(&mut |_, _| {}).unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        let before = again.state().manifest.version;
        database.restore("faces", "monday", "copy").unwrap();
        assert_eq!(database.names().unwrap(), ["copy", "faces"]);
        database.drop_collection("faces").unwrap();
        assert_eq!(database.names().unwrap(), ["copy"]);
        assert!(matches!(database.get("faces"), Err(DatabaseError::NotFound(_))));
        let anew = database.create("faces", client.meta(), client.attachments()).unwrap();
        assert!(anew.state().manifest.version > before, "versions go on counting");
        assert!(anew.state().manifest.segments.is_empty());
    }
}

#[test]
fn two_writers_on_a_bucket_never_lose_a_commit() {
    let runtime = runtime();
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), s3(&runtime)];
    for store in stores {
        let client = Client::new("faces", COMPACT);
        let first = open(&store);
        first.create("faces", client.meta(), client.attachments()).unwrap();
        let second = open(&store);
        let changes: Vec<Vec<Change>> = (0..2)
            .map(|_| {
                // One owner, two processes that seal for it.
                let mut sealing = Client::of(&client);
                (0..12).map(|_| sealing.add(2)).collect()
            })
            .collect();
        let expected: BTreeSet<_> = changes.iter().flatten().map(id_of).collect();
        std::thread::scope(|scope| {
            for (database, changes) in [&first, &second].into_iter().zip(changes) {
                scope.spawn(move || {
                    let faces = database.get("faces").unwrap();
                    for change in changes {
                        faces.commit(change, None, None).unwrap();
                    }
                });
            }
        });
        let found = open(&store).get("faces").unwrap().state();
        let ids: BTreeSet<_> = found.manifest.segments.iter().map(|segment| segment.id).collect();
        assert_eq!(ids, expected);
        assert_eq!(found.manifest.version, 25, "each commit is one version");
        // Who expects a head that another has moved on from is told.
        let faces = first.get("faces").unwrap();
        let stale = faces.commit(Client::of(&client).add(1), Some([1; 32]), None);
        assert!(matches!(stale, Err(DatabaseError::Conflict { .. })), "{stale:?}");
    }
}
