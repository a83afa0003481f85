//! The operator's options, checked.

use crate::origin::{Origin, origin};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What `serve` is told.
#[derive(Args, Clone, Debug)]
pub struct ServeOptions {
    /// Where the collections are: a folder, or a bucket with an optional prefix as
    /// s3://bucket/prefix. Credentials of a bucket come from the usual AWS_* variables.
    #[arg(long, env = "CIPHERVEC_DATA", value_name = "DIR|s3://…")]
    pub data: String,
    /// Address and port. Port 0 takes a free one. Off loopback TLS is needed, and a token or issuers.
    #[arg(long, env = "CIPHERVEC_LISTEN", default_value = "127.0.0.1:8707", value_parser = address)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM. SIGHUP reads it again.
    #[arg(long, env = "CIPHERVEC_TLS_CERT", requires = "tls_key", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, env = "CIPHERVEC_TLS_KEY", requires = "tls_cert", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// The token file. Left out: tokens.json in a data folder, if it is there.
    #[arg(long, env = "CIPHERVEC_TOKENS", value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// A file of identity providers (OIDC) whose signed tokens are accepted, and of what they are granted. SIGHUP
    /// reads it again.
    #[arg(long, env = "CIPHERVEC_ISSUERS", value_name = "FILE")]
    pub issuers: Option<PathBuf>,
    /// Memory for segments and the work on queries. Larger collections are answered too, more
    /// slowly, and the log says so. Left out: 4GiB, or less where the system allows less.
    #[arg(long, env = "CIPHERVEC_MEMORY_BUDGET", value_parser = size, value_name = "SIZE")]
    pub memory_budget: Option<u64>,
    /// Threads that scan, as many that read and check, and as many that run programs; all cores if left out.
    #[arg(long, env = "CIPHERVEC_THREADS", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
    /// The largest body of one request. Larger blobs come as uploads.
    #[arg(long, env = "CIPHERVEC_MAX_BODY", default_value = "64MiB", value_parser = size)]
    pub max_body: u64,
    /// The largest upload, and the most that the uploads of one commit may add up to. Left out:
    /// 1GiB, or less where the system allows less memory.
    #[arg(long, env = "CIPHERVEC_MAX_UPLOAD", value_parser = size, value_name = "SIZE")]
    pub max_upload: Option<u64>,
    /// What unfinished uploads may take on disk together; those of one token half of it.
    #[arg(long, env = "CIPHERVEC_UPLOAD_QUOTA", default_value = "4GiB", value_parser = size)]
    pub upload_quota: u64,
    /// How long an upload that nobody continues is kept.
    #[arg(long, env = "CIPHERVEC_UPLOAD_LIFETIME", default_value = "24h", value_parser = duration)]
    pub upload_lifetime: Duration,
    /// Queries that may wait, and runs of programs; more are told to come back.
    #[arg(long, env = "CIPHERVEC_QUEUE", default_value_t = 64)]
    pub queue: usize,
    /// Requests that one token may have in flight.
    #[arg(long, env = "CIPHERVEC_PER_TOKEN", default_value_t = 32)]
    pub per_token: usize,
    /// Where queries of tokens with a daily quota are counted. Left out: usage.redb in a data folder; for a bucket, beside
    /// the token file or the file of issuers.
    #[arg(long, env = "CIPHERVEC_USAGE", value_name = "FILE")]
    pub usage: Option<PathBuf>,
    /// Open connections. Beyond that one that rests makes room, or the new one is closed at once.
    #[arg(long, env = "CIPHERVEC_CONNECTIONS", default_value_t = 1024)]
    pub connections: usize,
    /// Open connections of one address, or of one /64 of IPv6. Left out: a quarter of --connections.
    #[arg(long, env = "CIPHERVEC_PER_ADDRESS", value_name = "N")]
    pub per_address: Option<usize>,
    /// How long a connection may stay open after an answer without another request.
    #[arg(long, env = "CIPHERVEC_IDLE", default_value = "30s", value_parser = duration)]
    pub idle: Duration,
    /// How long a sender may pause within a request.
    #[arg(long, env = "CIPHERVEC_PATIENCE", default_value = "15s", value_parser = duration)]
    pub patience: Duration,
    /// Memory for programs: their plans, keys and kept inputs, and what runs take. Left out: 4GiB, or
    /// less where the system allows less. A plan that takes more is refused.
    #[arg(long, env = "CIPHERVEC_PROGRAM_MEMORY", value_parser = size, value_name = "SIZE")]
    pub program_memory: Option<u64>,
    /// How long a run of a program may take: a plan that is predicted to take longer on one thread is
    /// refused, and a run that does is stopped.
    #[arg(long, env = "CIPHERVEC_PROGRAM_TIME", default_value = "5m", value_parser = duration)]
    pub program_time: Duration,
    /// Runs of programs at once.
    #[arg(long, env = "CIPHERVEC_PROGRAM_RUNS", default_value_t = 1)]
    pub program_runs: usize,
    /// The largest plan.
    #[arg(long, env = "CIPHERVEC_PROGRAM_PLAN", default_value = "16MiB", value_parser = size)]
    pub program_plan: u64,
    /// The most steps of a plan.
    #[arg(long, env = "CIPHERVEC_PROGRAM_STEPS", default_value_t = 100_000)]
    pub program_steps: usize,
    /// log2 of the largest ring degree of a plan, 12 to 17.
    #[arg(long, env = "CIPHERVEC_PROGRAM_DEGREE", default_value_t = 17,
          value_parser = clap::value_parser!(u32).range(12..=17))]
    pub program_degree: u32,
    /// What all programs may have stored: plans, keys and inputs; those of one token half of it.
    #[arg(long, env = "CIPHERVEC_PROGRAM_QUOTA", default_value = "64GiB", value_parser = size)]
    pub program_quota: u64,
    /// Folder for unfinished uploads, which nobody else may read. Left out: .uploads in a data
    /// folder; for a bucket, a new one in the system's temporary folder.
    #[arg(long, env = "CIPHERVEC_SPOOL", value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// Where audit lines are appended, as JSON. Left out: they go to the log.
    #[arg(long, env = "CIPHERVEC_AUDIT", value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// A file of 32 bytes, as `ciphervec audit key` makes one: audit lines are signed by it, every thousand of them or every minute.
    #[arg(long, env = "CIPHERVEC_AUDIT_KEY", value_name = "FILE", requires = "audit")]
    pub audit_key: Option<PathBuf>,
    /// A file of 32 bytes, as `ciphervec decrypt-service receipt-key` makes one: answers carry a receipt under
    /// it, by which a decrypt service takes them from whoever brings them.
    #[arg(long, env = "CIPHERVEC_RECEIPT_KEY", value_name = "FILE")]
    pub receipt_key: Option<PathBuf>,
    /// A collector that traces and metrics are sent to (OTLP over HTTP), such as http://localhost:4318. They have routes,
    /// sizes and times, nothing that clients sent.
    #[arg(long, env = "CIPHERVEC_OTLP", value_name = "URL")]
    pub otlp: Option<String>,
    /// How log lines look.
    #[arg(long, env = "CIPHERVEC_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Do not serve the console, the page at / that shows collections, tokens and load.
    #[arg(long, env = "CIPHERVEC_NO_CONSOLE", value_parser = BoolishValueParser::new())]
    pub no_console: bool,
    /// Lets pages of this origin, as `https://app.example`, ask this server from a browser; may be
    /// repeated. Left out: only its own console. Origins of other machines need tokens.
    #[arg(long = "allow-origin", env = "CIPHERVEC_ALLOW_ORIGIN", value_delimiter = ',',
          value_parser = origin, value_name = "ORIGIN")]
    pub allow_origins: Vec<Origin>,
    /// How long requests in flight may take when the server is told to stop.
    #[arg(long, env = "CIPHERVEC_DRAIN", default_value = "30s", value_parser = duration)]
    pub drain: Duration,
}

impl ServeOptions {
    /// The data folder; none for a bucket.
    pub fn folder(&self) -> Option<PathBuf> {
        data_folder(&self.data)
    }

    /// The token file in use, if any.
    pub fn token_file(&self) -> Option<PathBuf> {
        let beside =
            || self.folder().map(|folder| folder.join(TOKENS)).filter(|path| path.exists());
        self.tokens.clone().or_else(beside)
    }

    /// Where queries are counted; none where nobody has to say who he is.
    pub fn usage_file(&self) -> Option<PathBuf> {
        let folder = || match self.folder() {
            None => {
                self.tokens.as_deref().or(self.issuers.as_deref())?.parent().map(Path::to_owned)
            }
            folder => folder,
        };
        self.usage.clone().or_else(|| Some(folder()?.join("usage.redb")))
    }

    /// Where unfinished uploads go; none for a bucket, unless one was named.
    pub fn spool_folder(&self) -> Option<PathBuf> {
        let beside = || self.folder().map(|folder| folder.join(".uploads"));
        self.spool.clone().or_else(beside)
    }

    /// Open connections of one address.
    pub fn per_address(&self) -> usize {
        self.per_address.unwrap_or(self.connections / 4).max(1)
    }
}

/// The token file's name in a data folder.
pub const TOKENS: &str = "tokens.json";

/// The folder that a path or a `file://` URL names; none for a bucket.
pub fn data_folder(data: &str) -> Option<PathBuf> {
    match data.split_once("://") {
        None => Some(PathBuf::from(data)),
        Some(("file", path)) => Some(Path::new(path).to_owned()),
        Some(_) => None,
    }
}

/// `512`, `64MiB`, `4GB`: bytes.
///
/// # Errors
/// What is expected instead.
pub fn size(text: &str) -> Result<u64, String> {
    let refused = || {
        format!("{text:?} is no size; write bytes, or a number with KiB, MiB, GiB, kB, MB or GB")
    };
    let split = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(refused()),
    };
    let bytes: Option<u64> =
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(refused)
}

/// `500ms`, `30s`, `15m`, `12h`, `30d`.
///
/// # Errors
/// What is expected instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("{text:?} is no duration; write a number with ms, s, m, h or d");
    let split = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(refused)?;
    let (number, unit) = text.split_at(split);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(refused()),
    };
    let total: Option<u64> =
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds));
    total.map(Duration::from_millis).ok_or_else(refused)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        format!("{text:?} is no address with a port; write 127.0.0.1:8707 or [::1]:8707")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_have_units() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("64MiB"), Ok(67_108_864));
        assert_eq!(size("4 GB"), Ok(4_000_000_000));
        for bad in ["", "0", "-1", "1.5GiB", "GiB", "1 parsec", "99999999999999TiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("30d"), Ok(Duration::from_secs(2_592_000)));
        for bad in ["", "30", "s", "-1s", "1w", "99999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn folders_and_buckets_are_told_apart() {
        assert_eq!(data_folder("db"), Some("db".into()));
        assert_eq!(data_folder("file:///srv/db"), Some("/srv/db".into()));
        assert_eq!(data_folder("s3://bucket/prefix"), None);
    }
}
