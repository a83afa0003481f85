//! The router: every endpoint of the table behind its gate.

use super::app::App;
use super::console;
use super::cross_origin;
use super::endpoints::{Endpoint, endpoints};
use super::gate::{self, Gate};
use super::handlers::service::Document;
use super::middleware;
use super::openapi::openapi_json;
use super::problem::Problem;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::{Extension, Router};
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;

/// The router of every endpoint.
pub fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for endpoint in endpoints() {
        let Endpoint { access, action, path, handler, .. } = endpoint;
        let gate = Gate { app: app.clone(), access, action };
        router = router.route(&path, handler.route_layer(from_fn_with_state(gate, gate::check)));
    }
    if app.console {
        router = router.merge(console::pages());
    }
    let router = router
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "not with this method",
            )
            .hint("the header Allow has the methods of this path")
        })
        .layer(CatchPanicLayer::custom(|_| Problem::internal().into_response()));
    // Inside of what counts and numbers answers, for what is asked before a request is one too.
    let router = match cross_origin::layer(&app.origins) {
        Some(layer) => router.layer(layer),
        None => router,
    };
    router
        .layer(from_fn_with_state(app.clone(), middleware::observe))
        .layer(Extension(Document(openapi_json().into())))
        .with_state(app.clone())
}
