//! Endpoints about tokens: what they may do, and until when. They never show a token or its hash.

use crate::auth::issuers::Identity;
use crate::auth::tokens::TokenEntry;
use crate::auth::{Access, Limits, Principal, Sender, Verb};
use crate::http::app::App;
use crate::http::problem::Problem;
use axum::Json;
use axum::extract::{Extension, State};
use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// What is known of a token.
#[derive(Serialize, ToSchema)]
pub struct TokenState {
    /// What audit lines call it: 16 hex digits.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    id: String,
    /// What the operator calls it.
    name: String,
    /// Exact names of collections and programs, prefixes that end in `*`, or `*`.
    collections: Vec<String>,
    /// What it may do there.
    verbs: Vec<Verb>,
    /// When it was made, RFC 3339.
    #[schema(format = "date-time")]
    created: String,
    /// When it stops; absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time", nullable = false)]
    expires: Option<String>,
    /// When it was revoked; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time", nullable = false)]
    revoked: Option<String>,
    /// What it may use.
    #[serde(skip_serializing_if = "Limits::is_none")]
    #[schema(required = false)]
    limits: Limits,
    /// `live`, `expired`, `revoked` or `not yet valid`.
    state: &'static str,
}

impl TokenState {
    fn of(entry: &TokenEntry) -> Self {
        TokenState {
            id: entry.id.clone(),
            name: entry.name.clone(),
            collections: entry.collections.clone(),
            verbs: entry.verbs.clone(),
            created: entry.created.to_string(),
            expires: entry.expires.map(|time| time.to_string()),
            revoked: entry.revoked.map(|time| time.to_string()),
            limits: entry.limits,
            state: entry.state(Timestamp::now()),
        }
    }
}

/// Whom an issuer's token names.
#[derive(Serialize, ToSchema)]
pub struct IdentityState {
    /// What audit lines call it: 32 hex digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    id: String,
    /// Who vouches for it.
    issuer: String,
    /// What the issuer calls it.
    subject: String,
    /// What it may do, where.
    grants: Vec<GrantState>,
    /// What it may use: of several of its grants, the least.
    #[serde(skip_serializing_if = "Limits::is_none")]
    #[schema(required = false)]
    limits: Limits,
    /// When the token stops, RFC 3339.
    #[schema(format = "date-time")]
    expires: String,
}

/// Permissions on some collections.
#[derive(Serialize, ToSchema)]
pub struct GrantState {
    /// Exact names of collections and programs, prefixes that end in `*`, or `*`.
    collections: Vec<String>,
    /// What may be done there.
    verbs: Vec<Verb>,
}

impl IdentityState {
    fn of(identity: &Identity) -> Self {
        let grants = identity.scopes().map(|scope| GrantState {
            collections: scope.collections.to_vec(),
            verbs: scope.verbs.to_vec(),
        });
        IdentityState {
            id: identity.id.clone(),
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
            grants: grants.collect(),
            limits: identity.limits,
            expires: identity.expires.to_string(),
        }
    }
}

/// Who asks.
#[derive(Serialize, ToSchema)]
pub struct OwnToken {
    /// Whether requests need a token here. If not, everyone on this machine may do everything.
    required: bool,
    /// Whether the sender may read the metrics.
    metrics: bool,
    /// Whether the sender has admin on every collection.
    operator: bool,
    /// The token that came; absent where none is needed, and where an issuer signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<TokenState>,
    /// Whom the token names that an issuer signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    identity: Option<IdentityState>,
}

/// The tokens of this server.
#[derive(Serialize, ToSchema)]
pub struct TokenListing {
    /// Whether requests need a token here; if not, there are none to list.
    required: bool,
    /// One entry each, in the order in which they were made.
    tokens: Vec<TokenState>,
}

/// What the token of this request may do.
#[utoipa::path(get, path = "/v1/token", tag = "service", operation_id = "token",
    responses((status = 200, description = "Its scope.", body = OwnToken)))]
pub async fn own(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Json<OwnToken> {
    let (token, identity) = match principal.sender() {
        None => (None, None),
        Some(Sender::Token(entry)) => (Some(TokenState::of(entry)), None),
        Some(Sender::Identity(identity)) => (None, Some(IdentityState::of(identity))),
    };
    Json(OwnToken {
        required: app.needs_token(),
        metrics: principal.meets(Access::Metrics, ""),
        operator: principal.meets(Access::Operator, ""),
        token,
        identity,
    })
}

/// Every token's scope and state, for whoever has admin on every collection. Tokens themselves are
/// not stored.
#[utoipa::path(get, path = "/v1/tokens", tag = "service", operation_id = "tokens",
    responses((status = 200, description = "In the order in which they were made.", body = TokenListing)))]
pub async fn list(State(app): State<Arc<App>>) -> Result<Json<TokenListing>, Problem> {
    let Some(file) = &app.tokens else {
        return Ok(Json(TokenListing { required: app.needs_token(), tokens: Vec::new() }));
    };
    let unreadable = || Problem::busy("the token file cannot be read", Duration::from_secs(5));
    let entries = file.list().ok_or_else(unreadable)?;
    let tokens = entries.iter().map(|entry| TokenState::of(entry)).collect();
    Ok(Json(TokenListing { required: true, tokens }))
}
