//! What all requests share, made from the operator's options.

use super::body::{Buffers, Incoming};
use super::problem::Problem;
use crate::audit::Audit;
use crate::auth::issuers::Issuers;
use crate::auth::tokens::TokenFile;
use crate::auth::{Accounts, Asked, Principal, Turned};
use crate::config::ServeOptions;
use crate::descriptors;
use crate::memory::MemoryPlan;
use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::storage::programs::{ProgramLimits, Programs, StoredProgram};
use crate::storage::{
    Collection, Database, DatabaseError, DatabaseOptions, Rooms, Spool, Tables, UploadLimits,
    Uploads, valid_name,
};
use crate::telemetry::Telemetry;
use axum::extract::Request;
use ciphervec::protect::receipt::{RECEIPT_KEY_BYTES, ReceiptKey};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Storage operations at once, queries not among them.
const OPERATIONS: usize = 64;
/// More than evaluation keys of any dimension take, and what comes with them.
const EVALUATION_KEYS: u64 = 1 << 20;
/// How long a look at the place of the collections is good for.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What one request may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub max_body: u64,
    /// Bytes of an upload, and of those that one commit names.
    pub max_upload: u64,
    /// How long a sender may pause.
    pub patience: Duration,
}

/// Everything that requests share.
pub struct App {
    /// The collections.
    pub database: Arc<Database>,
    /// The programs.
    pub programs: Arc<Programs>,
    /// The keyed tables.
    pub tables: Arc<Tables>,
    /// What a request may take.
    pub limits: Limits,
    /// The tokens; none where everyone may do everything.
    pub tokens: Option<TokenFile>,
    /// Who else may vouch for senders.
    pub issuers: Option<Issuers>,
    /// What each token uses of its limits.
    pub accounts: Arc<Accounts>,
    /// Whether the console is served at `/`.
    pub console: bool,
    /// Origins whose pages may ask.
    pub origins: Vec<Origin>,
    /// What answers are vouched for by; none where nobody asks for it.
    pub receipts: Option<ReceiptKey>,
    /// Who did what.
    pub audit: Audit,
    /// What happened.
    pub metrics: Arc<Metrics>,
    /// Who else is told of it.
    pub telemetry: Option<Telemetry>,
    /// Unfinished uploads.
    pub uploads: Arc<Uploads>,
    /// Memory for bodies.
    pub buffers: Buffers,
    operations: Arc<Semaphore>,
    /// What is being added by tokens with a limit.
    pub(super) rooms: Rooms,
    draining: AtomicBool,
    /// When the place of the collections was last looked for, and whether it was there.
    looked: tokio::sync::Mutex<Option<(Instant, bool)>>,
}

impl App {
    /// Whether anybody has to say who he is.
    pub fn needs_token(&self) -> bool {
        self.tokens.is_some() || self.issuers.is_some()
    }

    /// Opens everything that the options name.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(options: &ServeOptions) -> Result<Arc<Self>, String> {
        let metrics = Arc::new(Metrics::new());
        let tokens = match options.token_file() {
            None => None,
            Some(path) => Some(TokenFile::open(&path).map_err(|error| error.to_string())?),
        };
        let issuers = options.issuers.as_deref().map(Issuers::open).transpose();
        let issuers = issuers.map_err(|error| error.to_string())?;
        let signing = options.audit_key.as_deref().map(|path| key_file(path, AUDIT)).transpose()?;
        let audit = Audit::open(options.audit.as_deref(), signing)
            .map_err(|error| format!("cannot open the audit file: {error}; check --audit"))?;
        let telemetry = options.otlp.as_deref().map(Telemetry::start).transpose()?;
        let receipts = options.receipt_key.as_deref().map(|path| key_file(path, RECEIPT));
        let receipts = receipts.transpose()?.map(ReceiptKey::new);
        let memory = MemoryPlan::of(options)?;
        metrics.budget.set(memory.budget);
        let database = Database::open(&DatabaseOptions {
            url: options.data.clone(),
            memory_budget: memory.budget,
            threads: options.threads,
            queue: options.queue,
        })
        .map_err(|error| error.to_string())?;
        if let Some(files) = descriptors::raise() {
            database.hold_at_most(descriptors::stores(files, options.connections));
        }
        let programs = ProgramLimits {
            plan: options.program_plan,
            steps: options.program_steps,
            log_degree: options.program_degree,
            time: options.program_time,
            memory: memory.programs,
            runs: options.program_runs,
            queue: options.queue,
            quota: options.program_quota,
            threads: options.threads,
        };
        let programs = Programs::open(&database, programs, metrics.clone())
            .map_err(|error| error.to_string())?;
        let upload_limits = UploadLimits {
            largest: memory.max_upload,
            quota: options.upload_quota,
            lifetime: options.upload_lifetime,
        };
        let uploads = match options.spool_folder() {
            Some(folder) => match Spool::at(&folder) {
                // The collections of such a place can be read, and there may be nowhere to upload to.
                Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => Spool::temporary(),
                opened => opened,
            },
            None => Spool::temporary(),
        };
        let uploads =
            uploads.and_then(|spool| Uploads::open(spool, upload_limits, metrics.clone()));
        let uploads = uploads.map_err(|error| format!("no folder for uploads: {error}"))?;
        Ok(Arc::new(App {
            tables: Tables::open(&database),
            database,
            programs,
            limits: Limits {
                max_body: options.max_body,
                max_upload: memory.max_upload,
                patience: options.patience,
            },
            tokens,
            issuers,
            console: !options.no_console,
            origins: options.allow_origins.clone(),
            accounts: Arc::new(Accounts::new(options.per_token, options.usage_file().as_deref())),
            receipts,
            telemetry,
            audit,
            uploads: Arc::new(uploads),
            buffers: Buffers::new(memory.bodies, metrics.clone()),
            metrics,
            operations: Arc::new(Semaphore::new(OPERATIONS)),
            rooms: Rooms::default(),
            draining: AtomicBool::new(false),
            looked: tokio::sync::Mutex::default(),
        }))
    }

    /// From now on nothing new should be sent here.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether requests should be sent here.
    pub async fn ready(&self) -> bool {
        if self.draining.load(Ordering::Relaxed) {
            return false;
        }
        // One look at a time, and not at every request: a bucket is far away, and takes money.
        let mut looked = self.looked.lock().await;
        if let Some((at, ready)) = *looked
            && ready
            && at.elapsed() < LOOK_EVERY
        {
            return true;
        }
        let database = self.database.clone();
        let ready = tokio::task::spawn_blocking(move || database.ready()).await.unwrap_or(false);
        *looked = Some((Instant::now(), ready));
        ready
    }

    /// The body of a request, within the limits of all.
    ///
    /// # Errors
    /// 413 if it says that it is larger.
    pub fn incoming(&self, request: Request) -> Result<Incoming, Problem> {
        self.incoming_within(request, self.limits.max_body)
    }

    /// The body of a request that brings evaluation keys, which clients can't send in pieces: it may be
    /// as long as they are under any limit.
    ///
    /// # Errors
    /// 413 if it says that it is larger.
    pub fn incoming_keys(&self, request: Request) -> Result<Incoming, Problem> {
        self.incoming_within(request, self.limits.max_body.max(EVALUATION_KEYS))
    }

    fn incoming_within(&self, request: Request, most: u64) -> Result<Incoming, Problem> {
        Incoming::new(request, most, self.limits.patience, self.metrics.clone())
    }

    /// Gives all locks back.
    pub fn close(&self) {
        self.audit.close();
        self.accounts.close();
        self.telemetry.iter().for_each(Telemetry::close);
        self.programs.close();
        self.database.close();
    }

    /// A token has reached a limit.
    pub fn turned(&self, turned: Turned) -> Problem {
        let problem = Problem::from(turned);
        if let Some(limit) = problem.reached() {
            // Requests in flight were called by who has them before there were other limits.
            self.metrics.reject(if limit == "in-flight" { "token" } else { limit });
        }
        problem
    }

    /// Answers so many queries, and counts them where the token has a day's. What is refused was not asked.
    ///
    /// # Errors
    /// Those of `answer`; 429 where the day's are asked, 503 where they cannot be counted.
    pub async fn counted<T, E>(
        &self,
        principal: &Principal,
        queries: u64,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Problem>
    where
        Problem: From<E>,
    {
        let asked = match principal.limits().queries_per_day {
            None => None,
            Some(quota) => {
                let asked = self.accounts.ask(principal.id(), quota, queries).await;
                Some(asked.map_err(|turned| self.turned(turned))?)
            }
        };
        answer.await.map_err(|error| {
            asked.into_iter().for_each(Asked::take_back);
            error.into()
        })
    }

    /// Runs what reads or writes files, away from the threads that serve connections.
    ///
    /// # Errors
    /// Those of `work`; 503 if too much of it is under way.
    pub async fn blocking<T: Send + 'static, E: Into<Problem> + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(permit) = self.operations.clone().try_acquire_owned() else {
            self.metrics.reject("operations");
            return Err(Problem::busy("too many operations are under way", Duration::from_secs(1)));
        };
        let done = tokio::task::spawn_blocking(move || {
            // It goes on, and is counted, even if whoever waits for it leaves.
            let _permit = permit;
            work()
        });
        match done.await {
            Ok(outcome) => outcome.map_err(Into::into),
            Err(error) => {
                tracing::error!(%error, "a storage operation panicked");
                Err(Problem::internal())
            }
        }
    }

    /// The collection of that name.
    ///
    /// # Errors
    /// 404, and those of opening it.
    pub async fn collection(&self, name: &str) -> Result<Arc<Collection>, Problem> {
        if !valid_name(name) {
            return Err(Problem::not_found());
        }
        let (database, name) = (self.database.clone(), name.to_owned());
        self.blocking::<_, DatabaseError>(move || database.get(&name)).await
    }

    /// The program of that name.
    ///
    /// # Errors
    /// 404, and those of opening it.
    pub async fn program(&self, name: &str) -> Result<Arc<StoredProgram>, Problem> {
        if !valid_name(name) {
            return Err(Problem::not_found());
        }
        let (programs, name) = (self.programs.clone(), name.to_owned());
        self.blocking::<_, DatabaseError>(move || programs.get(&name)).await
    }
}

/// What a file of 32 bytes is, and what makes one.
const AUDIT: [&str; 2] = ["audit key", "ciphervec audit key"];
const RECEIPT: [&str; 2] = ["receipt key", "ciphervec decrypt-service receipt-key"];

fn key_file(path: &Path, [what, maker]: [&str; 2]) -> Result<[u8; RECEIPT_KEY_BYTES], String> {
    let refused = |why: &str| format!("cannot use the {what} {}: {why}", path.display());
    let bytes = std::fs::read(path).map_err(|error| refused(&error.to_string()))?;
    let found = bytes.len();
    bytes.try_into().map_err(|_| {
        refused(&format!(
            "it has {found} bytes, where {RECEIPT_KEY_BYTES} are expected; make one with `{maker}`"
        ))
    })
}
