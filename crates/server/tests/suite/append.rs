//! Tokens that add, tokens that change rows, tokens that may do anything: what each can do to a
//! collection, and that a device's can destroy nothing.

use crate::support::http::{Reply, Site, frame, make_token};
use crate::support::{self, Client, id_of};
use axum::body::Body;
use ciphervec_owner::search::Writer;
use ciphervec_owner::store::{Change, NewSegment};
use ciphervec_owner::{Id, Mode, Precision, Scheme};
use ciphervec_server::auth::Verb;
use std::collections::BTreeMap;
use std::path::Path;

/// With a sealed key pair, whose loss is the loss of all rows.
const PAIRED: (Mode, Precision, Scheme) = (Mode::SealedIndex, Precision::Standard, Scheme::ElGamal);
const COMMITS: &str = "/v1/collections/faces/commits";

struct Scene {
    site: Site,
    client: Client,
    bearers: BTreeMap<&'static str, String>,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.json");
        let verbs = [Verb::Append, Verb::Write, Verb::Admin, Verb::Read];
        let bearers = verbs.map(|verb| {
            let new = make_token(&file, "faces", &[verb]);
            (verb.as_str(), format!("Bearer {}", *new.token))
        });
        let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
        let mut scene =
            Scene { site, client: Client::new("faces", PAIRED), bearers: bearers.into() };
        let mut attachments = scene.client.attachments();
        attachments.push(("key-pair".into(), b"the only copy of the sealed key pair".to_vec()));
        let meta = Some(scene.client.meta());
        let change = Change { set_meta: meta, attachments, ..Change::default() };
        let made = scene.send("admin", "PUT", "/v1/collections/faces", frame(&change)).await;
        assert_eq!(made.status, 201, "{}", made.json());
        let rows = scene.client.add(5);
        assert_eq!(scene.commit("write", &rows).await.status, 200);
        scene
    }

    async fn send(&self, who: &str, method: &str, path: &str, body: impl Into<Body>) -> Reply {
        let headers = [("authorization", self.bearers[who].as_str()), ("upload-offset", "0")];
        self.site.send(method, path, &headers, body).await
    }

    async fn commit(&self, who: &str, change: &Change) -> Reply {
        self.send(who, "POST", COMMITS, frame(change)).await
    }

    async fn state(&self) -> serde_json::Value {
        let mut state =
            self.send("read", "GET", "/v1/collections/faces", Body::empty()).await.json();
        state["statistics"].take();
        state
    }

    fn written(&self) -> Change {
        let writer = Writer::new(self.client.owner.writer_card("door", &[]).unwrap()).unwrap();
        let vectors = support::random(2 * support::D, 9);
        let ids: Vec<Id> = (100..102).map(Id::Number).collect();
        let made = writer.seal(&vectors, &ids, vec![b"{}".to_vec(); 2], 2, 1).unwrap();
        let blobs = vec![
            ("rows".to_owned(), made.sealed.segment.to_vec()),
            ("sidecar".to_owned(), made.sealed.sidecar),
            ("wrap".to_owned(), made.wrap),
            ("records".to_owned(), made.records.unwrap()),
        ];
        let add = vec![NewSegment { id: made.sealed.id.0, rows: 2, blobs }];
        Change { add, ..Change::default() }
    }

    fn files(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        walk(&self.site.data().join("faces/blobs"), &mut found);
        found
    }

    fn is_on_the_disk(&self, bytes: &[u8]) -> bool {
        self.files().iter().any(|file| file.windows(bytes.len()).any(|part| part == bytes))
    }
}

fn walk(folder: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, found) } else { found.push(std::fs::read(path).unwrap()) }
    }
}

#[tokio::test]
async fn a_token_that_adds_can_destroy_nothing() {
    let mut scene = Scene::new().await;
    let before = scene.state().await;
    let segment = {
        let id = before["segments"][0]["id"].as_str().unwrap();
        ciphervec_server::hex::parse::<16>(id).unwrap()
    };
    let pair = vec![("key-pair".to_owned(), vec![0; 32])];
    let good = scene.written();
    let bare = scene.client.add(2);
    let with = |name: &str| {
        let mut change = good.clone();
        change.add[0].blobs.push((name.to_owned(), vec![1; 8]));
        change
    };
    let harm = [
        Change { attachments: pair, ..Change::default() },
        Change { attachments: vec![("state".into(), vec![1])], ..good.clone() },
        Change { attachments: vec![("evaluation".into(), vec![1])], ..Change::default() },
        Change { attachments: vec![("mine".into(), vec![1])], ..good.clone() },
        Change { drop_attachments: vec!["key-pair".into()], ..Change::default() },
        Change { set_meta: Some(scene.client.meta()), ..Change::default() },
        Change { remove: vec![segment], ..Change::default() },
        Change { remove: vec![segment], ..good.clone() },
        Change { delete_rows: vec![(segment, vec![0])], ..good.clone() },
        Change::default(),
        with("tags"),
        with("other"),
        bare,
    ];
    for (number, change) in harm.iter().enumerate() {
        let refused = scene.commit("append", change).await;
        assert_eq!(refused.status, 403, "{number}: {}", refused.json());
        let says = refused.json();
        assert_eq!(says["type"], "urn:ciphervec:forbidden");
        let verb = if matches!(number, 0 | 2..=5) { "admin" } else { "write" };
        assert!(
            says["detail"].as_str().unwrap().ends_with(&format!("permission {verb}")),
            "{says}"
        );
        assert_eq!(scene.state().await, before, "{number}");
    }
    let paths = [
        ("POST", "/purge"),
        ("POST", "/compact"),
        ("POST", "/verify"),
        ("GET", "/snapshots"),
        ("PUT", "/snapshots/monday"),
        ("DELETE", "/snapshots/monday"),
        ("POST", "/snapshots/monday/restore"),
        ("DELETE", ""),
        ("PUT", ""),
        ("GET", ""),
        ("POST", "/query"),
        ("GET", "/attachments/key-pair"),
    ];
    for (method, path) in paths {
        let path = format!("/v1/collections/faces{path}");
        let refused = scene.send("append", method, &path, r#"{"into":"faces"}"#).await;
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.json());
    }
    assert_eq!(scene.state().await, before);
    assert!(scene.is_on_the_disk(b"the only copy of the sealed key pair"));
    // What it is for, it may do; also by uploads, of which it sees its own.
    let made = scene.commit("append", &good).await;
    assert_eq!(made.status, 200, "{}", made.json());
    let uploads = "/v1/collections/faces/uploads";
    let started = scene.send("append", "POST", uploads, "{\"length\":3}").await;
    let path = started.header("location").to_owned();
    assert_eq!(scene.send("append", "PATCH", &path, "abc").await.status, 204);
    assert_eq!(scene.send("write", "GET", &path, Body::empty()).await.status, 404);
    let metrics = scene.site.app.metrics.text(&[], 0);
    for line in
        ["ciphervec_denied_total{verb=\"admin\"}", "ciphervec_denied_total{verb=\"write\"} 8"]
    {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[tokio::test]
async fn a_token_that_writes_changes_rows_and_neither_keys_nor_history() {
    let mut scene = Scene::new().await;
    let first = scene.client.add(3);
    // An owner's client: rows, and with them the attachment that authenticates the state.
    let add = Change { attachments: vec![("state".into(), b"one".to_vec())], ..first.clone() };
    assert_eq!(scene.commit("write", &add).await.status, 200);
    let delete = Change {
        delete_rows: vec![(id_of(&first), vec![1])],
        attachments: vec![("state".into(), b"two".to_vec())],
        ..Change::default()
    };
    assert_eq!(scene.commit("write", &delete).await.status, 200);
    let mut merge = scene.client.add(2);
    merge.remove = vec![id_of(&first)];
    assert_eq!(scene.commit("write", &merge).await.status, 200);
    assert_eq!(scene.commit("write", &scene.written()).await.status, 200);
    let before = scene.state().await;
    let attachment = |name: &str| Change {
        attachments: vec![(name.to_owned(), vec![0; 32])],
        ..Change::default()
    };
    let mut both = attachment("state");
    both.attachments.push(("evaluation".into(), vec![0; 32]));
    let harm = [
        attachment("key-pair"),
        attachment("evaluation"),
        attachment("notes"),
        both,
        Change { drop_attachments: vec!["state".into()], ..Change::default() },
        Change { set_meta: Some(scene.client.meta()), ..Change::default() },
    ];
    for (number, change) in harm.iter().enumerate() {
        let refused = scene.commit("write", change).await;
        assert_eq!(refused.status, 403, "{number}: {}", refused.json());
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.ends_with("takes a token with the permission admin"), "{detail}");
    }
    let purge = "/v1/collections/faces/purge";
    let refused = scene.send("write", "POST", purge, Body::empty()).await;
    assert_eq!(refused.status, 403);
    assert!(refused.json()["hint"].as_str().unwrap().contains("--permission admin"));
    assert_eq!(scene.state().await, before);
    assert!(scene.is_on_the_disk(b"the only copy of the sealed key pair"));
    assert_eq!(scene.commit("admin", &attachment("notes")).await.status, 200);
    assert_eq!(scene.send("admin", "POST", purge, Body::empty()).await.status, 204);
}
