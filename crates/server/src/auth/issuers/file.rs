//! File of issuers: what the operator wrote, checked before it is used. docs/server.md has an example.

use crate::auth::limits::Limits;
use crate::auth::scope::{is_pattern, is_tenant_pattern};
use crate::auth::verb::Verb;
use jsonwebtoken::Algorithm;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
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
    roles: Roles,
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
    #[serde(default)]
    collections: Vec<String>,
    #[serde(default)]
    tenants: Vec<String>,
    role: Option<String>,
    #[serde(default)]
    permissions: Vec<Verb>,
    #[serde(default)]
    limits: Limits,
}

/// Roles by name, each there once: of two, nobody knows which was meant.
#[derive(Default)]
struct Roles(BTreeMap<String, Role>);

/// A list of permissions, or such a list with limits.
#[derive(Deserialize, Clone)]
#[serde(
    untagged,
    expecting = "a list of permissions, or an object with permissions and limits, was expected"
)]
enum Role {
    Plain(Vec<Verb>),
    Limited(LimitedRole),
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct LimitedRole {
    permissions: Vec<Verb>,
    #[serde(default)]
    limits: Limits,
}

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;

        impl<'de> Visitor<'de> for Once {
            type Value = Roles;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("roles by name")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Roles, M::Error> {
                let mut roles = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    let role = map.next_value::<Role>().map_err(|error| {
                        M::Error::custom(format!("the role {name:?} is none: {error}"))
                    })?;
                    if roles.contains_key(&name) {
                        let says = format!("the role {name:?} is there twice; put both together");
                        return Err(M::Error::custom(says));
                    }
                    roles.insert(name, role);
                }
                Ok(Roles(roles))
            }
        }

        deserializer.deserialize_map(Once)
    }
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
    /// Tenants of a sidecar, or databases of theirs after a slash.
    pub tenants: Vec<String>,
    /// Permissions there.
    pub verbs: Vec<Verb>,
    /// What whoever has it may use, everywhere.
    pub limits: Limits,
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
        let grants = written.grants.into_iter().map(|grant| resolve(grant, &content.roles.0));
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

fn resolve(grant: WrittenGrant, roles: &BTreeMap<String, Role>) -> Result<Grant, String> {
    let of = format!("the grant to {} {:?}", grant.claim, grant.is);
    let (mut verbs, mut limits) = (grant.permissions.clone(), grant.limits);
    if let Some(role) = &grant.role {
        let named = match roles.get(role) {
            Some(Role::Plain(verbs)) => verbs,
            Some(Role::Limited(role)) => {
                // A burst in the one may be of a rate in the other.
                limits = limits.least(role.limits);
                &role.permissions
            }
            None if role == "owner" => &Verb::OWNER[..],
            None => {
                let known: Vec<&str> = roles.keys().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(format!("there is no role {role:?} among roles: {known}, and owner"));
            }
        };
        verbs.extend(named);
    }
    let limits = limits.checked().map_err(|why| format!("{of}: {why}"))?;
    if verbs.is_empty() {
        return Err(format!("{of} gives nothing; give it permissions or a role"));
    }
    if grant.claim.is_empty() || grant.is.is_empty() {
        return Err(format!("{of} needs a claim, and what it is"));
    }
    if let Some(bad) = grant.tenants.iter().find(|pattern| !is_tenant_pattern(pattern)) {
        return Err(format!(
            "{bad:?} of {of} is no tenant: give a name, a prefix such as acme-*, a database as acme/prod, or *"
        ));
    }
    match grant.collections.iter().find(|pattern| !is_pattern(pattern)) {
        Some(bad) => Err(format!(
            "{bad:?} of {of} is no collection: give a name, a prefix such as faces-*, or *"
        )),
        None if grant.collections.is_empty() && grant.tenants.is_empty() => {
            Err(format!("{of} names no collection and no tenant; give some, or *"))
        }
        None => {
            let WrittenGrant { claim, is, collections, tenants, .. } = grant;
            Ok(Grant { claim, is, collections, tenants, verbs, limits })
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
    fn limits_of_a_role_and_a_grant_are_the_least_of_both() {
        let mut file = whole();
        file["roles"]["reader"] = json!({
            "permissions": ["query"], "limits": {"rate": "20/s", "queries_per_day": 100},
        });
        file["issuers"][0]["grants"][0]["limits"] = json!({"rate": "5/s", "max_rows": 7});
        let read = read(file.to_string().as_bytes()).unwrap();
        let expected = json!({"rate": "5/s", "burst": 5, "queries_per_day": 100, "max_rows": 7});
        assert_eq!(serde_json::to_value(read[0].grants[0].limits).unwrap(), expected);
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
            ("/issuers/0/grants/0/tenants", json!(["a/b/c"]), "is no tenant"),
            ("/issuers/0/grants/0/tenants", json!(["*/b"]), "is no tenant"),
            ("/issuers/0/grants/0/tenants", json!(["a/"]), "is no tenant"),
            ("/issuers/0/grants/0/is", json!(""), "needs a claim"),
            ("/roles/reader", json!(["look"]), "the role \"reader\" is none"),
            ("/roles/reader", json!({"limits": {}}), "a list of permissions, or an object"),
            ("/issuers/0/grants/0/limits", json!({"rate": "fast"}), "is no rate; write 20/s"),
            ("/issuers/0/grants/0/limits", json!({"burst": 5}), "a burst needs a rate"),
            ("/issuers/0/grants/0/limits", json!({"queries_per_day": 0}), "nonzero"),
            ("/issuers/0/grants/0/limits", json!({"bytes": 5}), "unknown field"),
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
        let same_role =
            whole().to_string().replacen(r#""roles":{"#, r#""roles":{"reader":["admin"],"#, 1);
        let error = read(same_role.as_bytes()).err().unwrap();
        assert!(error.contains("the role \"reader\" is there twice"), "{error}");
        let mut nothing = whole();
        nothing["issuers"][0]["grants"][0] = json!({"claim": "a", "is": "b", "collections": ["*"]});
        assert!(read(nothing.to_string().as_bytes()).err().unwrap().contains("gives nothing"));
    }
}
