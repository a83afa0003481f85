//! Endpoints and their types enter; one OpenAPI 3.1 document leaves. The server's side.

use crate::access::Access;
use crate::problem::{MEDIA_TYPE, ProblemDetails};
use crate::routes::{self, blobs, collections, commits, query, service, upkeep, uploads};
use axum::http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "ciphervec",
        description = "An encrypted vector database: the server holds no key. Errors are problem details (RFC 9457)."
    ),
    paths(
        service::health,
        service::ready,
        service::metrics,
        service::document,
        service::about,
        collections::list,
        collections::create,
        collections::describe,
        collections::remove,
        commits::commit,
        query::query,
        blobs::attachment,
        blobs::segment,
        uploads::create,
        uploads::progress,
        uploads::append,
        uploads::remove,
        upkeep::compact,
        upkeep::purge,
        upkeep::verify,
        upkeep::list,
        upkeep::take,
        upkeep::drop_snapshot,
        upkeep::restore,
    ),
    components(schemas(ProblemDetails)),
    modifiers(&Common)
)]
struct Document;

/// What every endpoint has in common, by what it needs.
struct Common;

const SCHEME: &str = "token";

impl Modify for Common {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("cv1_…").build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(SCHEME, SecurityScheme::Http(bearer));
        for endpoint in routes::endpoints() {
            let Some(item) = document.paths.paths.get_mut(endpoint.path) else { continue };
            let operation = match endpoint.method {
                Method::GET => &mut item.get,
                Method::PUT => &mut item.put,
                Method::POST => &mut item.post,
                Method::PATCH => &mut item.patch,
                _ => &mut item.delete,
            };
            let Some(operation) = operation else { continue };
            answer(operation, 400, "The request is not what it must be.");
            answer(operation, 500, "The server failed; its log says why.");
            if endpoint.access == Access::Public {
                continue;
            }
            let needs = SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, []);
            operation.security = Some(vec![needs]);
            answer(operation, 401, "No token, or not a live one.");
            answer(operation, 404, "Not there, or not for this token.");
            answer(operation, 429, "The token has too many requests in flight.");
            answer(operation, 503, "Busy: Retry-After says when to come back.");
            if operation.request_body.is_some() {
                answer(operation, 408, "The body stopped.");
                answer(operation, 413, "The body is too large.");
                answer(operation, 507, "No space left.");
            }
            if matches!(endpoint.access, Access::Collection(_)) {
                answer(operation, 422, "Written by a later release, or not possible here.");
            }
        }
    }
}

/// Adds a problem as an answer, unless the endpoint describes that status itself.
fn answer(operation: &mut Operation, status: u16, description: &str) {
    let schema = RefOr::Ref(Ref::from_schema_name("ProblemDetails"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description(description).content(MEDIA_TYPE, content);
    let answers = &mut operation.responses.responses;
    answers.entry(status.to_string()).or_insert_with(|| RefOr::T(response.build()));
}

/// The document.
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// The document as JSON.
pub fn json() -> String {
    // Names and sentences of our own always serialise.
    document().to_pretty_json().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn router_and_document_have_the_same_endpoints() {
        let text: serde_json::Value = serde_json::from_str(&super::json()).expect("JSON");
        assert_eq!(text["openapi"], "3.1.0");
        let mut documented = BTreeSet::new();
        for (path, item) in text["paths"].as_object().expect("paths") {
            for method in
                item.as_object().expect("an item").keys().filter(|key| *key != "parameters")
            {
                documented.insert((method.to_uppercase(), path.clone()));
            }
        }
        let endpoints = crate::routes::endpoints().into_iter();
        let routed = endpoints.map(|one| (one.method.to_string(), one.path.to_owned()));
        assert_eq!(documented, routed.collect());
    }
}
