//! Issuers: signed tokens (JWT) of an identity provider, and what the operator's file grants by their claims. For
//! the gate; nobody is let in whose token's signature, issuer, audience and dates are not all right.

mod blocking;
mod claims;
mod file;
mod keys;
mod signatures;

pub use blocking::BlockingIssuers;
pub use file::IssuersError;

use super::limits::Limits;
use super::scope::Scope;
use super::verb::Verb;
use crate::hex;
use file::{Grant, IssuerEntry};
use futures_util::future::join_all;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use keys::KeySource;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of the longest signed token.
const LONGEST: usize = 16 << 10;
/// Seconds that the clocks of an issuer and of the server may differ by.
const LEEWAY: u64 = 30;

/// Whom an issuer's token names, with what this server grants.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// 32 hex digits, a hash of issuer and subject: in logs, and whose uploads and session keys they are.
    pub id: String,
    /// Who vouches.
    pub issuer: String,
    /// What the issuer calls whoever it is.
    pub subject: String,
    /// When the token stops.
    pub expires: Timestamp,
    /// What it may use: of several of its grants, the least.
    pub limits: Limits,
    grants: Vec<(Vec<String>, Vec<Verb>)>,
    /// The same for tenants of a sidecar.
    tenants: Vec<(Vec<String>, Vec<Verb>)>,
}

impl Identity {
    /// What it may do.
    pub fn scopes(&self) -> impl Iterator<Item = Scope<'_>> {
        self.grants.iter().map(|(collections, verbs)| Scope { collections, verbs })
    }

    /// Whether it may do `verb` in a tenant of a sidecar, or in one of its databases. Nothing is granted where a name has
    /// a slash, which parts both in the file.
    pub fn allows_tenant(&self, verb: Verb, tenant: &str, database: Option<&str>) -> bool {
        if tenant.contains('/') || database.is_some_and(|database| database.contains('/')) {
            return false;
        }
        let within = database.map(|database| format!("{tenant}/{database}"));
        let mut names = [Some(tenant), within.as_deref()].into_iter().flatten();
        let scopes = self.tenants.iter().map(|(collections, verbs)| Scope { collections, verbs });
        let scopes: Vec<Scope<'_>> = scopes.collect();
        names.any(|name| scopes.iter().any(|scope| scope.allows(verb, name)))
    }

    /// Whether it may do everything in every tenant.
    pub fn has_all_tenants(&self) -> bool {
        let mut scopes =
            self.tenants.iter().map(|(collections, verbs)| Scope { collections, verbs });
        scopes.any(Scope::is_operator)
    }
}

/// Who sent a token that is signed.
pub enum Verified {
    /// It is right, whatever is granted.
    Known(Arc<Identity>),
    /// It is not; why, for the log.
    Refused(&'static str),
    /// The issuer's keys cannot be had.
    Unreachable,
}

/// The issuers of one file.
pub struct Issuers {
    path: PathBuf,
    held: RwLock<Arc<Vec<Issuer>>>,
}

struct Issuer {
    entry: IssuerEntry,
    keys: KeySource,
}

impl Issuers {
    /// Reads the file.
    ///
    /// # Errors
    /// [`IssuersError`].
    pub fn open(path: &Path) -> Result<Self, IssuersError> {
        signatures::install();
        let held = RwLock::new(Arc::new(load(path)?));
        Ok(Issuers { path: path.to_owned(), held })
    }

    /// Reads the file again. What was read stays where that fails.
    ///
    /// # Errors
    /// [`IssuersError`].
    pub fn reload(&self) -> Result<(), IssuersError> {
        let before = self.issuers();
        let read = load(&self.path)?;
        for issuer in &read {
            // Keys that were had stay, where they would be asked for at the same place.
            let same = |old: &&Issuer| old.entry.has_keys_of(&issuer.entry);
            if let Some(old) = before.iter().find(same) {
                issuer.keys.go_on_from(&old.keys);
            }
        }
        let read = Arc::new(read);
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// Asks every issuer for its keys.
    pub async fn warm(&self) {
        join_all(self.issuers().iter().map(|issuer| issuer.keys.refresh())).await;
    }

    /// Whether that could be a signed token, and is none of the token file's.
    pub fn is_signed(token: &str) -> bool {
        token.bytes().filter(|&byte| byte == b'.').count() == 2
    }

    /// Whom that token names.
    pub async fn verify(&self, token: &str) -> Verified {
        if token.len() > LONGEST {
            return Verified::Refused("it is too long");
        }
        let Ok(header) = decode_header(token) else { return Verified::Refused("it has no header") };
        if header.crit.is_some() {
            return Verified::Refused("it asks for an extension");
        }
        let kind = header.typ.as_deref().map(str::to_ascii_lowercase);
        if !matches!(kind.as_deref(), None | Some("jwt" | "at+jwt" | "application/at+jwt")) {
            return Verified::Refused("it is for something else");
        }
        let Some(claimed) = claims::issuer(token) else {
            return Verified::Refused("it names no issuer");
        };
        let issuers = self.issuers();
        let Some(issuer) = issuers.iter().find(|issuer| issuer.entry.issuer == claimed) else {
            return Verified::Refused("its issuer is not in the file");
        };
        issuer.verify(token, header.alg, header.kid.as_deref()).await
    }

    fn issuers(&self) -> Arc<Vec<Issuer>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn load(path: &Path) -> Result<Vec<Issuer>, IssuersError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    file::load(path)?
        .into_iter()
        .map(|entry| {
            let keys = KeySource::new(&entry, folder)
                .map_err(|detail| IssuersError::content(path, detail))?;
            Ok(Issuer { entry, keys })
        })
        .collect()
}

impl Issuer {
    async fn verify(&self, token: &str, algorithm: Algorithm, kid: Option<&str>) -> Verified {
        let entry = &self.entry;
        if !entry.algorithms.contains(&algorithm) {
            return Verified::Refused("its algorithm is not allowed");
        }
        let Ok(keys) = self.keys.of(kid, algorithm).await else { return Verified::Unreachable };
        let mut wanted = Validation::new(algorithm);
        wanted.set_required_spec_claims(&["aud", "exp", "iss", "sub"]);
        wanted.set_issuer(&[&entry.issuer]);
        wanted.set_audience(&entry.audience);
        wanted.validate_nbf = true;
        wanted.leeway = LEEWAY;
        let claims =
            keys.iter().find_map(|key| decode::<Map<String, Value>>(token, key, &wanted).ok());
        let Some(claims) = claims.map(|read| read.claims) else {
            return Verified::Refused("no key of its issuer, audience or date is right");
        };
        let (Some(Value::String(subject)), Some(expires)) =
            (claims.get("sub"), claims.get("exp").and_then(Value::as_f64))
        else {
            return Verified::Refused("its subject or date is none");
        };
        let Ok(expires) = Timestamp::from_second(expires as i64) else {
            return Verified::Refused("its date is none");
        };
        let left = expires.duration_since(Timestamp::now()).as_hours();
        if left >= i64::from(entry.longest_hours) {
            return Verified::Refused("it is valid for longer than longest_hours");
        }
        if subject.is_empty() || claims.contains_key("cnf") {
            return Verified::Refused("it has no subject, or is bound to a key that nobody shows");
        }
        if entry.refuse.iter().any(|refused| refused == subject) {
            tracing::info!(issuer = entry.issuer, ?subject, "a subject that is refused");
            return Verified::Refused("its subject is refused");
        }
        let held = |grant: &&Grant| claims::has(&claims, &grant.claim, &grant.is);
        let grants = || entry.grants.iter().filter(held);
        let limits = grants().map(|grant| grant.limits);
        Verified::Known(Arc::new(Identity {
            id: id(&entry.issuer, subject),
            issuer: entry.issuer.clone(),
            subject: subject.clone(),
            expires,
            limits: limits.fold(Limits::default(), Limits::least),
            grants: grants()
                .map(|grant| (grant.collections.clone(), grant.verbs.clone()))
                .collect(),
            tenants: grants().map(|grant| (grant.tenants.clone(), grant.verbs.clone())).collect(),
        }))
    }
}

fn id(issuer: &str, subject: &str) -> String {
    let mut hash = blake3::Hasher::new_derive_key("ciphervec identity of an issuer 2026-11-29");
    hash.update(&(issuer.len() as u64).to_le_bytes());
    hash.update(issuer.as_bytes()).update(subject.as_bytes());
    hex::show(&hash.finalize().as_bytes()[..16])
}
