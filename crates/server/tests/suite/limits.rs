//! Limits of tokens and identities: how fast they may ask, how often a day, and how much may be stored; and that many
//! connections, restarts, batches, snapshots and other names of a namespace get nobody more.

use crate::support::http::{Reply, Site, frame, send};
use crate::support::{Client, KINDS};
use axum::body::Body;
use ciphervec_owner::store::Change;
use ciphervec_server::auth::tokens::{self, TokenRequest};
use ciphervec_server::auth::{Limits, Verb};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn token(file: &Path, collection: &str, verbs: &[Verb], limits: &str) -> String {
    let request = TokenRequest {
        name: "test".into(),
        collections: vec![collection.into()],
        verbs: verbs.to_vec(),
        lifetime: None,
        limits: serde_json::from_str(limits).unwrap(),
    };
    format!("Bearer {}", *tokens::create(file, request).unwrap().token)
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    (folder, file)
}

fn site(folder: tempfile::TempDir, file: &Path) -> Site {
    Site::on(folder, &["--tokens", file.to_str().unwrap()])
}

async fn ask(site: &Site, bearer: &str, method: &str, path: &str, body: impl Into<Body>) -> Reply {
    site.send(method, path, &[("authorization", bearer)], body).await
}

fn reached(reply: &Reply) -> (u16, String) {
    let limit = reply.json()["limit"].as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), limit)
}

async fn create(site: &Site, bearer: &str, name: &str) -> (Client, Reply) {
    let client = Client::new(name, KINDS[1]);
    let change = Change { set_meta: Some(client.meta()), ..Change::default() };
    let made = ask(site, bearer, "PUT", &format!("/v1/collections/{name}"), frame(&change)).await;
    (client, made)
}

async fn commit(site: &Site, bearer: &str, name: &str, change: &Change) -> Reply {
    ask(site, bearer, "POST", &format!("/v1/collections/{name}/commits"), frame(change)).await
}

#[tokio::test]
async fn a_rate_holds_for_all_connections_together_and_counts_what_is_refused() {
    let (folder, file) = place();
    let slow = token(&file, "faces", &[Verb::Query], r#"{"rate": "6/h", "burst": 3}"#);
    let other = token(&file, "*", &[Verb::Admin], "{}");
    let site = site(folder, &file);
    let at_once = (0..20).map(|number| {
        let (router, bearer) = (site.router.clone(), slow.clone());
        let path = if number % 2 == 0 { "/v1/token" } else { "/v1/collections/others" };
        async move { send(&router, "GET", path, &[("authorization", &bearer)], "").await }
    });
    let replies = futures_util::future::join_all(at_once).await;
    let (refused, passed): (Vec<_>, Vec<_>) = replies.iter().partition(|one| one.status == 429);
    assert_eq!((refused.len(), passed.len()), (17, 3));
    for reply in refused {
        assert_eq!(reached(reply), (429, "rate".into()));
        let wait: u64 = reply.header("retry-after").parse().unwrap();
        assert!((590..=600).contains(&wait), "{wait}");
        assert!(reply.json()["detail"].as_str().unwrap().contains("6/h"), "{}", reply.json());
    }
    let metrics = ask(&site, &other, "GET", "/metrics", "").await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(text.contains("ciphervec_rejected_total{reason=\"rate\"} 17"), "{text}");
    // A line of audit each, as of all that need a token.
    let own = ask(&site, &other, "GET", "/v1/tokens", "").await.json();
    assert_eq!(own["tokens"][0]["limits"], serde_json::json!({"rate": "6/h", "burst": 3}));
    assert!(own["tokens"][1].get("limits").is_none());
}

#[tokio::test]
async fn a_day_has_so_many_queries_in_batches_and_after_restarts_too() {
    let (folder, file) = place();
    let admin = token(&file, "*", &[Verb::Admin], "{}");
    let asks = token(&file, "faces", &[Verb::Query], r#"{"queries_per_day": 5}"#);
    let site = site(folder, &file);
    let (mut client, made) = create(&site, &admin, "faces").await;
    assert_eq!(made.status, 201);
    let path = "/v1/collections/faces/query";
    assert_eq!(commit(&site, &admin, "faces", &client.add(5)).await.status, 200);
    let query = |count| client.query(count, 1).to_bytes().to_vec();
    assert_eq!(ask(&site, &asks, "POST", path, query(2)).await.status, 200);
    // What is refused answered nothing.
    assert_eq!(ask(&site, &asks, "POST", path, "no query").await.status, 400);
    let many = ask(&site, &asks, "POST", path, query(6)).await;
    assert_eq!(reached(&many), (422, "queries-per-day".into()));
    assert_eq!(reached(&ask(&site, &asks, "POST", path, query(4)).await).0, 429);
    assert_eq!(ask(&site, &asks, "POST", path, query(2)).await.status, 200);
    let Site { folder, app, router } = site;
    // As after a kill: what was asked is on disk already. Whoever was answered last may have the server for a moment.
    let gone = Arc::downgrade(&app);
    drop((app, router));
    while gone.strong_count() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let site = self::site(folder, &file);
    assert_eq!(ask(&site, &asks, "POST", path, query(1)).await.status, 200);
    let over = ask(&site, &asks, "POST", path, query(1)).await;
    assert_eq!(reached(&over), (429, "queries-per-day".into()));
    assert!(over.header("retry-after").parse::<u64>().unwrap() <= 86_400);
    assert_eq!(ask(&site, &asks, "GET", "/v1/collections/faces", "").await.status, 200);
    assert_eq!(ask(&site, &admin, "POST", path, query(64)).await.status, 200);
    site.app.close();
}

#[tokio::test]
async fn a_namespace_takes_so_much_whoever_of_it_is_filled() {
    let (folder, file) = place();
    let admin = token(&file, "*", &[Verb::Admin], "{}");
    let acme = token(&file, "acme-*", &[Verb::Admin], r#"{"max_rows": 20, "max_bytes": 1000000}"#);
    let site = site(folder, &file);
    let (mut one, made) = create(&site, &acme, "acme-one").await;
    assert_eq!(made.status, 201, "{}", made.json());
    let (mut two, made) = create(&site, &acme, "acme-two").await;
    assert_eq!(made.status, 201);
    let first = one.add(12);
    assert_eq!(commit(&site, &acme, "acme-one", &first).await.status, 200);
    let over = commit(&site, &acme, "acme-two", &two.add(9)).await;
    assert_eq!(reached(&over), (507, "max-rows".into()));
    let says = over.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        says.contains("20 rows") && says.contains("the 9 that came") && says.contains("have 21"),
        "{says}"
    );
    // Both at once: the last of the room is given once.
    let [a, b] = [one.add(8), two.add(8)];
    let both = futures_util::future::join(
        commit(&site, &acme, "acme-one", &a),
        commit(&site, &acme, "acme-two", &b),
    );
    let both = both.await;
    let mut statuses = [both.0.status.as_u16(), both.1.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 507]);
    // What replaces as many adds none; what goes makes room; others have their own.
    let replaced = Change { remove: vec![first.add[0].id], ..one.add(12) };
    assert_eq!(commit(&site, &acme, "acme-one", &replaced).await.status, 200);
    let (mut wide, made) = create(&site, &admin, "other").await;
    assert_eq!(made.status, 201);
    assert_eq!(commit(&site, &admin, "other", &wide.add(100)).await.status, 200);
    let gone = Change { remove: vec![replaced.add[0].id], ..Change::default() };
    assert_eq!(commit(&site, &acme, "acme-one", &gone).await.status, 200);
    assert_eq!(commit(&site, &acme, "acme-two", &two.add(12)).await.status, 200);
}

#[tokio::test]
async fn bytes_are_those_of_snapshots_and_copies_too() {
    let (folder, file) = place();
    let admin = token(&file, "*", &[Verb::Admin], "{}");
    let site = site(folder, &file);
    let (mut client, made) = create(&site, &admin, "acme-one").await;
    assert_eq!(made.status, 201);
    let rows = client.add(50);
    assert_eq!(commit(&site, &admin, "acme-one", &rows).await.status, 200);
    let stored = ask(&site, &admin, "GET", "/v1/collections/acme-one", "").await.json();
    let bytes = stored["statistics"]["bytes"].as_u64().unwrap();
    let limits = format!("{{\"max_bytes\": {}}}", 3 * bytes);
    let acme = token(&file, "acme-*", &[Verb::Admin], &limits);
    let kept = "/v1/collections/acme-one/snapshots/kept";
    assert_eq!(ask(&site, &acme, "PUT", kept, "").await.status, 201);
    // Half of the room is the snapshot's, though its rows go.
    let gone = Change { remove: vec![rows.add[0].id], ..Change::default() };
    assert_eq!(commit(&site, &acme, "acme-one", &gone).await.status, 200);
    assert_eq!(commit(&site, &acme, "acme-one", &client.add(50)).await.status, 200);
    let over = commit(&site, &acme, "acme-one", &client.add(50)).await;
    assert_eq!(reached(&over), (507, "max-bytes".into()));
    let copy =
        ask(&site, &acme, "POST", &format!("{kept}/restore"), r#"{"into": "acme-copy"}"#).await;
    assert_eq!(reached(&copy), (507, "max-bytes".into()));
    assert_eq!(ask(&site, &acme, "DELETE", kept, "").await.status, 204);
    assert_eq!(commit(&site, &acme, "acme-one", &client.add(50)).await.status, 200);
}

#[tokio::test]
async fn limits_that_mean_nothing_are_refused() {
    let (_folder, file) = place();
    let burst = serde_json::from_str::<Limits>(r#"{"burst": 3}"#).unwrap();
    let request = TokenRequest {
        name: "test".into(),
        collections: vec!["*".into()],
        verbs: vec![Verb::Query],
        lifetime: None,
        limits: burst,
    };
    let error = tokens::create(&file, request).err().unwrap().to_string();
    assert!(error.contains("a burst needs a rate"), "{error}");
    for bad in [r#"{"rate": "0/s"}"#, r#"{"queries_per_day": 0}"#, r#"{"max_byte": 1}"#] {
        assert!(serde_json::from_str::<Limits>(bad).is_err(), "{bad}");
    }
}
