//! Signed tokens of identity providers: who is let in, to what, and every way in which a token is not one.

use crate::support::http::{Site, make_token};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ciphervec_server::auth::Verb;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ISSUER: &str = "https://id.example";

struct Signer {
    kid: &'static str,
    pair: Ed25519KeyPair,
}

impl Signer {
    fn new(kid: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Signer { kid, pair: Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap() }
    }

    fn jwk(&self) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.pair.public_key());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "use": "sig", "x": x})
    }

    fn header(&self) -> Value {
        json!({"alg": "EdDSA", "typ": "at+jwt", "kid": self.kid})
    }

    fn sign(&self, claims: &Value) -> String {
        self.sign_as(&self.header(), claims)
    }

    fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let [header, claims] =
            [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let message = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "ciphervec", "sub": "ann", "exp": now() + 600, "iat": now(),
        "groups": ["readers"], "realm_access": {"roles": ["keepers"]},
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut changed = claims();
    changed[name] = value;
    changed
}

fn file(jwks: Option<&str>) -> Value {
    let mut issuer = json!({
        "issuer": ISSUER,
        "audience": ["ciphervec", "https://search.example"],
        "refuse": ["mallory"],
        "grants": [
            {"claim": "groups", "is": "readers", "role": "reader", "collections": ["books", "text-*"]},
            {"claim": "groups", "is": "operators", "permissions": ["admin"], "collections": ["*"]},
            {"claim": "realm_access.roles", "is": "keepers", "permissions": ["write"], "collections": ["drafts"]},
        ],
    });
    if let Some(jwks) = jwks {
        issuer["jwks"] = json!(jwks);
    }
    json!({"format": 1, "roles": {"reader": ["query", "read"]}, "issuers": [issuer]})
}

fn open(keys: &[&Signer], extra: &[&str]) -> (Site, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("issuers.json");
    std::fs::write(&path, file(Some("keys.json")).to_string()).unwrap();
    publish(&folder.path().join("keys.json"), keys);
    let words = [&["--issuers", path.to_str().unwrap()], extra].concat();
    let audit = folder.path().join("audit.jsonl");
    let words = [&words[..], &["--audit", audit.to_str().unwrap()]].concat();
    (Site::on(folder, &words), path)
}

fn publish(path: &Path, keys: &[&Signer]) {
    let others = [
        json!({"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}),
        json!({"kty": "what is this?"}),
        json!({"kty": "RSA", "kid": "rsa", "use": "enc", "n": "AQAB", "e": "AQAB"}),
    ];
    let keys: Vec<Value> = others.into_iter().chain(keys.iter().map(|key| key.jwk())).collect();
    std::fs::write(path, json!({"keys": keys}).to_string()).unwrap();
}

async fn status(site: &Site, method: &str, path: &str, token: &str) -> u16 {
    let header = format!("Bearer {token}");
    site.send(method, path, &[("authorization", &header)], "").await.status.as_u16()
}

#[tokio::test]
async fn claims_open_what_the_file_grants_and_nothing_else() {
    let signer = Signer::new("one");
    let (site, _) = open(&[&signer], &[]);
    let ann = signer.sign(&claims());
    // 404 of a collection that may be seen, and is not there: the token was let in.
    let body = site
        .send("GET", "/v1/token", &[("authorization", &format!("Bearer {ann}"))], "")
        .await
        .json();
    assert_eq!(body["identity"]["subject"], "ann");
    assert_eq!(body["identity"]["grants"][0]["collections"], json!(["books", "text-*"]));
    assert_eq!((&body["required"], &body["operator"]), (&json!(true), &json!(false)));
    assert!(body.get("token").is_none());
    for (method, path, expected) in [
        ("GET", "/v1/collections", 200),
        ("PUT", "/v1/collections/books", 403),
        ("DELETE", "/v1/collections/text-a", 403),
        ("PUT", "/v1/collections/other", 404),
        ("POST", "/v1/collections/books/commits", 403),
        ("GET", "/v1/tokens", 404),
        ("GET", "/metrics", 404),
    ] {
        assert_eq!(status(&site, method, path, &ann).await, expected, "{method} {path}");
    }
    let operator = signer.sign(&with("groups", json!("operators")));
    assert_eq!(status(&site, "GET", "/v1/tokens", &operator).await, 200);
    assert_eq!(status(&site, "GET", "/metrics", &operator).await, 200);
    // Whoever is known and granted nothing sees nothing.
    let mut stranger = with("groups", json!(["staff"]));
    stranger["realm_access"] = json!({});
    let stranger = signer.sign(&stranger);
    assert_eq!(status(&site, "GET", "/v1/collections", &stranger).await, 200);
    assert_eq!(status(&site, "GET", "/v1/collections/books", &stranger).await, 404);
    let audit = std::fs::read_to_string(site.folder.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains("\"subject\":\"ann\"") && !audit.contains(&ann[..40]), "{audit}");
}

#[tokio::test]
async fn what_is_not_right_in_all_parts_is_refused_with_the_same_words() {
    let (signer, other) = (Signer::new("one"), Signer::new("one"));
    let (site, _) = open(&[&signer], &[]);
    let good = signer.sign(&claims());
    let none = |alg: &str| {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg, "kid": "one"}).to_string());
        format!("{header}.{}.", good.split('.').nth(1).unwrap())
    };
    let as_header = |name: &str, value: Value| {
        let mut header = signer.header();
        header[name] = value;
        signer.sign_as(&header, &claims())
    };
    // The public key as a shared secret: the oldest trick there is.
    let shared = {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": "one"}).to_string());
        let message = format!("{header}.{}", good.split('.').nth(1).unwrap());
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, signer.pair.public_key().as_ref());
        let tag = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, message.as_bytes()));
        format!("{message}.{tag}")
    };
    let without = |name: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        signer.sign(&claims)
    };
    let (body, signature) = good.rsplit_once('.').unwrap();
    let changed =
        format!("{body}.{}{}", if signature.starts_with('A') { "B" } else { "A" }, &signature[1..]);
    let refused = [
        ("nothing", String::new()),
        ("two dots", "..".into()),
        ("another's signature", other.sign(&claims())),
        ("a changed signature", changed),
        ("no signature", format!("{body}.")),
        ("alg none", none("none")),
        ("alg None", none("None")),
        ("a shared secret", shared),
        ("another algorithm", as_header("alg", json!("ES256"))),
        ("an extension", as_header("crit", json!(["b64"]))),
        ("a key of its own", {
            let mut header = other.header();
            header["jwk"] = other.jwk();
            header["kid"] = json!("two");
            other.sign_as(&header, &claims())
        }),
        ("the symmetric key", as_header("kid", json!("shared"))),
        ("expired", signer.sign(&with("exp", json!(now() - 60)))),
        ("no expiry", without("exp")),
        ("an expiry that is none", signer.sign(&with("exp", json!("soon")))),
        ("for too long", signer.sign(&with("exp", json!(now() + 25 * 3600)))),
        ("for ever", signer.sign(&with("exp", json!(u64::MAX)))),
        ("not yet", signer.sign(&with("nbf", json!(now() + 300)))),
        ("another audience", signer.sign(&with("aud", json!("mail")))),
        ("audiences without ours", signer.sign(&with("aud", json!(["mail", "ciphervec2"])))),
        ("no audience", without("aud")),
        ("another issuer", signer.sign(&with("iss", json!("https://id.example/")))),
        ("issuers", signer.sign(&with("iss", json!([ISSUER])))),
        ("no issuer", without("iss")),
        ("no subject", without("sub")),
        ("a subject that is none", signer.sign(&with("sub", json!(7)))),
        ("an empty subject", signer.sign(&with("sub", json!("")))),
        ("bound to a key", signer.sign(&with("cnf", json!({"jkt": "x"})))),
        ("of a logout", as_header("typ", json!("logout+jwt"))),
        ("of an event", as_header("typ", json!("secevent+jwt"))),
        ("a refused subject", signer.sign(&with("sub", json!("mallory")))),
        ("too long", signer.sign(&with("pad", json!("x".repeat(17 << 10))))),
    ];
    assert_eq!(status(&site, "GET", "/v1/token", &good).await, 200);
    let aud = signer.sign(&with("aud", json!(["mail", "https://search.example"])));
    assert_eq!(status(&site, "GET", "/v1/token", &aud).await, 200);
    let mut bodies = std::collections::HashSet::new();
    for (name, token) in refused {
        let header = format!("Bearer {token}");
        let reply = site.send("GET", "/v1/token", &[("authorization", &header)], "").await;
        assert_eq!(reply.status.as_u16(), 401, "{name}");
        bodies.insert(reply.body);
    }
    assert_eq!(bodies.len(), 1, "a refusal says nothing of its reason");
}

#[tokio::test]
async fn tokens_of_the_file_and_of_issuers_stand_beside_each_other() {
    let signer = Signer::new("one");
    let (site, _) = open(&[&signer], &[]);
    assert_eq!(status(&site, "GET", "/v1/token", "").await, 401, "nobody is anyone");
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.json");
    let made = make_token(&tokens, "*", &[Verb::Admin]);
    let (both, _) = open(&[&signer], &["--tokens", tokens.to_str().unwrap()]);
    assert_eq!(status(&both, "GET", "/v1/tokens", &made.token).await, 200);
    assert_eq!(status(&both, "GET", "/v1/token", &signer.sign(&claims())).await, 200);
    assert_eq!(status(&both, "GET", "/v1/token", "cv1_unknown").await, 401);
    // Without a file of issuers a signed token is no token.
    let alone = Site::open(&["--tokens", tokens.to_str().unwrap()]);
    assert_eq!(status(&alone, "GET", "/v1/token", &signer.sign(&claims())).await, 401);
}

#[tokio::test]
async fn grants_change_when_the_file_is_read_again_and_stay_where_it_is_none() {
    let signer = Signer::new("one");
    let (site, path) = open(&[&signer], &[]);
    let ann = signer.sign(&claims());
    assert_eq!(status(&site, "DELETE", "/v1/collections/books", &ann).await, 403);
    std::fs::write(&path, "{").unwrap();
    let issuers = site.app.issuers.as_ref().unwrap();
    assert!(issuers.reload().is_err());
    assert_eq!(status(&site, "GET", "/v1/token", &ann).await, 200);
    let mut changed = file(Some("keys.json"));
    changed["issuers"][0]["refuse"] = json!(["ann"]);
    std::fs::write(&path, changed.to_string()).unwrap();
    issuers.reload().unwrap();
    assert_eq!(status(&site, "GET", "/v1/token", &ann).await, 401);
}

#[tokio::test]
async fn limits_are_of_a_subject_and_of_its_grants_the_least() {
    let signer = Signer::new("one");
    let (site, path) = open(&[&signer], &[]);
    let mut changed = file(Some("keys.json"));
    changed["roles"]["reader"] =
        json!({"permissions": ["query", "read"], "limits": {"rate": "9/h", "burst": 4}});
    changed["issuers"][0]["grants"][2]["limits"] = json!({"rate": "1/h", "burst": 2});
    std::fs::write(&path, changed.to_string()).unwrap();
    site.app.issuers.as_ref().unwrap().reload().unwrap();
    // Two tokens of one subject are one sender.
    let tokens = [600, 500].map(|seconds| signer.sign(&with("exp", json!(now() + seconds))));
    assert_eq!(status(&site, "GET", "/v1/token", &tokens[0]).await, 200);
    assert_eq!(status(&site, "GET", "/v1/token", &tokens[1]).await, 200);
    assert_eq!(status(&site, "GET", "/v1/token", &tokens[0]).await, 429);
    let bob = signer.sign(&with("sub", json!("bob")));
    assert_eq!(status(&site, "GET", "/v1/token", &bob).await, 200);
}

struct Provider {
    asked: AtomicUsize,
    keys: std::sync::Mutex<Vec<Value>>,
    base: std::sync::Mutex<String>,
}

/// An issuer that listens, with a discovery document.
async fn provider(keys: Vec<Value>) -> (String, Arc<Provider>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let state = Arc::new(Provider {
        asked: AtomicUsize::new(0),
        keys: keys.into(),
        base: base.clone().into(),
    });
    let router = Router::new()
        .route(
            "/.well-known/openid-configuration",
            get(|State(state): State<Arc<Provider>>| async move {
                let base = state.base.lock().unwrap().clone();
                axum::Json(json!({"issuer": base, "jwks_uri": format!("{base}/keys")}))
            }),
        )
        .route(
            "/keys",
            get(|State(state): State<Arc<Provider>>| async move {
                state.asked.fetch_add(1, Ordering::SeqCst);
                axum::Json(json!({"keys": *state.keys.lock().unwrap()}))
            }),
        )
        .with_state(state.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base, state)
}

fn discovered(base: &str) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("issuers.json");
    let mut content = file(None);
    content["issuers"][0]["issuer"] = json!(base);
    std::fs::write(&path, content.to_string()).unwrap();
    Site::on(folder, &["--issuers", path.to_str().unwrap()])
}

#[tokio::test]
async fn keys_are_discovered_once_and_strangers_cannot_have_them_asked_for_again() {
    let signer = Signer::new("one");
    let (base, state) = provider(vec![signer.jwk()]).await;
    let site = discovered(&base);
    let token = signer.sign(&with("iss", json!(base)));
    for _ in 0..3 {
        assert_eq!(status(&site, "GET", "/v1/token", &token).await, 200);
    }
    let mut header = signer.header();
    for kid in 0..20 {
        header["kid"] = json!(format!("unknown-{kid}"));
        let unknown = signer.sign_as(&header, &with("iss", json!(base)));
        assert_eq!(status(&site, "GET", "/v1/token", &unknown).await, 401);
    }
    assert_eq!(state.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_sender_who_leaves_does_not_end_the_request_for_keys() {
    let signer = Signer::new("one");
    let (base, state) = provider(vec![signer.jwk()]).await;
    let site = discovered(&base);
    let token = signer.sign(&with("iss", json!(base)));
    let header = format!("Bearer {token}");
    let headers = [("authorization", &header[..])];
    let asking = site.send("GET", "/v1/token", &headers, "");
    // Polled once: the request for keys is on its way when its sender goes.
    assert!(futures_util::FutureExt::now_or_never(asking).is_none());
    while status(&site, "GET", "/v1/token", &token).await == 503 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(status(&site, "GET", "/v1/token", &token).await, 200);
    assert_eq!(state.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_issuer_that_is_away_is_said_to_be_busy_and_one_that_is_another_has_no_keys() {
    let signer = Signer::new("one");
    let (base, state) = provider(vec![signer.jwk()]).await;
    *state.base.lock().unwrap() = "http://127.0.0.1:9".into();
    let site = discovered(&base);
    let token = signer.sign(&with("iss", json!(base)));
    assert_eq!(status(&site, "GET", "/v1/token", &token).await, 503);
    assert_eq!(state.asked.load(Ordering::SeqCst), 0);
    let away = discovered("http://127.0.0.1:9");
    let token = signer.sign(&with("iss", json!("http://127.0.0.1:9")));
    assert_eq!(status(&away, "GET", "/v1/token", &token).await, 503);
}

#[tokio::test]
async fn one_sender_waits_for_an_issuer_that_hangs_and_others_hear_of_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let site = discovered(&base);
    let token = Signer::new("one").sign(&with("iss", json!(base)));
    let first = {
        let (router, header) = (site.router.clone(), format!("Bearer {token}"));
        tokio::spawn(async move {
            let headers = [("authorization", &header[..])];
            crate::support::http::send(&router, "GET", "/v1/token", &headers, "").await.status
        })
    };
    // Its request for keys has come, and is not answered.
    let held = listener.accept().await.unwrap();
    for _ in 0..5 {
        assert_eq!(status(&site, "GET", "/v1/token", &token).await, 503);
    }
    assert!(!first.is_finished());
    drop((held, listener));
    assert_eq!(first.await.unwrap().as_u16(), 503);
}

#[tokio::test]
async fn keys_that_were_had_outlive_a_reload_and_what_holds_none() {
    let signer = Signer::new("one");
    let (site, path) = open(&[&signer], &[]);
    let ann = signer.sign(&claims());
    assert_eq!(status(&site, "GET", "/v1/token", &ann).await, 200);
    let keys = path.with_file_name("keys.json");
    let issuers = site.app.issuers.as_ref().unwrap();
    for content in ["", "{\"keys\": []}", "{\"keys\": [{\"kty\": \"oct\", \"k\": \"AA\"}]}"] {
        std::fs::write(&keys, content).unwrap();
        issuers.reload().unwrap();
        issuers.warm().await;
        assert_eq!(status(&site, "GET", "/v1/token", &ann).await, 200, "{content}");
    }
    let next = Signer::new("two");
    publish(&keys, &[&next]);
    issuers.warm().await;
    assert_eq!(status(&site, "GET", "/v1/token", &ann).await, 401, "its key was taken back");
    assert_eq!(status(&site, "GET", "/v1/token", &next.sign(&claims())).await, 200);
}

#[tokio::test]
async fn a_subject_writes_one_line_of_the_audit_log_whatever_it_is_called() {
    let signer = Signer::new("one");
    let (site, _) = open(&[&signer], &[]);
    let name = "ann\u{2028}{\"token\": \"x\"}\u{85}\u{202e}\u{9b}\n\u{1f600}\u{7f}";
    let token = signer.sign(&with("sub", json!(name)));
    assert_eq!(status(&site, "GET", "/v1/token", &token).await, 200);
    let audit = std::fs::read(site.folder.path().join("audit.jsonl")).unwrap();
    assert!(audit.iter().all(|&byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
    let text = String::from_utf8(audit).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(line["subject"], name);
}

#[test]
fn an_issuer_in_clear_or_a_file_that_is_none_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("issuers.json");
    for (jwks, says) in [
        ("http://id.example/keys", "https://"),
        ("ftp://ann:hunter2@id.example/keys?hunter2", "https://"),
    ] {
        std::fs::write(&path, file(Some(jwks)).to_string()).unwrap();
        let options =
            crate::support::http::options(folder.path(), &["--issuers", path.to_str().unwrap()]);
        let error = ciphervec_server::http::App::open(&options).err().unwrap();
        assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
    }
    let options = crate::support::http::options(folder.path(), &["--issuers", "nowhere.json"]);
    assert!(ciphervec_server::http::App::open(&options).err().unwrap().contains("check --issuers"));
}
