//! Endpoints of blobs: stored bytes by name and range, every block checked.

use crate::hex;
use crate::http::app::App;
use crate::http::body;
use crate::http::headers;
use crate::http::problem::{Problem, ProblemDetails};
use crate::json_limits::Few;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header as names};
use axum::response::Response;
use serde::Deserialize;
use std::ops::Range;
use std::sync::Arc;
use utoipa::ToSchema;

/// An attachment of the collection as a whole.
#[utoipa::path(get, path = "/v1/collections/{name}/attachments/{attachment}", tag = "blobs",
    operation_id = "attachment",
    params(("name" = String, Path), ("attachment" = String, Path),
           ("Range" = Option<String>, Header, description = "One range of bytes.")),
    responses((status = 200, description = "All of it.", body = Vec<u8>, content_type = "application/octet-stream"),
              (status = 206, description = "The range.", body = Vec<u8>, content_type = "application/octet-stream"),
              (status = 416, description = "No such range.", body = ProblemDetails,
               content_type = "application/problem+json")))]
pub async fn attachment(
    State(app): State<Arc<App>>,
    Path((name, attachment)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let bytes = app.blocking(move || collection.attachment(&attachment)).await?;
    cut(&headers, bytes)
}

/// A blob of a segment: `rows`, `sidecar`, `records` or `tags`.
#[utoipa::path(get, path = "/v1/collections/{name}/segments/{segment}/{blob}", tag = "blobs",
    operation_id = "blob",
    params(("name" = String, Path), ("segment" = String, Path, description = "32 hex digits."),
           ("blob" = String, Path),
           ("Range" = Option<String>, Header, description = "One range of bytes.")),
    responses((status = 200, description = "All of it.", body = Vec<u8>, content_type = "application/octet-stream"),
              (status = 206, description = "The range.", body = Vec<u8>, content_type = "application/octet-stream"),
              (status = 416, description = "No such range.", body = ProblemDetails,
               content_type = "application/problem+json")))]
pub async fn segment(
    State(app): State<Arc<App>>,
    Path((name, segment, blob)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let id = hex::parse::<16>(&segment).ok_or_else(Problem::not_found)?;
    let bytes = app.blocking(move || collection.blob(&id, &blob)).await?;
    cut(&headers, bytes)
}

/// Segments that one request may ask about.
const MOST_SEGMENTS: usize = 1024;
/// Bytes of an answer about several segments, unless the first one has more.
const MOST_BYTES: u64 = 16 << 20;

/// The same blob of several segments.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobsRequest {
    /// `rows`, `sidecar`, `records` or another.
    blob: String,
    /// Ids of the segments, 1 to 1,024: 32 hex digits each.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1024)]
    segments: Few<String, MOST_SEGMENTS>,
}

/// The same blob of several segments, in their order, each behind its length as 8 bytes, little-endian; for one that is not
/// there 2^64 - 1 stands in the place of its length. Where they are more than 16 MiB, those that are left out at the end have to be
/// asked for again.
#[utoipa::path(post, path = "/v1/collections/{name}/blobs", tag = "blobs", operation_id = "blobs",
    request_body = BlobsRequest, params(("name" = String, Path)),
    responses((status = 200, description = "Of the first of them.", body = Vec<u8>, content_type = "application/octet-stream")))]
pub async fn several(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let body = app.incoming(request)?;
    let BlobsRequest { blob, segments } =
        body.json("{\"blob\": name, \"segments\": [ids, at most 1024]}").await?;
    let ids: Option<Vec<_>> = segments.0.iter().map(|id| hex::parse::<16>(id)).collect();
    let ids = ids.filter(|ids| !ids.is_empty()).ok_or_else(|| {
        Problem::bad_request("ids of segments are 32 hex digits each, and at least one is expected")
    })?;
    let found = app.blocking(move || collection.blobs(&ids, &blob, MOST_BYTES)).await?;
    let length = found.iter().map(|blob| 8 + blob.as_ref().map_or(0, Bytes::len)).sum();
    let mut all = Vec::with_capacity(length);
    for blob in found {
        let length = blob.as_ref().map_or(u64::MAX, |blob| blob.len() as u64);
        all.extend_from_slice(&length.to_le_bytes());
        all.extend_from_slice(&blob.unwrap_or_default());
    }
    cut(&HeaderMap::new(), all.into())
}

fn cut(headers: &HeaderMap, bytes: Bytes) -> Result<Response, Problem> {
    let length = bytes.len();
    let asked = match headers::one(headers, &names::RANGE)? {
        None => Asked::All,
        Some(range) => parse(range, length),
    };
    let (status, part, range) = match asked {
        Asked::All => (StatusCode::OK, bytes, None),
        Asked::Part(range) => {
            let says = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            (StatusCode::PARTIAL_CONTENT, bytes.slice(range), Some(says))
        }
        Asked::Nothing => {
            let says = format!("bytes */{length}");
            let range = HeaderValue::from_str(&says).map_err(|_| Problem::internal())?;
            let says = format!("the range lies outside of {length} bytes");
            return Err(Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range", says)
                .header(names::CONTENT_RANGE, range));
        }
    };
    let part_length = HeaderValue::from(part.len());
    let mut response = Response::new(body::pieces(part));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(names::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(names::CONTENT_LENGTH, part_length);
    headers.insert(names::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(range) = range {
        let range = HeaderValue::from_str(&range).map_err(|_| Problem::internal())?;
        headers.insert(names::CONTENT_RANGE, range);
    }
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    All,
    Part(Range<usize>),
    Nothing,
}

/// RFC 9110, section 14: what is no range of bytes is ignored, and so are several ranges at once.
fn parse(range: &str, length: usize) -> Asked {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return Asked::All;
    };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // One that overflows lies beyond every blob.
        digits.then(|| text.parse::<usize>().unwrap_or(usize::MAX))
    };
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(count)) if first.is_empty() => length - count.min(length)..length,
        _ => return Asked::All,
    };
    if range.is_empty() { Asked::Nothing } else { Asked::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_standard() {
        for (range, expected) in [
            ("bytes=0-3", Asked::Part(0..4)),
            ("bytes=8-", Asked::Part(8..10)),
            ("bytes=8-99", Asked::Part(8..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-99", Asked::Part(0..10)),
            ("bytes=0-99999999999999999999999", Asked::Part(0..10)),
            ("bytes=10-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=99999999999999999999999-", Asked::Nothing),
            ("bytes=3-1", Asked::All),
            ("bytes=0-1,3-4", Asked::All),
            ("bytes=-", Asked::All),
            ("bytes=+1-2", Asked::All),
            ("lines=0-1", Asked::All),
        ] {
            assert_eq!(parse(range, 10), expected, "{range}");
        }
    }
}
