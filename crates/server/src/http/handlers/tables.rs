//! Endpoints of keyed tables, in which clients look records up without showing their keys. Nothing here tells a key, or
//! whether it was there.

use super::fetch::answered;
use super::query::keep_keys;
use super::table_uploads::purpose;
use super::uploads::id;
use crate::auth::Principal;
use crate::hex;
use crate::http::app::App;
use crate::http::problem::{Problem, ProblemDetails};
use crate::http::query_string::QueryString;
use crate::storage::{Amount, DatabaseError, Room, StoredTable};
use axum::Json;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The tables that a token may see.
#[derive(Serialize, ToSchema)]
pub struct TableListing {
    /// One entry each, by name.
    tables: Vec<TableState>,
}

/// A table.
#[derive(Serialize, ToSchema)]
pub struct TableState {
    /// Its name.
    name: String,
    /// Records in it.
    records: u64,
    /// The most bytes that a record may have.
    record_bytes: u64,
    /// Whether its owner sealed the records.
    sealed: bool,
    /// Bytes stored.
    bytes: u64,
    /// The hash that its publisher gives out: 64 hex digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    fingerprint: String,
}

impl TableState {
    fn of(name: &str, table: &StoredTable) -> Self {
        let description = table.table().description();
        TableState {
            name: name.to_owned(),
            records: description.records() as u64,
            record_bytes: description.geometry().content as u64,
            sealed: description.geometry().sealed,
            bytes: table.table().byte_len(),
            fingerprint: hex::show(&description.fingerprint()),
        }
    }
}

async fn table(app: &App, name: &str) -> Result<Arc<StoredTable>, Problem> {
    let (tables, name) = (app.tables.clone(), name.to_owned());
    app.blocking::<_, DatabaseError>(move || tables.get(&name)).await
}

/// The tables on which the token has any verb that is for collections.
#[utoipa::path(get, path = "/v1/tables", tag = "tables", operation_id = "tables",
    responses((status = 200, description = "By name.", body = TableListing)))]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<TableListing>, Problem> {
    let stored = app.tables.clone();
    let found = app.blocking::<_, DatabaseError>(move || {
        let mut found = Vec::new();
        for name in stored.names()?.into_iter().filter(|name| principal.knows(name)) {
            match stored.get(&name) {
                Ok(table) => found.push(TableState::of(&name, &table)),
                // One that does not open hides no other.
                Err(error) => tracing::warn!(table = name, %error, "left out"),
            }
        }
        Ok(found)
    });
    Ok(Json(TableListing { tables: found.await? }))
}

/// Stores a table under a name, in the place of one that is there. Every bucket of it is checked first.
#[utoipa::path(put, path = "/v1/tables/{name}", tag = "tables", operation_id = "put_table",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A table's file; nothing with ?upload=."),
    params(("name" = String, Path, description = "1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit at both ends."),
           ("upload" = Option<String>, Query, description = "A finished upload that it is in.")),
    responses((status = 200, description = "It is there.", body = TableState),
              (status = 409, description = "The upload is not finished.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn put(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Json<TableState>, Problem> {
    let mut query = QueryString::parse(query.as_deref())?;
    let upload = query.one("upload")?.map(|text| id(&text)).transpose()?;
    query.finish()?;
    let (of, named, held) = (purpose(&name, &principal), name.clone(), app.clone());
    let stored = match upload {
        None => {
            let mut share = app.buffers.share();
            let bytes = app.incoming(request)?.all(&mut share).await?;
            let put = move || {
                let _share = share;
                let _room = room(&held, &principal, &named, bytes.len() as u64)?;
                Ok(held.tables.put(&named, &mut &bytes[..])?)
            };
            app.blocking::<_, Problem>(put).await?
        }
        Some(upload) => {
            let put = move || {
                let length = held.uploads.progress(&upload, &of)?.length;
                let _room = room(&held, &principal, &named, length)?;
                let stored = held.tables.put(&named, &mut held.uploads.file(&upload, &of)?)?;
                // One that has expired in the meantime is gone as it should be.
                let _ = held.uploads.delete(&upload, &of);
                Ok(stored)
            };
            app.blocking::<_, Problem>(put).await?
        }
    };
    Ok(Json(TableState::of(&name, &stored)))
}

/// Room for a table in the place of one that is there.
fn room(app: &App, principal: &Principal, name: &str, bytes: u64) -> Result<Option<Room>, Problem> {
    let before = match app.tables.get(name) {
        Err(DatabaseError::NotFound(_)) => 0,
        found => found?.table().byte_len(),
    };
    app.room(principal, name, Amount { bytes: bytes.saturating_sub(before), rows: 0 })
}

/// What is public of a table: a client needs it to ask, and checks what comes against it.
#[utoipa::path(get, path = "/v1/tables/{name}", tag = "tables", operation_id = "table",
    params(("name" = String, Path)),
    responses((status = 200, description = "Its description.", body = Vec<u8>, content_type = "application/octet-stream")))]
pub async fn describe(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let bytes = table(&app, &name).await?.table().description().to_bytes();
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// Removes a table.
#[utoipa::path(delete, path = "/v1/tables/{name}", tag = "tables", operation_id = "remove_table",
    params(("name" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn remove(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let tables = app.tables.clone();
    app.blocking::<_, DatabaseError>(move || tables.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings the evaluation keys of a session of lookups. They serve the token that brings them, and are let go of when room is
/// needed or the server ends: a lookup is told so then.
#[utoipa::path(put, path = "/v1/tables/{name}/keys", tag = "tables", operation_id = "put_table_keys",
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
    let table = table(&app, &name).await?;
    let tables = app.tables.clone();
    let keep = move |token: &str, bytes: &[u8]| tables.put_keys(&table, token, bytes);
    keep_keys(&app, &principal, request, keep).await
}

/// Answers a query for buckets of a table, which are in no part of it in clear.
#[utoipa::path(post, path = "/v1/tables/{name}/lookup/{table}", tag = "tables", operation_id = "look_up",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A retrieval query frame."),
    params(("name" = String, Path), ("table" = String, Path, description = "The id in the description: 32 hex digits.")),
    responses((status = 200, description = "A retrieval answer frame, which only the client can open.", body = Vec<u8>,
               content_type = "application/octet-stream",
               headers(("Server-Timing" = String, description = "Milliseconds: queue, fetch."))),
              (status = 409, description = "The query is of a session whose keys are not here.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 410, description = "The table was replaced.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn look_up(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, of)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let table = table(&app, &name).await?;
    let of = hex::parse::<16>(&of).ok_or_else(Problem::not_found)?;
    let mut share = app.buffers.share();
    let query = app.incoming(request)?.all(&mut share).await?;
    let looking = app.tables.look_up(table, (principal.id(), of), query);
    let answer = app.counted(&principal, 1, looking).await?;
    answered(&app, answer)
}
