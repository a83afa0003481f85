//! The table of endpoints: which method and path, what a token needs, who answers. The server's side.

pub mod blobs;
pub mod collections;
pub mod commits;
pub mod query;
pub mod service;
pub mod upkeep;
pub mod uploads;

use crate::access::Access;
use crate::app::{App, Endpoint};
use crate::problem::Problem;
use crate::tokens::Verb;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use std::sync::Arc;

const READ: Access = Access::Collection(&[Verb::Read]);
const READ_OR_QUERY: Access = Access::Collection(&[Verb::Read, Verb::Query]);
const QUERY: Access = Access::Collection(&[Verb::Query]);
const WRITE: Access = Access::Collection(&[Verb::Write]);
const ADMIN: Access = Access::Collection(&[Verb::Admin]);

/// Every endpoint; the router and the authorisation tests are made from it.
pub fn endpoints() -> Vec<Endpoint> {
    let on = |method: Method, path, access, action, handler: MethodRouter<Arc<App>>| Endpoint {
        method,
        path,
        access,
        action,
        handler,
    };
    let (list, one) = ("/v1/collections", "/v1/collections/{name}");
    let upload = "/v1/collections/{name}/uploads/{upload}";
    let snapshot = "/v1/collections/{name}/snapshots/{snapshot}";
    vec![
        on(Method::GET, "/healthz", Access::Public, "health", get(service::health)),
        on(Method::GET, "/readyz", Access::Public, "ready", get(service::ready)),
        on(Method::GET, "/metrics", Access::Metrics, "metrics", get(service::metrics)),
        on(Method::GET, "/openapi.json", Access::Public, "document", get(service::document)),
        on(Method::GET, "/v1", Access::Public, "about", get(service::about)),
        on(Method::GET, list, Access::Token, "list", get(collections::list)),
        on(Method::PUT, one, ADMIN, "create", put(collections::create)),
        on(Method::GET, one, READ_OR_QUERY, "describe", get(collections::describe)),
        on(Method::DELETE, one, ADMIN, "drop", delete(collections::remove)),
        on(Method::POST, "/v1/collections/{name}/commits", WRITE, "commit", post(commits::commit)),
        on(Method::POST, "/v1/collections/{name}/query", QUERY, "query", post(query::query)),
        on(
            Method::GET,
            "/v1/collections/{name}/attachments/{attachment}",
            READ,
            "attachment",
            get(blobs::attachment),
        ),
        on(
            Method::GET,
            "/v1/collections/{name}/segments/{segment}/{blob}",
            READ,
            "blob",
            get(blobs::segment),
        ),
        on(Method::POST, "/v1/collections/{name}/uploads", WRITE, "upload", post(uploads::create)),
        on(Method::GET, upload, WRITE, "upload-progress", get(uploads::progress)),
        on(Method::PATCH, upload, WRITE, "upload-piece", patch(uploads::append)),
        on(Method::DELETE, upload, WRITE, "upload-delete", delete(uploads::remove)),
        on(Method::POST, "/v1/collections/{name}/compact", ADMIN, "compact", post(upkeep::compact)),
        on(Method::POST, "/v1/collections/{name}/purge", WRITE, "purge", post(upkeep::purge)),
        on(Method::POST, "/v1/collections/{name}/verify", ADMIN, "verify", post(upkeep::verify)),
        on(Method::GET, "/v1/collections/{name}/snapshots", ADMIN, "snapshots", get(upkeep::list)),
        on(Method::PUT, snapshot, ADMIN, "snapshot", put(upkeep::take)),
        on(Method::DELETE, snapshot, ADMIN, "snapshot-drop", delete(upkeep::drop_snapshot)),
        on(
            Method::POST,
            "/v1/collections/{name}/snapshots/{snapshot}/restore",
            ADMIN,
            "restore",
            post(upkeep::restore),
        ),
    ]
}

/// The one value of a header.
///
/// # Errors
/// 400 if there are several, or if it is not ASCII.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(Problem::bad_request(format!("the header {name} must be ASCII, and there once"))),
    }
}
