//! The protocol as a client uses it: create, commit, query, read, upload, replay. Answers are
//! opened by an owner.

use crate::support::http::{Reply, Site, frame, options, raw_frame};
use crate::support::{Client, KINDS, id_of};
use axum::body::Body;
use ciphervec::protect::receipt::ReceiptKey;
use ciphervec_owner::store::Change;
use ciphervec_owner::{Mode, Precision, Scheme};
use ciphervec_server::hex;
use ciphervec_server::http::App;

const KIND: (Mode, Precision, Scheme) = (Mode::SealedIndex, Precision::Standard, Scheme::Lattice);

async fn create(site: &Site, client: &Client, kind: (Mode, Precision, Scheme)) -> Reply {
    let compact = kind.0 == Mode::Open || kind == (Mode::SealedIndex, kind.1, Scheme::Lattice);
    let attachments = if compact { Vec::new() } else { client.attachments() };
    let change = Change { set_meta: Some(client.meta()), attachments, ..Change::default() };
    site.send("PUT", "/v1/collections/faces", &[], frame(&change)).await
}

#[tokio::test]
async fn every_kind_of_collection_is_created_filled_and_searched() {
    for kind in KINDS {
        let site = Site::open(&[]);
        let mut client = Client::new("faces", kind);
        let created = create(&site, &client, kind).await;
        assert_eq!(created.status, 201, "{kind:?}: {}", created.json());
        assert_eq!(created.json()["statistics"]["rows"], 0);
        let again = create(&site, &client, kind).await;
        assert_eq!(again.status, 409);
        let change = client.add(20);
        let commits = "/v1/collections/faces/commits";
        let committed = site.send("POST", commits, &[], frame(&change)).await;
        assert_eq!(committed.status, 200, "{kind:?}: {}", committed.json());
        assert_eq!(committed.json()["replayed"], false);
        let query = client.query(2, 7);
        let path = "/v1/collections/faces/query";
        let answer = site.send("POST", path, &[], query.to_bytes().to_vec()).await;
        assert_eq!(answer.status, 200, "{kind:?}");
        assert_eq!(answer.header("ciphervec-head"), committed.json()["head"]);
        assert_eq!(answer.header("ciphervec-version"), committed.json()["version"].to_string());
        assert_eq!(answer.header("content-length"), answer.body.len().to_string());
        assert!(answer.header("server-timing").starts_with("queue;dur="));
        // The same bytes as the index gives in process, so the owner opens the same scores.
        let direct =
            site.app.database.get("faces").unwrap().query(query.to_bytes().to_vec().into()).await;
        let best = client.best(&query, &answer.body);
        assert_eq!(best.len(), 2);
        assert_eq!(best, client.best(&query, &direct.unwrap().bytes), "{kind:?}");
    }
}

#[tokio::test]
async fn answers_carry_a_receipt_where_the_operator_has_a_key_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipts.key");
    std::fs::write(&path, [3; 32]).unwrap();
    let site = Site::open(&["--receipt-key", path.to_str().unwrap()]);
    let mut client = Client::new("faces", KIND);
    assert_eq!(create(&site, &client, KIND).await.status, 201);
    let commits = "/v1/collections/faces/commits";
    assert_eq!(site.send("POST", commits, &[], frame(&client.add(20))).await.status, 200);
    let query = client.query(2, 7).to_bytes().to_vec();
    let answer = site.send("POST", "/v1/collections/faces/query", &[], query.clone()).await;
    let receipt = hex::parse::<40>(answer.header("ciphervec-receipt")).unwrap();
    let asked = ReceiptKey::new([3; 32]).asked("faces", &query);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let issued = asked.issued(&receipt, &answer.body).unwrap();
    assert!(now.abs_diff(issued) < 60, "{issued} at {now}");
    assert_eq!(asked.issued(&receipt, &answer.body[1..]), None);

    let without = Site::open(&[]);
    assert_eq!(create(&without, &client, KIND).await.status, 201);
    let answer = without.send("POST", "/v1/collections/faces/query", &[], query).await;
    assert_eq!((answer.status.as_u16(), answer.headers.get("ciphervec-receipt")), (200, None));

    std::fs::write(&path, [3; 31]).unwrap();
    let refused =
        App::open(&options(&folder.path().join("db"), &["--receipt-key", path.to_str().unwrap()]));
    let says = refused.err().unwrap();
    assert!(says.contains("has 31 bytes, where 32 are expected"), "{says}");
}

#[tokio::test]
async fn a_state_is_described_and_its_bytes_come_back() {
    let site = Site::open(&[]);
    let mut client = Client::new("faces", KIND);
    assert_eq!(create(&site, &client, KIND).await.status, 201);
    let mut change = client.add(5);
    change.attachments = vec![("notes".into(), b"0123456789".to_vec())];
    change.delete_rows = vec![(id_of(&change), vec![3, 1])];
    assert_eq!(
        site.send("POST", "/v1/collections/faces/commits", &[], frame(&change)).await.status,
        200
    );
    let state = site.send("GET", "/v1/collections/faces", &[], Body::empty()).await;
    let id = hex::show(&id_of(&change));
    let json = state.json();
    assert_eq!(json["segments"][0]["id"], id);
    assert_eq!(json["segments"][0]["deleted"], serde_json::json!([1, 3]));
    assert_eq!(json["segments"][0]["blobs"]["rows"], change.add[0].blobs[0].1.len());
    assert_eq!(json["attachments"]["notes"], 10);
    let etag = state.header("etag").to_owned();
    assert_eq!(etag, format!("\"{}\"", json["head"].as_str().unwrap()));
    let same =
        site.send("GET", "/v1/collections/faces", &[("if-none-match", &etag)], Body::empty()).await;
    assert_eq!((same.status.as_u16(), same.body.len()), (304, 0));
    let rows = format!("/v1/collections/faces/segments/{id}/rows");
    assert_eq!(site.send("GET", &rows, &[], Body::empty()).await.body, change.add[0].blobs[0].1);
    let notes = "/v1/collections/faces/attachments/notes";
    let part = site.send("GET", notes, &[("range", "bytes=2-4")], Body::empty()).await;
    assert_eq!((part.status.as_u16(), &part.body[..]), (206, &b"234"[..]));
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    let beyond = site.send("GET", notes, &[("range", "bytes=10-")], Body::empty()).await;
    assert_eq!((beyond.status.as_u16(), beyond.header("content-range")), (416, "bytes */10"));
    let list = site.send("GET", "/v1/collections", &[], Body::empty()).await.json();
    assert_eq!(list["collections"][0]["name"], "faces");
    assert_eq!(list["collections"][0]["rows"], 5);
    let head = site.send("HEAD", notes, &[], Body::empty()).await;
    assert_eq!((head.header("content-length"), head.body.len()), ("10", 0));
    assert_eq!(site.send("DELETE", "/v1/collections/faces", &[], Body::empty()).await.status, 204);
    assert_eq!(site.send("GET", "/v1/collections/faces", &[], Body::empty()).await.status, 404);
}

#[tokio::test]
async fn commits_expect_a_head_and_are_made_once_also_after_a_restart() {
    let mut site = Site::open(&[]);
    let mut client = Client::new("faces", KIND);
    let created = create(&site, &client, KIND).await;
    let commits = "/v1/collections/faces/commits";
    let (first, second) = (frame(&client.add(3)), frame(&client.add(4)));
    let etag = created.header("etag").to_owned();
    let key = ("idempotency-key", "one");
    let made = site.send("POST", commits, &[key, ("if-match", &etag)], first.clone()).await;
    assert_eq!(made.status, 200, "{}", made.json());
    for restart in [false, true] {
        if restart {
            site.app.database.close();
            site = Site::on(site.folder, &[]);
        }
        let replayed = site.send("POST", commits, &[key, ("if-match", &etag)], first.clone()).await;
        assert_eq!(replayed.status, 200, "{}", replayed.json());
        assert_eq!(replayed.json()["replayed"], true);
        assert_eq!(replayed.json()["head"], made.json()["head"]);
        let reused = site.send("POST", commits, &[key], second.clone()).await;
        assert_eq!(
            (reused.status.as_u16(), &reused.json()["type"]),
            (422, &"urn:ciphervec:key-reused".into())
        );
    }
    let stale = site.send("POST", commits, &[("if-match", &etag)], second.clone()).await;
    assert_eq!(stale.status, 412);
    assert_eq!(stale.json()["head"], made.json()["head"]);
    assert_eq!(stale.json()["version"], made.json()["version"]);
    assert_eq!(site.send("POST", commits, &[("idempotency-key", "two")], second).await.status, 200);
    let state = site.send("GET", "/v1/collections/faces", &[], Body::empty()).await.json();
    assert_eq!(state["statistics"]["rows"], 7);
}

#[tokio::test]
async fn an_upload_comes_in_pieces_outlives_a_restart_and_is_committed_once() {
    let mut site = Site::open(&[]);
    let mut client = Client::new("faces", KIND);
    create(&site, &client, KIND).await;
    let change = client.add(30);
    let (id, rows) = (hex::show(&id_of(&change)), change.add[0].blobs[0].1.clone());
    let uploads = "/v1/collections/faces/uploads";
    let length = format!("{{\"length\":{}}}", rows.len());
    let started = site.send("POST", uploads, &[], length.clone()).await;
    assert_eq!(started.status, 201, "{}", started.json());
    let path = started.header("location").to_owned();
    let offset = |reply: &Reply| reply.header("upload-offset").to_owned();
    let first = site.send("PATCH", &path, &[("upload-offset", "0")], rows[..1000].to_vec()).await;
    assert_eq!((first.status.as_u16(), offset(&first)), (204, "1000".into()));
    let wrong = site.send("PATCH", &path, &[("upload-offset", "999")], rows[999..].to_vec()).await;
    assert_eq!((wrong.status.as_u16(), offset(&wrong)), (409, "1000".into()));
    let mut long = rows[1000..].to_vec();
    long.push(0);
    let beyond = site.send("PATCH", &path, &[("upload-offset", "1000")], long).await;
    assert_eq!(beyond.status, 400);
    site.app.database.close();
    site = Site::on(site.folder, &[]);
    let progress = site.send("GET", &path, &[], Body::empty()).await.json();
    assert_eq!(progress["offset"], 1000);
    let upload = progress["upload"].as_str().unwrap().to_owned();
    let sidecar = change.add[0].blobs[1].1.clone();
    let json = serde_json::json!({"add": [{"id": id, "rows": 30, "blobs": [
        {"name": "rows", "length": rows.len(), "upload": upload, "blake3": hex::show(blake3::hash(&rows).as_bytes())},
        {"name": "sidecar", "length": sidecar.len()},
    ]}]});
    let body = raw_frame(&json.to_string(), &sidecar);
    let commits = "/v1/collections/faces/commits";
    let early = site.send("POST", commits, &[], body.clone()).await;
    assert_eq!(early.status, 409, "{}", early.json());
    let rest = site.send("PATCH", &path, &[("upload-offset", "1000")], rows[1000..].to_vec()).await;
    assert_eq!(rest.status, 204);
    let key = ("idempotency-key", "upload");
    for replayed in [false, true] {
        let done = site.send("POST", commits, &[key], body.clone()).await;
        assert_eq!((done.status.as_u16(), &done.json()["replayed"]), (200, &replayed.into()));
    }
    assert_eq!(site.send("GET", &path, &[], Body::empty()).await.status, 404);
    let blob = format!("/v1/collections/faces/segments/{id}/rows");
    assert_eq!(site.send("GET", &blob, &[], Body::empty()).await.body, rows);
    let other = site.send("POST", uploads, &[], length).await;
    let path = other.header("location").to_owned();
    assert_eq!(site.send("DELETE", &path, &[], Body::empty()).await.status, 204);
    assert_eq!(site.send("DELETE", &path, &[], Body::empty()).await.status, 404);
}

#[tokio::test]
async fn snapshots_come_back_and_upkeep_reports() {
    let site = Site::open(&[]);
    let mut client = Client::new("faces", KIND);
    create(&site, &client, KIND).await;
    let commits = "/v1/collections/faces/commits";
    let first = client.add(3);
    site.send("POST", commits, &[], frame(&first)).await;
    let snapshot = "/v1/collections/faces/snapshots/monday";
    assert_eq!(site.send("PUT", snapshot, &[], Body::empty()).await.status, 201);
    assert_eq!(site.send("PUT", snapshot, &[], Body::empty()).await.status, 409);
    let removal = Change { remove: vec![id_of(&first)], ..Change::default() };
    site.send("POST", commits, &[], frame(&removal)).await;
    let compacted = site.send("POST", "/v1/collections/faces/compact", &[], Body::empty()).await;
    assert_eq!(compacted.status, 200, "{}", compacted.json());
    let listed =
        site.send("GET", "/v1/collections/faces/snapshots", &[], Body::empty()).await.json();
    assert_eq!(listed["snapshots"][0]["name"], "monday");
    assert_eq!(listed["snapshots"][0]["rows"], 3);
    let restore = format!("{snapshot}/restore");
    let back = site.send("POST", &restore, &[], r#"{"into":"faces"}"#).await;
    assert_eq!((back.status.as_u16(), &back.json()["statistics"]["rows"]), (201, &3.into()));
    assert_eq!(site.send("DELETE", snapshot, &[], Body::empty()).await.status, 204);
    assert_eq!(site.send("DELETE", snapshot, &[], Body::empty()).await.status, 404);
    let verified =
        site.send("POST", "/v1/collections/faces/verify", &[], Body::empty()).await.json();
    assert_eq!((&verified["sound"], &verified["problems"]), (&true.into(), &serde_json::json!([])));
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(text.contains("ciphervec_collection_rows{collection=\"faces\"} 3"), "{text}");
    assert!(text.contains("ciphervec_commit_seconds_count 2"), "{text}");
    assert!(text.ends_with("# EOF\n"));
}
