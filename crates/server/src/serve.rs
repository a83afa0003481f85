//! Listens and answers until a signal tells the server to stop.

use crate::auth::issuers::Issuers;
use crate::auth::tokens;
use crate::claim::Claim;
use crate::config::{ServeOptions, data_folder};
use crate::connections::{Admission, ConnectionLimits};
use crate::http::{self, App};
use crate::log::Log;
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take for its first request, TLS handshake and headers included.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
const UPLOAD_SWEEP: Duration = Duration::from_secs(60);
/// What one HTTP/2 connection may have under way, and the bytes that may be on their way to it.
const STREAMS: u32 = 128;
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const MAX_HEADERS: u32 = 32 << 10;

/// Serves until a signal comes.
///
/// # Errors
/// A sentence for the operator, with the next step.
pub fn serve(options: &ServeOptions) -> Result<(), String> {
    let log = Log::start(options.log_format)
        .map_err(|error| format!("cannot start a thread for the log: {error}"))?;
    let served = listen(options, &log);
    log.finish();
    served
}

fn listen(options: &ServeOptions, log: &Log) -> Result<(), String> {
    check_exposure(options)?;
    let tls = match (&options.tls_cert, &options.tls_key) {
        (Some(cert), Some(key)) => Some(RustlsConfig::from_config(read_tls(cert, key)?)),
        _ => None,
    };
    let listener = TcpListener::bind(options.listen).map_err(|error| {
        format!(
            "cannot listen on {}: {error}; choose another address with --listen",
            options.listen
        )
    })?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    // Before anything in the folder is cleared away.
    let _claim = match data_folder(&options.data) {
        Some(folder) => {
            if !folder.exists() {
                let named = folder.display();
                tracing::warn!("there is no folder {named} yet: an empty database is made there");
            }
            Claim::take(&folder, address)?
        }
        None => None,
    };
    let app = App::open(options)?;
    for (name, holder) in app.database.locked() {
        tracing::warn!(
            "collection {name} is open for writing in {holder}: requests for it fail until that closes it"
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start threads: {error}"))?;
    let served = runtime.block_on(run(options, app.clone(), listener, tls, log.clone()));
    app.close();
    runtime.shutdown_timeout(Duration::from_secs(5));
    tracing::info!("stopped");
    served
}

/// Off loopback nobody listens in, and nobody comes in without a token.
///
/// # Errors
/// The commands that make up for what is missing.
pub fn check_exposure(options: &ServeOptions) -> Result<(), String> {
    let file = options.token_file();
    if options.listen.ip().is_loopback() {
        let foreign = options.allow_origins.iter().find(|origin| !origin.is_local());
        let open = file.is_none() && options.issuers.is_none();
        if let (true, Some(origin)) = (open, foreign) {
            return Err(format!(
                "refusing to let pages of {} in without tokens: whatever such a page runs could do everything.\n\
                 Make one: ciphervec token create --data {} --collection '*' --permission owner --expires 30d",
                origin.as_str(),
                options.data
            ));
        }
        if open {
            tracing::warn!(
                "no token file: every program on this machine may do everything; ciphervec token create makes one"
            );
        }
        return Ok(());
    }
    let address = options.listen;
    if options.tls_cert.is_none() {
        return Err(format!(
            "refusing to listen on {address} without TLS: tokens would go over the network in clear.\n\
             Give a certificate:  --tls-cert fullchain.pem --tls-key key.pem\n\
             One for tests:       openssl req -x509 -newkey ed25519 -nodes -days 30 -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost -keyout key.pem -out fullchain.pem\n\
             Or stay on loopback: --listen 127.0.0.1:{}",
            address.port()
        ));
    }
    let entries = match &file {
        None => Vec::new(),
        Some(path) => tokens::load(path).map_err(|error| error.to_string())?,
    };
    let now = jiff::Timestamp::now();
    if options.issuers.is_none() && !entries.iter().any(|entry| entry.is_live(now)) {
        return Err(format!(
            "refusing to listen on {address} without a live token: anyone could do everything.\n\
             Make one:            ciphervec token create --data {} --collection '*' --permission admin --expires 90d\n\
             Or stay on loopback: --listen 127.0.0.1:{}",
            options.data,
            address.port()
        ));
    }
    Ok(())
}

fn read_tls(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let unreadable = |path: &Path, error: String| {
        format!("cannot use {}: {error}; PEM files are expected", path.display())
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(cert, error.to_string()))?;
    let key_bytes =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key_bytes)
        .map_err(|error| unreadable(cert, error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

async fn run(
    options: &ServeOptions,
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    log: Log,
) -> Result<(), String> {
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let handle = Handle::new();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let stopping = tokio::spawn(stop(app.clone(), handle.clone(), options.drain));
    let sweeping = tokio::spawn(sweep(app.clone()));
    let asking = tokio::spawn(ask_issuers(app.clone()));
    let announcing = tokio::spawn(announce(app.clone(), handle.clone(), scheme, log));
    let _files = outlive_file_limits();
    #[cfg(unix)]
    let reloading = tokio::spawn(reload(app.clone(), tls.clone(), options.clone()));
    let limits = ConnectionLimits {
        total: options.connections,
        per_address: options.per_address(),
        first: FIRST_PATIENCE.min(options.patience),
        idle: options.idle,
    };
    let admission = Admission::new(limits, app.metrics.clone());
    let router = http::router(&app).into_make_service();
    let mut server =
        axum_server::from_tcp(listener).map_err(|error| error.to_string())?.handle(handle);
    server
        .http_builder()
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.idle.max(FIRST_PATIENCE))
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
    let served = match tls {
        None => server.acceptor(admission).serve(router).await,
        Some(config) => {
            let acceptor = RustlsAcceptor::new(config).handshake_timeout(FIRST_PATIENCE);
            server.acceptor(acceptor.acceptor(admission)).serve(router).await
        }
    };
    stopping.abort();
    sweeping.abort();
    asking.abort();
    announcing.abort();
    #[cfg(unix)]
    reloading.abort();
    served.map_err(|error| format!("the server stopped: {error}"))
}

/// Says where the server listens, once it can answer.
async fn announce(app: Arc<App>, handle: Handle<SocketAddr>, scheme: &str, log: Log) {
    let Some(address) = handle.listening().await else { return };
    let mut pause = Duration::from_millis(5);
    while !app.ready().await {
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(Duration::from_secs(5));
    }
    // The one line that programs read; it does not depend on how logs look.
    log.say(&format!("listening on {scheme}://{address}"));
}

/// Waits for the signal to stop, lets requests in flight end, and gives up on them when a second
/// one comes.
async fn stop(app: Arc<App>, handle: Handle<SocketAddr>, drain: Duration) {
    signalled().await;
    tracing::info!(seconds = drain.as_secs(), "stopping: requests in flight may end");
    app.drain();
    handle.graceful_shutdown(Some(drain));
    signalled().await;
    handle.shutdown();
}

#[cfg(unix)]
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Asks for the keys of issuers before the first token comes.
async fn ask_issuers(app: Arc<App>) {
    if let Some(issuers) = &app.issuers {
        issuers.warm().await;
    }
}

/// On SIGHUP: certificates and issuers are read again, and the audit file is opened by its name again.
#[cfg(unix)]
async fn reload(app: Arc<App>, tls: Option<RustlsConfig>, options: ServeOptions) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        if let Err(error) = app.audit.reopen() {
            tracing::error!(%error, "the audit file could not be opened again");
        }
        match app.issuers.as_ref().map(Issuers::reload) {
            None => {}
            Some(Ok(())) => drop(tokio::spawn(ask_issuers(app.clone()))),
            Some(Err(error)) => {
                tracing::error!(%error, "the file of issuers could not be read again; the one before holds");
            }
        }
        if let (Some(tls), Some(cert), Some(key)) = (&tls, &options.tls_cert, &options.tls_key) {
            match read_tls(cert, key) {
                Ok(config) => {
                    tls.reload_from_config(config);
                    tracing::info!("certificates were read again");
                }
                Err(error) => tracing::error!(error, "the old certificates stay in use"),
            }
        }
    }
}

async fn sweep(app: Arc<App>) {
    loop {
        tokio::time::sleep(UPLOAD_SWEEP).await;
        let (uploads, accounts) = (app.uploads.clone(), app.accounts.clone());
        let work = move || {
            accounts.sweep();
            uploads.expire()
        };
        // A sweep that fails is followed by another.
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

/// A file that grows beyond what the system allows is an error of that write (the answer is 507), not
/// the end of the process.
#[cfg(unix)]
fn outlive_file_limits() -> Option<tokio::signal::unix::Signal> {
    use tokio::signal::unix::{SignalKind, signal};
    // The same number on every Unix that has 64-bit atomics but MIPS, where nothing is lost.
    const SIGXFSZ: i32 = 25;
    signal(SignalKind::from_raw(SIGXFSZ)).ok()
}

#[cfg(not(unix))]
fn outlive_file_limits() {}
