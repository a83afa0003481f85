//! Endpoints for whoever runs the server: verification, compaction, snapshots. The server's side.

use crate::app::App;
use crate::collection::Report;
use crate::error::DatabaseError;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

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

/// Reads every stored block and lists every fault. The log has the paths.
#[utoipa::path(post, path = "/v1/collections/{name}/verify", tag = "upkeep", operation_id = "verify",
    params(("name" = String, Path)),
    responses((status = 200, description = "What was found.", body = Verification)))]
pub async fn verify(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Json<Verification>, Problem> {
    let collection = app.collection(&name).await?;
    let report =
        app.blocking::<_, DatabaseError>(move || collection.verify(&mut |_, _| {})).await?;
    Ok(Json(Verification::of(&name, report)))
}
