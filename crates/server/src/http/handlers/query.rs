//! The endpoint of sealed queries, those of session keys, and the state that a query would be about.

use crate::auth::Principal;
use crate::auth::tokens::now;
use crate::hex;
use crate::http::app::App;
use crate::http::body;
use crate::http::headers::set_stages;
use crate::http::problem::{Problem, ProblemDetails};
use crate::metrics::Counting;
use crate::storage::DatabaseError;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header as names};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

const VERSION_HEADER: HeaderName = HeaderName::from_static("ciphervec-version");
const HEAD_HEADER: HeaderName = HeaderName::from_static("ciphervec-head");
const EVALUATION_HEADER: HeaderName = HeaderName::from_static("ciphervec-evaluation");
const RECEIPT_HEADER: HeaderName = HeaderName::from_static("ciphervec-receipt");
const TOKEN_HEADER: HeaderName = HeaderName::from_static("ciphervec-token");

/// Answers a sealed query over every segment. A client that leaves takes its query out of the queue.
#[utoipa::path(post, path = "/v1/collections/{name}/query", tag = "collections", operation_id = "query",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A query frame."),
    params(("name" = String, Path)),
    responses((status = 200, description = "A response frame, which only the key owner can open.", body = Vec<u8>,
               content_type = "application/octet-stream",
               headers(("Ciphervec-Version" = u64, description = "The version that was searched."),
                       ("Ciphervec-Head" = String, description = "Its head."),
                       ("Ciphervec-Evaluation" = String, description = "BLAKE3 of the collection's own evaluation keys: 64 hex digits; absent where there are none."),
                       ("Ciphervec-Receipt" = String, description = "The server's word for this answer to this query, under `--receipt-key`: 80 hex digits; absent without one."),
                       ("Server-Timing" = String, description = "Milliseconds: queue, scan."))),
              (status = 409, description = "The query is of a session whose evaluation keys are not here.",
                  body = ProblemDetails, content_type = "application/problem+json")))]
pub async fn query(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let mut share = app.buffers.share();
    let body = app.incoming(request)?;
    let query = body.all(&mut share).await?;
    let _counting = Counting::new(&app.metrics.queries);
    let asked = app.receipts.as_ref().map(|key| key.asked(&name, &query));
    let queries = collection.queries_in(&query);
    let answering = collection.query_by(principal.id(), query);
    let answer = app.counted(&principal, queries, answering).await?;
    let [queue, scan] = [answer.timings.queue, answer.timings.scan];
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    app.metrics.query(duration(queue), duration(scan), answer.degraded);
    let length = answer.bytes.len();
    let receipt = match asked {
        None => None,
        Some(asked) => {
            // Hashing a large answer takes a while: not for threads that serve connections.
            let bytes = answer.bytes.clone();
            let now = u64::try_from(now().as_second()).unwrap_or_default();
            let issued = tokio::task::spawn_blocking(move || asked.issue(now, &bytes)).await;
            Some((RECEIPT_HEADER, hex::show(&issued.map_err(|_| Problem::internal())?)))
        }
    };
    let mut response = Response::new(body::pieces(answer.bytes));
    set_stages(&mut response, &[("queue", queue), ("scan", scan)]);
    let headers = response.headers_mut();
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(names::CONTENT_TYPE, octets);
    headers.insert(names::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(VERSION_HEADER, HeaderValue::from(answer.version));
    let evaluation = answer.evaluation.map(|keys| (EVALUATION_HEADER, hex::show(&keys)));
    let head = (HEAD_HEADER, hex::show(&answer.head));
    for (name, text) in [head].into_iter().chain(evaluation).chain(receipt) {
        headers.insert(name, HeaderValue::from_str(&text).map_err(|_| Problem::internal())?);
    }
    Ok(response)
}

/// Takes in evaluation keys of a session, which are kept for the token that brings them.
pub async fn keep_keys(
    app: &App,
    principal: &Principal,
    request: Request,
    keep: impl FnOnce(&str, &[u8]) -> Result<(), DatabaseError> + Send + 'static,
) -> Result<StatusCode, Problem> {
    let mut share = app.buffers.share();
    let bytes = app.incoming_keys(request)?.all(&mut share).await?;
    let token = principal.id().to_owned();
    app.blocking(move || {
        let _held = share;
        keep(&token, &bytes)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings the evaluation keys of a session: those that queries whose epoch is 2^31 or more are answered with. They serve the
/// token that brings them, and are let go of when room is needed or the server ends: the query is told so then.
#[utoipa::path(put, path = "/v1/collections/{name}/query-keys", tag = "collections", operation_id = "put_query_keys",
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "A frame of evaluation keys, of the collection's owner and under its public masks."),
    params(("name" = String, Path)),
    responses((status = 204, description = "They are there."),
              (status = 409, description = "This token has brought others of the same session.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn put_query_keys(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let collection = app.collection(&name).await?;
    let keep = move |token: &str, bytes: &[u8]| collection.put_session_keys(token, bytes);
    keep_keys(&app, &principal, request, keep).await
}

/// The state that a query would be answered from, for those who may ask one: what answers queries in this server's place asks
/// here whether it may, what it must not be older than, and whose session keys the query may use.
#[utoipa::path(get, path = "/v1/collections/{name}/query", tag = "collections", operation_id = "searched",
    params(("name" = String, Path)),
    responses((status = 204, description = "The state, in headers.",
               headers(("Ciphervec-Version" = u64, description = "Its version."),
                       ("Ciphervec-Head" = String, description = "Its head."),
                       ("Ciphervec-Token" = String, description = "The id of the token that asks; `-` where none is asked for.")))))]
pub async fn searched(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    // It may look at a bucket: not for threads that serve connections. Whoever asks answers a query elsewhere.
    let reading = app.blocking(move || Ok::<_, DatabaseError>(collection.state()));
    let state = app.counted(&principal, 1, reading).await?;
    let head = HeaderValue::from_str(&hex::show(&state.head)).map_err(|_| Problem::internal())?;
    let version = HeaderValue::from(state.manifest.version);
    let token = HeaderValue::from_str(principal.id()).map_err(|_| Problem::internal())?;
    let says = [(VERSION_HEADER, version), (HEAD_HEADER, head), (TOKEN_HEADER, token)];
    Ok((StatusCode::NO_CONTENT, says).into_response())
}
