//! The console's files as browsers get them: policy, types, lengths of life, encodings; and what it
//! asks for that others do not: tokens without secrets, and a verification as it goes on.

use crate::support::http::{NO_VALUE, Reply, Site, frame, make_token};
use crate::support::{Client, KINDS};
use axum::body::Body;
use ciphervec_owner::store::Change;
use ciphervec_server::auth::{Verb, tokens};
use std::path::Path;

async fn get(site: &Site, path: &str, headers: &[(&str, &str)]) -> Reply {
    site.send("GET", path, headers, Body::empty()).await
}

/// Files of the console that this binary was built with, by name; none without.
fn built() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console/assets");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".br")).collect()
}

#[tokio::test]
async fn the_page_may_load_nothing_from_elsewhere_and_nobody_may_frame_it() {
    let site = Site::open(&[]);
    let page = get(&site, "/", &[]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    let directives: Vec<&str> = policy.split(';').map(str::trim).collect();
    for expected in [
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(directives.contains(&expected), "{expected}: {policy}");
    }
    for open in ["'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "data:", "blob:", "*"] {
        assert!(policy.split([' ', ';']).all(|word| word != open), "{open}: {policy}");
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(!text.contains("<style") && !text.contains("style="), "{text}");
    for script in text.split("<script").skip(1) {
        assert!(script.contains("src=\""), "an inline script: {text}");
    }
    assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    if built().is_empty() {
        assert!(text.contains("make web"), "{text}");
    }
}

#[tokio::test]
async fn a_browser_that_has_the_page_is_told_so() {
    let site = Site::open(&[]);
    let page = get(&site, "/", &[]).await;
    let etag = page.header("etag").to_owned();
    for held in [etag.clone(), format!("W/\"other\", {etag}"), "*".to_owned()] {
        let same = get(&site, "/", &[("if-none-match", &held)]).await;
        assert_eq!((same.status.as_u16(), same.body.len()), (304, 0), "{held}");
        assert_eq!(same.header("etag"), etag);
        assert!(same.headers.contains_key("content-security-policy"));
    }
    assert_eq!(get(&site, "/", &[("if-none-match", "W/\"other\"")]).await.status, 200);
    let head = site.send("HEAD", "/", &[], Body::empty()).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), page.body.len().to_string());
    assert_eq!(site.send("POST", "/", &[], Body::empty()).await.status, 405);
}

#[tokio::test]
async fn assets_have_types_last_for_ever_and_come_short_to_who_takes_it() {
    let site = Site::open(&[]);
    for name in built() {
        let path = format!("/assets/{name}");
        let asset = get(&site, &path, &[]).await;
        assert_eq!(asset.status, 200, "{name}");
        let kind = match name.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "wasm" => "application/wasm",
            "svg" => "image/svg+xml",
            "txt" => "text/plain; charset=utf-8",
            other => panic!("{other} has no type here"),
        };
        assert_eq!(asset.header("content-type"), kind, "{name}");
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(asset.header("vary"), "accept-encoding");
        assert!(asset.headers.contains_key("content-security-policy"), "workers have their own");
        assert!(!asset.headers.contains_key("content-encoding"), "{name}");
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(&path[1..]);
        assert_eq!(asset.body, std::fs::read(&stored).unwrap(), "{name}");
        let Ok(short) = std::fs::read(format!("{}.br", stored.display())) else { continue };
        assert!(short.len() < asset.body.len(), "{name}");
        for accepted in ["br", "gzip, deflate, br, zstd", "gzip;q=1.0, BR;q=0.5"] {
            let asset = get(&site, &path, &[("accept-encoding", accepted)]).await;
            assert_eq!(asset.header("content-encoding"), "br", "{name} {accepted}");
            assert_eq!(asset.body, short, "{name} {accepted}");
        }
        for refused in ["gzip", "br;q=0", "brotli", ""] {
            let asset = get(&site, &path, &[("accept-encoding", refused)]).await;
            assert!(!asset.headers.contains_key("content-encoding"), "{name} {refused}");
        }
    }
    // Only what was built in is there, whatever the name.
    for missing in [
        "/assets/nothing.js",
        "/assets/",
        "/assets/..%2Findex.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2F..%2F..%2Fetc%2Fpasswd",
        "/assets/%00",
        "/index.html",
        "/.gitignore",
        "/assets/.gitignore",
    ] {
        assert_eq!(get(&site, missing, &[]).await.status, 404, "{missing}");
    }
}

#[tokio::test]
async fn it_can_be_switched_off_and_needs_no_token_to_load() {
    let off = Site::open(&["--no-console"]);
    for path in ["/", "/assets/main.js"] {
        assert_eq!(get(&off, path, &[]).await.status, 404, "{path}");
    }
    assert_eq!(get(&off, "/healthz", &[]).await.status, 200);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    make_token(&file, "*", &[Verb::Admin]);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    assert_eq!(get(&site, "/", &[]).await.status, 200);
    assert_eq!(get(&site, "/v1/token", &[]).await.status, 401);
}

#[tokio::test]
async fn tokens_are_listed_for_operators_without_what_lets_anybody_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let operator = make_token(&file, "*", &[Verb::Admin]);
    let device = make_token(&file, "faces", &[Verb::Append]);
    let revoked = make_token(&file, "fac*", &[Verb::Metrics]);
    tokens::revoke(&file, &revoked.entry.id).unwrap();
    let stored = std::fs::read_to_string(&file).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let ask = async |new: &tokens::NewToken, path: &str| {
        get(&site, path, &[("authorization", &format!("Bearer {}", *new.token))]).await
    };
    let listed = ask(&operator, "/v1/tokens").await;
    let text = String::from_utf8(listed.body.to_vec()).unwrap();
    for (entry, new) in
        stored["tokens"].as_array().unwrap().iter().zip([&operator, &device, &revoked])
    {
        assert!(!text.contains(entry["hash"].as_str().unwrap()), "{text}");
        assert!(!text.contains(&new.token[4..]), "{text}");
    }
    let json = listed.json();
    assert_eq!(json["required"], true);
    let states: Vec<_> =
        json["tokens"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["live", "live", "revoked"]);
    assert_eq!(json["tokens"][1]["collections"], serde_json::json!(["faces"]));
    assert_eq!(json["tokens"][1]["verbs"], serde_json::json!(["append"]));
    assert_eq!(ask(&device, "/v1/tokens").await.status, 404);
    // Everyone sees their own.
    let own = ask(&device, "/v1/token").await.json();
    assert_eq!((&own["operator"], &own["metrics"]), (&false.into(), &false.into()));
    assert_eq!(own["token"]["id"], device.entry.id);
    assert_eq!(ask(&operator, "/v1/token").await.json()["operator"], true);
    // A file that is damaged lets nobody in, and shows nothing.
    std::fs::write(&file, "{").unwrap();
    assert_eq!(ask(&operator, "/v1/tokens").await.status, 503);
    let open = Site::open(&[]);
    let own = get(&open, "/v1/token", &[]).await.json();
    assert_eq!((&own["required"], &own["operator"]), (&false.into(), &true.into()));
    assert_eq!(own.get("token"), None);
    let none = get(&open, "/v1/tokens", &[]).await.json();
    assert_eq!(none, serde_json::json!({"required": false, "tokens": []}));
    let stranger = get(&open, "/v1/tokens", &[("host", NO_VALUE)]).await;
    assert_eq!(stranger.status, 403);
}

#[tokio::test]
async fn a_verification_says_how_far_it_has_come_and_finds_the_same() {
    let site = Site::open(&[]);
    let mut client = Client::new("faces", KINDS[1]);
    let change = Change { set_meta: Some(client.meta()), ..Change::default() };
    assert_eq!(site.send("PUT", "/v1/collections/faces", &[], frame(&change)).await.status, 201);
    let commits = "/v1/collections/faces/commits";
    assert_eq!(site.send("POST", commits, &[], frame(&client.add(500))).await.status, 200);
    let path = "/v1/collections/faces/verify";
    let verify =
        async |headers: &[(&str, &str)]| site.send("POST", path, headers, Body::empty()).await;
    let lines = async || {
        let reply = verify(&[("accept", "application/x-ndjson")]).await;
        assert_eq!(reply.header("content-type"), "application/x-ndjson");
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(text.ends_with('\n'));
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<serde_json::Value>>()
    };
    let whole = verify(&[]).await.json();
    assert_eq!(whole["sound"], true);
    let told = lines().await;
    let (found, progress) = told.split_last().unwrap();
    assert_eq!(*found, whole);
    for line in progress {
        assert!(line["done"].as_u64() <= line["total"].as_u64(), "{line}");
    }
    // One bit of the rows.
    let segments = site.data().join("faces");
    let mut files: Vec<_> = walk(&segments);
    files.sort_by_key(|file| std::fs::metadata(file).unwrap().len());
    let largest = files.last().unwrap();
    let mut bytes = std::fs::read(largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(largest, bytes).unwrap();
    let told = lines().await;
    let found = told.last().unwrap();
    assert_eq!(found["sound"], false);
    let named = largest.file_name().unwrap().to_str().unwrap();
    assert_eq!(found["problems"][0]["file"], named);
    let missing = site
        .send(
            "POST",
            "/v1/collections/nope/verify",
            &[("accept", "application/x-ndjson")],
            Body::empty(),
        )
        .await;
    assert_eq!(missing.status, 404);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
