//! The endpoint of verification: lists every fault of a collection's stored blocks, with progress on request.

use crate::http::app::App;
use crate::http::problem::Problem;
use crate::storage::{DatabaseError, Report};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

const LINES: &str = "application/x-ndjson";
/// The least time between two lines.
const PAUSE: Duration = Duration::from_millis(250);

/// What a verification found.
#[derive(Serialize, ToSchema)]
pub struct Verification {
    /// Whether nothing is damaged.
    sound: bool,
    /// Files read.
    files: u64,
    /// Bytes of payload checked.
    bytes: u64,
    /// Files that no state names.
    strays: u64,
    /// Every fault.
    problems: Vec<Fault>,
}

/// One fault.
#[derive(Serialize, ToSchema)]
pub struct Fault {
    /// The file, as it is called within the collection.
    file: String,
    /// The first byte known to be wrong, or the start of its block.
    offset: u64,
}

impl Verification {
    fn of(name: &str, report: Report) -> Self {
        let problems = report.problems.into_iter().map(|problem| {
            tracing::error!(collection = name, path = %problem.path.display(), offset = problem.offset,
                "{}", problem.message);
            // The folder is the operator's; the file's name says enough to a client.
            let file = problem.path.file_name().map(|file| file.to_string_lossy().into_owned());
            Fault { file: file.unwrap_or_default(), offset: problem.offset }
        });
        let problems: Vec<Fault> = problems.collect();
        let Report { files, bytes, strays, .. } = report;
        Verification { sound: problems.is_empty(), files, bytes, strays, problems }
    }
}

/// A line while a verification goes on, or its last.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum VerificationLine {
    /// How far it has come.
    Progress {
        /// Bytes read.
        done: u64,
        /// Bytes to read.
        total: u64,
    },
    /// What was found; nothing follows.
    Found(Verification),
    /// Why it ended early; nothing follows.
    Failed {
        /// A sentence.
        failed: String,
    },
}

/// Reads every stored block and lists every fault. The log has the paths. With `Accept: application/x-ndjson` lines of JSON come
/// while it goes on: `done` and `total` in bytes, and what was found as the last.
#[utoipa::path(post, path = "/v1/collections/{name}/verify", tag = "upkeep", operation_id = "verify",
    params(("name" = String, Path)),
    responses((status = 200, description = "What was found.",
               content((Verification = "application/json"), (VerificationLine = "application/x-ndjson")))))]
pub async fn verify(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let collection = app.collection(&name).await?;
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accepted.is_some_and(|value| value.split(',').any(|one| one.trim() == LINES)) {
        let report =
            app.blocking::<_, DatabaseError>(move || collection.verify(&mut |_, _| {})).await?;
        return Ok(Json(Verification::of(&name, report)).into_response());
    }
    let (sender, mut progress) = watch::channel((0, 0));
    let work = tokio::spawn(async move {
        let mut tell = move |done, total| {
            sender.send_replace((done, total));
        };
        app.blocking::<_, DatabaseError>(move || collection.verify(&mut tell)).await
    });
    // What fails at once still has a status of its own.
    if progress.changed().await.is_err() {
        let found = VerificationLine::Found(Verification::of(&name, ended(work).await?));
        return Ok(lines(stream::iter([found])));
    }
    Ok(lines(stream::unfold(Some(Watched { name, progress, work }), next)))
}

/// A verification that goes on.
struct Watched {
    name: String,
    progress: watch::Receiver<(u64, u64)>,
    work: JoinHandle<Result<Report, Problem>>,
}

/// The line after the last, and what comes after that.
async fn next(watched: Option<Watched>) -> Option<(VerificationLine, Option<Watched>)> {
    let mut watched = watched?;
    tokio::time::sleep(PAUSE).await;
    if watched.progress.changed().await.is_ok() {
        let (done, total) = *watched.progress.borrow_and_update();
        return Some((VerificationLine::Progress { done, total }, Some(watched)));
    }
    let line = match ended(watched.work).await {
        Ok(report) => VerificationLine::Found(Verification::of(&watched.name, report)),
        Err(problem) => {
            tracing::error!(collection = watched.name, ?problem, "a verification failed");
            VerificationLine::Failed { failed: "the server's log says why".to_owned() }
        }
    };
    Some((line, None))
}

async fn ended(work: JoinHandle<Result<Report, Problem>>) -> Result<Report, Problem> {
    work.await.unwrap_or_else(|_| Err(Problem::internal()))
}

/// An answer of a line of JSON for each.
fn lines(all: impl Stream<Item = VerificationLine> + Send + 'static) -> Response {
    let encoded = all.map(|line| {
        // Numbers and sentences of our own always serialise.
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        Ok::<_, Infallible>(bytes)
    });
    let mut response = Response::new(Body::from_stream(encoded));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}
