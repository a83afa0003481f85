//! A host for programs: a blocking HTTP client, and a folder or memory for what is remembered.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::error::{Error, Result};
use crate::host::{Head, Host, Later, Lost, Progress, Request, Sink};
use crate::storage::Storage;
use crate::threads::heavy;

type Warned = Box<dyn Fn(&str) + Send + Sync>;
type Told = Box<dyn Fn(Progress) + Send + Sync>;

/// A connection to any server, and a place for what is remembered of it. Sends from the calling thread.
pub struct Connection {
    agent: ureq::Agent,
    storage: Storage,
    began: Instant,
    warned: Warned,
    told: Option<Told>,
}

impl Connection {
    /// What is remembered of a server lies in this folder: what it showed before, so that a later process notices what it takes back, and
    /// sealed blobs, so that they are not fetched again. All of it is encrypted under the owner's keys.
    ///
    /// # Errors
    /// [`Error::Storage`] for a folder that can't be used.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self> {
        Storage::new(folder).map(Self::over)
    }

    /// What is remembered ends with it: a server is trusted anew by each process.
    pub fn in_memory() -> Self {
        Self::over(Storage::in_memory())
    }

    fn over(storage: Storage) -> Self {
        let warned = Box::new(|text: &str| eprintln!("ciphervec: {text}"));
        Connection {
            agent: agent(TlsConfig::default()),
            storage,
            began: Instant::now(),
            warned,
            told: None,
        }
    }

    /// Trusts servers whose certificates these, in PEM, have signed, and no others.
    ///
    /// # Errors
    /// [`Error::Input`] for what is no certificate.
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Self> {
        let certificate = Certificate::from_pem(pem)
            .or_else(|error| Error::input(format!("a certificate in PEM is expected: {error}.")))?;
        let roots = RootCerts::Specific(Arc::new(vec![certificate]));
        self.agent = agent(TlsConfig::builder().root_certs(roots).build());
        Ok(self)
    }

    /// Who is told what does not end a call; left out, the standard error.
    #[must_use]
    pub fn on_warning(mut self, warned: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.warned = Box::new(warned);
        self
    }

    /// Who is told how far a call got.
    #[must_use]
    pub fn on_progress(mut self, told: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.told = Some(Box::new(told));
        self
    }

    fn attempt(
        &self,
        request: &Request<'_>,
        within: Duration,
        sink: &mut dyn Sink,
    ) -> core::result::Result<(), Lost> {
        let mut asked = ureq::http::Request::builder().method(request.method).uri(&request.url);
        for (name, value) in &request.headers {
            asked = asked.header(*name, value);
        }
        asked = asked.header("Accept-Encoding", "identity");
        let asked = asked
            .body(request.body.unwrap_or_default())
            .map_err(|error| lost(&error.into(), false))?;
        let asked = self.agent.configure_request(asked).timeout_global(Some(within)).build();
        let mut answer = self.agent.run(asked).map_err(|error| lost(&error, false))?;
        let header = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let head = Head {
            status: answer.status().as_u16(),
            headers: answer.headers().iter().filter_map(header).collect(),
        };
        if let Some(coding) =
            head.header("content-encoding").filter(|coding| !matches!(*coding, "" | "identity"))
        {
            let coding: String = coding.chars().take(20).collect();
            return Err(Lost::refused(format!(
                "the answer is compressed ({coding}), which was not asked for: few bytes could become any number of them"
            )));
        }
        sink.begin(&head)?;
        let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; 256 << 10];
        loop {
            match body.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => sink.take(&piece[..length])?,
                Err(error) => return Err(lost(&error.into(), true)),
            }
        }
    }
}

fn agent(tls: TlsConfig) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("ciphervec-client/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(10)));
    config.build().into()
}

fn lost(error: &ureq::Error, answered: bool) -> Lost {
    let unsent = matches!(error, ureq::Error::HostNotFound | ureq::Error::ConnectionFailed)
        || matches!(error, ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused);
    let trust = matches!(error, ureq::Error::Tls(_) | ureq::Error::Rustls(_));
    Lost { says: error.to_string(), sent: answered || !unsent && !trust, last: trust, ended: false }
}

impl Host for Connection {
    fn send<'a>(
        &'a self,
        request: &'a Request<'a>,
        within: Duration,
        sink: &'a mut dyn Sink,
    ) -> Later<'a, core::result::Result<(), Lost>> {
        Box::pin(async move { self.attempt(request, within, sink) })
    }

    fn sleep(&self, time: Duration) -> Later<'_, Result<()>> {
        Box::pin(async move {
            std::thread::sleep(time);
            Ok(())
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn clock(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn get<'a>(&'a self, name: &'a str) -> Later<'a, Result<Option<Vec<u8>>>> {
        let done = self.storage.get(name);
        Box::pin(async move { done })
    }

    fn put<'a>(&'a self, name: &'a str, data: &'a [u8]) -> Later<'a, Result<()>> {
        let done = self.storage.put(name, data);
        Box::pin(async move { done })
    }

    fn delete<'a>(&'a self, name: &'a str) -> Later<'a, Result<()>> {
        let done = self.storage.delete(name);
        Box::pin(async move { done })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Later<'a, Result<Vec<(String, u64)>>> {
        let done = self.storage.list(prefix);
        Box::pin(async move { done })
    }

    fn lengths<'a>(
        &'a self,
        _prefix: &'a str,
        names: &'a [String],
    ) -> Later<'a, Result<Vec<Option<u64>>>> {
        let done = self.storage.lengths(names);
        Box::pin(async move { done })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Later<'a, Result<Box<dyn core::any::Any>>> {
        let done = self.storage.lock(name);
        Box::pin(async move { done })
    }

    fn process(&self) -> u64 {
        std::process::id().into()
    }

    fn durable(&self) -> bool {
        self.storage.durable()
    }

    fn warn(&self, text: &str) {
        (self.warned)(text);
    }

    fn progress(&self, progress: Progress) {
        if let Some(told) = &self.told {
            told(progress);
        }
    }

    fn meanwhile(&self, work: Box<dyn FnOnce() + Send>) {
        // Without a thread it is done when it is needed.
        let _ = std::thread::Builder::new().spawn(|| heavy(work));
    }
}
