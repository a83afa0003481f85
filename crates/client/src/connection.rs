//! A host for programs: a blocking HTTP client, and a folder or memory for what is remembered.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::error::{Error, Result};
use crate::host::{Head, Host, Later, Lost, Progress, Request, Sink};

type Warned = Box<dyn Fn(&str) + Send + Sync>;
type Told = Box<dyn Fn(Progress) + Send + Sync>;

/// Where what is remembered lies.
enum Storage {
    Memory(Mutex<Entries>),
    Folder(PathBuf),
}

#[derive(Default)]
struct Entries {
    held: HashMap<String, (u64, Vec<u8>)>,
    /// Counts uses: the latest has the largest number.
    clock: u64,
}

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
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|error| refused(&folder, &error))?;
        only_mine(&folder).map_err(|error| refused(&folder, &error))?;
        Ok(Self::over(Storage::Folder(folder)))
    }

    /// What is remembered ends with it: a server is trusted anew by each process.
    pub fn in_memory() -> Self {
        Self::over(Storage::Memory(Mutex::default()))
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

impl Storage {
    fn run<T>(
        &self,
        work: impl FnOnce(&Path) -> std::io::Result<T>,
        memory: impl FnOnce(&mut Entries) -> T,
    ) -> Result<T> {
        match self {
            Storage::Memory(entries) => {
                Ok(memory(&mut entries.lock().unwrap_or_else(PoisonError::into_inner)))
            }
            Storage::Folder(folder) => work(folder).map_err(|error| refused(folder, &error)),
        }
    }
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
        let from_folder = |folder: &Path| {
            let path = path_of(folder, name);
            match fs::read(&path) {
                Ok(data) => {
                    // When it was used last; that it can't be noted costs nothing but the order.
                    let _ = File::options()
                        .append(true)
                        .open(&path)
                        .and_then(|file| file.set_modified(SystemTime::now()));
                    Ok(Some(data))
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        let from_memory = |entries: &mut Entries| {
            entries.clock += 1;
            let (used, data) = entries.held.get_mut(name)?;
            *used = entries.clock;
            Some(data.clone())
        };
        let found = self.storage.run(from_folder, from_memory);
        Box::pin(async move { found })
    }

    fn put<'a>(&'a self, name: &'a str, data: &'a [u8]) -> Later<'a, Result<()>> {
        let into_folder = |folder: &Path| {
            let path = path_of(folder, name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent)?;
            let mut draft = tempfile::NamedTempFile::new_in(parent)?;
            draft.write_all(data)?;
            draft.as_file().sync_all()?;
            draft.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        let into_memory = |entries: &mut Entries| {
            entries.clock += 1;
            entries.held.insert(name.to_owned(), (entries.clock, data.to_vec()));
        };
        let done = self.storage.run(into_folder, into_memory);
        Box::pin(async move { done })
    }

    fn delete<'a>(&'a self, name: &'a str) -> Later<'a, Result<()>> {
        let from_folder = |folder: &Path| match fs::remove_file(path_of(folder, name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let done = self.storage.run(from_folder, |entries| drop(entries.held.remove(name)));
        Box::pin(async move { done })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Later<'a, Result<Vec<(String, u64)>>> {
        let of_folder = |folder: &Path| {
            let (within, begins) = prefix.split_at(prefix.rfind('/').map_or(0, |at| at + 1));
            let Ok(files) = fs::read_dir(folder.join(within)) else { return Ok(Vec::new()) };
            let mut found = Vec::new();
            for file in files {
                let file = file?;
                let (Ok(known), name) = (file.metadata(), file.file_name()) else { continue };
                let name = name.to_string_lossy();
                if known.is_file() && name.starts_with(begins) {
                    found.push((known.modified()?, format!("{within}{name}"), known.len()));
                }
            }
            found.sort();
            Ok(found.into_iter().map(|(_, name, bytes)| (name, bytes)).collect())
        };
        let of_memory = |entries: &mut Entries| {
            let named = entries.held.iter().filter(|(name, _)| name.starts_with(prefix));
            let mut found: Vec<_> = named
                .map(|(name, (used, data))| (*used, name.clone(), data.len() as u64))
                .collect();
            found.sort();
            found.into_iter().map(|(_, name, bytes)| (name, bytes)).collect()
        };
        let found = self.storage.run(of_folder, of_memory);
        Box::pin(async move { found })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Later<'a, Result<Box<dyn core::any::Any>>> {
        let of_folder = |folder: &Path| {
            let path = path_of(folder, name).with_extension("lock");
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            let file = File::options().create(true).truncate(false).write(true).open(path)?;
            file.lock()?;
            Ok(Box::new(file) as Box<dyn core::any::Any>)
        };
        let done = self.storage.run(of_folder, |_| Box::new(()) as Box<dyn core::any::Any>);
        Box::pin(async move { done })
    }

    fn durable(&self) -> bool {
        matches!(self.storage, Storage::Folder(_))
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
        rayon::spawn(work);
    }
}

/// The file of a name: those of this crate are a word, a slash and hexadecimal digits. Any other is hashed.
fn path_of(folder: &Path, name: &str) -> PathBuf {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match name.split_once('/') {
        Some((kind, rest)) if plain(kind) && plain(rest) => folder.join(kind).join(rest),
        _ => folder.join("other").join(blake3::hash(name.as_bytes()).to_hex().as_str()),
    }
}

fn refused(folder: &Path, error: &std::io::Error) -> Error {
    Error::Storage(format!(
        "{}: what this client remembers can't be kept there: {error}.",
        folder.display()
    ))
}

/// Nobody else is to read or change what is remembered.
#[cfg(unix)]
fn only_mine(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Folders of a user's profile are theirs alone.
#[cfg(not(unix))]
fn only_mine(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;

    #[test]
    fn a_folder_lists_the_names_that_begin_so() {
        let folder = tempfile::tempdir().unwrap();
        let host = Connection::new(folder.path()).unwrap();
        for name in ["a/12", "a/13", "a/2", "b/12"] {
            block_on(host.put(name, b"x")).unwrap();
        }
        for (prefix, expected) in
            [("a/1", &["a/12", "a/13"][..]), ("a/", &["a/12", "a/13", "a/2"]), ("c/", &[])]
        {
            let mut found: Vec<_> =
                block_on(host.list(prefix)).unwrap().into_iter().map(|(name, _)| name).collect();
            found.sort();
            assert_eq!(found, expected, "{prefix}");
        }
    }
}
