//! The endpoint of commits: applies a change frame and answers with the new version.

use crate::auth::Principal;
use crate::change::{Decoder, Frame, UploadRef};
use crate::hex;
use crate::http::app::App;
use crate::http::body::{Incoming, Share};
use crate::http::change_access;
use crate::http::headers;
use crate::http::idempotency;
use crate::http::problem::{Problem, ProblemDetails};
use crate::storage::{Amount, DatabaseError, Pieces, Purpose};
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header as names;
use ciphervec::store::Committed;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use utoipa::ToSchema;

/// What a commit made.
#[derive(Serialize, ToSchema)]
pub struct CommitAnswer {
    /// The number of the commit.
    version: u64,
    /// Hash of the new manifest: 64 hex digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    head: String,
    /// Whether it had been made before, under the same Idempotency-Key.
    replayed: bool,
}

/// Reads a change frame as it arrives, and hashes it if asked to.
///
/// # Errors
/// 400 for what is no change frame, and those of the body.
pub async fn read_frame(
    mut body: Incoming,
    share: &mut Share,
    hashed: bool,
) -> Result<(Frame, blake3::Hasher), Problem> {
    let mut decoder = Decoder::new(body.limit(), body.length());
    let mut hasher = blake3::Hasher::new();
    while let Some(bytes) = body.next().await? {
        share.grow(bytes.len() as u64)?;
        if hashed {
            hasher.update(&bytes);
        }
        decoder.push(&bytes)?;
    }
    Ok((decoder.finish()?, hasher))
}

/// Applies a change frame: all of it durably, or nothing. With the permission append it may only add segments that have wrapped
/// keys; write may change rows and set the attachment that authenticates the state; admin may do the rest.
#[utoipa::path(post, path = "/v1/collections/{name}/commits", tag = "collections", operation_id = "commit",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A change frame."),
    params(("name" = String, Path),
           ("If-Match" = Option<String>, Header, description = "Commit only on top of this ETag."),
           ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 128 visible ASCII characters: the same key with the same bytes is one commit.")),
    responses((status = 200, description = "It is durable.", body = CommitAnswer),
              (status = 403, description = "The token is not for all of it.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 409, description = "A segment is there already, or an upload that it names is not finished.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 412, description = "The collection is at another head.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 422, description = "The key was used for another change.", body = ProblemDetails,
                  content_type = "application/problem+json"),
              (status = 507, description = "There is no room, on the disk or within the token's limits.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn commit(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<CommitAnswer>, Problem> {
    let expect = expected_head(headers::one(request.headers(), &names::IF_MATCH)?)?;
    let key = idempotency::key(request.headers())?;
    let collection = app.collection(&name).await?;
    let mut share = app.buffers.share();
    let body = app.incoming(request)?;
    let (frame, hasher) = read_frame(body, &mut share, key.is_some()).await?;
    let key = key.map(|key| idempotency::commit_key(key, &hasher));
    let uploaded = frame.uploaded_bytes();
    if uploaded > app.limits.max_upload {
        let says =
            format!("uploads of {uploaded} bytes, one commit takes {}", app.limits.max_upload);
        return Err(Problem::too_large(says).hint("commit fewer segments at once"));
    }
    share.grow(uploaded)?;
    let purpose = Purpose { collection: name, token: principal.id().to_owned() };
    let held = app.clone();
    let committed = app.blocking(move || {
        // It goes on when the client leaves, and so does what it holds.
        let _share = share;
        // The uploads of a commit are gone when its answer is lost and it is sent again.
        if let Some(before) = collection.committed(key)? {
            return Ok::<_, Problem>(before);
        }
        let App { uploads, metrics, .. } = &*held;
        let used: Vec<_> = frame.uploads().map(|upload| upload.upload).collect();
        let read =
            |upload: &UploadRef| uploads.read(&upload.upload, &purpose).map_err(Problem::from);
        let change = frame.into_change(read)?;
        let checked = change_access::check(&principal, collection.name(), &change);
        checked.map_err(|(verb, part)| {
            metrics.deny(verb.as_str());
            Problem::forbidden(verb, &part)
        })?;
        let adds = Amount::of_change(&change, &collection.state().manifest);
        let _room = held.room(&principal, collection.name(), adds)?;
        let start = Instant::now();
        let committed = collection.commit(change, expect, key).map_err(explain)?;
        metrics.commit(start.elapsed());
        for upload in used {
            // One that has expired in the meantime is gone as it should be.
            let _ = uploads.delete(&upload, &purpose);
        }
        Ok(committed)
    });
    let Committed { version, head, replayed } = committed.await?;
    Ok(Json(CommitAnswer { version, head: hex::show(&head), replayed }))
}

/// A segment that is not there makes the change wrong, not the path.
fn explain(error: DatabaseError) -> Problem {
    match error {
        DatabaseError::NotFound(says) => Problem::bad_request(says)
            .hint("read the collection again and rebuild the change on it"),
        error => error.into(),
    }
}

/// The head of `"<head>"`; none for `*`, which any state matches.
fn expected_head(value: Option<&str>) -> Result<Option<[u8; 32]>, Problem> {
    let Some(value) = value.filter(|value| *value != "*") else { return Ok(None) };
    let head = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let head = head.and_then(hex::parse::<32>);
    head.map(Some).ok_or_else(|| {
        Problem::bad_request("If-Match must be the ETag of a state: 64 hex digits in quotes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_match_is_an_etag_or_anything() {
        let head = [0xab; 32];
        let quoted = format!("\"{}\"", hex::show(&head));
        assert!(matches!(expected_head(Some(&quoted)), Ok(Some(found)) if found == head));
        assert!(matches!(expected_head(None), Ok(None)));
        assert!(matches!(expected_head(Some("*")), Ok(None)));
        for bad in ["", "\"\"", &hex::show(&head), "W/\"ab\"", &quoted.to_uppercase()] {
            assert!(expected_head(Some(bad)).is_err(), "{bad}");
        }
    }
}
