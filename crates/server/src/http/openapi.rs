//! The OpenAPI 3.1 document, made from the table of endpoints.

use super::endpoints::{endpoints, operation};
use super::problem::{MEDIA_TYPE, ProblemDetails};
use crate::auth::Access;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "ciphervec",
        description = "An encrypted vector database: the server holds no key. Errors are problem details (RFC 9457)."
    ),
    components(schemas(ProblemDetails))
)]
struct Frame;

const SCHEME: &str = "token";

/// What every endpoint has in common, by what it needs.
fn add_common(operation: &mut Operation, access: Access) {
    answer(operation, 400, "The request is not what it must be.");
    answer(operation, 500, "The server failed; its log says why.");
    if access == Access::Public {
        return;
    }
    let needs = SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, []);
    operation.security = Some(vec![needs]);
    answer(operation, 401, "No token, or not a live one.");
    answer(operation, 403, "The token is not for that, or without tokens another host is meant.");
    answer(operation, 404, "Not there, or not for this token.");
    answer(operation, 429, "The token has too many requests in flight.");
    answer(operation, 503, "Busy: Retry-After says when to come back.");
    if operation.request_body.is_some() {
        answer(operation, 408, "The body stopped.");
        answer(operation, 413, "The body is too large.");
        answer(operation, 507, "No space left.");
    }
    if matches!(access, Access::Collection(_) | Access::Program(_)) {
        answer(operation, 422, "Written by a later release, or not possible here.");
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
fn document() -> utoipa::openapi::OpenApi {
    let mut document = Frame::openapi();
    for endpoint in endpoints() {
        let mut part = endpoint.document;
        for item in part.paths.paths.values_mut() {
            if let Some((_, operation)) = operation(item) {
                add_common(operation, endpoint.access);
            }
        }
        document.merge(part);
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("cv1_…").build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(bearer));
    document
}

/// The document as JSON.
pub fn openapi_json() -> String {
    // Names and sentences of our own always serialise.
    document().to_pretty_json().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn router_and_document_have_the_same_endpoints() {
        let text: serde_json::Value = serde_json::from_str(&super::openapi_json()).expect("JSON");
        assert_eq!(text["openapi"], "3.1.0");
        let mut documented = BTreeSet::new();
        for (path, item) in text["paths"].as_object().expect("paths") {
            for method in
                item.as_object().expect("an item").keys().filter(|key| *key != "parameters")
            {
                documented.insert((method.to_uppercase(), path.clone()));
            }
        }
        let endpoints = super::endpoints();
        // Of two rows for one method and path the document would keep one.
        assert_eq!(documented.len(), endpoints.len());
        let documented: BTreeSet<_> = documented.into_iter().map(|(_, path)| path).collect();
        assert_eq!(documented, endpoints.into_iter().map(|one| one.path).collect());
    }
}
