//! Lets pages of the sites on the operator's list send requests and read the answers.
//!
//! No cookie and no certificate of the browser's is ever asked for: a page has to show a token of
//! its own, so that none speaks in the name of whoever looks at it.

use super::headers::API_HEADER;
use super::problem::OFFSET_HEADER;
use crate::origin::Origin;
use axum::http::{HeaderName, HeaderValue, Method, header};
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser need not ask again.
const REMEMBERED: Duration = Duration::from_secs(600);
/// What requests may carry: every header that the interface has for them.
const SENT: [HeaderName; 9] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::RANGE,
    API_HEADER,
    OFFSET_HEADER,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("x-request-id"),
];
/// What pages may read of answers, beside what every page may.
const READ: [HeaderName; 14] = [
    header::ACCEPT_RANGES,
    header::ALLOW,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::ETAG,
    header::RETRY_AFTER,
    API_HEADER,
    OFFSET_HEADER,
    HeaderName::from_static("ciphervec-evaluation"),
    HeaderName::from_static("ciphervec-head"),
    HeaderName::from_static("ciphervec-receipt"),
    HeaderName::from_static("ciphervec-version"),
    HeaderName::from_static("server-timing"),
    HeaderName::from_static("x-request-id"),
];

/// What answers preflights, and marks answers, for pages of these sites; none where there are none.
pub fn layer(origins: &[Origin]) -> Option<CorsLayer> {
    let listed = origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok());
    let listed: Vec<HeaderValue> = listed.collect();
    if listed.is_empty() {
        return None;
    }
    let methods = [Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE];
    let layer = CorsLayer::new().allow_origin(AllowOrigin::list(listed)).allow_methods(methods);
    Some(layer.allow_headers(SENT).expose_headers(READ).max_age(REMEMBERED))
}
