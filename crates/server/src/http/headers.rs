//! Headers: those of the interface by name, and the one value of any. Server side.

use super::problem::Problem;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

/// The version of the HTTP interface.
pub const API: u32 = 1;
/// The header that says it.
pub const API_HEADER: HeaderName = HeaderName::from_static("ciphervec-api");

/// The one value of a header.
///
/// # Errors
/// 400 if there are several, or if it is not ASCII.
pub fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(Problem::bad_request(format!("the header {name} must be ASCII, and there once"))),
    }
}

/// The length that a request or an answer states.
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The parts that the work on an answer had, and their seconds.
#[derive(Clone)]
pub struct Stages(pub Vec<(&'static str, f64)>);

/// Says in an answer how long its work took, in milliseconds and for whoever observes it.
pub fn set_stages(response: &mut Response, stages: &[(&'static str, f64)]) {
    let parts: Vec<String> =
        stages.iter().map(|(name, seconds)| format!("{name};dur={:.3}", seconds * 1e3)).collect();
    if let Ok(timing) = HeaderValue::from_str(&parts.join(", ")) {
        response.headers_mut().insert("server-timing", timing);
    }
    response.extensions_mut().insert(Stages(stages.to_vec()));
}
