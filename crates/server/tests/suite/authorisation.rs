//! Every endpoint of the OpenAPI document times every sort of token: who is let in, and how the
//! others are told.

use crate::support::http::{NO_VALUE, Site, documented, edit_token, make_token};
use axum::body::Body;
use ciphervec_server::auth::{Verb, tokens};
use std::collections::BTreeMap;

/// Who may use an endpoint. A new endpoint without a row here fails the test.
const ROWS: [(&str, &str, &str); 55] = [
    ("GET", "/healthz", "public"),
    ("GET", "/readyz", "public"),
    ("GET", "/openapi.json", "public"),
    ("GET", "/v1", "public"),
    ("GET", "/metrics", "metrics"),
    ("GET", "/v1/token", "any"),
    ("GET", "/v1/tokens", "operator"),
    ("GET", "/v1/collections", "any"),
    ("PUT", "/v1/collections/{name}", "admin"),
    ("GET", "/v1/collections/{name}", "read query admin"),
    ("DELETE", "/v1/collections/{name}", "admin"),
    ("POST", "/v1/collections/{name}/commits", "write append admin"),
    ("POST", "/v1/collections/{name}/query", "query admin"),
    ("GET", "/v1/collections/{name}/query", "query admin"),
    ("PUT", "/v1/collections/{name}/query-keys", "query admin"),
    ("GET", "/v1/collections/{name}/fetch/{blob}", "read admin"),
    ("PUT", "/v1/collections/{name}/fetch-keys", "read admin"),
    ("POST", "/v1/collections/{name}/fetch/{blob}/{table}", "read admin"),
    ("GET", "/v1/collections/{name}/attachments/{attachment}", "read admin"),
    ("GET", "/v1/collections/{name}/segments/{segment}/{blob}", "read admin"),
    ("POST", "/v1/collections/{name}/blobs", "read admin"),
    ("POST", "/v1/collections/{name}/uploads", "write append admin"),
    ("GET", "/v1/collections/{name}/uploads/{upload}", "write append admin"),
    ("PATCH", "/v1/collections/{name}/uploads/{upload}", "write append admin"),
    ("DELETE", "/v1/collections/{name}/uploads/{upload}", "write append admin"),
    ("POST", "/v1/collections/{name}/compact", "admin"),
    ("POST", "/v1/collections/{name}/purge", "admin"),
    ("POST", "/v1/collections/{name}/verify", "admin"),
    ("GET", "/v1/collections/{name}/snapshots", "admin"),
    ("PUT", "/v1/collections/{name}/snapshots/{snapshot}", "admin"),
    ("DELETE", "/v1/collections/{name}/snapshots/{snapshot}", "admin"),
    ("POST", "/v1/collections/{name}/snapshots/{snapshot}/restore", "admin"),
    ("GET", "/v1/tables", "any"),
    ("PUT", "/v1/tables/{name}", "admin"),
    ("GET", "/v1/tables/{name}", "read query admin"),
    ("DELETE", "/v1/tables/{name}", "admin"),
    ("PUT", "/v1/tables/{name}/keys", "query admin"),
    ("POST", "/v1/tables/{name}/lookup/{table}", "query admin"),
    ("POST", "/v1/tables/{name}/uploads", "admin"),
    ("GET", "/v1/tables/{name}/uploads/{upload}", "admin"),
    ("PATCH", "/v1/tables/{name}/uploads/{upload}", "admin"),
    ("DELETE", "/v1/tables/{name}/uploads/{upload}", "admin"),
    ("GET", "/v1/programs", "any"),
    ("PUT", "/v1/programs/{name}", "admin"),
    ("GET", "/v1/programs/{name}", "run keep admin"),
    ("DELETE", "/v1/programs/{name}", "admin"),
    ("POST", "/v1/programs/{name}/run", "run admin"),
    ("PUT", "/v1/programs/{name}/keys/{key}", "keep admin"),
    ("DELETE", "/v1/programs/{name}/keys/{key}", "keep admin"),
    ("PUT", "/v1/programs/{name}/keys/{key}/inputs/{input}", "keep admin"),
    ("DELETE", "/v1/programs/{name}/keys/{key}/inputs/{input}", "keep admin"),
    ("POST", "/v1/programs/{name}/uploads", "keep admin"),
    ("GET", "/v1/programs/{name}/uploads/{upload}", "keep admin"),
    ("PATCH", "/v1/programs/{name}/uploads/{upload}", "keep admin"),
    ("DELETE", "/v1/programs/{name}/uploads/{upload}", "keep admin"),
];

#[tokio::test]
async fn every_endpoint_lets_in_whom_it_should_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let audit = folder.path().join("audit.jsonl");
    let token = |collection: &str, verb| make_token(&file, collection, &[verb]);
    let bearer = |new: &tokens::NewToken| format!("Bearer {}", *new.token);
    let (expired, revoked, future) =
        (token("*", Verb::Admin), token("*", Verb::Admin), token("*", Verb::Admin));
    let mut senders = vec![
        ("nobody", None),
        ("garbled", Some("Bearer cv1_garbled".to_owned())),
        ("unknown", Some(format!("Bearer cv1_{}", "A".repeat(43)))),
        ("basic", Some(format!("Basic {}", *token("*", Verb::Admin).token))),
        ("expired", Some(bearer(&expired))),
        ("revoked", Some(bearer(&revoked))),
        ("future", Some(bearer(&future))),
        ("elsewhere", Some(bearer(&token("text", Verb::Admin)))),
        ("longer name", Some(bearer(&token("faces2", Verb::Admin)))),
        ("prefix elsewhere", Some(bearer(&token("text*", Verb::Admin)))),
    ];
    for verb in [
        Verb::Read,
        Verb::Query,
        Verb::Append,
        Verb::Write,
        Verb::Run,
        Verb::Keep,
        Verb::Admin,
        Verb::Metrics,
    ] {
        senders.push((verb.as_str(), Some(bearer(&token("faces", verb)))));
    }
    senders.push(("admin of all", Some(bearer(&token("*", Verb::Admin)))));
    senders.push(("query of prefix", Some(bearer(&token("fac*", Verb::Query)))));
    edit_token(&file, &expired.entry.id, "expires", "2001-01-01T00:00:00Z");
    edit_token(&file, &future.entry.id, "created", "2999-01-01T00:00:00Z");
    tokens::revoke(&file, &revoked.entry.id).unwrap();
    let site =
        Site::on(folder, &["--tokens", file.to_str().unwrap(), "--audit", audit.to_str().unwrap()]);
    let rows: BTreeMap<_, _> = ROWS
        .iter()
        .map(|(method, path, who)| ((method.to_string(), path.to_string()), *who))
        .collect();
    let endpoints = documented();
    assert_eq!(
        endpoints.len(),
        rows.len(),
        "an endpoint without a row, or a row without an endpoint"
    );
    let mut refusals: BTreeMap<u16, String> = BTreeMap::new();
    for (method, path) in endpoints {
        let who = rows.get(&(method.clone(), path.clone()));
        let who = who.unwrap_or_else(|| panic!("{method} {path} has no row"));
        let concrete = path
            .replace("{name}", "faces")
            .replace("{segment}", &"0".repeat(32))
            .replace("{upload}", &"0".repeat(32))
            .replace("{attachment}", "evaluation")
            .replace("{blob}", "rows")
            .replace("{table}", &"0".repeat(32))
            .replace("{snapshot}", "monday")
            .replace("{key}", &"0".repeat(16))
            .replace("{input}", "gallery");
        for (sender, authorization) in &senders {
            let live = !matches!(
                *sender,
                "nobody" | "garbled" | "unknown" | "basic" | "expired" | "revoked" | "future"
            );
            let verb = match *sender {
                "admin of all" => "admin",
                "query of prefix" => "query",
                other => other,
            };
            let allowed = match *who {
                "public" => true,
                "any" => live,
                "operator" => *sender == "admin of all",
                "metrics" => verb == "metrics" || *sender == "admin of all",
                verbs => verbs.split(' ').any(|one| one == verb),
            };
            let headers: Vec<_> =
                authorization.iter().map(|value| ("authorization", value.as_str())).collect();
            let before = lines(&audit);
            let reply = site.send(&method, &concrete, &headers, Body::empty()).await;
            let what = format!("{method} {path} by {sender}: {}", reply.status);
            let noted = lines(&audit).split_off(before.len());
            // Only who may query a collection that is there is told the id of its token.
            assert!(!reply.headers.contains_key("ciphervec-token"), "{what}");
            if *who == "public" {
                assert!(noted.is_empty(), "{what}");
                assert!(reply.status.is_success(), "{what}");
                continue;
            }
            assert_eq!(noted.len(), 1, "{what}");
            assert_eq!(noted[0]["outcome"] == "denied", !allowed, "{what}: {}", noted[0]);
            // Who may do something with a collection, or a program, is told what it lacks.
            let known = if path.starts_with("/v1/programs") {
                ["run", "keep", "admin"].contains(&verb)
            } else {
                ["read", "query", "append", "write", "admin"].contains(&verb)
            };
            let expected = match (live, known && path.contains("{name}")) {
                (false, _) => 401,
                (true, true) => 403,
                (true, false) => 404,
            };
            if !allowed && expected == 403 {
                assert_eq!(reply.status, expected, "{what}");
                let detail = reply.json()["detail"].to_string();
                assert!(detail.contains(who.split(' ').next().unwrap()), "{what}: {detail}");
            } else if !allowed {
                assert_eq!(reply.status, expected, "{what}");
                // All refusals of a status are one and the same, whatever the reason.
                let body = String::from_utf8(reply.body.to_vec()).unwrap();
                assert_eq!(*refusals.entry(expected).or_insert(body.clone()), body, "{what}");
            } else {
                assert_ne!(reply.status, 401, "{what}");
                assert!(reply.status.as_u16() < 500, "{what}");
            }
        }
    }
    // A collection that is not there looks like one that is not for the token.
    let admin =
        senders.iter().find(|(name, _)| *name == "admin of all").unwrap().1.clone().unwrap();
    let missing =
        site.send("GET", "/v1/collections/nope", &[("authorization", &admin)], Body::empty()).await;
    assert_eq!(Some(&String::from_utf8(missing.body.to_vec()).unwrap()), refusals.get(&404));
    // The log names tokens by id, and never holds one.
    let log = std::fs::read_to_string(&audit).unwrap();
    for (_, authorization) in senders {
        let secret = authorization.unwrap_or_default();
        let secret = secret.rsplit(' ').next().unwrap_or_default().to_owned();
        assert!(secret.is_empty() || !log.contains(&secret));
    }
}

#[tokio::test]
async fn a_token_that_is_revoked_stops_at_the_next_request_and_two_tokens_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let new = make_token(&file, "*", &[Verb::Admin]);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let bearer = format!("Bearer {}", *new.token);
    let auth = ("authorization", bearer.as_str());
    assert_eq!(site.send("GET", "/v1/collections", &[auth], Body::empty()).await.status, 200);
    let twice = site.send("GET", "/v1/collections", &[auth, auth], Body::empty()).await;
    assert_eq!(twice.status, 401);
    tokens::revoke(&file, &new.entry.id).unwrap();
    assert_eq!(site.send("GET", "/v1/collections", &[auth], Body::empty()).await.status, 401);
    std::fs::write(&file, "{").unwrap();
    let unreadable = site.send("GET", "/v1/collections", &[auth], Body::empty()).await;
    assert_eq!(unreadable.status, 503);
    assert_eq!(unreadable.header("retry-after"), "5");
}

#[tokio::test]
async fn a_snapshot_goes_only_where_the_token_is_admin_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let new = make_token(&file, "faces", &[Verb::Admin]);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let bearer = format!("Bearer {}", *new.token);
    let path = "/v1/collections/faces/snapshots/monday/restore";
    let body = r#"{"into":"text"}"#;
    assert_eq!(site.send("POST", path, &[("authorization", &bearer)], body).await.status, 404);
}

fn lines(path: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn without_tokens_only_requests_to_and_from_this_machine_are_answered() {
    let site = Site::open(&[]);
    let send = async |headers: &[(&str, &str)], path: &str| {
        site.send("GET", path, headers, Body::empty()).await.status.as_u16()
    };
    let local =
        ["localhost", "LOCALHOST:8707", "127.0.0.1", "127.0.0.1:8707", "127.8.8.8", "[::1]:8707"];
    for host in local {
        assert_eq!(send(&[("host", host)], "/v1/collections").await, 200, "{host}");
        let origin = format!("http://{host}");
        let headers = [("host", host), ("origin", &*origin)];
        assert_eq!(send(&headers, "/v1/collections").await, 200, "{host}");
    }
    let foreign = [
        "evil.example",
        "evil.example:8707",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "[::2]",
        "user@localhost@evil.example",
        "",
        "a b",
        "[::1",
        "0x7f000001",
    ];
    for host in foreign {
        for path in ["/v1/collections", "/metrics", "/v1/collections/faces"] {
            assert_eq!(send(&[("host", host)], path).await, 403, "{host:?}");
            assert_eq!(send(&[("host", "localhost"), ("host", host)], path).await, 403, "{host:?}");
        }
        let origin = format!("https://{host}");
        let headers = [("host", "localhost"), ("origin", &*origin)];
        assert_eq!(send(&headers, "/v1/collections").await, 403, "{origin:?}");
        // An address in the request line, as HTTP/2 has it, counts for more than a header.
        if let Ok(uri) = format!("http://{host}/v1/collections").parse::<axum::http::Uri>() {
            let headers = [("host", "localhost")];
            assert_eq!(send(&headers, &uri.to_string()).await, 403, "{uri}");
        }
    }
    assert_eq!(send(&[("host", "localhost"), ("origin", "null")], "/v1/collections").await, 403);
    assert_eq!(send(&[("host", NO_VALUE)], "/v1/collections").await, 403, "no Host at all");
    // What a proxy on this machine passes on comes from anywhere.
    let proxied = [
        ("forwarded", "for=192.0.2.1"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-host", "db.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded", ""),
        ("x-real-ip", "192.0.2.1"),
        ("via", "1.1 proxy"),
    ];
    for header in proxied {
        assert_eq!(
            send(&[("host", "localhost"), header], "/v1/collections").await,
            403,
            "{header:?}"
        );
        assert_eq!(send(&[header], "http://localhost/v1/collections").await, 403, "{header:?}");
    }
    assert_eq!(send(&[("host", "evil.example")], "/healthz").await, 200, "which is public");
    assert_eq!(send(&[], "http://127.0.0.1:8707/v1/collections").await, 200);
    let file = site.folder.path().join("tokens.json");
    let token = format!("Bearer {}", *make_token(&file, "*", &[Verb::Read]).token);
    let guarded = Site::open(&["--tokens", file.to_str().unwrap()]);
    let headers =
        [("host", "db.example"), ("origin", "https://app.example"), ("authorization", &*token)];
    let answer = guarded.send("GET", "/v1/collections", &headers, Body::empty()).await;
    assert_eq!(answer.status, 200, "a token says enough");
    let headers = [proxied.as_slice(), &[("authorization", &*token)]].concat();
    let answer = guarded.send("GET", "/v1/collections", &headers, Body::empty()).await;
    assert_eq!(answer.status, 200, "also through a proxy");
}
