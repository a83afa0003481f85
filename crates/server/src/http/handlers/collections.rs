//! Collection endpoints: list, create, describe and drop. Server side.

use crate::auth::{Principal, Verb};
use crate::change;
use crate::hex;
use crate::http::app::App;
use crate::http::handlers::commits;
use crate::http::headers;
use crate::http::problem::{Problem, ProblemDetails};
use crate::storage::{Amount, Collection, DatabaseError, State as Held, check_name};
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header as names};
use axum::response::{IntoResponse, Response};
use axum::{Json, http};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ciphervec::search::QUERY_VERSION;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Version of the fetch endpoints and of the frames they take.
const FETCH_VERSION: u16 = 1;

/// The collections that a token may use.
#[derive(Serialize, ToSchema)]
pub struct Listing {
    /// One entry each, by name.
    collections: Vec<ListedCollection>,
}

/// One collection of a listing.
#[derive(Serialize, ToSchema)]
pub struct ListedCollection {
    /// Its name.
    name: String,
    /// Rows, deleted ones included.
    rows: u64,
    /// Bytes stored.
    bytes: u64,
}

/// A committed state.
#[derive(Serialize, ToSchema)]
pub struct CollectionState {
    /// The collection's name.
    name: String,
    /// The number of its last commit.
    version: u64,
    /// Hash of its manifest, which fixes this state and every one before it: 64 hex digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    head: String,
    /// The description, base64: opaque to the server but for the index's parameters.
    #[schema(content_encoding = "base64")]
    meta: String,
    /// Segments in the order in which they were added.
    segments: Vec<SegmentState>,
    /// Bytes of each attachment.
    attachments: BTreeMap<String, u64>,
    /// BLAKE3 of the evaluation keys that queries are answered with, 64 hex digits; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, pattern = "^[0-9a-f]{64}$")]
    evaluation: Option<String>,
    /// The newest version of query frames that is answered.
    query_version: u16,
    /// The newest version of fetch queries that is answered, where rows are fetched in private.
    fetch_version: u16,
    /// Sizes.
    statistics: CollectionStatistics,
}

/// One segment.
#[derive(Serialize, ToSchema)]
pub struct SegmentState {
    /// Its id: 32 hex digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    id: String,
    /// Rows, deleted ones included.
    rows: u32,
    /// Bytes of each blob; absent for a token that may query but not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    blobs: Option<BTreeMap<String, u64>>,
    /// Rows marked deleted, ascending.
    deleted: Vec<u32>,
}

/// Sizes of a collection.
#[derive(Serialize, ToSchema)]
pub struct CollectionStatistics {
    /// Rows, deleted ones included.
    rows: u64,
    /// Rows marked deleted.
    deleted: u64,
    /// Segments.
    segments: u64,
    /// Bytes stored.
    bytes: u64,
    /// Bytes in the server's memory.
    resident: u64,
    /// Whether it is larger than the server's memory budget, so that queries read segments from the store.
    degraded: bool,
}

impl CollectionState {
    fn of(collection: &Collection, state: &Held, blobs: bool) -> Self {
        let manifest = &state.manifest;
        let statistics = collection.statistics();
        let segments = manifest.segments.iter().map(|segment| SegmentState {
            id: hex::show(&segment.id),
            rows: segment.rows,
            blobs: blobs.then(|| {
                segment.blobs().map(|(name, blob)| (name.to_owned(), blob.length)).collect()
            }),
            deleted: segment.deleted.iter().collect(),
        });
        CollectionState {
            name: collection.name().to_owned(),
            version: manifest.version,
            head: hex::show(&state.head),
            meta: STANDARD.encode(&manifest.meta),
            segments: segments.collect(),
            attachments: manifest
                .attachments()
                .map(|(name, blob)| (name.to_owned(), blob.length))
                .collect(),
            evaluation: state.evaluation.as_ref().map(|keys| hex::show(keys)),
            query_version: QUERY_VERSION,
            fetch_version: FETCH_VERSION,
            statistics: CollectionStatistics {
                rows: statistics.rows,
                deleted: statistics.deleted,
                segments: statistics.segments,
                bytes: statistics.bytes,
                resident: statistics.resident,
                degraded: statistics.degraded,
            },
        }
    }
}

/// A state with its ETag. It may look at a bucket: not for threads that serve connections.
pub fn answer(status: StatusCode, collection: &Collection, blobs: bool) -> Response {
    let state = collection.state();
    let etag = etag(&state.head);
    let body = Json(CollectionState::of(collection, &state, blobs));
    (status, [(names::ETAG, etag)], body).into_response()
}

/// `"<head>"`.
pub fn etag(head: &[u8; 32]) -> HeaderValue {
    let text = format!("\"{}\"", hex::show(head));
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The collections on which the token has any verb.
#[utoipa::path(get, path = "/v1/collections", tag = "collections", operation_id = "list",
    responses((status = 200, description = "By name.", body = Listing)))]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<Listing>, Problem> {
    let database = app.database.clone();
    let names = move || -> Result<_, DatabaseError> {
        let mut collections = Vec::new();
        for name in database.names()?.into_iter().filter(|name| principal.knows(name)) {
            match database.get(&name) {
                Ok(collection) => {
                    let statistics = collection.statistics();
                    let (rows, bytes) = (statistics.rows, statistics.bytes);
                    collections.push(ListedCollection { name, rows, bytes });
                }
                // It would look as if it were gone.
                Err(error @ DatabaseError::Descriptors(_)) => return Err(error),
                // One that was dropped meanwhile, or that does not open, hides no other.
                Err(error) => tracing::warn!(collection = name, %error, "left out of a listing"),
            }
        }
        Ok(collections)
    };
    Ok(Json(Listing { collections: app.blocking(names).await? }))
}

/// Creates a collection from a change frame with meta and attachments only.
#[utoipa::path(put, path = "/v1/collections/{name}", tag = "collections", operation_id = "create",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A change frame."),
    params(("name" = String, Path, description = "1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit at both ends.")),
    responses((status = 201, description = "Created.", body = CollectionState,
                  headers(("ETag" = String, description = "The head, in quotes."))),
              (status = 409, description = "There is one of that name.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn create(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    check_name(&name)?;
    let mut share = app.buffers.share();
    let body = app.incoming_keys(request)?;
    let (frame, _) = commits::read_frame(body, &mut share, false).await?;
    let refused = |_: &change::UploadRef| {
        Err(Problem::bad_request(
            "a new collection has no uploads yet; send its attachments inline",
        ))
    };
    let (meta, attachments) = change::creation(frame.into_change(refused)?)?;
    let bytes = attachments.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    let adds = Amount { bytes: bytes + meta.len() as u64, rows: 0 };
    let held = app.clone();
    let made = app.blocking::<_, Problem>(move || {
        let _share = share;
        let _room = held.room(&principal, &name, adds)?;
        let made = held.database.create(&name, meta, attachments)?;
        Ok(answer(StatusCode::CREATED, &made, true))
    });
    made.await
}

/// A collection's present state. Query-only tokens don't get the blobs of its segments.
#[utoipa::path(get, path = "/v1/collections/{name}", tag = "collections", operation_id = "describe",
    params(("name" = String, Path),
           ("If-None-Match" = Option<String>, Header, description = "The ETag of a state that the client has.")),
    responses((status = 200, description = "The state.", body = CollectionState,
                  headers(("ETag" = String, description = "The head, in quotes."))),
              (status = 304, description = "It is the state that the client has.")))]
pub async fn describe(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let held = headers::one(&headers, &names::IF_NONE_MATCH)?.map(str::to_owned);
    let blobs = principal.allows(Verb::Read, &name);
    let described = move || -> Result<Response, Problem> {
        let etag = etag(&collection.state().head);
        let same = |held: String| {
            held.split(',').any(|one| one.trim() == "*" || one.trim().as_bytes() == etag.as_bytes())
        };
        if held.is_some_and(same) {
            let unchanged = http::Response::builder().status(StatusCode::NOT_MODIFIED);
            let unchanged = unchanged.header(names::ETAG, etag).body(Body::empty());
            return unchanged.map_err(|_| Problem::internal());
        }
        let mut response = answer(StatusCode::OK, &collection, blobs);
        response.headers_mut().insert(names::VARY, HeaderValue::from_static("authorization"));
        Ok(response)
    };
    app.blocking(described).await
}

/// Deletes a collection with all its segments and snapshots.
#[utoipa::path(delete, path = "/v1/collections/{name}", tag = "collections", operation_id = "drop",
    params(("name" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn remove(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let database = app.database.clone();
    app.blocking(move || database.drop_collection(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
