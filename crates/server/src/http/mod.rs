//! The HTTP interface: endpoints, problems and the OpenAPI description.

mod app;
mod body;
mod change_access;
mod console;
mod cross_origin;
mod endpoints;
mod gate;
mod handlers;
mod headers;
mod host_check;
mod idempotency;
mod middleware;
mod openapi;
mod problem;
mod query_string;
mod room;
mod router;

pub use app::{App, Limits};
pub use openapi::openapi_json;
pub use problem::Problem;
pub use router::router;
