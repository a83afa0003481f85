//! Around every request: gives its answer an id and a version, logs and counts it.
//!
//! A log line has the route, never the headers, and never a path that matched none.

use super::app::App;
use super::body::{self, Meter, Rest};
use super::headers::{API, API_HEADER, Stages};
use super::problem::{Counted, Problem};
use crate::hex;
use crate::metrics::RequestLabels;
use crate::telemetry::{self, Answered};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MAX_ID: usize = 64;
/// Bytes of a refused body that strangers may still send, and how long the rest of any may take.
const STRANGERS: u64 = 64 << 10;
const REST_PATIENCE: Duration = Duration::from_secs(5);

/// Marks the answer to a request whose token was no good.
#[derive(Clone, Copy)]
pub struct Stranger;

/// Marks the answer to a request whose token was enough for what it asked.
#[derive(Clone, Copy)]
pub struct Admitted;

/// What a request is called in logs.
#[derive(Clone, Default)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The client's, if it is one, or a random one.
    fn of(headers: &HeaderMap) -> Self {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let sent = headers.get(&ID_HEADER).and_then(|value| value.to_str().ok());
        let sent =
            sent.filter(|id| (1..=MAX_ID).contains(&id.len()) && id.as_bytes().iter().all(plain));
        let random = || {
            let mut bytes = [0; 8];
            // An id is for reading logs; without random bytes there is one less.
            let _ = getrandom::fill(&mut bytes);
            hex::show(&bytes)
        };
        RequestId(sent.map_or_else(random, ToOwned::to_owned).into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Around everything.
pub async fn observe(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = RequestId::of(request.headers());
    let parent = app.telemetry.as_ref().and_then(|_| telemetry::parent(request.headers()));
    let meter = Arc::new(Meter::default());
    let method = request.method().as_str();
    // A method is a stranger's word: only those that there are become a label.
    let known = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"];
    let method = known.into_iter().find(|&known| known == method).unwrap_or("other");
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or("none", |path| path.as_str()).to_owned();
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(meter.clone());
    // Who waits to be asked for a body is not asked for one that nobody wants.
    let wanted = !request.headers().contains_key(header::EXPECT);
    let plain = request.version() < Version::HTTP_2;
    let mut rest = Rest::default();
    let request = request.map(|body| {
        let (body, left) = Rest::of(body, wanted);
        rest = left;
        body
    });
    let mut response = match check_version(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            drop(request);
            problem.into_response()
        }
    };
    // Strangers get to send less than those who will read why they were refused.
    let known = response.extensions().get::<Stranger>().is_none();
    let limit = if known { app.limits.max_body } else { STRANGERS };
    let ended = rest.drain(limit, REST_PATIENCE).await;
    if !ended && plain {
        // What is left of the body cannot be told from a next request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(counted) = response.extensions().get::<Counted>() {
        app.metrics.problem(counted.kind);
        counted.storage.into_iter().for_each(|reason| app.metrics.storage_error(reason));
    }
    let headers = response.headers_mut();
    headers.insert(API_HEADER, HeaderValue::from(API));
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(ID_HEADER, value);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (took, status) = (start.elapsed(), response.status().as_u16());
    app.metrics.sent.inc_by(body::sent(&response));
    let labels = RequestLabels { method: method.to_owned(), route: route.clone(), status };
    app.metrics.answered(labels, took);
    if let Some(telemetry) = &app.telemetry {
        let stages = response.extensions().get::<Stages>();
        telemetry.answered(Answered {
            method,
            route: &route,
            status,
            received: meter.received(),
            sent: body::sent(&response),
            took,
            stages: stages.map_or(&[], |stages| &stages.0),
            // A stranger's request belongs to nobody's trace, whatever path he chose.
            parent: parent.filter(|_| response.extensions().get::<Admitted>().is_some()),
        });
    }
    let milliseconds = took.as_secs_f64() * 1e3;
    tracing::info!(
        id = id.as_str(),
        method,
        route,
        status,
        milliseconds,
        received = meter.received(),
        "request"
    );
    response
}

fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(&API_HEADER) else { return Ok(()) };
    if value.as_bytes() == b"1" {
        return Ok(());
    }
    Err(Problem::bad_request(format!("this server speaks version {API} of the interface"))
        .hint(format!("send Ciphervec-Api: {API}, or leave it out; upgrade the older side")))
}
