//! Endpoints of programs: they store plans, keys and encrypted inputs, and answer with encrypted results.

use super::program_uploads;
use super::uploads;
use crate::auth::{Principal, Verb};
use crate::http::app::App;
use crate::http::body::{self, Share};
use crate::http::headers::set_stages;
use crate::http::idempotency;
use crate::http::problem::{Problem, ProblemDetails};
use crate::http::query_string::QueryString;
use crate::storage::UploadId;
use crate::storage::programs::{
    KeptRecord, KeyRecord, PlanRecord, RunRequest, Sender, StoredProgram, is_kept_name, is_key_id,
};
use axum::Json;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderValue, StatusCode, header as names};
use axum::response::{IntoResponse, Response};
use ciphervec::store::CommitKey;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The programs that a token may use.
#[derive(Serialize, ToSchema)]
pub struct ProgramListing {
    /// One entry each, by name.
    programs: Vec<ListedProgram>,
}

/// One program of a listing.
#[derive(Serialize, ToSchema)]
pub struct ListedProgram {
    /// Its name.
    name: String,
    /// The plan's hash: 32 hex digits.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    plan: String,
    /// Clients whose evaluation keys are there.
    keys: u64,
    /// Bytes stored.
    bytes: u64,
}

/// All that the server knows of a program.
#[derive(Serialize, ToSchema)]
pub struct ProgramState {
    /// Its name.
    name: String,
    /// When it came, RFC 3339.
    #[schema(format = "date-time")]
    added: String,
    /// What the plan computes, and what that takes.
    plan: PlanRecord,
    /// Clients by the id of their key, 16 hex digits.
    keys: BTreeMap<String, KeyState>,
    /// Bytes stored.
    bytes: u64,
}

/// The evaluation keys of one client, and what is kept under its key.
#[derive(Serialize, ToSchema)]
pub struct KeyState {
    /// When they came, RFC 3339.
    #[schema(format = "date-time")]
    added: String,
    /// Their bytes.
    bytes: u64,
    /// Whether this token may change what is under them.
    yours: bool,
    /// Kept inputs by name.
    inputs: BTreeMap<String, KeptState>,
}

/// An encrypted input that is kept.
#[derive(Serialize, ToSchema)]
pub struct KeptState {
    /// Which of the plan's inputs it is.
    input: String,
    /// When it came, RFC 3339.
    #[schema(format = "date-time")]
    added: String,
    /// Its bytes.
    bytes: u64,
}

impl ProgramState {
    fn of(program: &StoredProgram, sender: &Sender) -> Self {
        let record = &program.shown().record;
        let kept = |kept: &KeptRecord| KeptState {
            input: kept.input.clone(),
            added: kept.added.to_string(),
            bytes: kept.bytes,
        };
        let key = |keys: &KeyRecord| KeyState {
            added: keys.added.to_string(),
            bytes: keys.bytes,
            yours: sender.admin || keys.token == sender.token,
            inputs: keys.inputs.iter().map(|(name, one)| (name.clone(), kept(one))).collect(),
        };
        ProgramState {
            name: program.name().to_owned(),
            added: record.added.to_string(),
            plan: record.plan.clone(),
            keys: record.keys.iter().map(|(id, keys)| (id.clone(), key(keys))).collect(),
            bytes: record.bytes(None),
        }
    }
}

fn sender(principal: &Principal, program: &str) -> Sender {
    Sender { token: principal.id().to_owned(), admin: principal.allows(Verb::Admin, program) }
}

/// The programs on which the token has any verb that is for programs.
#[utoipa::path(get, path = "/v1/programs", tag = "programs", operation_id = "programs",
    responses((status = 200, description = "By name.", body = ProgramListing)))]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<ProgramListing>, Problem> {
    let programs = app.programs.clone();
    let found = app.blocking(move || programs.all()).await?;
    let known = found.iter().filter(|program| principal.knows_program(program.name()));
    let programs = known.map(|program| {
        let record = &program.shown().record;
        ListedProgram {
            name: program.name().to_owned(),
            plan: record.plan.id.clone(),
            keys: record.keys.len() as u64,
            bytes: record.bytes(None),
        }
    });
    Ok(Json(ProgramListing { programs: programs.collect() }))
}

/// Stores a plan under a name. It is read, checked and tried out on a forecast first; one that takes more than the limits of
/// the server is refused. The same plan again is no change; another one needs another name, or that the program is removed.
#[utoipa::path(put, path = "/v1/programs/{name}", tag = "programs", operation_id = "put_program",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A plan."),
    params(("name" = String, Path, description = "1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit at both ends.")),
    responses((status = 201, description = "It is there.", body = ProgramState),
              (status = 200, description = "It was there already.", body = ProgramState),
              (status = 409, description = "There is another plan of that name.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn put(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let mut share = app.buffers.share();
    let plan = app.incoming(request)?.all(&mut share).await?;
    let sender = sender(&principal, &name);
    let (new, program) = app.programs.put(&name, plan, &sender, share).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(ProgramState::of(&program, &sender))).into_response())
}

/// What the server knows of a program: what the plan takes, whose keys are there, and which inputs are kept.
#[utoipa::path(get, path = "/v1/programs/{name}", tag = "programs", operation_id = "program",
    params(("name" = String, Path)),
    responses((status = 200, description = "All of it.", body = ProgramState)))]
pub async fn describe(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Result<Json<ProgramState>, Problem> {
    let program = app.program(&name).await?;
    Ok(Json(ProgramState::of(&program, &sender(&principal, &name))))
}

/// Removes a program with all keys and inputs.
#[utoipa::path(delete, path = "/v1/programs/{name}", tag = "programs", operation_id = "remove_program",
    params(("name" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn remove(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    app.program(&name).await?;
    let programs = app.programs.clone();
    app.blocking(move || programs.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What came to be stored: in the body, or as an upload.
struct Part {
    bytes: Vec<u8>,
    share: Share,
    upload: Option<UploadId>,
    commit: Option<CommitKey>,
}

/// Where a part goes, and who brings it.
struct Place<'a> {
    app: &'a App,
    program: &'a Arc<StoredProgram>,
    principal: &'a Principal,
    /// The path below the program's.
    path: String,
    /// The most bytes that it can have.
    most: u64,
}

impl Place<'_> {
    /// Reads a part, unless the same request was carried out before.
    async fn read(&self, query: Option<&str>, request: Request) -> Result<Option<Part>, Problem> {
        let mut query = QueryString::parse(query)?;
        let upload = query.one("upload")?.map(|text| uploads::id(&text)).transpose()?;
        query.finish()?;
        let key = idempotency::key(request.headers())?;
        let name = self.program.name();
        let mut share = self.app.buffers.share();
        let digest = |content: &[u8]| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.path.as_bytes()).update(&[0]).update(content);
            hasher
        };
        let Some(upload) = upload else {
            let bytes = self.app.incoming(request)?.all(&mut share).await?;
            let commit = key.map(|key| idempotency::commit_key(key, &digest(&bytes)));
            if self.done(commit).await? {
                return Ok(None);
            }
            return Ok(Some(Part { bytes: bytes.into(), share, upload: None, commit }));
        };
        let commit = key.map(|key| idempotency::commit_key(key, &digest(&upload)));
        // An upload is gone when the answer to what it was for is lost, and it is asked for again.
        if self.done(commit).await? {
            return Ok(None);
        }
        let purpose = program_uploads::purpose(name, self.principal);
        let length = self.app.uploads.progress(&upload, &purpose)?.length;
        if length > self.most {
            let says =
                format!("an upload of {length} bytes, at most {} can be of use here", self.most);
            return Err(Problem::too_large(says).hint("make it for the plan that is stored here"));
        }
        share.grow(length)?;
        let uploads = self.app.uploads.clone();
        let bytes = self.app.blocking(move || uploads.read(&upload, &purpose)).await?;
        Ok(Some(Part { bytes, share, upload: Some(upload), commit }))
    }

    async fn done(&self, commit: Option<CommitKey>) -> Result<bool, Problem> {
        if commit.is_none() {
            return Ok(false);
        }
        let program = self.program.clone();
        let before = self.app.blocking(move || program.committed(commit.as_ref())).await?;
        Ok(before.is_some())
    }

    /// Forgets an upload that was used.
    fn used(&self, upload: Option<UploadId>) {
        if let Some(upload) = upload {
            let purpose = program_uploads::purpose(self.program.name(), self.principal);
            // One that has expired in the meantime is gone as it should be.
            let _ = self.app.uploads.delete(&upload, &purpose);
        }
    }
}

fn check_key(key: &str) -> Result<(), Problem> {
    if is_key_id(key) { Ok(()) } else { Err(Problem::not_found()) }
}

/// Stores the evaluation keys of one client, with which its inputs are computed on and nothing is read. They belong to the
/// token that brings them: others may run on them and not change them.
#[utoipa::path(put, path = "/v1/programs/{name}/keys/{key}", tag = "programs", operation_id = "put_keys",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "Evaluation keys; nothing with ?upload=."),
    params(("name" = String, Path), ("key" = String, Path, description = "The key's id, 16 hex digits."),
           ("upload" = Option<String>, Query, description = "A finished upload that they are in."),
           ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 128 visible ASCII characters: the same key with the same bytes is one change.")),
    responses((status = 204, description = "They are there."),
              (status = 409, description = "There are others of that id, or the upload is not finished.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn put_keys(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, key)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<StatusCode, Problem> {
    check_key(&key)?;
    let program = app.program(&name).await?;
    let most = program.shown().record.plan.key_bytes;
    let path = format!("keys/{key}");
    let place = Place { app: &app, program: &program, principal: &principal, path, most };
    let Some(part) = place.read(query.as_deref(), request).await? else {
        return Ok(StatusCode::NO_CONTENT);
    };
    let Part { bytes, share, upload, commit } = part;
    let sender = sender(&principal, &name);
    app.programs.put_keys(&program, &key, bytes, &sender, (commit, share)).await?;
    place.used(upload);
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a client's evaluation keys and all that is kept under its key.
#[utoipa::path(delete, path = "/v1/programs/{name}/keys/{key}", tag = "programs", operation_id = "remove_keys",
    params(("name" = String, Path), ("key" = String, Path, description = "The key's id, 16 hex digits.")),
    responses((status = 204, description = "They are gone.")))]
pub async fn remove_keys(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, key)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    check_key(&key)?;
    let program = app.program(&name).await?;
    let (programs, sender) = (app.programs.clone(), sender(&principal, &name));
    app.blocking(move || programs.remove_keys(&program, &key, &sender, None)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Keeps an encrypted input under a name, for runs to come; what was kept under it is replaced.
#[utoipa::path(put, path = "/v1/programs/{name}/keys/{key}/inputs/{input}", tag = "programs", operation_id = "keep_input",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "An encrypted input; nothing with ?upload=."),
    params(("name" = String, Path), ("key" = String, Path, description = "The key's id, 16 hex digits."),
           ("input" = String, Path, description = "What runs call it by: 1 to 64 of A-Z a-z 0-9 . _ -, not only dots."),
           ("upload" = Option<String>, Query, description = "A finished upload that it is in."),
           ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 128 visible ASCII characters: the same key with the same bytes is one change.")),
    responses((status = 204, description = "It is kept."),
              (status = 409, description = "The upload is not finished.", body = ProblemDetails,
                  content_type = "application/problem+json")))]
pub async fn keep(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, key, input)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<StatusCode, Problem> {
    check_key(&key)?;
    if !is_kept_name(&input) {
        return Err(Problem::bad_request(
            "a kept input's name has 1 to 64 characters from a-z A-Z 0-9 . _ -, not only dots",
        ));
    }
    let program = app.program(&name).await?;
    let shown = program.shown();
    // Twice what they have, for who sends them without a seed.
    let most = shown.record.plan.inputs.iter().map(|input| 2 * input.bytes).max().unwrap_or(0);
    let path = format!("keys/{key}/inputs/{input}");
    let place = Place { app: &app, program: &program, principal: &principal, path, most };
    let Some(part) = place.read(query.as_deref(), request).await? else {
        return Ok(StatusCode::NO_CONTENT);
    };
    let Part { bytes, share, upload, commit } = part;
    let sender = sender(&principal, &name);
    app.programs.keep(&program, (&key, &input), bytes, &sender, (commit, share)).await?;
    place.used(upload);
    Ok(StatusCode::NO_CONTENT)
}

/// Forgets a kept input.
#[utoipa::path(delete, path = "/v1/programs/{name}/keys/{key}/inputs/{input}", tag = "programs",
    operation_id = "forget_input",
    params(("name" = String, Path), ("key" = String, Path, description = "The key's id, 16 hex digits."),
           ("input" = String, Path)),
    responses((status = 204, description = "It is gone.")))]
pub async fn forget(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path((name, key, input)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    check_key(&key)?;
    let program = app.program(&name).await?;
    let (programs, sender) = (app.programs.clone(), sender(&principal, &name));
    app.blocking(move || programs.forget(&program, (&key, &input), &sender, None)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs a program on inputs that are sent, one frame after the other, and on kept ones. A client that leaves ends the run.
#[utoipa::path(post, path = "/v1/programs/{name}/run", tag = "programs", operation_id = "run",
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
                 description = "Encrypted inputs, one after the other, in any order."),
    params(("name" = String, Path),
           ("key" = Option<String>, Query, description = "The key's id, 16 hex digits; needed where all inputs are kept."),
           ("kept" = Option<Vec<String>>, Query, description = "Names of kept inputs; may be repeated.")),
    responses((status = 200, description = "The answer, which only the holder of the key can read.", body = Vec<u8>,
               content_type = "application/octet-stream",
               headers(("Server-Timing" = String, description = "Milliseconds: queue, load, run.")))))]
pub async fn run(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let mut query = QueryString::parse(query.as_deref())?;
    let (key, kept) = (query.one("key")?, query.all("kept"));
    query.finish()?;
    let program = app.program(&name).await?;
    let mut share = app.buffers.share();
    let inputs = app.incoming(request)?.all(&mut share).await?;
    let request = RunRequest { key, kept, inputs };
    let running = app.programs.run(&program, request, share);
    let answer = app.counted(&principal, 1, running).await?;
    app.metrics.run(answer.queue, answer.load, answer.run);
    let length = answer.bytes.len();
    let stages = [("queue", answer.queue), ("load", answer.load), ("run", answer.run)];
    let mut response = Response::new(body::pieces(answer.bytes));
    set_stages(&mut response, &stages.map(|(stage, took)| (stage, took.as_secs_f64())));
    let headers = response.headers_mut();
    headers.insert(names::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(names::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}
