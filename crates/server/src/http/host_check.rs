//! Whether this machine meant a request that has no token.
//!
//! Without tokens whoever reaches the port may do everything, and only programs of this machine
//! reach a loopback port. A browser is one of them, and runs the scripts of strangers: such a page
//! can send requests to a local port, and, by giving its own name the address 127.0.0.1 (DNS
//! rebinding), read the answers as well. Both are told by headers that no script can set. A proxy is
//! another: through it strangers reach the port under a local name. Where it says that it passes
//! something on, it is not asked for.

use crate::http::problem::Problem;
use crate::origin::is_local;
use axum::http::header::{FORWARDED, HOST, ORIGIN, VIA};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderName, StatusCode, Uri};

/// Lets through what was sent to, and from, a name that only this machine has, and not passed on.
///
/// # Errors
/// 403 for another `Host`, or none, for another `Origin`, for headers of a proxy.
pub(crate) fn check(parts: &Parts) -> Result<(), Problem> {
    let refused = |says: String| {
        Err(Problem::new(StatusCode::FORBIDDEN, "foreign-request", says).hint(
            "ask by http://127.0.0.1 or localhost; behind a proxy make tokens: ciphervec token create",
        ))
    };
    let passed_on = |name: &&HeaderName| {
        **name == FORWARDED
            || **name == VIA
            || name.as_str() == "x-real-ip"
            || name.as_str().starts_with("x-forwarded")
    };
    if let Some(name) = parts.headers.keys().find(passed_on) {
        return refused(format!(
            "without tokens only programs of this machine are answered: the header {name} says that a proxy \
             passed this request on"
        ));
    }
    let meant = match parts.uri.authority() {
        Some(authority) => is_local(authority.host()),
        None => {
            parts.headers.contains_key(HOST)
                && each(parts, &HOST, |host| {
                    host.parse::<Authority>().is_ok_and(|authority| is_local(authority.host()))
                })
        }
    };
    let ours = each(parts, &ORIGIN, |origin| {
        origin.parse::<Uri>().is_ok_and(|origin| origin.host().is_some_and(is_local))
    });
    if meant && ours {
        return Ok(());
    }
    let header = if meant { "Origin" } else { "Host" };
    refused(format!(
        "without tokens only requests to localhost are answered: the header {header} is missing, or names another host"
    ))
}

fn each(parts: &Parts, name: &HeaderName, is_fine: impl Fn(&str) -> bool) -> bool {
    parts.headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(&is_fine))
}
