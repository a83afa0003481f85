//! Hostile requests: each is refused with a status in the 400s, and the collection stays as it was.

use crate::support::http::{self, Site, documented, frame, make_token, raw_frame};
use crate::support::{self, Client};
use axum::body::{Body, Bytes};
use ciphervec_owner::search::{Fold, QueryOptions, Writer};
use ciphervec_owner::store::{Change, NewSegment};
use ciphervec_owner::{Id, Mode, Precision, Scheme};
use ciphervec_server::auth::Verb;
use std::time::Duration;

async fn filled(kind: (Mode, Precision, Scheme), extra: &[&str]) -> (Site, Client) {
    let site = Site::open(extra);
    let mut client = Client::new("faces", kind);
    let attachments = if kind.0 == Mode::Sealed { client.attachments() } else { Vec::new() };
    let change = Change { set_meta: Some(client.meta()), attachments, ..Change::default() };
    let created = site.send("PUT", "/v1/collections/faces", &[], frame(&change)).await;
    assert_eq!(created.status, 201, "{}", created.json());
    let change = client.add(4);
    let made = site.send("POST", "/v1/collections/faces/commits", &[], frame(&change)).await;
    assert_eq!(made.status, 200, "{}", made.json());
    (site, client)
}

const COMPACT: (Mode, Precision, Scheme) =
    (Mode::SealedIndex, Precision::Standard, Scheme::Lattice);
const RING: (Mode, Precision, Scheme) = (Mode::Sealed, Precision::Standard, Scheme::Lattice);

async fn head(site: &Site) -> String {
    site.send("GET", "/v1/collections/faces", &[], Body::empty()).await.header("etag").to_owned()
}

/// A frame whose checksum is right although its bytes are not.
fn reseal(bytes: &mut [u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[64..]);
    let checksum = *hasher.finalize().as_bytes();
    bytes[32..64].copy_from_slice(&checksum);
}

#[tokio::test]
async fn segments_that_could_not_be_searched_are_not_acknowledged() {
    for kind in [COMPACT, RING] {
        let (site, mut client) = filled(kind, &[]).await;
        let before = head(&site).await;
        let good = client.add(4);
        let rows = good.add[0].blobs[0].1.clone();
        let other = Client::new("other", kind).add(4).add[0].blobs[0].1.clone();
        let mut bad: Vec<(&str, Vec<u8>)> = vec![
            ("cut", rows[..rows.len() - 1].to_vec()),
            ("longer", [&rows[..], &[0]].concat()),
            ("empty", Vec::new()),
            ("another index", other),
            ("noise", vec![0xa5; rows.len()]),
        ];
        let mut flipped = rows.clone();
        *flipped.last_mut().unwrap() ^= 1;
        bad.push(("a flipped bit", flipped));
        let mut claim = rows.clone();
        claim[88..92].copy_from_slice(&u32::MAX.to_le_bytes());
        reseal(&mut claim);
        bad.push(("a claim of 2^32 rows", claim));
        if kind == RING {
            // 50-bit residues of all ones are above every modulus.
            let mut residues = rows.clone();
            residues[128..178].fill(0xff);
            reseal(&mut residues);
            bad.push(("residues above the modulus", residues));
        }
        for (what, bytes) in bad {
            let mut change = good.clone();
            change.add[0].blobs[0].1 = bytes;
            let refused =
                site.send("POST", "/v1/collections/faces/commits", &[], frame(&change)).await;
            assert_eq!(refused.status, 400, "{kind:?} {what}: {}", refused.json());
            assert_eq!(head(&site).await, before, "{kind:?} {what}");
        }
        let mut rows_differ = good.clone();
        rows_differ.add[0].rows = 5;
        let refused =
            site.send("POST", "/v1/collections/faces/commits", &[], frame(&rows_differ)).await;
        assert_eq!(refused.status, 400);
        let mut unknown = Change { remove: vec![[9; 16]], ..Change::default() };
        let refused =
            site.send("POST", "/v1/collections/faces/commits", &[], frame(&unknown)).await;
        assert_eq!(refused.status, 400, "{}", refused.json());
        unknown = Change { delete_rows: vec![(good.add[0].id, vec![0])], ..Change::default() };
        let refused =
            site.send("POST", "/v1/collections/faces/commits", &[], frame(&unknown)).await;
        assert_eq!(refused.status, 400, "{}", refused.json());
        assert_eq!(head(&site).await, before);
        let made = site.send("POST", "/v1/collections/faces/commits", &[], frame(&good)).await;
        assert_eq!(made.status, 200, "{}", made.json());
    }
}

#[tokio::test]
async fn wrapped_keys_that_no_owner_could_open_are_not_acknowledged() {
    let (site, client) = filled(COMPACT, &[]).await;
    let before = head(&site).await;
    let seal = |client: &Client| {
        let writer = Writer::new(client.owner.writer_card("door", &[]).unwrap()).unwrap();
        let made =
            writer.seal(&support::random(2 * support::D, 9), &ids(2), Vec::new(), 2, 1).unwrap();
        let blobs = vec![
            ("rows".to_owned(), made.sealed.segment.to_vec()),
            ("sidecar".to_owned(), made.sealed.sidecar),
            ("wrap".to_owned(), made.wrap),
        ];
        let add = vec![NewSegment { id: made.sealed.id.0, rows: 2, blobs }];
        Change { add, ..Change::default() }
    };
    let (good, another) = (seal(&client), seal(&client));
    let wrap = good.add[0].blobs[2].1.clone();
    let mut flipped = wrap.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut suite = wrap.clone();
    // After the frame's 64 bytes of header: the index's id, the segment's, and the suite's number.
    suite[64 + 8 + 16] ^= 1;
    reseal(&mut suite);
    let bad = [
        ("cut", wrap[..wrap.len() - 1].to_vec()),
        ("empty", Vec::new()),
        ("noise", vec![0x5a; wrap.len()]),
        ("a flipped bit", flipped),
        ("another suite", suite),
        ("of another segment", another.add[0].blobs[2].1.clone()),
        ("of another index", seal(&Client::new("other", COMPACT)).add[0].blobs[2].1.clone()),
    ];
    for (what, bytes) in bad {
        let mut change = good.clone();
        change.add[0].blobs[2].1 = bytes;
        let refused = site.send("POST", "/v1/collections/faces/commits", &[], frame(&change)).await;
        assert_eq!(refused.status, 400, "{what}: {}", refused.json());
        assert_eq!(head(&site).await, before, "{what}");
    }
    let made = site.send("POST", "/v1/collections/faces/commits", &[], frame(&good)).await;
    assert_eq!(made.status, 200, "{}", made.json());
}

fn ids(count: i64) -> Vec<Id> {
    (0..count).map(Id::Number).collect()
}

#[tokio::test]
async fn queries_that_are_none_fail_alone() {
    for kind in [COMPACT, RING] {
        let (site, client) = filled(kind, &[]).await;
        let path = "/v1/collections/faces/query";
        let good = client.query(1, 3).to_bytes().to_vec();
        let mut giant = good.clone();
        giant[72..76].copy_from_slice(&u32::MAX.to_le_bytes());
        reseal(&mut giant);
        for bad in
            [Vec::new(), b"CVEC".to_vec(), good[..good.len() - 1].to_vec(), vec![0; 64], giant]
        {
            let refused = site.send("POST", path, &[], bad).await;
            assert_eq!(refused.status, 400, "{}", refused.json());
        }
        assert_eq!(site.send("POST", path, &[], good).await.status, 200);
    }
}

#[tokio::test]
async fn names_that_are_paths_lead_nowhere() {
    let (site, _) = filled(COMPACT, &[]).await;
    let entries = |folder: &std::path::Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (outside, inside) = (entries(site.folder.path()), entries(&site.data()));
    let tricks = [
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "a%2fb",
        "a%5cb",
        "%00",
        "a%00b",
        "a%0ab",
        ".hidden",
        "a..b",
        "a.",
        "-a",
        "C:",
        "%c3%a9",
        "%ff%fe",
        "~",
        "tokens.json%00",
        ".uploads",
        "faces%20",
        "LOCK",
        "*",
    ];
    let long = "a".repeat(300);
    let sound = [
        ("{name}", "faces"),
        ("{segment}", "00000000000000000000000000000000"),
        ("{upload}", "00000000000000000000000000000000"),
        ("{attachment}", "notes"),
        ("{blob}", "rows"),
        ("{snapshot}", "monday"),
    ];
    for (method, path) in documented() {
        for (parameter, _) in sound.iter().filter(|(parameter, _)| path.contains(parameter)) {
            for trick in tricks.into_iter().chain([long.as_str()]) {
                let mut concrete = path.replace(parameter, trick);
                for (parameter, value) in sound {
                    concrete = concrete.replace(parameter, value);
                }
                let headers = [("upload-offset", "0")];
                let body = Body::from(r#"{"into":"faces"}"#);
                let reply = site.send(&method, &concrete, &headers, body).await;
                // Names of snapshots are no names of files: dots are as good as letters there, but
                // alone they would be another path.
                let letters = |byte: u8| byte.is_ascii_lowercase() || b"._-".contains(&byte);
                let trick = trick.replace("%2e", ".");
                let plain =
                    *parameter == "{snapshot}" && trick.len() <= 64 && trick.bytes().all(letters);
                let plain = plain && trick.bytes().any(|byte| byte != b'.');
                assert!(
                    reply.status.is_client_error() || plain,
                    "{method} {concrete}: {}",
                    reply.status
                );
            }
        }
    }
    let into = "/v1/collections/faces/snapshots/monday/restore";
    site.send("PUT", "/v1/collections/faces/snapshots/monday", &[], Body::empty()).await;
    for trick in ["..", "../x", "/tmp/x", ".x", "a/b", "a\\\\b", ""] {
        let body = format!("{{\"into\":\"{trick}\"}}");
        let refused = site.send("POST", into, &[], body).await;
        assert!(refused.status.is_client_error(), "{trick}: {}", refused.status);
    }
    // Names inside a frame are no paths either.
    for trick in ["../x", "/x", "..", ".", "...", "", "a/b", "A", "é"] {
        let json = serde_json::json!({"attachments": [{"name": trick, "length": 1}]}).to_string();
        let refused =
            site.send("POST", "/v1/collections/faces/commits", &[], raw_frame(&json, b"x")).await;
        assert_eq!(refused.status, 400, "{trick}");
    }
    assert_eq!(entries(site.folder.path()), outside);
    // Where tables are kept is made for the first that is sent, and a refused one leaves nothing there.
    let tables = site.data().join(".tables");
    assert!(!tables.exists() || entries(&tables).is_empty());
    let mut now = entries(&site.data());
    now.retain(|name| name != ".tables");
    assert_eq!(now, inside);
}

#[tokio::test]
async fn versions_and_headers_of_the_future_are_refused_with_a_hint() {
    let (site, _) = filled(COMPACT, &[]).await;
    let list = "/v1/collections";
    assert_eq!(site.send("GET", list, &[("ciphervec-api", "1")], Body::empty()).await.status, 200);
    for bad in ["2", "0", "", "1.0", "one"] {
        let refused = site.send("GET", list, &[("ciphervec-api", bad)], Body::empty()).await;
        assert_eq!(refused.status, 400, "{bad}");
        assert!(refused.json()["hint"].as_str().unwrap().contains("Ciphervec-Api: 1"));
    }
    let commits = "/v1/collections/faces/commits";
    let empty = frame(&Change::default());
    let mut later = empty.clone();
    later[8] = 2;
    assert_eq!(site.send("POST", commits, &[], later).await.status, 400);
    for (name, value) in [("if-match", "x"), ("idempotency-key", "a b"), ("idempotency-key", "")] {
        let refused = site.send("POST", commits, &[(name, value)], empty.clone()).await;
        assert_eq!(refused.status, 400, "{name}: {value}");
    }
    let key = ("idempotency-key", "a");
    assert_eq!(site.send("POST", commits, &[key, key], empty).await.status, 400);
    let upload = "/v1/collections/faces/uploads";
    for bad in ["", "{}", "[1]", "{\"length\":-1}", "{\"length\":1,\"x\":1}", "{\"length\":1e3}"] {
        assert_eq!(site.send("POST", upload, &[], bad).await.status, 400, "{bad}");
    }
    assert_eq!(site.send("POST", upload, &[], "{\"length\":0}").await.status, 413);
    assert_eq!(
        site.send("POST", upload, &[], "{\"length\":18446744073709551615}").await.status,
        413
    );
    assert_eq!(site.send("TRACE", list, &[], Body::empty()).await.status, 405);
}

/// How many clusters are chosen is the asker's word, and each takes megabytes.
#[tokio::test]
async fn folds_take_no_more_memory_than_the_budget() {
    for (extra, status) in [(&[][..], 200), (&["--memory-budget", "2MiB"], 400)] {
        let (site, client) = filled(RING, extra).await;
        let clusters = client.directory.segments().map(|(id, ..)| id).collect::<Vec<_>>();
        let fold = Some(Fold { clusters: &clusters, chosen: &clusters });
        let options = QueryOptions { segments: Some(&[]), fold, ..QueryOptions::default() };
        let row = support::random(client.owner.spec().dimension(), 1);
        let query = client.owner.query(&row, &client.directory, options).unwrap();
        let body = query.to_bytes().to_vec();
        let answer = site.send("POST", "/v1/collections/faces/query", &[], body).await;
        assert_eq!(answer.status, status, "{extra:?}");
        if status == 400 {
            let says = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(says.contains("--memory-budget leaves"), "{says}");
        }
        // Others go on.
        let query = client.query(1, 1).to_bytes().to_vec();
        assert_eq!(site.send("POST", "/v1/collections/faces/query", &[], query).await.status, 200);
    }
}

#[tokio::test]
async fn limits_of_size_disk_and_requests_are_kept() {
    let extra = ["--max-body", "1MiB", "--upload-quota", "3000", "--max-upload", "2000"];
    let (site, client) = filled(COMPACT, &extra).await;
    let large = vec![0; (1 << 20) + 1];
    for path in ["/v1/collections/faces/query", "/v1/collections/faces/commits"] {
        assert_eq!(site.send("POST", path, &[], large.clone()).await.status, 413, "{path}");
        // Without a Content-Length the limit is met on the way.
        let pieces = futures_util::stream::iter(
            large
                .chunks(50_000)
                .map(|piece| Ok::<_, std::convert::Infallible>(Bytes::copy_from_slice(piece)))
                .collect::<Vec<_>>(),
        );
        let refused = site.send("POST", path, &[], Body::from_stream(pieces)).await.status;
        assert!(refused == 413 || path.ends_with("commits") && refused == 400, "{path}: {refused}");
    }
    let uploads = "/v1/collections/faces/uploads";
    assert_eq!(site.send("POST", uploads, &[], "{\"length\":2001}").await.status, 413);
    // What is announced takes no room; what has come does.
    let mut paths = Vec::new();
    for _ in 0..20 {
        let started = site.send("POST", uploads, &[], "{\"length\":2000}").await;
        assert_eq!(started.status, 201, "{}", started.json());
        paths.push(started.header("location").to_owned());
    }
    let piece = async |path: &str, bytes: usize| {
        site.send("PATCH", path, &[("upload-offset", "0")], vec![7; bytes]).await
    };
    assert_eq!(piece(&paths[0], 1500).await.status, 204);
    let full = piece(&paths[1], 501).await;
    assert_eq!((full.status.as_u16(), &full.json()["type"]), (507, &"urn:ciphervec:full".into()));
    assert!(full.json()["detail"].as_str().unwrap().contains("2000 bytes"), "{}", full.json());
    let progress = site.send("GET", &paths[1], &[], Body::empty()).await.json();
    assert_eq!(progress["offset"], 0, "what was refused takes no room");
    assert_eq!(piece(&paths[1], 500).await.status, 204);
    let started = site.send("POST", uploads, &[], "{\"length\":1}").await;
    assert_eq!(started.status, 507, "it is full");
    assert_eq!(site.send("DELETE", &paths[0], &[], Body::empty()).await.status, 204);
    assert_eq!(piece(&paths[2], 1500).await.status, 204, "there is room again");
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(text.contains("ciphervec_upload_bytes 2000"), "{text}");
    assert!(text.contains("ciphervec_problems_total{reason=\"full\"} 2"), "{text}");
    assert!(text.contains("ciphervec_problems_total{reason=\"too-large\"}"), "{text}");
    let query = client.query(1, 1).to_bytes().to_vec();
    assert_eq!(site.send("POST", "/v1/collections/faces/query", &[], query).await.status, 200);
}

#[tokio::test]
async fn a_token_has_so_many_requests_in_flight_and_a_slow_sender_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let new = make_token(&file, "*", &[Verb::Admin]);
    let other = make_token(&file, "*", &[Verb::Admin]);
    let extra = ["--tokens", file.to_str().unwrap(), "--per-token", "1", "--patience", "1s"];
    let site = Site::on(folder, &extra);
    let bearers = [&new, &other].map(|new| format!("Bearer {}", *new.token));
    let never = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let slow = tokio::spawn({
        let (router, bearer) = (site.router.clone(), bearers[0].clone());
        async move {
            let auth = [("authorization", bearer.as_str())];
            http::send(&router, "PUT", "/v1/collections/faces", &auth, never).await
        }
    });
    while site.app.metrics.in_flight.get() == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // The slow request holds the token's one place by now, or will in a moment.
    let mut busy = None;
    for _ in 0..200 {
        let auth = [("authorization", bearers[0].as_str())];
        let reply = site.send("GET", "/v1/collections", &auth, Body::empty()).await;
        if reply.status == 429 {
            busy = Some(reply);
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(busy.unwrap().header("retry-after"), "1");
    let auth = [("authorization", bearers[1].as_str())];
    assert_eq!(site.send("GET", "/v1/collections", &auth, Body::empty()).await.status, 200);
    assert_eq!(slow.await.unwrap().status, 408);
    let auth = [("authorization", bearers[0].as_str())];
    assert_eq!(site.send("GET", "/v1/collections", &auth, Body::empty()).await.status, 200);
}

#[tokio::test]
async fn one_token_cannot_fill_what_is_set_aside_for_the_uploads_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let tokens =
        [Verb::Admin, Verb::Append, Verb::Append].map(|verb| make_token(&file, "*", &[verb]));
    let bearers = tokens.map(|new| format!("Bearer {}", *new.token));
    let quota = ["--upload-quota", "4000", "--max-upload", "2000"];
    let site = Site::on(folder, &[&["--tokens", file.to_str().unwrap()][..], &quota].concat());
    let client = Client::new("faces", COMPACT);
    let change = Change { set_meta: Some(client.meta()), ..Change::default() };
    let auth = |who: usize| ("authorization", bearers[who].as_str());
    let made = site.send("PUT", "/v1/collections/faces", &[auth(0)], frame(&change)).await;
    assert_eq!(made.status, 201, "{}", made.json());
    let uploads = "/v1/collections/faces/uploads";
    let start =
        async |who: usize| site.send("POST", uploads, &[auth(who)], "{\"length\":2000}").await;
    let mut greedy = Vec::new();
    let refused = loop {
        let started = start(1).await;
        if started.status != 201 {
            break started;
        }
        greedy.push(started.header("location").to_owned());
    };
    assert_eq!((refused.status.as_u16(), greedy.len()), (429, 256), "{}", refused.json());
    let piece = async |who: usize, path: &str, bytes: usize| {
        let headers = [auth(who), ("upload-offset", "0")];
        site.send("PATCH", path, &headers, vec![7; bytes]).await
    };
    assert_eq!(piece(1, &greedy[0], 2000).await.status, 204);
    let full = piece(1, &greedy[1], 1).await;
    assert_eq!(full.status, 507, "{}", full.json());
    assert!(full.json()["detail"].as_str().unwrap().contains("of this token"), "{}", full.json());
    let other = start(2).await.header("location").to_owned();
    assert_eq!(piece(2, &other, 2000).await.status, 204, "the other half is the others'");
}

#[tokio::test]
async fn a_writer_cannot_choose_a_level_that_costs_every_query_precision() {
    let site = Site::open(&[]);
    let mut client = Client::with_dimension("faces", 512, RING);
    let change = Change {
        set_meta: Some(client.meta()),
        attachments: client.attachments(),
        ..Change::default()
    };
    let created = site.send("PUT", "/v1/collections/faces", &[], frame(&change)).await;
    assert_eq!(created.status, 201, "{}", created.json());
    let commits = "/v1/collections/faces/commits";
    assert_eq!(site.send("POST", commits, &[], frame(&client.add(4))).await.status, 200);
    let writer = Writer::new(client.owner.writer_card("door", &[]).unwrap()).unwrap();
    let written = |rows: usize, expected: usize| {
        let vectors = support::random(rows * 512, 9);
        let made = writer.seal(&vectors, &ids(rows as i64), Vec::new(), expected, 1).unwrap();
        let level = made.sealed.level;
        let blobs = vec![
            ("rows".to_owned(), made.sealed.segment.to_vec()),
            ("sidecar".to_owned(), made.sealed.sidecar),
            ("wrap".to_owned(), made.wrap),
        ];
        let add = vec![NewSegment { id: made.sealed.id.0, rows: rows as u32, blobs }];
        (level, frame(&Change { add, ..Change::default() }))
    };
    // One that claims to be the first of very many, and fills a block of the deepest level.
    let (deep, greedy) = written(4096, 1 << 40);
    let refused = site.send("POST", commits, &[], greedy).await;
    assert_eq!((deep, refused.status.as_u16()), (9, 400), "{}", refused.json());
    assert!(refused.json()["detail"].as_str().unwrap().contains("level 9"), "{}", refused.json());
    for (rows, expected) in [(1, 1), (3, 100_000), (1024, 32 * 1024), (1024, 64 * 1024)] {
        let (level, honest) = written(rows, expected);
        let made = site.send("POST", commits, &[], honest).await;
        assert_eq!(made.status, 200, "{rows} rows at level {level}: {}", made.json());
    }
}
