//! Errors as `application/problem+json`, with no secret in them.

use crate::auth::{Full, Stored, Turned, Verb};
use crate::change::ChangeError;
use crate::hex;
use crate::storage::{DatabaseError, UploadError};
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// The media type of every error.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// The header that says how much of an upload is there.
pub const OFFSET_HEADER: HeaderName = HeaderName::from_static("upload-offset");

/// An error as RFC 9457 has it: what happened, and what to do next.
#[derive(Serialize, ToSchema)]
pub struct ProblemDetails<'a> {
    /// Stable name of the kind of error, `urn:ciphervec:` and one of the kinds in the documentation.
    #[serde(rename = "type")]
    kind: String,
    /// The kind in words.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// This occurrence of it.
    detail: &'a str,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hint: Option<&'a str>,
    /// Which limit of a token is reached: `in-flight`, `rate`, `queries-per-day`, `max-bytes` or `max-rows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit: Option<&'static str>,
    /// The collection's version now, where a commit expected another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<u64>,
    /// The collection's head now, where a commit expected another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    head: Option<String>,
}

/// A limit of a token that is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// Requests in flight.
    InFlight,
    /// Requests in a time.
    Rate,
    /// Queries of a day.
    QueriesPerDay,
    /// Bytes stored.
    MaxBytes,
    /// Rows stored.
    MaxRows,
}

impl Reached {
    /// Its name in answers and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Reached::InFlight => "in-flight",
            Reached::Rate => "rate",
            Reached::QueriesPerDay => "queries-per-day",
            Reached::MaxBytes => "max-bytes",
            Reached::MaxRows => "max-rows",
        }
    }
}

/// An error on its way to a client.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    hint: Option<String>,
    /// Which limit of a token is reached.
    limit: Option<Reached>,
    /// Version and head of the collection now.
    current: Option<Box<(u64, [u8; 32])>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// What was wrong with the store, as metrics have it.
    storage: Option<&'static str>,
}

/// What metrics count of a problem; it travels with the answer.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Its type.
    pub kind: &'static str,
    /// What was wrong with the store, if it was the store.
    pub storage: Option<&'static str>,
}

impl Problem {
    /// An error of that status and kind.
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let (hint, limit, current, headers) = (None, None, None, Vec::new());
        Problem { status, kind, detail, hint, limit, current, headers, storage: None }
    }

    fn storage(mut self, reason: &'static str) -> Self {
        self.storage = Some(reason);
        self
    }

    /// The same with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with another header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same with when to try again, in whole seconds rounded up.
    #[must_use]
    pub fn retry_after(self, pause: Duration) -> Self {
        let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    /// The same with the limit of a token that is reached.
    #[must_use]
    pub fn limit(mut self, limit: Reached) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The limit of a token that is reached.
    pub fn reached(&self) -> Option<&'static str> {
        self.limit.map(Reached::as_str)
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What happened.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The seconds of its Retry-After header.
    pub fn pause(&self) -> Option<u64> {
        let mut named = self.headers.iter().filter(|(name, _)| *name == header::RETRY_AFTER);
        named.next()?.1.to_str().ok()?.parse().ok()
    }

    /// 400.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// 401: the same for every token that is no good, so that nothing is learnt about which are.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a valid token is needed")
            .hint(
                "send the header \"Authorization: Bearer cv1_…\"; the operator makes one with: \
                 ciphervec token create",
            )
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 403: the token is for this collection, but not for that.
    pub fn forbidden(verb: Verb, part: &str) -> Self {
        // What an owner's client has are all verbs but one.
        let all =
            if verb == Verb::Admin { "" } else { "; an owner's client has --permission owner" };
        let verb = verb.as_str();
        let says = format!("{part} takes a token with the permission {verb}");
        Self::new(StatusCode::FORBIDDEN, "forbidden", says).hint(format!(
            "nothing was changed; ask the operator for such a token: ciphervec token create --permission {verb}{all}"
        ))
    }

    /// 404: the same for what is not there and for what the token may not see.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "not there, or not for this token").hint(
            "check the name, and the collections and permissions of the token: ciphervec token list",
        )
    }

    /// 413.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
            .hint("send large blobs as uploads, in pieces, or split the request")
    }

    /// 503: more work than the server takes on at once.
    pub fn busy(detail: &str, pause: Duration) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
            .hint("wait as long as Retry-After says and send the same request again")
            .retry_after(pause)
    }

    /// 507.
    pub fn full(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "full", detail)
            .hint("free some space on the server, then send the request again")
    }

    /// 500: the cause is in the server's log, under the request's id.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed")
            .hint("the operator finds the cause in the log under the X-Request-Id of this answer")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let details = ProblemDetails {
            kind: format!("urn:ciphervec:{}", self.kind),
            title: self.kind.replace('-', " "),
            status: self.status.as_u16(),
            detail: &self.detail,
            hint: self.hint.as_deref(),
            limit: self.reached(),
            version: self.current.as_ref().map(|current| current.0),
            head: self.current.as_ref().map(|current| hex::show(&current.1)),
        };
        // A struct of strings and numbers always serialises.
        let body = serde_json::to_vec(&details).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        response.extensions_mut().insert(Counted { kind: self.kind, storage: self.storage });
        response.headers_mut().extend(self.headers);
        let media_type = HeaderValue::from_static(MEDIA_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        response
    }
}

impl From<Turned> for Problem {
    fn from(turned: Turned) -> Self {
        let many = |limit, says: String| {
            Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", says).limit(limit)
        };
        match turned {
            Turned::InFlight(limit) => {
                many(Reached::InFlight, format!("this token has {limit} requests in flight already"))
                    .hint("wait for answers, or use another token for the other half of the work")
                    .retry_after(Duration::from_secs(1))
            }
            Turned::Rate(rate, wait) => {
                many(Reached::Rate, format!("this token may send {rate} requests, and has sent them"))
                    .hint("wait as long as Retry-After says, or have the operator raise the token's --rate or --burst")
                    .retry_after(wait)
            }
            Turned::Queries(quota, wait) => many(
                Reached::QueriesPerDay,
                format!("this token may ask {quota} queries a day, and has asked them"),
            )
            .hint("the next day begins at 0:00 UTC; the operator can raise the token's --queries-per-day")
            .retry_after(wait),
            Turned::TooMany(quota) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "limit",
                format!("this token may ask {quota} queries a day, fewer than came at once"),
            )
            .limit(Reached::QueriesPerDay)
            .hint("ask fewer queries at once, or have the operator raise the token's --queries-per-day"),
            Turned::Uncounted(error) => {
                tracing::error!(error, "the queries of a token with a daily quota are not answered");
                Self::busy("the queries of this token cannot be counted", Duration::from_secs(5))
            }
            Turned::Full(Full { of, most, adds, after }) => {
                let (limit, unit) = match of {
                    Stored::Bytes => (Reached::MaxBytes, "bytes"),
                    Stored::Rows => (Reached::MaxRows, "rows"),
                };
                let says = format!(
                    "this token's collections may have {most} {unit} together; with the {adds} that came they would have {after}"
                );
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "full", says).limit(limit).hint(format!(
                    "nothing was changed; remove rows and optimize, drop snapshots, or have the operator raise the token's --{}",
                    limit.as_str()
                ))
            }
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::TooLarge { .. } => Self::too_large(error.to_string()),
            _ => Self::bad_request(error.to_string())
                .hint("docs/http-api.md describes the change frame"),
        }
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        let says = error.public();
        match &error {
            DatabaseError::NotFound(_) => Self::not_found(),
            DatabaseError::Exists(_) => Self::new(StatusCode::CONFLICT, "exists", says)
                .hint("choose another name, or open what is there"),
            DatabaseError::SegmentExists(_) => {
                Self::new(StatusCode::CONFLICT, "segment-exists", says)
                    .hint("it arrived before: go on with what else there is to send")
            }
            DatabaseError::KeysMissing(_) => {
                Self::new(StatusCode::CONFLICT, "query-keys-missing", says)
                    .hint("put them to …/query-keys, then send the same query again")
            }
            DatabaseError::FetchKeysMissing(_) => {
                Self::new(StatusCode::CONFLICT, "fetch-keys-missing", says)
                    .hint("put them to …/fetch-keys, then send the same query again")
            }
            DatabaseError::TableMoved => Self::new(StatusCode::GONE, "fetch-table-gone", says)
                .hint("read the collection again, and fetch from the table of its present state"),
            DatabaseError::SessionExists(_) => Self::new(StatusCode::CONFLICT, "exists", says)
                .hint("begin another session, of a number drawn at random"),
            DatabaseError::Conflict { version, head, .. } => {
                let mut problem = Self::new(StatusCode::PRECONDITION_FAILED, "conflict", says)
                    .hint("read the collection again, rebuild the change on it, and commit with its ETag");
                problem.current = Some(Box::new((*version, *head)));
                problem
            }
            DatabaseError::KeyReused => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "key-reused", says).hint(
                    "a retry sends the same bytes; another change takes another Idempotency-Key",
                )
            }
            DatabaseError::Invalid(_) => Self::bad_request(says),
            DatabaseError::Unsupported(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unsupported", says)
            }
            DatabaseError::Limit(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "limit", says)
                .hint("ask for less, or have the operator raise the option that is named"),
            DatabaseError::Deadline(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "deadline", says)
                    .hint("run a smaller program, or have the operator raise the option that is named")
            }
            DatabaseError::Foreign(_) => Self::new(StatusCode::FORBIDDEN, "forbidden", says).hint(
                "use the token that brought them, or one with the permission admin, which may remove them",
            ),
            DatabaseError::Quota(_) => Self::full(says).hint(
                "remove keys, inputs or programs that nobody needs, or have the operator raise --program-quota",
            ),
            DatabaseError::Busy { retry_after } => Self::busy(&says, *retry_after),
            DatabaseError::Descriptors(_) => {
                tracing::error!(%error, "no file descriptors left: raise the limit of open files");
                Self::busy(&says, Duration::from_secs(1)).storage("descriptors")
            }
            DatabaseError::Full(_) => {
                tracing::error!(%error, "no space left");
                Self::full(says).storage("full")
            }
            DatabaseError::ReadOnly(_) => {
                tracing::error!(%error, "the place of the collections takes no writes");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "read-only", says)
                    .hint(
                        "nothing was changed and queries are answered; the operator mounts the data writable, or gives \
                         the server's user the right to write there",
                    )
                    .storage("read-only")
            }
            DatabaseError::Poisoned(_) | DatabaseError::Locked(_) => {
                tracing::error!(%error, "a collection takes no writes");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopped", says)
                    .hint("wait as long as Retry-After says; if it stays, the operator finds the cause in the log")
                    .retry_after(Duration::from_secs(5))
                    .storage("stopped")
            }
            _ => {
                tracing::error!(%error, "storage failed");
                let damaged = matches!(error, DatabaseError::Corrupt(_));
                Self::internal().storage(if damaged { "damaged" } else { "refused" })
            }
        }
    }
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        let says = error.to_string();
        match &error {
            UploadError::NotFound => Self::not_found(),
            UploadError::TooLarge { .. } => Self::too_large(says).hint("seal smaller segments"),
            UploadError::Quota { .. } => Self::full(says).hint(
                "finish or delete uploads, wait until they expire, or have the operator raise --upload-quota",
            ),
            UploadError::Offset { offset, .. } => {
                Self::new(StatusCode::CONFLICT, "upload-offset", says)
                    .hint("go on from the Upload-Offset of this answer")
                    .header(OFFSET_HEADER, HeaderValue::from(*offset))
            }
            UploadError::Beyond { .. } => Self::bad_request(says),
            UploadError::Many { .. } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-requests",
                says,
            )
            .hint("finish or delete uploads, or wait until they expire")
            .retry_after(Duration::from_secs(60)),
            UploadError::Full(error) => {
                tracing::error!(%error, "an upload could not be stored");
                Self::full("no space left for uploads; nothing was changed").storage("full")
            }
            UploadError::ReadOnly(error) => {
                tracing::error!(%error, "the folder of uploads takes no writes");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "read-only", says)
                    .hint("the operator makes the folder of uploads writable, or names another with --spool")
                    .storage("read-only")
            }
            UploadError::Io(error) => {
                tracing::error!(%error, "an upload could not be stored");
                Self::internal().storage("refused")
            }
            UploadError::Descriptors => Self::busy(&says, Duration::from_secs(1)),
            UploadError::Random => Self::internal(),
        }
    }
}
