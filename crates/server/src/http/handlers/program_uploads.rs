//! Program upload endpoints: keys and inputs that are larger than a body come in pieces. Server side.

use super::uploads::{UploadRequest, UploadState, begin, id, look, piece, upload_endpoints};
use crate::auth::Principal;
use crate::http::app::App;
use crate::http::problem::{Problem, ProblemDetails};
use crate::storage::Purpose;
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use std::sync::Arc;

/// Who an upload of a program is for: no collection has such a name.
pub fn purpose(name: &str, principal: &Principal) -> Purpose {
    Purpose { collection: format!("program {name}"), token: principal.id().to_owned() }
}

upload_endpoints!(
    "programs",
    "/v1/programs/{name}/uploads",
    "/v1/programs/{name}/uploads/{upload}",
    ["program_upload", "program_upload_progress", "program_upload_piece", "program_upload_delete"],
    "Starts an upload of keys or of an input, for the token that asks and the program that it names.",
    |app, name| {
        // The program must be there: an upload for another is disk space for nothing.
        app.program(&name).await?;
    }
);
