//! Table upload endpoints: a table's file that is larger than a body comes in pieces. Server side.

use super::uploads::{UploadRequest, UploadState, begin, id, look, piece, upload_endpoints};
use crate::auth::Principal;
use crate::http::app::App;
use crate::http::problem::{Problem, ProblemDetails};
use crate::storage::{Purpose, check_name};
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use std::sync::Arc;

/// Who an upload of a table is for: no collection has such a name.
pub fn purpose(name: &str, principal: &Principal) -> Purpose {
    Purpose { collection: format!("table {name}"), token: principal.id().to_owned() }
}

upload_endpoints!(
    "tables",
    "/v1/tables/{name}/uploads",
    "/v1/tables/{name}/uploads/{upload}",
    ["table_upload", "table_upload_progress", "table_upload_piece", "table_upload_delete"],
    "Starts an upload of a table, for the token that asks.",
    |app, name| {
        check_name(&name)?;
    }
);
