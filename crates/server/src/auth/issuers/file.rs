//! File of issuers: what the operator wrote, checked before it is used. docs/server.md has an example.

use crate::auth::scope::is_pattern;
use crate::auth::verb::Verb;
use jsonwebtoken::Algorithm;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;

/// Why a file of issuers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IssuersError {
    /// The system refused.
    #[error("cannot read {}: {source}; check --issuers", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Not a file of issuers.
    #[error("{} is no file of issuers: {detail}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

impl IssuersError {
    pub(super) fn content(path: &Path, detail: impl Into<String>) -> Self {
        IssuersError::Content { path: path.to_owned(), detail: detail.into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    #[serde(default)]
    roles: BTreeMap<String, Vec<Verb>>,
    issuers: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    issuer: String,
    audience: Vec<String>,
    jwks: Option<String>,
    ca: Option<PathBuf>,
    #[serde(default = "usual_algorithms")]
    algorithms: Vec<Algorithm>,
    #[serde(default = "a_day")]
    longest_hours: u32,
    #[serde(default)]
    refuse: Vec<String>,
    grants: Vec<WrittenGrant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGrant {
    claim: String,
    is: String,
    collections: Vec<String>,
    role: Option<String>,
    #[serde(default)]
    permissions: Vec<Verb>,
}

fn usual_algorithms() -> Vec<Algorithm> {
    vec![Algorithm::RS256, Algorithm::PS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA]
}

fn a_day() -> u32 {
    24
}

/// An identity provider.
pub struct IssuerEntry {
    /// As tokens name it, to the byte.
    pub issuer: String,
    /// Of these names of this server a token has one.
    pub audience: Vec<String>,
    /// Where its keys are, a URL or a file; none where its discovery document says that.
    pub jwks: Option<String>,
    /// Who vouches for its certificate, if not the system's authorities.
    pub ca: Option<PathBuf>,
    /// By which tokens may be signed.
    pub algorithms: Vec<Algorithm>,
    /// How long from now a token may be valid: it can't be revoked.
    pub longest_hours: u32,
    /// Subjects whose tokens are refused.
    pub refuse: Vec<String>,
    /// What whom.
    pub grants: Vec<Grant>,
}

impl IssuerEntry {
    /// Whether keys are at the same place.
    pub fn has_keys_of(&self, other: &Self) -> bool {
        (&self.issuer, &self.jwks, &self.ca) == (&other.issuer, &other.jwks, &other.ca)
    }
}

/// Permissions for tokens with a claim.
pub struct Grant {
    /// Its name, or a path of names.
    pub claim: String,
    /// What it is, or has among others.
    pub is: String,
    /// Collections, as those of a token.
    pub collections: Vec<String>,
    /// Permissions there.
    pub verbs: Vec<Verb>,
}

/// The issuers of a file.
pub fn load(path: &Path) -> Result<Vec<IssuerEntry>, IssuersError> {
    let bytes =
        std::fs::read(path).map_err(|source| IssuersError::Io { path: path.to_owned(), source })?;
    read(&bytes).map_err(|detail| IssuersError::content(path, detail))
}

fn read(bytes: &[u8]) -> Result<Vec<IssuerEntry>, String> {
    let content: Content = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if content.format != FORMAT {
        return Err(format!("format {} came, {FORMAT} is read", content.format));
    }
    if content.issuers.is_empty() {
        return Err("it names no issuer".into());
    }
    let mut issuers: Vec<IssuerEntry> = Vec::new();
    for written in content.issuers {
        let name = &written.issuer;
        if issuers.iter().any(|issuer| issuer.issuer == *name) {
            return Err(format!("issuer {name:?} is there twice; put all its grants together"));
        }
        let no_audience =
            written.audience.is_empty() || written.audience.iter().any(String::is_empty);
        if name.is_empty() || no_audience {
            return Err(format!(
                "issuer {name:?} needs a name and an audience: tokens for other services have the same issuer"
            ));
        }
        if let Some(shared) = written.algorithms.iter().find(|&&algorithm| !is_public(algorithm)) {
            return Err(format!(
                "issuer {name:?} may not sign by {shared:?}; give some of RS256, RS384, RS512, PS256, PS384, PS512, \
                 ES256, ES384, EdDSA"
            ));
        }
        if written.longest_hours == 0 || written.algorithms.is_empty() {
            return Err(format!("issuer {name:?} allows no token: longest_hours and algorithms"));
        }
        let grants = written.grants.into_iter().map(|grant| resolve(grant, &content.roles));
        issuers.push(IssuerEntry {
            grants: grants.collect::<Result<_, _>>()?,
            issuer: written.issuer,
            audience: written.audience,
            jwks: written.jwks,
            ca: written.ca,
            algorithms: written.algorithms,
            longest_hours: written.longest_hours,
            refuse: written.refuse,
        });
    }
    Ok(issuers)
}

fn is_public(algorithm: Algorithm) -> bool {
    !matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512)
}

fn resolve(grant: WrittenGrant, roles: &BTreeMap<String, Vec<Verb>>) -> Result<Grant, String> {
    let mut verbs = grant.permissions;
    if let Some(role) = &grant.role {
        let own = roles.get(role).map(Vec::as_slice);
        let named = own.or((role == "owner").then_some(&Verb::OWNER)).ok_or_else(|| {
            let known: Vec<&str> = roles.keys().map(String::as_str).collect();
            format!("there is no role {role:?} among roles: {}, and owner", known.join(", "))
        })?;
        verbs.extend(named);
    }
    let of = format!("the grant to {} {:?}", grant.claim, grant.is);
    if verbs.is_empty() {
        return Err(format!("{of} gives nothing; give it permissions or a role"));
    }
    if grant.claim.is_empty() || grant.is.is_empty() {
        return Err(format!("{of} needs a claim, and what it is"));
    }
    match grant.collections.iter().find(|pattern| !is_pattern(pattern)) {
        Some(bad) => Err(format!(
            "{bad:?} of {of} is no collection: give a name, a prefix such as faces-*, or *"
        )),
        None if grant.collections.is_empty() => {
            Err(format!("{of} names no collection; give some, or *"))
        }
        None => {
            Ok(Grant { claim: grant.claim, is: grant.is, collections: grant.collections, verbs })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn whole() -> Value {
        json!({
            "format": 1,
            "roles": {"reader": ["query", "read"]},
            "issuers": [{
                "issuer": "https://id.example", "audience": ["search"],
                "grants": [
                    {"claim": "groups", "is": "staff", "role": "reader", "permissions": ["append"], "collections": ["books"]},
                ],
            }],
        })
    }

    #[test]
    fn roles_and_permissions_add_up() {
        let read = read(whole().to_string().as_bytes()).unwrap();
        assert_eq!(read[0].grants[0].verbs, [Verb::Append, Verb::Query, Verb::Read]);
        assert_eq!((read[0].longest_hours, read[0].algorithms.len()), (24, 5));
    }

    #[test]
    fn what_lets_in_too_many_or_nobody_is_refused_with_its_reason() {
        for (at, value, says) in [
            ("/format", json!(2), "format 2 came"),
            ("/issuers", json!([]), "no issuer"),
            ("/issuers/0/audience", json!([]), "needs a name and an audience"),
            ("/issuers/0/audience", json!(["search", ""]), "needs a name and an audience"),
            ("/issuers/0/issuer", json!(""), "needs a name and an audience"),
            ("/issuers/0/algorithms", json!(["HS256"]), "may not sign by HS256"),
            ("/issuers/0/algorithms", json!(["none"]), "unknown variant"),
            ("/issuers/0/algorithms", json!([]), "allows no token"),
            ("/issuers/0/longest_hours", json!(0), "allows no token"),
            ("/issuers/0/algorithm", json!(["RS256"]), "unknown field"),
            (
                "/issuers/0/grants/0/role",
                json!("writer"),
                "no role \"writer\" among roles: reader, and owner",
            ),
            ("/issuers/0/grants/0/collections", json!([]), "names no collection"),
            ("/issuers/0/grants/0/collections", json!(["a/b"]), "is no collection"),
            ("/issuers/0/grants/0/is", json!(""), "needs a claim"),
            ("/roles/reader", json!(["look"]), "unknown variant"),
        ] {
            let mut file = whole();
            let (parent, key) = at.rsplit_once('/').unwrap();
            file.pointer_mut(parent).unwrap()[key] = value;
            let error = read(file.to_string().as_bytes()).err().unwrap();
            assert!(error.contains(says), "{at}: {error}");
        }
        let mut twice = whole();
        let one = twice["issuers"][0].clone();
        twice["issuers"].as_array_mut().unwrap().push(one);
        assert!(read(twice.to_string().as_bytes()).err().unwrap().contains("twice"));
        let mut nothing = whole();
        nothing["issuers"][0]["grants"][0] = json!({"claim": "a", "is": "b", "collections": ["*"]});
        assert!(read(nothing.to_string().as_bytes()).err().unwrap().contains("gives nothing"));
    }
}
