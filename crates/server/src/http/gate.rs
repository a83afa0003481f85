//! The authorisation gate before every endpoint: only requests whose token allows them go on.
//!
//! Every endpoint names what it needs in one table, and this middleware stands before each of them:
//! a handler cannot forget it.

use super::app::App;
use super::body::{self, Meter};
use super::host_check;
use super::middleware::{Admitted, RequestId, Stranger};
use super::problem::Problem;
use crate::audit::Line;
use crate::auth::issuers::{Issuers, Verified};
use crate::auth::tokens::Lookup;
use crate::auth::{Access, InFlightGuard, Principal, Sender};
use crate::metrics::Counting;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

/// What an audit line says instead of a status where the client left before its answer.
const LEFT: u16 = 499;

/// What stands before one endpoint.
#[derive(Clone)]
pub struct Gate {
    /// The server.
    pub app: Arc<App>,
    /// What the endpoint needs.
    pub access: Access,
    /// What it does, for audit lines.
    pub action: &'static str,
}

/// Lets a request through, or answers it.
pub async fn check(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let _counting = Counting::new(&gate.app.metrics.in_flight);
    if gate.access == Access::Public {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let collection = match &params {
        Err(_) => None,
        Ok(params) => {
            params.iter().find(|(key, _)| *key == "name").map(|(_, value)| value.to_owned())
        }
    };
    let collection = collection.unwrap_or_default();
    let id = parts.extensions.get::<RequestId>().cloned().unwrap_or_default();
    let meter = parts.extensions.get::<Arc<Meter>>().cloned().unwrap_or_default();
    let principal = gate.principal(&parts).await;
    let mut record = Record {
        gate: gate.clone(),
        id,
        token: principal.as_ref().map_or("-", Principal::id).to_owned(),
        subject: principal.as_ref().ok().and_then(Principal::subject).map(str::to_owned),
        collection: collection.clone(),
        meter,
        outcome: "left",
        status: LEFT,
        sent: 0,
    };
    let admitted = principal.and_then(|principal| {
        // What is refused counts, too.
        let guard = gate.enter(&principal)?;
        if params.is_err() || !principal.meets(gate.access, &collection) {
            gate.app.metrics.deny(gate.access.verb());
            return Err(gate.refusal(&principal, &collection));
        }
        Ok((guard, principal))
    });
    let (response, denied) = match admitted {
        Ok((_guard, principal)) => {
            parts.extensions.insert(principal);
            let mut response = next.run(Request::from_parts(parts, body)).await;
            response.extensions_mut().insert(Admitted);
            (response, false)
        }
        Err(problem) => {
            drop(body);
            let known = problem.status() == StatusCode::TOO_MANY_REQUESTS;
            let mut response = problem.into_response();
            if !known {
                response.extensions_mut().insert(Stranger);
            }
            (response, true)
        }
    };
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    record.outcome = match (denied, failed) {
        (true, _) => "denied",
        (false, true) => "failed",
        (false, false) => "allowed",
    };
    record.status = status.as_u16();
    record.sent = body::sent(&response);
    response
}

/// What an audit line will say; it is written when this is dropped, also when the client leaves
/// before its answer.
struct Record {
    gate: Gate,
    id: RequestId,
    token: String,
    subject: Option<String>,
    collection: String,
    meter: Arc<Meter>,
    outcome: &'static str,
    status: u16,
    sent: u64,
}

impl Drop for Record {
    fn drop(&mut self) {
        self.gate.app.audit.write(&Line {
            time: jiff::Timestamp::now(),
            request: self.id.as_str(),
            token: &self.token,
            subject: self.subject.as_deref(),
            verb: self.gate.access.verb(),
            action: self.gate.action,
            collection: &self.collection,
            outcome: self.outcome,
            status: self.status,
            received: self.meter.received(),
            sent: self.sent,
        });
    }
}

impl Gate {
    async fn principal(&self, parts: &Parts) -> Result<Principal, Problem> {
        if !self.app.needs_token() {
            host_check::check(parts)?;
            return Ok(Principal::anyone());
        }
        let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
        let presented = match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok().and_then(bearer),
            _ => None,
        };
        let presented = presented.unwrap_or_default();
        if let Some(issuers) = self.app.issuers.as_ref().filter(|_| Issuers::is_signed(presented)) {
            return match issuers.verify(presented).await {
                Verified::Known(identity) => Ok(Principal::of(Sender::Identity(identity))),
                Verified::Refused(why) => {
                    tracing::debug!(why, "refused a token of an issuer");
                    Err(Problem::unauthorized())
                }
                Verified::Unreachable => Err(Problem::busy(
                    "the issuer of this token does not answer",
                    Duration::from_secs(5),
                )),
            };
        }
        match self.app.tokens.as_ref().map(|tokens| tokens.find(presented)) {
            Some(Lookup::Known(entry)) => Ok(Principal::of(Sender::Token(entry))),
            Some(Lookup::Unreadable) => {
                Err(Problem::busy("the token file cannot be read", Duration::from_secs(5)))
            }
            None | Some(Lookup::Unknown) => Err(Problem::unauthorized()),
        }
    }

    /// A token that may do nothing with a collection or program is not told whether there is one; any other is
    /// told what it lacks, also where there is none.
    fn refusal(&self, principal: &Principal, collection: &str) -> Problem {
        match self.access {
            Access::Collection([verb, ..]) if principal.knows(collection) => {
                Problem::forbidden(*verb, &format!("the operation {}", self.action))
            }
            Access::Program([verb, ..]) if principal.knows_program(collection) => {
                Problem::forbidden(*verb, &format!("the operation {}", self.action))
            }
            _ => Problem::not_found(),
        }
    }

    fn enter(&self, principal: &Principal) -> Result<Option<InFlightGuard>, Problem> {
        if principal.sender().is_none() {
            return Ok(None);
        }
        let entered = self.app.accounts.enter(principal.id(), &principal.limits());
        entered.map(Some).map_err(|turned| self.app.turned(turned))
    }
}

/// The token of `Bearer <token>`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
