//! Endpoints of the service itself: health, versions, metrics and the OpenAPI document.

use crate::change;
use crate::http::app::App;
use crate::http::headers::API;
use crate::http::problem::{Problem, ProblemDetails};
use crate::memory;
use crate::metrics::{self, Reading};
use crate::storage::DatabaseError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// Whether the server runs.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// `ok`.
    status: &'static str,
}

/// What this server is.
#[derive(Serialize, ToSchema)]
pub struct About {
    /// Its version.
    server: &'static str,
    /// The version of the HTTP interface.
    api: u32,
    /// Newest version of each format that it reads.
    formats: Formats,
}

/// Versions of formats.
#[derive(Serialize, ToSchema)]
pub struct Formats {
    /// The change frame.
    change: u32,
}

/// The OpenAPI document, made once.
#[derive(Clone)]
pub struct Document(pub Bytes);

/// Whether the process runs: restart it if not.
#[utoipa::path(get, path = "/healthz", tag = "service", operation_id = "health",
    responses((status = 200, description = "It runs.", body = Health)))]
pub async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether requests should be sent here: not while it starts or drains.
#[utoipa::path(get, path = "/readyz", tag = "service", operation_id = "ready",
    responses((status = 200, description = "Send requests.", body = Health),
              (status = 503, description = "Send none.", body = ProblemDetails,
               content_type = "application/problem+json")))]
pub async fn ready(State(app): State<Arc<App>>) -> Response {
    if app.ready().await {
        return Json(Health { status: "ok" }).into_response();
    }
    Problem::busy("the server is starting or stopping", Duration::from_secs(1)).into_response()
}

/// Prometheus metrics, as OpenMetrics text.
#[utoipa::path(get, path = "/metrics", tag = "service", operation_id = "metrics",
    responses((status = 200, description = "Metrics.", body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let waiting = app.database.waiting();
    let database = app.database.clone();
    let readings = app.blocking::<_, DatabaseError>(move || {
        let open = database.open_collections().into_iter();
        let readings = open.map(|collection| {
            let statistics = collection.statistics();
            Reading {
                name: collection.name().to_owned(),
                rows: statistics.rows,
                bytes: statistics.bytes,
                resident: statistics.resident,
                segments: statistics.segments,
            }
        });
        Ok(readings.collect::<Vec<_>>())
    });
    let programs = &app.programs;
    app.metrics.programs(programs.waiting(), programs.stored(), programs.resident());
    app.metrics.fetch_tables.set(app.database.fetch_tables());
    app.metrics.process.set(memory::resident().unwrap_or_default());
    let text = app.metrics.text(&readings.await?, waiting);
    Ok(([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], text).into_response())
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "service", operation_id = "document",
    responses((status = 200, description = "OpenAPI 3.1.", body = Object, content_type = "application/json")))]
pub async fn document(Extension(Document(text)): Extension<Document>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// What this server is and which versions it speaks.
#[utoipa::path(get, path = "/v1", tag = "service", operation_id = "about",
    responses((status = 200, description = "Versions.", body = About)))]
pub async fn about() -> Json<About> {
    let formats = Formats { change: change::VERSION };
    Json(About { server: env!("CARGO_PKG_VERSION"), api: API, formats })
}
