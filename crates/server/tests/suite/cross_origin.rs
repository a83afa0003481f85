//! Pages of other sites: those that the operator listed may ask and read, and are asked for a token
//! like everyone; others get no header that would let them.

use crate::support::http::{Reply, Site, make_token};
use axum::body::Body;
use ciphervec_server::auth::Verb;

const APP: &str = "https://app.example";

fn guarded(extra: &[&str]) -> (Site, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let token = format!("Bearer {}", *make_token(&file, "*", &[Verb::Admin]).token);
    let site = Site::on(folder, &[&["--tokens", file.to_str().unwrap()], extra].concat());
    (site, token)
}

async fn preflight(site: &Site, origin: &str, method: &str, headers: &str) -> Reply {
    let asked = [
        ("origin", origin),
        ("access-control-request-method", method),
        ("access-control-request-headers", headers),
    ];
    site.send("OPTIONS", "/v1/collections/faces/commits", &asked, Body::empty()).await
}

#[tokio::test]
async fn without_a_list_no_other_site_is_answered() {
    let (site, token) = guarded(&[]);
    let refused = preflight(&site, APP, "POST", "authorization").await;
    assert_eq!(refused.status, 405);
    assert!(!refused.headers.contains_key("access-control-allow-origin"));
    let headers = [("origin", APP), ("authorization", token.as_str())];
    let answer = site.send("GET", "/v1/collections", &headers, Body::empty()).await;
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_listed_site_may_send_what_the_interface_has_and_read_what_it_answers() {
    let (site, token) =
        guarded(&["--allow-origin", APP, "--allow-origin", "http://localhost:5173"]);
    for origin in [APP, "http://localhost:5173"] {
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
            let sent = "authorization,ciphervec-api,content-type,idempotency-key,if-match,range,upload-offset";
            let allowed = preflight(&site, origin, method, sent).await;
            assert_eq!(allowed.status, 200);
            assert_eq!(allowed.header("access-control-allow-origin"), origin);
            assert!(allowed.header("access-control-allow-methods").contains(method));
            let headers = allowed.header("access-control-allow-headers");
            for one in sent.split(',') {
                assert!(
                    headers.split(',').any(|allowed| allowed.trim() == one),
                    "{one}: {headers}"
                );
            }
            assert_eq!(allowed.header("access-control-max-age"), "600");
            // Cookies and certificates of the browser's are never asked for.
            assert!(!allowed.headers.contains_key("access-control-allow-credentials"));
            let mut vary = allowed.headers.get_all("vary").iter();
            assert!(vary.any(|value| value.to_str().unwrap().contains("origin")));
        }
    }
    let headers = [("origin", APP), ("authorization", token.as_str())];
    let answer = site.send("GET", "/v1/collections", &headers, Body::empty()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), APP);
    let exposed = answer.header("access-control-expose-headers").to_owned();
    for name in [
        "etag",
        "ciphervec-version",
        "ciphervec-head",
        "server-timing",
        "retry-after",
        "upload-offset",
        "x-request-id",
    ] {
        assert!(exposed.split(',').any(|one| one.trim() == name), "{name}: {exposed}");
    }
    // A page reads why it was refused, too, and has no token but the one it shows.
    let refused = site.send("GET", "/v1/collections", &[("origin", APP)], Body::empty()).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), APP);
}

#[tokio::test]
async fn other_sites_and_other_ways_to_write_a_listed_one_get_nothing() {
    let (site, token) = guarded(&["--allow-origin", APP]);
    for origin in [
        "https://evil.example",
        "https://app.example.evil.example",
        "https://evil.example/?https://app.example",
        "http://app.example",
        "https://app.example:8443",
        "https://APP.example",
        "https://app.example/",
        "https://sub.app.example",
        "null",
        "*",
        "",
        "https://app.example, https://evil.example",
    ] {
        let asked = preflight(&site, origin, "POST", "authorization").await;
        assert!(!asked.headers.contains_key("access-control-allow-origin"), "{origin}");
        let headers = [("origin", origin), ("authorization", token.as_str())];
        let answer = site.send("GET", "/v1/collections", &headers, Body::empty()).await;
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{origin}");
    }
}

#[tokio::test]
async fn without_tokens_a_listed_site_of_another_machine_is_still_refused() {
    let site = Site::open(&["--allow-origin", APP, "--allow-origin", "http://localhost:5173"]);
    let ask = async |origin: &str| {
        site.send("GET", "/v1/collections", &[("origin", origin)], Body::empty()).await
    };
    assert_eq!(ask(APP).await.status, 403);
    let local = ask("http://localhost:5173").await;
    assert_eq!(local.status, 200);
    assert_eq!(local.header("access-control-allow-origin"), "http://localhost:5173");
}
