//! What a server's refusal means to the caller.

use serde::Deserialize;

use crate::error::Error;
use crate::host::Head;
use crate::json;

/// Characters of a server's words that are repeated.
const LONGEST: usize = 600;
const MOST_READ: usize = 65_536;

/// An answer: status and headers, body, and how many attempts failed before it.
#[derive(Debug, Default)]
pub struct Reply {
    pub head: Head,
    pub body: Vec<u8>,
    pub failed: u32,
}

/// The fields of RFC 9457 that are looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    r#type: Option<serde_json::Value>,
    detail: Option<serde_json::Value>,
    hint: Option<serde_json::Value>,
}

fn problem_of(reply: &Reply) -> Problem {
    let read = &reply.body[..reply.body.len().min(MOST_READ)];
    json::read(read).unwrap_or_default()
}

/// Whether an answer is the problem of that type, as docs/http-api.md names them.
pub fn is_problem(reply: &Reply, kind: &str) -> bool {
    let found = problem_of(reply).r#type;
    found
        .as_ref()
        .and_then(serde_json::Value::as_str)
        .and_then(|text| text.strip_prefix("urn:ciphervec:"))
        == Some(kind)
}

/// What the server says went wrong and what to do, in one line of printable characters.
pub fn words(reply: &Reply) -> String {
    let Problem { detail, hint, .. } = problem_of(reply);
    let texts = [detail, hint].into_iter().flatten().filter_map(|text| match text {
        serde_json::Value::String(text) => Some(text.trim().trim_end_matches('.').to_owned()),
        _ => None,
    });
    let said = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(". ");
    match printable(&said, LONGEST) {
        said if said.is_empty() => format!("status {} without an explanation", reply.head.status),
        said => said,
    }
}

/// Whether a request that names uploads was refused because the server no longer has all of them: they expired, or it was started
/// again.
pub fn uploads_gone(reply: &Reply) -> bool {
    reply.head.status == 404 || reply.head.status == 409 && is_problem(reply, "upload-offset")
}

/// Where uploads are gone each time before they are used.
pub fn loses_uploads(doing: &str, server: &str) -> Error {
    Error::server(format!("{doing}: {server} loses uploads. Try again later, or ask its operator."))
}

/// The error for an answer that nobody expected. `doing` starts the message: "cannot read 'faces'".
pub fn error_of(reply: &Reply, doing: &str, server: &str) -> Error {
    let says = words(reply);
    match reply.head.status {
        401 => Error::Authentication(format!(
            "{doing}: {server} does not accept the token ({says}). Pass another one; it comes from `ciphervec token create` on the server."
        )),
        403 => Error::Authentication(format!(
            "{doing}: {server} forbids it ({says}). Ask its operator for a token with more rights."
        )),
        404 => Error::CollectionNotFound(format!(
            "{doing}: {server} says {says}. Create the collection, or use a token that may see this one."
        )),
        0 | 300..400 => {
            let target = printable(reply.head.header("location").unwrap_or("elsewhere"), 200);
            Error::server(format!(
                "{doing}: {server} redirects to {target}, which is not followed: the token would go there. Use that URL itself if it is right."
            ))
        }
        507 => Error::Storage(format!("{doing}: the disk of {server} is full: {says}.")),
        400 | 405 | 413 | 415 | 422 => {
            Error::Input(format!("{doing}: {server} refuses it: {says}."))
        }
        429 | 503 if !is_problem(reply, "stopped") => Error::server(format!(
            "{doing}: {server} is busy and stayed so ({says}). Try again later, or allow a longer timeout."
        )),
        status => {
            let id = reply.head.header("x-request-id").unwrap_or_default();
            let id: String = id
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
                .take(64)
                .collect();
            let which = if id.is_empty() {
                String::new()
            } else {
                format!(" The request is {id} in its log.")
            };
            Error::Server {
                message: format!(
                    "{doing}: {server} failed with status {status} ({says}).{which} Try again, or ask its operator."
                ),
                acted: true,
            }
        }
    }
}

pub fn printable(text: &str, longest: usize) -> String {
    let clean =
        |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
    text.chars().map(clean).take(longest).collect()
}
