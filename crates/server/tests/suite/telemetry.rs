//! Spans and measurements, as a collector gets them: from a request to its scan, under the sender's trace, and nothing of
//! what was sent.

use crate::support::http::{Site, frame, make_token};
use crate::support::{Client, KINDS};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use ciphervec_owner::store::Change;
use ciphervec_server::auth::Verb;
use ciphervec_server::http::App;
use std::sync::{Arc, Mutex};

type Taken = Arc<Mutex<Vec<(String, Bytes)>>>;

async fn collector() -> (String, Taken) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = Taken::default();
    let take = |State(taken): State<Taken>, request: Request| async move {
        let path = request.uri().path().to_owned();
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        taken.lock().unwrap().push((path, body));
    };
    let router = Router::new().fallback(take).with_state(taken.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, taken)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_routes_sizes_and_times_and_nothing_that_was_sent() {
    let (url, taken) = collector().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let new = make_token(&file, "*", &[Verb::Admin]);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap(), "--otlp", &url]);
    let bearer = format!("Bearer {}", *new.token);
    let (trace, stranger) = ([0xa7; 16], [0xb8; 16]);
    let parent = |trace: [u8; 16]| {
        format!("00-{}-{}-00", ciphervec_server::hex::show(&trace), "c9".repeat(8))
    };
    let (of_trace, of_stranger) = (parent(trace), parent(stranger));
    let mut client = Client::new("planted-collection", KINDS[1]);
    let base = [
        ("authorization", bearer.as_str()),
        ("traceparent", of_trace.as_str()),
        ("tracestate", "planted=tracestate"),
        ("x-request-id", "planted-request-id"),
        ("user-agent", "planted-agent"),
        ("baggage", "planted=baggage"),
    ];
    let path = "/v1/collections/planted-collection";
    let change = Change { set_meta: Some(client.meta()), ..Change::default() };
    assert_eq!(site.send("PUT", path, &base, frame(&change)).await.status, 201);
    let rows = client.add(20);
    let commits = format!("{path}/commits");
    assert_eq!(site.send("POST", &commits, &base, frame(&rows)).await.status, 200);
    let query = client.query(1, 1).to_bytes().to_vec();
    let asked = site.send("POST", &format!("{path}/query"), &base, query.clone()).await;
    assert_eq!(asked.status, 200);
    assert!(asked.header("server-timing").starts_with("queue;dur="));
    // Whoever has no token belongs to no trace, and no path or method of his own goes out.
    let none = [("authorization", "Bearer planted-token"), ("traceparent", of_stranger.as_str())];
    assert_eq!(site.send("GET", path, &none, "").await.status, 401);
    assert_eq!(site.send("GET", "/planted-path", &none, "").await.status, 404);
    assert_eq!(site.send("PLANTED", "/planted-path?planted=query", &none, "").await.status, 404);
    let app = site.app.clone();
    tokio::task::spawn_blocking(move || app.close()).await.unwrap();
    let taken = taken.lock().unwrap();
    let of = |path: &str| -> Vec<u8> {
        taken.iter().filter(|(of, _)| of == path).flat_map(|(_, body)| body.to_vec()).collect()
    };
    let (spans, measured) = (of("/v1/traces"), of("/v1/metrics"));
    for part in [
        &trace[..],
        b"POST /v1/collections/{name}/query",
        b"scan",
        b"queue",
        b"http.request.body.size",
    ] {
        let seen: Vec<_> = taken.iter().map(|(path, body)| (path, body.len())).collect();
        assert!(has(&spans, part), "{} in {seen:?}", String::from_utf8_lossy(part));
    }
    for part in ["http.server.request.duration", "ciphervec.stage.duration", "ciphervec.sent"] {
        assert!(has(&measured, part.as_bytes()), "{part}");
    }
    let random = |bytes: &[u8]| bytes[bytes.len() / 2..][..16].to_vec();
    for planted in [
        b"planted".to_vec(),
        b"PLANTED".to_vec(),
        stranger.to_vec(),
        new.token.as_bytes().to_vec(),
        new.entry.id.as_bytes().to_vec(),
        random(&query),
        random(&rows.add[0].blobs[0].1),
        random(&asked.body),
        rows.add[0].id.to_vec(),
    ] {
        let shown = String::from_utf8_lossy(&planted).into_owned();
        assert!(!has(&spans, &planted) && !has(&measured, &planted), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_holds_nobody_up_and_a_wrong_address_is_said() {
    let site = Site::open(&["--otlp", "http://127.0.0.1:9"]);
    for _ in 0..100 {
        assert_eq!(site.send("GET", "/v1/collections", &[], "").await.status, 200);
    }
    for bad in ["", "localhost:4318", "ftp://localhost", "http://"] {
        let folder = tempfile::tempdir().unwrap();
        let options = crate::support::http::options(folder.path(), &["--otlp", bad]);
        let error = App::open(&options).err().unwrap();
        assert!(error.contains("takes the URL of a collector"), "{bad}: {error}");
    }
}
