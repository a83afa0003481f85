//! Sends requests of a test and checks every answer: errors are problems, and all say the version of the interface.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking; each test uses some of it"
)]

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use ciphervec_owner::store::Change;
use ciphervec_server::auth::tokens::{self, NewToken, TokenRequest};
use ciphervec_server::auth::{Limits, Verb};
use ciphervec_server::config::ServeOptions;
use ciphervec_server::http::{self, App};
use clap::{Args, Command, FromArgMatches};
use http_body_util::BodyExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tower::ServiceExt;

/// A server in this process, on a folder of its own.
pub struct Site {
    pub folder: tempfile::TempDir,
    pub app: Arc<App>,
    pub router: Router,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap().to_str().unwrap()
    }
}

pub fn options(data: &Path, extra: &[&str]) -> ServeOptions {
    let data = data.to_str().unwrap();
    let words = ["serve", "--data", data].into_iter().chain(extra.iter().copied());
    let matches = ServeOptions::augment_args(Command::new("serve")).get_matches_from(words);
    ServeOptions::from_arg_matches(&matches).unwrap()
}

impl Site {
    /// Without tokens: everyone may do everything.
    pub fn open(extra: &[&str]) -> Self {
        Self::on(tempfile::tempdir().unwrap(), extra)
    }

    pub fn on(folder: tempfile::TempDir, extra: &[&str]) -> Self {
        let app = App::open(&options(&folder.path().join("db"), extra)).unwrap();
        Site { folder, router: http::router(&app), app }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        send(&self.router, method, path, headers, body).await
    }
}

/// As the value of a header: the header is left out.
pub const NO_VALUE: &str = "(none)";

pub async fn send(
    router: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    if path.starts_with('/') && headers.iter().all(|(name, _)| *name != "host") {
        request = request.header("host", "localhost");
    }
    for (name, value) in headers.iter().filter(|(_, value)| *value != NO_VALUE) {
        request = request.header(*name, *value);
    }
    let request = request.body(body.into()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let reply = Reply { status: parts.status, headers: parts.headers, body };
    assert_eq!(reply.header("ciphervec-api"), "1", "{method} {path}");
    assert!(reply.headers.contains_key("x-request-id"), "{method} {path}");
    if reply.status.is_client_error() || reply.status.is_server_error() {
        assert_eq!(reply.header("content-type"), "application/problem+json", "{method} {path}");
        assert_eq!(reply.json()["status"], reply.status.as_u16(), "{method} {path}");
    }
    reply
}

/// A change as it goes over the wire.
pub fn frame(change: &Change) -> Vec<u8> {
    let hex = ciphervec_server::hex::show;
    let blob = |(name, bytes): &(String, Vec<u8>)| serde_json::json!({"name": name, "length": bytes.len()});
    let add = change.add.iter().map(|segment| {
        let blobs: Vec<_> = segment.blobs.iter().map(blob).collect();
        serde_json::json!({"id": hex(&segment.id), "rows": segment.rows, "blobs": blobs})
    });
    let rows = change.delete_rows.iter().map(|(id, rows)| (hex(id), serde_json::json!(rows)));
    let mut json = serde_json::json!({
        "add": add.collect::<Vec<_>>(),
        "remove": change.remove.iter().map(|id| hex(id)).collect::<Vec<_>>(),
        "delete_rows": rows.collect::<serde_json::Map<_, _>>(),
        "attachments": change.attachments.iter().map(blob).collect::<Vec<_>>(),
        "drop_attachments": change.drop_attachments,
    });
    let blobs = change.add.iter().flat_map(|segment| &segment.blobs).map(|(_, bytes)| bytes);
    let mut inline: Vec<u8> = blobs.flatten().copied().collect();
    if let Some(meta) = &change.set_meta {
        json["meta"] = serde_json::json!({"length": meta.len()});
        inline.extend(meta);
    }
    inline.extend(change.attachments.iter().flat_map(|(_, bytes)| bytes));
    raw_frame(&json.to_string(), &inline)
}

pub fn raw_frame(json: &str, inline: &[u8]) -> Vec<u8> {
    let mut bytes = b"CVCHANGE".to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend((json.len() as u32).to_le_bytes());
    bytes.extend(json.as_bytes());
    bytes.extend(inline);
    bytes
}

pub fn make_token(tokens_file: &Path, collection: &str, verbs: &[Verb]) -> NewToken {
    let request = TokenRequest {
        name: "test".into(),
        collections: vec![collection.into()],
        verbs: verbs.to_vec(),
        lifetime: Some(jiff::SignedDuration::from_hours(1)),
        limits: Limits::default(),
    };
    tokens::create(tokens_file, request).unwrap()
}

/// Changes one entry of the token file by hand.
pub fn edit_token(tokens_file: &Path, id: &str, field: &str, value: &str) {
    let text = std::fs::read_to_string(tokens_file).unwrap();
    let mut content: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entries = content["tokens"].as_array_mut().unwrap();
    entries.iter_mut().find(|entry| entry["id"] == id).unwrap()[field] = value.into();
    std::fs::write(tokens_file, content.to_string()).unwrap();
}

/// Every endpoint of the OpenAPI document: `(method, path)`.
pub fn documented() -> Vec<(String, String)> {
    let document: serde_json::Value =
        serde_json::from_str(&ciphervec_server::http::openapi_json()).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let endpoints = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    endpoints.collect()
}
