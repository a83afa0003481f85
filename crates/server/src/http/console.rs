//! The console: pages from files in the binary, under a policy that lets a page load nothing from elsewhere.
//!
//! `make web` fills `console/`, and `build.rs` lists it; without it one page says how to build it. The
//! files hold no data: what a page shows, it asks for with the token that it was given.

use super::app::App;
use super::problem::Problem;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use std::collections::HashMap;
use std::sync::Arc;

/// A file of the console.
struct Asset {
    /// Its path under `/`.
    path: &'static str,
    /// Its media type.
    media_type: &'static str,
    /// Its bytes.
    bytes: &'static [u8],
    /// The same by brotli, where that is shorter.
    brotli: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/console.rs"));

const PAGE: &str = "index.html";
/// Hashes are in the names of what lies here, so that a name always has the same bytes.
const HASHED: &str = "assets/";
/// What the page may load and do: scripts, workers, styles and answers of this origin, WebAssembly,
/// and no markup from text but by the one policy that checks addresses of workers.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
    style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types default";
/// What every file carries. Isolation from other origins also gives the page shared memory.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
];
const MISSING: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>ciphervec</title>
<main>
<h1>The server runs, without its console</h1>
<p>This program was built without the page that shows collections, tokens and load. To build it, with Node 20 or newer, run in the repository:</p>
<pre>make web
make wheel</pre>
<p>The HTTP interface is described in <a href=\"/openapi.json\">/openapi.json</a>.</p>
</main>
</html>
";

/// What is served, by path.
struct Files(HashMap<&'static str, (Asset, HeaderValue)>);

/// The routes of the console.
pub fn pages() -> Router<Arc<App>> {
    let mut assets: Vec<Asset> = assets();
    if assets.iter().all(|asset| asset.path != PAGE) {
        let bytes = MISSING.as_bytes();
        let media_type = "text/html; charset=utf-8";
        assets = vec![Asset { path: PAGE, media_type, bytes, brotli: None }];
    }
    let files = assets.into_iter().map(|asset| {
        let etag = format!("W/\"{}\"", blake3::hash(asset.bytes).to_hex());
        // Hex digits are a header's. Weak, since bytes differ with the encoding.
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("W/\"\""));
        (asset.path, (asset, etag))
    });
    let files = Arc::new(Files(files.collect()));
    let page = files.clone();
    Router::new()
        .route("/", get(async move |headers: HeaderMap| page.answer(PAGE, &headers)))
        .route(
            "/assets/{file}",
            get(
                async move |State(_): State<Arc<App>>,
                            Path(file): Path<String>,
                            headers: HeaderMap| {
                    files.answer(&format!("{HASHED}{file}"), &headers)
                },
            ),
        )
}

impl Files {
    fn answer(&self, path: &str, asked: &HeaderMap) -> Result<Response, Problem> {
        let (asset, etag) = self.0.get(path).ok_or_else(Problem::not_found)?;
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let lasting = path.starts_with(HASHED);
        let keep = if lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
        headers.insert(ETAG, etag.clone());
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if mentions(asked, &IF_NONE_MATCH, |held| held == "*" || held.as_bytes() == etag.as_bytes())
        {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
        let short = asset.brotli.filter(|_| mentions(asked, &ACCEPT_ENCODING, takes_brotli));
        if short.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
        *response.body_mut() = Body::from(Bytes::from_static(short.unwrap_or(asset.bytes)));
        Ok(response)
    }
}

/// Whether one of the values of a header, separated by commas, is `wanted`.
fn mentions(headers: &HeaderMap, name: &HeaderName, wanted: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| wanted(one.trim()))
}

/// RFC 9110, section 12.4.2: a weight of zero means no.
fn takes_brotli(coding: &str) -> bool {
    let mut parts = coding.split(';').map(str::trim);
    let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("br"));
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f32>);
    named && weight.is_ok_and(|weight| weight > 0.0)
}
