//! Endpoints of uploads: large blobs in pieces.

use crate::auth::Principal;
use crate::hex;
use crate::http::app::App;
use crate::http::headers;
use crate::http::problem::{OFFSET_HEADER, Problem, ProblemDetails};
use crate::storage::{Progress, Purpose, UploadId};
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header as names};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What is to be uploaded.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadRequest {
    /// Bytes in all.
    #[schema(minimum = 1)]
    length: u64,
}

/// How far an upload is.
#[derive(Serialize, ToSchema)]
pub struct UploadState {
    /// Its name: 32 hex digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    upload: String,
    /// Bytes that have come: the next piece starts here.
    offset: u64,
    /// Bytes in all.
    length: u64,
    /// When it is forgotten if nothing comes, RFC 3339.
    #[schema(format = "date-time")]
    expires: String,
}

impl From<Progress> for UploadState {
    fn from(progress: Progress) -> Self {
        let Progress { id, offset, length, expires } = progress;
        UploadState { upload: hex::show(&id), offset, length, expires: expires.to_string() }
    }
}

/// Who an upload of a collection is for.
fn purpose(name: &str, principal: &Principal) -> Purpose {
    Purpose { collection: name.to_owned(), token: principal.id().to_owned() }
}

/// The id that a path or a query names.
pub fn id(text: &str) -> Result<UploadId, Problem> {
    hex::parse(text).ok_or_else(Problem::not_found)
}

/// Starts an upload, of those at `path`.
pub async fn begin(
    app: &App,
    purpose: Purpose,
    path: &str,
    request: Request,
) -> Result<Response, Problem> {
    let body = app.incoming(request)?;
    let UploadRequest { length } = body.json("{\"length\": bytes in all}").await?;
    let uploads = app.uploads.clone();
    let progress = app.blocking(move || uploads.create(purpose, length)).await?;
    let location = format!("{path}/{}", hex::show(&progress.id));
    let location = HeaderValue::from_str(&location).map_err(|_| Problem::internal())?;
    let body = Json(UploadState::from(progress));
    Ok((StatusCode::CREATED, [(names::LOCATION, location)], body).into_response())
}

/// Where an upload is.
pub fn look(app: &App, purpose: &Purpose, upload: &str) -> Result<Json<UploadState>, Problem> {
    Ok(Json(app.uploads.progress(&id(upload)?, purpose)?.into()))
}

/// Appends a piece.
pub async fn piece(
    app: &App,
    purpose: &Purpose,
    upload: &str,
    request: Request,
) -> Result<Response, Problem> {
    let offset = headers::one(request.headers(), &OFFSET_HEADER)?;
    let offset = offset.and_then(|offset| offset.parse::<u64>().ok()).ok_or_else(|| {
        Problem::bad_request("the header Upload-Offset must say where the piece starts, in bytes")
    })?;
    let piece = app.incoming(request)?;
    let offset = app.uploads.append(&id(upload)?, purpose, offset, piece).await?;
    Ok((StatusCode::NO_CONTENT, [(OFFSET_HEADER, HeaderValue::from(offset))]).into_response())
}

/// The four endpoints of uploads of one kind of thing: their tag, paths, operations and what the first of them says; what has to be
/// there. `purpose(&name, &principal)` of the module says whom an upload is for.
macro_rules! upload_endpoints {
    (
        $tag:tt, $all:tt, $one:tt, [$create:tt, $progress:tt, $append:tt, $remove:tt],
        $starts:tt, |$app:ident, $name:ident| $there:block
    ) => {
        #[doc = $starts]
        #[utoipa::path(post, path = $all, tag = $tag, operation_id = $create,
            request_body = UploadRequest,
            params(("name" = String, Path)),
            responses((status = 201, description = "Send pieces.",
                       body = UploadState,
                       headers(("Location" = String, description = "Where pieces go.")))))]
        pub async fn create(
            State($app): State<Arc<App>>,
            Extension(principal): Extension<Principal>,
            Path($name): Path<String>,
            request: Request,
        ) -> Result<Response, Problem> {
            $there;
            let path = $all.replace("{name}", &$name);
            begin(&$app, purpose(&$name, &principal), &path, request).await
        }

        /// How far an upload is: where to go on after a break.
        #[utoipa::path(get, path = $one, tag = $tag, operation_id = $progress,
            params(("name" = String, Path), ("upload" = String, Path)),
            responses((status = 200, description = "Where it is.",
                       body = UploadState)))]
        pub async fn progress(
            State(app): State<Arc<App>>,
            Extension(principal): Extension<Principal>,
            Path((name, upload)): Path<(String, String)>,
        ) -> Result<Json<UploadState>, Problem> {
            look(&app, &purpose(&name, &principal), &upload)
        }

        /// Appends a piece. What came of a piece that broke off stays: ask for the offset and go on there.
        #[utoipa::path(patch, path = $one, tag = $tag, operation_id = $append,
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
        #[utoipa::path(delete, path = $one, tag = $tag, operation_id = $remove,
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
    };
}
pub(super) use upload_endpoints;

upload_endpoints!(
    "uploads",
    "/v1/collections/{name}/uploads",
    "/v1/collections/{name}/uploads/{upload}",
    ["upload", "upload_progress", "upload_piece", "upload_delete"],
    "Starts an upload, for the token that asks and the collection that it names.",
    |app, name| {
        // The collection must be there: an upload for another is disk space for nothing.
        app.collection(&name).await?;
    }
);
