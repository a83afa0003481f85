//! Upkeep endpoints: compaction, purging and snapshots for the operator. Server side.

use crate::auth::{Principal, Verb};
use crate::hex;
use crate::http::app::App;
use crate::http::handlers::collections::{self, CollectionState};
use crate::http::problem::{Problem, ProblemDetails};
use crate::storage::Amount;
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use ciphervec::store::Compacted;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What a compaction did.
#[derive(Serialize, ToSchema)]
pub struct Compaction {
    /// Segments that went because all of their rows were deleted.
    segments_dropped: u64,
    /// Files that the state named before.
    files_before: u64,
    /// Files that it names now.
    files_after: u64,
    /// Bytes that were written anew.
    bytes_moved: u64,
}

/// Moves small files together and drops segments without live rows. No key is needed.
#[utoipa::path(post, path = "/v1/collections/{name}/compact", tag = "upkeep", operation_id = "compact",
    params(("name" = String, Path)),
    responses((status = 200, description = "What was done.", body = Compaction)))]
pub async fn compact(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Json<Compaction>, Problem> {
    let collection = app.collection(&name).await?;
    let done = app.blocking(move || collection.compact()).await?;
    let Compacted { segments_dropped, files_before, files_after, bytes_moved } = done;
    Ok(Json(Compaction { segments_dropped, files_before, files_after, bytes_moved }))
}

/// Deletes what neither the present state nor a snapshot refers to, so that what was removed is gone, and cannot be brought
/// back: whoever may remove rows may not do that with them.
#[utoipa::path(post, path = "/v1/collections/{name}/purge", tag = "upkeep", operation_id = "purge",
    params(("name" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn purge(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let collection = app.collection(&name).await?;
    app.blocking(move || collection.purge()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The snapshots of a collection.
#[derive(Serialize, ToSchema)]
pub struct Snapshots {
    /// By name.
    snapshots: Vec<SnapshotState>,
}

/// One snapshot.
#[derive(Serialize, ToSchema)]
pub struct SnapshotState {
    /// Its name.
    name: String,
    /// The version that it keeps.
    version: u64,
    /// Rows in it, deleted ones included.
    rows: u64,
    /// Bytes that it names; those that the present state names too take no room twice.
    bytes: u64,
}

/// A snapshot that was taken.
#[derive(Serialize, ToSchema)]
pub struct SnapshotTaken {
    /// The number of the commit that notes it.
    version: u64,
    /// Hash of that manifest: 64 hex digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    head: String,
}

/// The snapshots of a collection.
#[utoipa::path(get, path = "/v1/collections/{name}/snapshots", tag = "upkeep", operation_id = "snapshots",
    params(("name" = String, Path)),
    responses((status = 200, description = "By name.", body = Snapshots)))]
pub async fn list(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Json<Snapshots>, Problem> {
    let collection = app.collection(&name).await?;
    let held = app.blocking(move || collection.snapshots()).await?;
    let snapshots = held.into_iter().map(|entry| SnapshotState {
        name: entry.name,
        version: entry.version,
        rows: entry.rows,
        bytes: entry.bytes,
    });
    Ok(Json(Snapshots { snapshots: snapshots.collect() }))
}

/// Keeps the present state under a name.
#[utoipa::path(put, path = "/v1/collections/{name}/snapshots/{snapshot}", tag = "upkeep",
    operation_id = "take_snapshot",
    params(("name" = String, Path),
           ("snapshot" = String, Path, description = "1 to 64 of a-z 0-9 . _ -, not only dots.")),
    responses((status = 201, description = "It is kept.", body = SnapshotTaken),
              (status = 409, description = "There is one of that name.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn take(
    State(app): State<Arc<App>>,
    Path((name, snapshot)): Path<(String, String)>,
) -> Result<(StatusCode, Json<SnapshotTaken>), Problem> {
    let collection = app.collection(&name).await?;
    let done = app.blocking(move || collection.snapshot(&snapshot)).await?;
    let taken = SnapshotTaken { version: done.version, head: hex::show(&done.head) };
    Ok((StatusCode::CREATED, Json(taken)))
}

/// Forgets a snapshot, and frees what only it needed.
#[utoipa::path(delete, path = "/v1/collections/{name}/snapshots/{snapshot}", tag = "upkeep",
    operation_id = "drop_snapshot",
    params(("name" = String, Path), ("snapshot" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn drop_snapshot(
    State(app): State<Arc<App>>,
    Path((name, snapshot)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let collection = app.collection(&name).await?;
    app.blocking(move || collection.drop_snapshot(&snapshot)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where a snapshot comes back.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The collection itself, whose next state it becomes, or a new name for a copy.
    into: String,
}

/// Brings a snapshot back. The token must allow admin on the collection that it goes into, too.
#[utoipa::path(post, path = "/v1/collections/{name}/snapshots/{snapshot}/restore", tag = "upkeep",
    operation_id = "restore", request_body = RestoreRequest,
    params(("name" = String, Path), ("snapshot" = String, Path)),
    responses((status = 201, description = "The state that it made.", body = CollectionState),
              (status = 409, description = "There is another collection of that name.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn restore(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, snapshot)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let body = app.incoming(request)?;
    let RestoreRequest { into } = body.json("{\"into\": name of a collection}").await?;
    if !principal.allows(Verb::Admin, &into) {
        return Err(Problem::not_found());
    }
    let held = app.clone();
    let restored = move || {
        // As much as if nothing of it were there: what is in the snapshot and the state is not looked at one by one.
        let kept = collection.snapshots()?.into_iter().find(|entry| entry.name == snapshot);
        let adds = kept.map(|entry| Amount { bytes: entry.bytes, rows: entry.rows });
        let _room = held.room(&principal, &into, adds.unwrap_or_default())?;
        let made = held.database.restore(&name, &snapshot, &into)?;
        Ok::<_, Problem>(collections::answer(StatusCode::CREATED, &made, true))
    };
    app.blocking(restored).await
}
