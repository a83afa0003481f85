//! Query keys that clients bring: whoever may query may bring them, they serve who brought them alone, and who has none is
//! told what to do.

use crate::support::http::{Reply, Site, frame, make_token};
use crate::support::{Client, random};
use axum::body::Body;
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::search::{Query, QueryOptions, Retrieval};
use ciphervec_owner::store::Change;
use ciphervec_owner::{Error, Mode, Precision, Scheme};
use ciphervec_server::auth::Verb;
use ciphervec_server::auth::tokens::NewToken;

const KIND: (Mode, Precision, Scheme) = (Mode::Sealed, Precision::Standard, Scheme::Lattice);
const SESSION: u32 = 1 << 31 | 3;
const KEYS: &str = "/v1/collections/faces/query-keys";
const QUERY: &str = "/v1/collections/faces/query";

async fn filled(site: &Site, client: &mut Client, headers: &[(&str, &str)]) {
    let attachments = client.attachments();
    let change = Change { set_meta: Some(client.meta()), attachments, ..Change::default() };
    let made = site.send("PUT", "/v1/collections/faces", headers, frame(&change)).await;
    assert_eq!(made.status, 201);
    let path = "/v1/collections/faces/commits";
    assert_eq!(site.send("POST", path, headers, frame(&client.add(2000))).await.status, 200);
}

fn query(client: &Client, epoch: u32) -> Query {
    let rows = random(client.owner.spec().dimension(), 9);
    client
        .owner
        .query(&rows, &client.directory, QueryOptions { epoch, ..QueryOptions::default() })
        .unwrap()
}

fn kind(reply: &Reply) -> String {
    reply.json()["type"].as_str().unwrap().to_owned()
}

fn headers(token: &str) -> [(&str, &str); 1] {
    [("authorization", token)]
}

/// Other keys that claim to be those of a session: their owner's name and masks are no secret.
fn forged(client: &Client, epoch: u32) -> Vec<u8> {
    let other = client.evaluation(epoch + 1);
    let (header, payload) = wire::open(Kind::EvaluationKeys, &other).unwrap();
    let mut payload = payload.to_vec();
    payload[40..44].copy_from_slice(&epoch.to_le_bytes());
    header.frame(&payload)
}

#[tokio::test]
async fn keys_serve_the_token_that_brought_them_and_are_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let bearer = |verb| format!("Bearer {}", *make_token(&file, "faces", &[verb]).token);
    let (admin, alice, mallory) = (bearer(Verb::Admin), bearer(Verb::Query), bearer(Verb::Query));
    let reader = bearer(Verb::Read);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let mut client = Client::new("faces", KIND);
    filled(&site, &mut client, &headers(&admin)).await;
    let (asked, keys) = (query(&client, SESSION), client.evaluation(SESSION));
    let ask = async |token: &str| {
        site.send("POST", QUERY, &headers(token), asked.to_bytes().to_vec()).await
    };
    let bring = async |token: &str, keys: &[u8]| {
        site.send("PUT", KEYS, &headers(token), keys.to_vec()).await
    };
    let missing = ask(&alice).await;
    assert_eq!(
        (missing.status.as_u16(), kind(&missing)),
        (409, "urn:ciphervec:query-keys-missing".into())
    );
    assert!(missing.json()["hint"].as_str().unwrap().contains("query-keys"));
    // What another token has brought is not what alice's queries are answered with, whoever was first.
    assert_eq!(bring(&mallory, &forged(&client, SESSION)).await.status, 204);
    assert_eq!(ask(&alice).await.status, 409);
    assert_eq!(bring(&alice, &keys).await.status, 204);
    assert_eq!(bring(&alice, &keys).await.status, 204, "the same again");
    let best = client.best(&asked, &ask(&alice).await.body);
    let other = bring(&alice, &forged(&client, SESSION)).await;
    assert_eq!((other.status.as_u16(), kind(&other)), (409, "urn:ciphervec:exists".into()));
    assert_eq!(client.best(&asked, &ask(&alice).await.body), best);
    let wrong = ask(&mallory).await;
    assert_eq!(wrong.status, 200);
    let ask_five = Retrieval::TopK(5);
    let opened = client.owner.open(&asked, &wrong.body, &client.directory, ask_five);
    assert!(matches!(opened, Err(Error::Tampered { .. })), "an answer by other keys is none");
    assert_eq!(ask(&admin).await.status, 409, "of a session that it has not brought");
    assert_eq!(bring(&reader, &keys).await.status, 403);
    // A collection's own epochs are no session's, and the other way round.
    for bad in [client.evaluation(0), keys[..keys.len() - 1].to_vec(), b"no keys".to_vec()] {
        assert_eq!(bring(&alice, &bad).await.status, 400);
    }
    let attachments = vec![("evaluation".to_owned(), keys.clone())];
    let change = Change { attachments, ..Change::default() };
    let path = "/v1/collections/faces/commits";
    let refused = site.send("POST", path, &headers(&admin), frame(&change)).await;
    assert_eq!(refused.status, 400);
    assert!(refused.json()["detail"].as_str().unwrap().contains("session"));
    // They stay through commits, and through another epoch of the collection's own.
    let change = client.add(30);
    assert_eq!(site.send("POST", path, &headers(&admin), frame(&change)).await.status, 200);
    let attachments = vec![("evaluation".to_owned(), client.evaluation(1))];
    let change = Change { attachments, set_meta: Some(client.meta_at(1)), ..Change::default() };
    assert_eq!(site.send("POST", path, &headers(&admin), frame(&change)).await.status, 200);
    let asked = query(&client, SESSION);
    let answer = site.send("POST", QUERY, &headers(&alice), asked.to_bytes().to_vec()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(client.best(&asked, &answer.body)[0].len(), 5);
    // They are in no state, and a server that is started again has none.
    let state = site.send("GET", "/v1/collections/faces", &headers(&admin), Body::empty()).await;
    assert!(!String::from_utf8_lossy(&state.body).contains("query-keys"));
    let Site { folder, app, router } = site;
    app.close();
    drop((app, router));
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let gone = site.send("POST", QUERY, &headers(&alice), asked.to_bytes().to_vec()).await;
    assert_eq!(kind(&gone), "urn:ciphervec:query-keys-missing");
    assert_eq!(site.send("PUT", KEYS, &headers(&alice), keys).await.status, 204);
    let answer = site.send("POST", QUERY, &headers(&alice), asked.to_bytes().to_vec()).await;
    assert_eq!(client.best(&asked, &answer.body)[0].len(), 5);
}

/// What answers queries in the server's place files session keys under this name.
#[tokio::test]
async fn the_state_that_a_query_is_answered_from_comes_with_the_tokens_id() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let new = |verb| make_token(&file, "faces", &[verb]);
    let (admin, alice, bob, reader) =
        (new(Verb::Admin), new(Verb::Query), new(Verb::Query), new(Verb::Read));
    let bearer = |new: &NewToken| format!("Bearer {}", *new.token);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let mut client = Client::new("faces", KIND);
    filled(&site, &mut client, &headers(&bearer(&admin))).await;
    let (asked, keys) = (query(&client, 0).to_bytes().to_vec(), client.evaluation(SESSION));
    for token in [&admin, &alice, &bob] {
        let sent = bearer(token);
        let sent = headers(&sent);
        let gate = site.send("GET", QUERY, &sent, Body::empty()).await;
        assert_eq!(gate.status, 204);
        assert_eq!(gate.header("ciphervec-token"), token.entry.id);
        // It is what `GET /v1/token` tells the same token, and no part of the secret.
        let own = site.send("GET", "/v1/token", &sent, Body::empty()).await;
        assert_eq!(own.json()["token"]["id"], token.entry.id);
        assert!(!token.token.contains(&token.entry.id));
        let others = [
            own,
            site.send("POST", QUERY, &sent, asked.clone()).await,
            site.send("PUT", KEYS, &sent, keys.clone()).await,
            site.send("GET", "/v1/collections/faces", &sent, Body::empty()).await,
        ];
        for other in others {
            assert!(other.status.is_success());
            assert!(!other.headers.contains_key("ciphervec-token"));
        }
    }
    for (refused, status) in [(bearer(&reader), 403), ("Bearer cv1_unknown".to_owned(), 401)] {
        let gate = site.send("GET", QUERY, &headers(&refused), Body::empty()).await;
        assert_eq!(gate.status, status);
        assert!(!gate.headers.contains_key("ciphervec-token"));
    }
    let site = Site::open(&[]);
    filled(&site, &mut Client::new("faces", KIND), &[]).await;
    let gate = site.send("GET", QUERY, &[], Body::empty()).await;
    assert_eq!(gate.header("ciphervec-token"), "-");
}

#[tokio::test]
async fn other_modes_have_no_sessions() {
    let site = Site::open(&[]);
    let mut client =
        Client::new("faces", (Mode::SealedIndex, Precision::Standard, Scheme::Lattice));
    let change = Change { set_meta: Some(client.meta()), ..Change::default() };
    let made = site.send("PUT", "/v1/collections/faces", &[], frame(&change)).await;
    assert_eq!(made.status, 201);
    let path = "/v1/collections/faces/commits";
    assert_eq!(site.send("POST", path, &[], frame(&client.add(5))).await.status, 200);
    assert_eq!(site.send("PUT", KEYS, &[], Body::empty()).await.status, 400);
    let asked = query(&client, SESSION);
    assert_eq!(site.send("POST", QUERY, &[], asked.to_bytes().to_vec()).await.status, 200);
}
