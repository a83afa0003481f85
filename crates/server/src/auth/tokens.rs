//! The token file: it holds hashes of tokens, and tells who a request comes from.
//!
//! A token is `cv1_` and 43 characters of base64url: 256 random bits. The file holds its BLAKE3
//! hash only, so that who reads the file cannot use it. It is replaced in one step and read again
//! as soon as it changes: a revoked token stops at the next request.

use super::limits::Limits;
use super::scope::{Scope, is_pattern};
use super::verb::Verb;
use crate::hex;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const PREFIX: &str = "cv1_";
const FORMAT: u32 = 1;
/// How far ahead of ours the clock may be that made a token.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// One line of the token file: everything but the token.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// A name for logs and for revoking: 16 hex digits.
    pub id: String,
    hash: String,
    /// What the operator calls it.
    pub name: String,
    /// Exact names, prefixes that end in `*`, or `*`.
    pub collections: Vec<String>,
    /// What it may do there.
    pub verbs: Vec<Verb>,
    /// When it was made.
    pub created: Timestamp,
    /// When it stops; never if absent.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
}

impl TokenEntry {
    /// Whether it can be used at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && !self.is_expired(now) && !self.is_from_the_future(now)
    }

    /// Whether it has expired by `now`, without leeway.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether it can be used at `now`, in a word for people.
    pub fn state(&self, now: Timestamp) -> &'static str {
        match self {
            entry if entry.revoked.is_some() => "revoked",
            entry if entry.is_expired(now) => "expired",
            entry if entry.is_live(now) => "live",
            _ => "not yet valid",
        }
    }

    fn is_from_the_future(&self, now: Timestamp) -> bool {
        self.created.duration_since(now) > SKEW
    }

    /// What it may do.
    pub fn scope(&self) -> Scope<'_> {
        Scope { collections: &self.collections, verbs: &self.verbs }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    tokens: Vec<TokenEntry>,
}

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The system refused.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Not a token file.
    #[error(
        "{} is not a token file of this release: {detail}; restore it, or make a new one with: \
         ciphervec token create", path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A token that would not do what was meant.
    #[error("{0}")]
    Request(String),
}

/// What a new token may do.
pub struct TokenRequest {
    /// What the operator calls it.
    pub name: String,
    /// Collections, as in [`TokenEntry::collections`].
    pub collections: Vec<String>,
    /// Verbs.
    pub verbs: Vec<Verb>,
    /// How long it lives; for ever if absent.
    pub lifetime: Option<SignedDuration>,
    /// What it may use.
    pub limits: Limits,
}

/// A new token: shown once, never stored.
pub struct NewToken {
    /// The token.
    pub token: Zeroizing<String>,
    /// What is stored of it.
    pub entry: TokenEntry,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NewToken").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Entries of a token file; none if it is not there.
///
/// # Errors
/// [`TokenError`].
pub fn load(path: &Path) -> Result<Vec<TokenEntry>, TokenError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(TokenError::Io { operation: "read", path: path.to_owned(), source });
        }
    };
    let refused = |detail: String| TokenError::Content { path: path.to_owned(), detail };
    let content: Content =
        serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
    if content.format != FORMAT {
        return Err(refused(format!("format {} came, {FORMAT} is read", content.format)));
    }
    if let Some(entry) = content.tokens.iter().find(|entry| hex::parse::<32>(&entry.hash).is_none())
    {
        return Err(refused(format!("token {} has no hash of 64 hex digits", entry.id)));
    }
    for entry in &content.tokens {
        entry.limits.checked().map_err(|why| refused(format!("token {}: {why}", entry.id)))?;
    }
    Ok(content.tokens)
}

/// Makes a token and adds it to the file.
///
/// # Errors
/// [`TokenError`].
pub fn create(path: &Path, request: TokenRequest) -> Result<NewToken, TokenError> {
    let TokenRequest { name, collections, verbs, lifetime, limits } = request;
    let limits = limits.checked().map_err(TokenError::Request)?;
    if let Some(bad) = collections.iter().find(|pattern| !is_pattern(pattern)) {
        return Err(TokenError::Request(format!(
            "{bad:?} is no collection: give a name, a prefix such as faces-*, or *"
        )));
    }
    let random = || {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map(|()| bytes).map_err(|error| TokenError::Io {
            operation: "ask the system for random bytes for",
            path: path.to_owned(),
            source: io::Error::other(error),
        })
    };
    let token = Zeroizing::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(*random()?)));
    let created = now();
    let too_far =
        || TokenError::Request("expires is too far away; give at most 3650d, or never".into());
    let expires = match lifetime {
        None => None,
        Some(lifetime) => Some(created.checked_add(lifetime).map_err(|_| too_far())?),
    };
    let entry = TokenEntry {
        id: hex::show(&random()?[..8]),
        hash: hex::show(&hash(&token)),
        name,
        collections,
        verbs,
        created,
        expires,
        revoked: None,
        limits,
    };
    change(path, |entries| {
        entries.push(entry.clone());
        Ok(())
    })?;
    Ok(NewToken { token, entry })
}

/// Revokes the token of that id, and returns it.
///
/// # Errors
/// [`TokenError`], also if there is none.
pub fn revoke(path: &Path, id: &str) -> Result<TokenEntry, TokenError> {
    change(path, |entries| {
        let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) else {
            return Err(TokenError::Request(format!(
                "there is no token {id:?}; see them with: ciphervec token list"
            )));
        };
        entry.revoked.get_or_insert_with(now);
        Ok(entry.clone())
    })
}

/// Reads, changes and replaces the file while no other process does.
fn change<T>(
    path: &Path,
    apply: impl FnOnce(&mut Vec<TokenEntry>) -> Result<T, TokenError>,
) -> Result<T, TokenError> {
    let failed =
        |operation| move |source| TokenError::Io { operation, path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
    }
    let lock = private(&path.with_extension("lock")).map_err(failed("open the lock of"))?;
    keep_owner(&lock, path).map_err(failed("keep the owner of"))?;
    lock.lock().map_err(failed("lock"))?;
    let mut entries = load(path)?;
    let outcome = apply(&mut entries)?;
    let temporary = path.with_extension("new");
    let mut file = private(&temporary).map_err(failed("write"))?;
    keep_owner(&file, path).map_err(failed("keep the owner of"))?;
    let content = Content { format: FORMAT, tokens: entries };
    let mut bytes = serde_json::to_vec_pretty(&content).unwrap_or_default();
    bytes.push(b'\n');
    let written =
        file.set_len(0).and_then(|()| file.write_all(&bytes)).and_then(|()| file.sync_all());
    written.map_err(failed("write"))?;
    fs::rename(&temporary, path).map_err(failed("replace"))?;
    Ok(outcome)
}

/// A file for writing that only its owner may read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Gives a new file to whoever has the token file, or the folder where there is none: who runs the server, which reads no file of
/// root's. Where only root could do that, it is refused for a token file of somebody else, whom the new one would keep out.
#[cfg(unix)]
fn keep_owner(file: &File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let (there, is_file) = match fs::metadata(path) {
        Ok(there) => (there, true),
        Err(_) => (fs::metadata(folder.unwrap_or(Path::new(".")))?, false),
    };
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (there.uid(), there.gid()) {
        return Ok(());
    }
    match fchown(file, Some(there.uid()), Some(there.gid())) {
        Err(error) if is_file && own.uid() != there.uid() => Err(io::Error::other(format!(
            "it belongs to user {}; run this as that user or as root ({error})",
            there.uid()
        ))),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Now, in whole seconds.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

fn hash(token: &str) -> [u8; 32] {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// A file that is read again when it changes.
pub struct TokenFile {
    path: PathBuf,
    held: RwLock<LoadedTokens>,
}

/// Entries by the hash of their token.
type Hashed = Vec<([u8; 32], Arc<TokenEntry>)>;

struct LoadedTokens {
    stamp: Option<Stamp>,
    /// `None` if the file could not be read: then nobody gets in.
    entries: Option<Arc<Hashed>>,
}

#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    file: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let file = 0;
        Stamp { modified: metadata.modified().ok(), length: metadata.len(), file }
    }
}

/// Who a token belongs to.
pub enum Lookup {
    /// A live token.
    Known(Arc<TokenEntry>),
    /// No, garbled, unknown, expired or revoked.
    Unknown,
    /// The file cannot be read, so that nobody is let in.
    Unreadable,
}

impl TokenFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        load(path)?;
        let held = RwLock::new(LoadedTokens { stamp: None, entries: None });
        Ok(TokenFile { path: path.to_owned(), held })
    }

    /// Whose token that is.
    pub fn find(&self, token: &str) -> Lookup {
        let Some(entries) = self.entries() else { return Lookup::Unreadable };
        let random = token.strip_prefix(PREFIX).map(|text| URL_SAFE_NO_PAD.decode(text));
        if !matches!(random, Some(Ok(bytes)) if bytes.len() == 32) {
            return Lookup::Unknown;
        }
        let presented = hash(token);
        let mut found = None;
        // Every entry is looked at, whichever it is.
        for (hash, entry) in entries.iter() {
            if bool::from(hash.ct_eq(&presented)) {
                found = Some(entry);
            }
        }
        let now = Timestamp::now();
        match found {
            Some(entry) if entry.is_live(now) => Lookup::Known(entry.clone()),
            Some(entry) => {
                if entry.is_from_the_future(now) {
                    tracing::warn!(token = %entry.id, created = %entry.created,
                        "refused a token made in the future; set the clocks");
                }
                Lookup::Unknown
            }
            None => Lookup::Unknown,
        }
    }

    /// Every entry, in the order of the file; none if it cannot be read.
    pub fn list(&self) -> Option<Vec<Arc<TokenEntry>>> {
        let entries = self.entries()?;
        Some(entries.iter().map(|(_, entry)| entry.clone()).collect())
    }

    fn entries(&self) -> Option<Arc<Hashed>> {
        let stamp = fs::metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata));
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        if held.stamp == stamp && stamp.is_some() {
            return held.entries.clone();
        }
        drop(held);
        let loaded = load(&self.path).inspect_err(|error| {
            tracing::error!(%error, "the token file cannot be read; nobody is let in");
        });
        let hashed = loaded.ok().map(|entries| {
            let keyed = entries.into_iter();
            let keyed = keyed.filter_map(|entry| Some((hex::parse(&entry.hash)?, Arc::new(entry))));
            Arc::new(keyed.collect::<Vec<_>>())
        });
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        *held = LoadedTokens { stamp, entries: hashed };
        held.entries.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(collections: &[&str], verbs: &[Verb]) -> TokenRequest {
        TokenRequest {
            name: "test".into(),
            collections: collections.iter().map(|&name| name.into()).collect(),
            verbs: verbs.to_vec(),
            lifetime: Some(SignedDuration::from_hours(1)),
            limits: Limits::default(),
        }
    }

    fn is_known(file: &TokenFile, token: &str) -> bool {
        matches!(file.find(token), Lookup::Known(_))
    }

    #[test]
    fn a_token_works_until_it_is_revoked_and_the_file_never_holds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        let new = create(&path, request(&["faces"], &[Verb::Query])).expect("created");
        assert_eq!(new.token.len(), 47);
        let stored = fs::read_to_string(&path).expect("stored");
        assert!(!stored.contains(&new.token[4..]));
        assert!(!format!("{new:?}").contains(&new.token[4..]));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        }
        let file = TokenFile::open(&path).expect("opens");
        assert!(is_known(&file, &new.token));
        for bad in ["", "cv1_", "cv1_AAAA", &new.token[..46], &new.token.replace("cv1", "cv2")] {
            assert!(!is_known(&file, bad), "{bad}");
        }
        let other = create(&path, request(&["*"], &[Verb::Admin])).expect("created");
        assert!(is_known(&file, &new.token) && is_known(&file, &other.token));
        revoke(&path, &new.entry.id).expect("revoked");
        assert!(!is_known(&file, &new.token) && is_known(&file, &other.token));
        assert!(revoke(&path, "0000").is_err());
    }

    #[test]
    fn a_file_that_is_damaged_or_gone_lets_nobody_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        let new = create(&path, request(&["faces"], &[Verb::Query])).expect("created");
        let file = TokenFile::open(&path).expect("opens");
        let good = fs::read(&path).expect("stored");
        fs::write(&path, b"{").expect("written");
        assert!(matches!(file.find(&new.token), Lookup::Unreadable));
        fs::write(&path, &good).expect("written");
        assert!(is_known(&file, &new.token));
        fs::remove_file(&path).expect("removed");
        assert!(!is_known(&file, &new.token));
    }

    #[test]
    fn clocks_expire_tokens_at_once_and_bear_five_minutes_of_skew() {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let entry = |created: i64, expires: Option<i64>| TokenEntry {
            id: String::new(),
            hash: String::new(),
            name: String::new(),
            collections: Vec::new(),
            verbs: Vec::new(),
            created: now + SignedDuration::from_secs(created),
            expires: expires.map(|seconds| now + SignedDuration::from_secs(seconds)),
            revoked: None,
            limits: Limits::default(),
        };
        assert!(entry(0, Some(1)).is_live(now));
        assert!(!entry(-5, Some(0)).is_live(now));
        assert!(entry(300, None).is_live(now));
        assert!(!entry(301, None).is_live(now));
    }

    #[test]
    fn scopes_are_names_prefixes_or_everything() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        let entry = |collections: &[&str], verbs: &[Verb]| {
            create(&path, request(collections, verbs)).expect("created").entry
        };
        let one = entry(&["faces", "text-*"], &[Verb::Query]);
        assert!(
            one.scope().allows(Verb::Query, "faces") && one.scope().allows(Verb::Query, "text-a")
        );
        assert!(
            !one.scope().allows(Verb::Query, "faces2") && !one.scope().allows(Verb::Query, "text")
        );
        assert!(!one.scope().allows(Verb::Read, "faces") && !one.scope().allows_metrics());
        let admin = entry(&["faces"], &[Verb::Admin]);
        assert!(
            admin.scope().allows(Verb::Write, "faces")
                && !admin.scope().allows(Verb::Write, "text")
        );
        assert!(
            !admin.scope().allows_metrics()
                && entry(&["*"], &[Verb::Admin]).scope().allows_metrics()
        );
        for bad in ["", "a b", "a/b", "*a", "é"] {
            assert!(create(&path, request(&[bad], &[Verb::Read])).is_err(), "{bad}");
        }
    }
}
