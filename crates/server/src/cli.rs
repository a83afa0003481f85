//! The command line of `ciphervec-server`: it serves, and edits the token file.

use crate::auth::tokens::{self, TokenEntry, TokenRequest};
use crate::auth::{Limits, Rate, Verb};
use crate::config::{ServeOptions, TOKENS, data_folder, duration, size};
use crate::serve;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

const SERVE_EXAMPLES: &str = "\
Examples:
  On this machine only, no token:
    ciphervec serve --data db

  For others, with TLS and tokens:
    ciphervec token create --data db --collection '*' --permission admin --expires 90d
    ciphervec serve --data db --listen 0.0.0.0:8707 --tls-cert fullchain.pem --tls-key key.pem

The console, where it was built in, is at the address itself: http://127.0.0.1:8707/. --no-console switches it off.
Every option can be set by its CIPHERVEC_… variable instead. CIPHERVEC_LOG chooses what is logged (info, debug, …).
SIGTERM stops it once requests in flight have ended; SIGHUP reads certificates again and reopens the audit file.";

const TOKEN_EXAMPLES: &str = "\
Examples:
  ciphervec token create --data db --collection faces --permission owner --expires 30d
  ciphervec token create --data db --collection 'text-*' --permission query --permission read --expires 1d --name searcher
  ciphervec token create --data db --collection nearest --permission run --expires 30d --name kiosk-of-a-program
  ciphervec token create --data db --collection 'acme-*' --permission owner --expires 90d --rate 20/s --burst 40 \
    --queries-per-day 10000 --max-bytes 10GB
  ciphervec token list --data db
  ciphervec token revoke --data db 1f0c9a3be2d46578

A running server sees the change with its next request.";

#[derive(Parser)]
#[command(
    name = "ciphervec",
    version,
    about = "An HTTP server for embeddings that stay encrypted: it holds no key",
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a folder or a bucket of encrypted collections over HTTP.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeOptions>),
    /// Make, list and revoke the tokens that clients show.
    #[command(after_help = TOKEN_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

/// What `--permission` takes: one, or those that an owner's client needs from day to day.
#[derive(Clone)]
enum Grant {
    Owner,
    One(Verb),
}

impl Grant {
    /// What token files hold.
    fn verbs(&self) -> &[Verb] {
        match self {
            Grant::Owner => &Verb::OWNER,
            Grant::One(verb) => std::slice::from_ref(verb),
        }
    }
}

impl ValueEnum for Grant {
    fn value_variants<'a>() -> &'a [Self] {
        use Verb::{Admin, Append, Keep, Metrics, Query, Read, Run, Write};
        const KNOWN: [Grant; 9] = [
            Grant::Owner,
            Grant::One(Read),
            Grant::One(Query),
            Grant::One(Append),
            Grant::One(Write),
            Grant::One(Run),
            Grant::One(Keep),
            Grant::One(Admin),
            Grant::One(Metrics),
        ];
        &KNOWN
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Grant::Owner => Some(PossibleValue::new("owner").help(
                "Query, read, write, run and keep: what an owner's client needs from day to day",
            )),
            Grant::One(verb) => verb.to_possible_value(),
        }
    }
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token and print it once: only its hash is stored.
    Create {
        #[command(flatten)]
        place: Place,
        /// The name of a collection or a program, a prefix such as faces-*, or *; may be repeated.
        #[arg(long = "collection", required = true, value_name = "NAME")]
        collections: Vec<String>,
        /// What it may do; may be repeated. An owner's client needs owner, and admin to create collections and change keys.
        #[arg(long = "permission", visible_alias = "verb", required = true, value_enum)]
        verbs: Vec<Grant>,
        /// When it stops: 30d, 12h, … or never.
        #[arg(long, value_parser = lifetime, value_name = "DURATION")]
        expires: Lifetime,
        /// What you call it.
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Show every token's id, scope and state.
    List {
        #[command(flatten)]
        place: Place,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop a token at once.
    Revoke {
        #[command(flatten)]
        place: Place,
        /// Its id, as `token list` shows it.
        id: String,
    },
}

/// What a token may use. A limit that is left out limits nothing.
#[derive(Args)]
struct LimitOptions {
    /// Requests in a second, a minute or an hour: 20/s, 100/m, 1000/h.
    #[arg(long)]
    rate: Option<Rate>,
    /// Requests at once after a pause; left out: as many as the rate names.
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<NonZeroU32>,
    /// Queries, private fetches, lookups and runs of a day (UTC).
    #[arg(long, value_name = "N")]
    queries_per_day: Option<NonZeroU64>,
    /// What all collections and tables of its scope may have stored together: 10GB, 512MiB.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max_bytes: Option<u64>,
    /// The same in rows.
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
}

impl From<LimitOptions> for Limits {
    fn from(options: LimitOptions) -> Self {
        let LimitOptions { rate, burst, queries_per_day, max_bytes, max_rows } = options;
        Limits { rate, burst, queries_per_day, max_bytes, max_rows }
    }
}

/// Where the token file is.
#[derive(Args)]
struct Place {
    /// The data folder that is served; the token file in it is tokens.json.
    #[arg(long, env = "CIPHERVEC_DATA", required_unless_present = "tokens", value_name = "DIR")]
    data: Option<String>,
    /// The token file, where it is another, as for a bucket.
    #[arg(long, env = "CIPHERVEC_TOKENS", value_name = "FILE")]
    tokens: Option<PathBuf>,
}

impl Place {
    fn file(&self) -> Result<PathBuf, String> {
        let beside = self.data.as_deref().and_then(data_folder).map(|folder| folder.join(TOKENS));
        self.tokens.clone().or(beside).ok_or_else(|| {
            "a bucket has no folder for a token file; name one with --tokens FILE, here and for serve".into()
        })
    }
}

#[derive(Clone, Copy)]
enum Lifetime {
    Never,
    For(SignedDuration),
}

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime::Never);
    }
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("a token that expires at once is of no use".into());
    }
    SignedDuration::try_from(duration).map(Lifetime::For).map_err(|error| error.to_string())
}

/// Runs a command line, the program's name first, and returns its exit code: 0, 2 for a wrong
/// command line, 1 for what went wrong.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(error) => {
            // Nothing is left to be done if the terminal is gone.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let done = match command {
        Command::Serve(options) => serve::serve(&options),
        Command::Token { command } => token(command),
    };
    match done {
        Ok(()) => 0,
        Err(says) => {
            let _ = writeln!(io::stderr(), "error: {says}");
            1
        }
    }
}

fn token(command: TokenCommand) -> Result<(), String> {
    let printed = match command {
        TokenCommand::Create { place, collections, verbs, expires, name, limits } => {
            let lifetime = match expires {
                Lifetime::Never => None,
                Lifetime::For(duration) => Some(duration),
            };
            let file = place.file()?;
            let mut granted: Vec<Verb> = Vec::new();
            for &verb in verbs.iter().flat_map(Grant::verbs) {
                if !granted.contains(&verb) {
                    granted.push(verb);
                }
            }
            let limits = limits.into();
            let request = TokenRequest { name, collections, verbs: granted, lifetime, limits };
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let absent = folder.filter(|folder| !folder.exists());
            let new = tokens::create(&file, request).map_err(|error| error.to_string())?;
            if let Some(made) = absent {
                let made = made.display();
                let says = format!(
                    "there was no folder {made}: it was made for the token file, and holds no collection"
                );
                let _ = writeln!(io::stderr(), "{says}");
            }
            let says = format!(
                "token {} for {}, kept as a hash in {}; it is shown only now:",
                new.entry.id,
                scope(&new.entry),
                file.display()
            );
            // Whoever does not read this still gets the token, which is shown only now.
            let _ = writeln!(io::stderr(), "{says}");
            writeln!(io::stdout(), "{}", *new.token)
        }
        TokenCommand::List { place, json } => {
            let entries = tokens::load(&place.file()?).map_err(|error| error.to_string())?;
            list(&entries, json)
        }
        TokenCommand::Revoke { place, id } => {
            let entry = tokens::revoke(&place.file()?, &id).map_err(|error| error.to_string())?;
            writeln!(io::stdout(), "revoked {} ({})", entry.id, scope(&entry))
        }
    };
    printed.map_err(|error| format!("cannot print: {error}"))
}

fn list(entries: &[TokenEntry], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let now = Timestamp::now();
    if json {
        let lines = entries.iter().map(|entry| {
            serde_json::json!({
                "id": entry.id, "name": entry.name, "collections": entry.collections, "verbs": entry.verbs,
                "created": entry.created, "expires": entry.expires, "revoked": entry.revoked, "limits": entry.limits,
                "state": entry.state(now),
            })
        });
        return writeln!(out, "{:#}", serde_json::Value::from_iter(lines));
    }
    if entries.is_empty() {
        writeln!(out, "there are no tokens; make one with: ciphervec token create")?;
    }
    for entry in entries {
        let expires = entry.expires.map_or("never".to_owned(), |expires| expires.to_string());
        let (id, name) = (&entry.id, &entry.name);
        writeln!(
            out,
            "{id}  {:13}  expires {expires:20}  {}  {name}",
            entry.state(now),
            scope(entry)
        )?;
    }
    Ok(())
}

fn scope(entry: &TokenEntry) -> String {
    let verbs: Vec<&str> = entry.verbs.iter().map(|verb| verb.as_str()).collect();
    let mut says = format!("{} on {}", verbs.join(", "), entry.collections.join(", "));
    let Limits { rate, burst, queries_per_day, max_bytes, max_rows } = entry.limits;
    let mut limit = |limit: Option<String>| says.extend(limit.map(|limit| format!(", {limit}")));
    limit(rate.map(|rate| rate.to_string()));
    limit(burst.map(|burst| format!("{burst} at once")));
    limit(queries_per_day.map(|queries| format!("{queries} queries a day")));
    limit(max_bytes.map(|bytes| format!("{bytes} bytes")));
    limit(max_rows.map(|rows| format!("{rows} rows")));
    says
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound_and_every_option_explains_itself() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let mut open: Vec<&clap::Command> = vec![&command];
        while let Some(command) = open.pop() {
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    argument.get_id()
                );
            }
            open.extend(command.get_subcommands().filter(|one| one.get_name() != "help"));
        }
    }

    #[test]
    fn a_token_needs_an_end() {
        let line = |extra: &[&str]| {
            let words = [
                "ciphervec",
                "token",
                "create",
                "--data",
                "db",
                "--collection",
                "faces",
                "--permission",
                "query",
            ];
            Cli::try_parse_from(words.iter().chain(extra)).is_ok()
        };
        assert!(line(&["--expires", "30d"]) && line(&["--expires", "never"]));
        assert!(!line(&[]) && !line(&["--expires", "soon"]) && !line(&["--expires", "0s"]));
    }
}
