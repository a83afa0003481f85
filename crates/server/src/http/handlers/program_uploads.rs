//! Program upload endpoints: keys and inputs that are larger than a body enter in pieces, progress
//! leaves. Server side.

use super::uploads::{UploadRequest, UploadState, begin, id, look, piece};
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

/// Starts an upload of keys or of an input, for the token that asks and the program that it names.
#[utoipa::path(post, path = "/v1/programs/{name}/uploads", tag = "programs",
    operation_id = "program_upload", request_body = UploadRequest,
    params(("name" = String, Path)),
    responses((status = 201, description = "Send pieces.", body = UploadState,
               headers(("Location" = String, description = "Where pieces go.")))))]
pub async fn create(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    // The program must be there: an upload for another is disk space for nothing.
    app.program(&name).await?;
    let path = format!("/v1/programs/{name}");
    begin(&app, purpose(&name, &principal), &path, request).await
}

/// How far an upload is: where to go on after a break.
#[utoipa::path(get, path = "/v1/programs/{name}/uploads/{upload}", tag = "programs",
    operation_id = "program_upload_progress",
    params(("name" = String, Path), ("upload" = String, Path)),
    responses((status = 200, description = "Where it is.", body = UploadState)))]
pub async fn progress(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, upload)): Path<(String, String)>,
) -> Result<Json<UploadState>, Problem> {
    look(&app, &purpose(&name, &principal), &upload)
}

/// Appends a piece. What came of a piece that broke off stays: ask for the offset and go on there.
#[utoipa::path(patch, path = "/v1/programs/{name}/uploads/{upload}", tag = "programs",
    operation_id = "program_upload_piece",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The piece."),
    params(("name" = String, Path), ("upload" = String, Path),
           ("Upload-Offset" = u64, Header, description = "Where the piece starts.")),
    responses((status = 204, description = "It is there.",
                  headers(("Upload-Offset" = u64, description = "Where the next piece starts."))),
              (status = 409, description = "It does not start where the upload is.", body = ProblemDetails,
                  content_type = "application/problem+json",
                  headers(("Upload-Offset" = u64, description = "Where the upload is.")))))]
pub async fn append(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, upload)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    piece(&app, &purpose(&name, &principal), &upload, request).await
}

/// Forgets an upload.
#[utoipa::path(delete, path = "/v1/programs/{name}/uploads/{upload}", tag = "programs",
    operation_id = "program_upload_delete",
    params(("name" = String, Path), ("upload" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn remove(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, upload)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    app.uploads.delete(&id(&upload)?, &purpose(&name, &principal))?;
    Ok(StatusCode::NO_CONTENT)
}
