//! Keys of an issuer, from its URL or a file: held for an hour, asked for anew where a token names one that is not
//! there, and never more often than every half minute, whoever sends what.

use super::file::IssuerEntry;
use futures_util::StreamExt;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::{Certificate, Client, Url, redirect::Policy};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

/// After which keys are asked for anew, and after which those that were had are not believed any more.
const FRESH: Duration = Duration::from_secs(3600);
const STALE: Duration = Duration::from_secs(24 * 3600);
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a document, and keys in it, at most.
const DOCUMENT: usize = 1 << 20;
const KEYS: usize = 64;
/// Keys that a token without the name of one is checked by, at most.
const TRIED: usize = 8;

/// Where keys come from, and those that came.
pub struct KeySource(Arc<Inner>);

struct Inner {
    from: From,
    held: RwLock<Option<Arc<Held>>>,
    /// When they were asked for last.
    asked: Arc<Mutex<Option<Instant>>>,
}

enum From {
    File(PathBuf),
    Url(Client, Url),
    /// The issuer's discovery document names their URL.
    Discovery(Client, String),
}

struct Held {
    since: Instant,
    keys: Vec<Key>,
}

struct Key {
    kid: Option<String>,
    algorithm: Option<KeyAlgorithm>,
    /// The one algorithm of its curve; none for RSA, whose keys fit several.
    of_curve: Option<Algorithm>,
    key: DecodingKey,
}

/// The keys cannot be had.
#[derive(Debug)]
pub struct NoKeys;

impl KeySource {
    /// Where `entry` says, files beside its own.
    ///
    /// # Errors
    /// What is no URL that can be trusted.
    pub fn new(entry: &IssuerEntry, folder: &Path) -> Result<Self, String> {
        let from = match entry.jwks.as_deref() {
            Some(path) if !path.contains("://") => From::File(folder.join(path)),
            Some(url) => {
                let url = trusted(url)?;
                From::Url(client(&url, entry.ca.as_deref(), folder)?, url)
            }
            None => {
                let client = client(&discovery(&entry.issuer)?, entry.ca.as_deref(), folder)?;
                From::Discovery(client, entry.issuer.clone())
            }
        };
        Ok(KeySource(Arc::new(Inner { from, held: RwLock::default(), asked: Arc::default() })))
    }

    /// Keys by which a token may be signed that names `kid`. One sender at a time waits for an issuer: where its keys are
    /// asked for already, others hear at once that there are none, or strangers could hold everybody up.
    pub async fn of(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, NoKeys> {
        let held = self.0.held().filter(|held| held.since.elapsed() < STALE);
        let suits = |held: &Held| held.fitting(kid, algorithm);
        let found = held.as_deref().map(suits).unwrap_or_default();
        let is_fresh = held.as_ref().is_some_and(|held| held.since.elapsed() < FRESH);
        if is_fresh && !found.is_empty() {
            return Ok(found);
        }
        let attempt = Arc::clone(&self.0.asked).try_lock_owned().ok();
        if let Some(asked) =
            attempt.filter(|asked| asked.is_none_or(|asked| asked.elapsed() >= PAUSE))
        {
            let work = self.0.attempt(asked);
            if found.is_empty() {
                let _ = work.await;
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let held = self.0.held().filter(|held| held.since.elapsed() < STALE).ok_or(NoKeys)?;
        Ok(suits(&held))
    }

    /// Goes on with the keys that another source of the same issuer holds.
    pub fn go_on_from(&self, other: &Self) {
        *self.0.held.write().unwrap_or_else(PoisonError::into_inner) = other.0.held();
    }

    /// Asks for the keys now.
    pub async fn refresh(&self) {
        let asked = Arc::clone(&self.0.asked).lock_owned().await;
        let _ = self.0.attempt(asked).await;
    }
}

impl Inner {
    /// In a task of its own: a sender who leaves does not end it, or strangers could keep new keys away.
    fn attempt(self: &Arc<Self>, mut asked: OwnedMutexGuard<Option<Instant>>) -> JoinHandle<()> {
        *asked = Some(Instant::now());
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = inner.fetch().await {
                tracing::warn!(%error, "the keys of an issuer could not be had; those before hold for a day");
            }
            drop(asked);
        })
    }

    async fn fetch(&self) -> Result<(), String> {
        let bytes = match &self.from {
            From::File(path) => tokio::fs::read(path)
                .await
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?,
            From::Url(client, url) => get(client, url.clone()).await?,
            From::Discovery(client, issuer) => {
                let url = discovery(issuer)?;
                let document = get(client, url.clone()).await?;
                let document: Discovered = serde_json::from_slice(&document)
                    .map_err(|_| format!("{} is no discovery document", shown(&url)))?;
                if document.issuer != *issuer {
                    return Err(format!("{} is of another issuer", shown(&url)));
                }
                let keys = trusted(&document.jwks_uri)?;
                if keys.scheme() != url.scheme() {
                    return Err(format!("{} names keys at {}", shown(&url), shown(&keys)));
                }
                get(client, keys).await?
            }
        };
        let keys = read(&bytes)?;
        let held = Arc::new(Held { since: Instant::now(), keys });
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(())
    }

    fn held(&self) -> Option<Arc<Held>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Held {
    fn fitting(&self, kid: Option<&str>, algorithm: Algorithm) -> Vec<DecodingKey> {
        let suits = |key: &&Key| {
            let named = kid.is_none() || key.kid.as_deref() == kid;
            let signs = key.algorithm.is_none_or(|wanted| wanted == KeyAlgorithm::from(algorithm));
            let on_curve = key.of_curve.is_none_or(|of_curve| of_curve == algorithm);
            named && signs && on_curve && key.key.family() == algorithm.family()
        };
        self.keys.iter().filter(suits).take(TRIED).map(|key| key.key.clone()).collect()
    }
}

#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// The keys of a set that sign; others, and those that this server knows nothing of, are left out.
fn read(bytes: &[u8]) -> Result<Vec<Key>, String> {
    let set: KeySet = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "what came is no set of keys (JWKS), line {} column {}",
            error.line(),
            error.column()
        )
    })?;
    let keys = set.keys.into_iter().filter_map(|one| {
        let jwk: Jwk = serde_json::from_value(one).ok()?;
        let common = &jwk.common;
        let used = common.public_key_use.as_ref();
        let for_signatures = used.is_none_or(|used| *used == PublicKeyUse::Signature);
        let operations = common.key_operations.as_ref();
        let verifies = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
        let of_curve = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => None,
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => Some(Algorithm::ES256),
                EllipticCurve::P384 => Some(Algorithm::ES384),
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) => match key.curve {
                EllipticCurve::Ed25519 => Some(Algorithm::EdDSA),
                _ => return None,
            },
            _ => return None,
        };
        let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| for_signatures && verifies)?;
        Some(Key { kid: jwk.common.key_id, algorithm: jwk.common.key_algorithm, of_curve, key })
    });
    let keys: Vec<Key> = keys.collect();
    match keys.len() {
        0 => Err("no key of what came checks signatures".into()),
        1..=KEYS => Ok(keys),
        count => Err(format!("{count} keys came, {KEYS} at most are used")),
    }
}

fn client(url: &Url, ca: Option<&Path>, folder: &Path) -> Result<Client, String> {
    // Whoever was first has installed the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder().redirect(Policy::none()).timeout(TIMEOUT);
    if url.scheme() == "http" {
        // On this machine, and by no proxy, which could answer what it likes.
        builder = builder.no_proxy();
    }
    if let Some(ca) = ca {
        let path = folder.join(ca);
        let unusable = |error: String| format!("cannot use {}: {error}", path.display());
        let bytes = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
        let certificates =
            Certificate::from_pem_bundle(&bytes).map_err(|error| unusable(error.to_string()))?;
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| error.to_string())
}

/// Where an issuer says of itself where its keys are.
fn discovery(issuer: &str) -> Result<Url, String> {
    trusted(&format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/')))
}

/// A URL as logs may have it: without a password or a query, which may be one.
fn shown(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// A URL whose answer nobody in between has changed.
fn trusted(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url)
        .map_err(|error| format!("what should be the URL of keys is none: {error}"))?;
    let own = match parsed.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    if parsed.scheme() == "https" || (parsed.scheme() == "http" && own) {
        return Ok(parsed);
    }
    Err(format!(
        "{} has to start with https://: who changes its keys on the way lets himself in",
        shown(&parsed)
    ))
}

async fn get(client: &Client, url: Url) -> Result<Vec<u8>, String> {
    let name = shown(&url);
    let failed = |error: reqwest::Error| format!("{name} failed: {}", error.without_url());
    let reply = client.get(url).send().await.map_err(failed)?;
    if !reply.status().is_success() {
        return Err(format!("{name} answered {}", reply.status()));
    }
    let mut bytes = Vec::new();
    let mut pieces = reply.bytes_stream();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.map_err(failed)?);
        if bytes.len() > DOCUMENT {
            return Err(format!("{name} sends more than {DOCUMENT} bytes"));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fitting(key: Value) -> Vec<Algorithm> {
        let Ok(keys) = read(json!({"keys": [key]}).to_string().as_bytes()) else {
            return Vec::new();
        };
        let held = Held { since: Instant::now(), keys };
        let all = [
            Algorithm::RS256,
            Algorithm::PS256,
            Algorithm::ES256,
            Algorithm::ES384,
            Algorithm::EdDSA,
        ];
        all.into_iter().filter(|&algorithm| !held.fitting(None, algorithm).is_empty()).collect()
    }

    #[test]
    fn a_key_checks_the_algorithm_of_its_curve_and_no_other() {
        // RFC 7515, appendix A.3.1, and RFC 8037, appendix A.2.
        let (x, y) = (
            "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        );
        let ec = |curve: &str| json!({"kty": "EC", "crv": curve, "x": x, "y": y});
        let okp = |curve: &str| json!({"kty": "OKP", "crv": curve, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        assert_eq!(fitting(ec("P-256")), [Algorithm::ES256]);
        assert_eq!(fitting(ec("P-384")), [Algorithm::ES384]);
        assert_eq!(fitting(okp("Ed25519")), [Algorithm::EdDSA]);
        for none in [ec("P-521"), ec("Ed25519"), ec("secp256k1"), okp("P-256"), okp("X25519")] {
            assert!(fitting(none.clone()).is_empty(), "{none}");
        }
        let rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
        assert_eq!(fitting(rsa), [Algorithm::RS256, Algorithm::PS256]);
    }
}
