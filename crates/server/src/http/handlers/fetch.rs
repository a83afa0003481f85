//! Endpoints of private fetch, for clients that do not say which rows they read. Nothing here tells the rows.

use super::query::keep_keys;
use crate::auth::Principal;
use crate::hex;
use crate::http::app::App;
use crate::http::body;
use crate::http::headers::set_stages;
use crate::http::problem::{Problem, ProblemDetails};
use crate::storage::Fetched;
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header as names};
use axum::response::Response;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// The table that rows of the present state are fetched from in private.
#[derive(Serialize, ToSchema)]
pub struct FetchTable {
    /// Its name, which follows from the blob and the ids and rows of the segments: 32 hex digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    table: String,
    /// Rows in it, deleted ones included.
    rows: u64,
    /// Bytes that each row has in it: the size class of the longest, or of the longest that is not in `long_rows`.
    place_bytes: u64,
    /// Rows that have a table of their own, much longer than the others: their places in this one, ascending.
    long_rows: Vec<u32>,
    /// Bytes that each row has in that table; 0 where there is none.
    long_place_bytes: u64,
    /// Bytes that it takes in the server's memory, with that of long rows.
    table_bytes: u64,
    /// Seconds that a fetch of one row from both tables is predicted to take.
    seconds: f64,
    /// The same of ten rows.
    seconds_of_ten: f64,
}

/// What a private fetch of these rows is like: `blob` is `records` or `originals`.
#[utoipa::path(get, path = "/v1/collections/{name}/fetch/{blob}", tag = "fetch", operation_id = "fetch_table",
    params(("name" = String, Path), ("blob" = String, Path)),
    responses((status = 200, description = "The table of the present state. It need not be in memory.", body = FetchTable),
              (status = 422, description = "None is offered of these rows, and why.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn offer(
    State(app): State<Arc<App>>,
    Path((name, blob)): Path<(String, String)>,
) -> Result<Json<FetchTable>, Problem> {
    let collection = app.collection(&name).await?;
    let offer = app.blocking(move || collection.fetch_offer(&blob)).await?;
    let [seconds, seconds_of_ten] = offer.seconds;
    Ok(Json(FetchTable {
        table: hex::show(&offer.table),
        rows: offer.rows,
        place_bytes: offer.place_bytes,
        long_rows: offer.long_rows,
        long_place_bytes: offer.long_place_bytes,
        table_bytes: offer.table_bytes,
        seconds,
        seconds_of_ten,
    }))
}

/// Brings the evaluation keys of a session of fetches. They serve the token that brings them, and are let go of when room is needed or
/// the server ends: a fetch is told so then.
#[utoipa::path(put, path = "/v1/collections/{name}/fetch-keys", tag = "fetch", operation_id = "put_fetch_keys",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A frame of selector keys."),
    params(("name" = String, Path)),
    responses((status = 204, description = "They are there."),
              (status = 409, description = "This token has brought others of the same session.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn put_keys(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let collection = app.collection(&name).await?;
    let keep = move |token: &str, bytes: &[u8]| collection.put_fetch_keys(token, bytes);
    keep_keys(&app, &principal, request, keep).await
}

/// Answers a query for rows of a table, which are in no part of it in clear. The table is made for the first.
#[utoipa::path(post, path = "/v1/collections/{name}/fetch/{blob}/{table}", tag = "fetch", operation_id = "fetch",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A retrieval query frame."),
    params(("name" = String, Path), ("blob" = String, Path), ("table" = String, Path, description = "32 hex digits.")),
    responses((status = 200, description = "A retrieval answer frame, which only the key owner can open.", body = Vec<u8>,
               content_type = "application/octet-stream",
               headers(("Server-Timing" = String, description = "Milliseconds: queue, fetch."))),
              (status = 409, description = "The query is of a session whose keys are not here.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 410, description = "The collection has other segments than the table.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 422, description = "None is offered of these rows, and why.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn fetch(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, blob, table)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let table = hex::parse::<16>(&table).ok_or_else(Problem::not_found)?;
    let mut share = app.buffers.share();
    let query = app.incoming(request)?.all(&mut share).await?;
    let fetching = collection.fetch(principal.id(), (&blob, table), query);
    let answer = app.counted(&principal, 1, fetching).await?;
    answered(&app, answer)
}

/// An answer with what it took.
pub fn answered(app: &App, answer: Fetched) -> Result<Response, Problem> {
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    app.metrics.fetch(duration(answer.work));
    let length = HeaderValue::from(answer.bytes.len());
    let mut response = Response::new(body::pieces(answer.bytes));
    set_stages(&mut response, &[("queue", answer.queue), ("fetch", answer.work)]);
    let headers = response.headers_mut();
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(names::CONTENT_TYPE, octets);
    headers.insert(names::CONTENT_LENGTH, length);
    Ok(response)
}
