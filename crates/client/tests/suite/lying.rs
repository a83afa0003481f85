//! A server that goes back, or shows what its owner did not make.

use std::cell::{Cell, RefCell};

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use ciphervec_client::{
    Choices, Collection, Connection, Error, Fetch, Host, Parts, QueryRequest, Selection, block_on,
};
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::Id;
use serde_json::{Value, json};

use crate::support::{Faulty, Server, client, connection, filled, keys, rows, vectors};

const D: usize = 16;
const PATH: &str = "v1/collections/notes";

fn wanted() -> QueryRequest {
    QueryRequest {
        embeddings: vectors(200, D, 1)[..D].to_vec(),
        n_results: Some(2),
        ..QueryRequest::default()
    }
}

/// One word of an answer is another one, under a checksum that is right.
fn shifted(answer: &[u8]) -> Vec<u8> {
    let (version, header, payload) = wire::open_version(Kind::Response, u16::MAX, answer).unwrap();
    let mut frame = vec![0; answer.len() - payload.len()];
    frame.extend_from_slice(payload);
    let at = frame.len() - 200;
    frame[at] ^= 0x10;
    header.seal_version(version, &mut frame);
    frame
}

fn notes(server: &Server, host: &Connection) -> Collection {
    filled(&server.client(&keys()), host, &Choices::new("notes", D), rows(200, D, 1))
}

#[test]
fn an_answer_longer_than_the_rows_can_need_is_not_taken() {
    let server = Server::start();
    let (honest, _) = connection();
    drop(notes(&server, &honest));
    let longer = |path: &str, mut body: Vec<u8>| {
        if path.ends_with("/query") {
            body.resize(64 << 20, 0);
        }
        body
    };
    let lies = Faulty::altering(longer);
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    let error = block_on(theirs.query(&lies, wanted())).err().unwrap();
    assert!(error.to_string().contains("longer than the"), "{error}");
}

#[test]
fn an_answer_that_was_altered_is_refused_and_its_segment_is_asked_no_more() {
    let server = Server::start();
    let (honest, _) = connection();
    let docs = notes(&server, &honest);
    assert!(block_on(docs.query(&honest, wanted())).unwrap().checked);
    let lies =
        Faulty::altering(|path, body| if path.ends_with("/query") { shifted(&body) } else { body });
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    let error = block_on(theirs.query(&lies, wanted())).err().unwrap();
    let Error::Tampered { segments, .. } = error else { panic!("{error:?}") };
    assert_eq!(segments.len(), 1);
    let sent = lies.sent.get();
    assert!(matches!(block_on(theirs.query(&lies, wanted())), Err(Error::Quarantined { .. })));
    assert_eq!(lies.sent.get(), sent, "nothing is asked");
    // The owner's state says it: the owner's other clients know it too.
    block_on(docs.refresh(&honest)).unwrap();
    assert!(matches!(block_on(docs.query(&honest, wanted())), Err(Error::Quarantined { .. })));
    let skipping = QueryRequest { skip_quarantined: true, ..wanted() };
    assert_eq!(block_on(docs.query(&honest, skipping)).unwrap().hits[0].len(), 0);
    block_on(docs.release(&honest, &segments[0].to_string())).unwrap();
    assert_eq!(block_on(docs.query(&honest, wanted())).unwrap().hits[0].len(), 2);
}

#[test]
fn a_large_answer_is_refused_as_well_where_it_is_opened_as_it_comes() {
    let server = Server::start();
    let (honest, _) = connection();
    filled(&server.client(&keys()), &honest, &Choices::new("notes", D), rows(3000, D, 1));
    let lies =
        Faulty::altering(|path, body| if path.ends_with("/query") { shifted(&body) } else { body });
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    let many = || QueryRequest {
        embeddings: vectors(512, D, 1),
        n_results: Some(1),
        ..QueryRequest::default()
    };
    let error = block_on(theirs.query(&lies, many())).err().unwrap();
    assert!(matches!(error, Error::Tampered { .. }), "{error:?}");
    assert!(matches!(block_on(theirs.query(&lies, many())), Err(Error::Quarantined { .. })));
}

#[test]
fn damaged_rows_show_in_no_request_whether_they_are_read() {
    let server = Server::start();
    let (honest, _) = connection();
    notes(&server, &honest);
    let read = |ids: std::ops::Range<i64>| {
        let lies = Faulty::altering(|path, mut body| {
            if path.ends_with("/records") {
                let at = body.len() * 3 / 4;
                body[at] ^= 1;
            }
            body
        });
        let theirs =
            block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
        let which = Selection { ids: Some(ids.map(Id::from).collect()), ..Selection::default() };
        let parts = Parts { records: true, fetch: Fetch::Segments, ..Parts::default() };
        assert!(block_on(theirs.get(&lies, &which, parts, 0, None, None)).is_err());
        lies.sent.get()
    };
    assert_eq!(read(1000..1001), read(1100..1200));
}

#[test]
fn a_filter_reads_damaged_records_once_more_and_believes_none_of_them() {
    let server = Server::start();
    let (honest, _) = connection();
    notes(&server, &honest);
    let filtered = |times: usize| {
        let left = std::cell::Cell::new(times);
        let lies = Faulty::altering(|path, mut body| {
            if path.ends_with("/records") && left.get() > 0 {
                left.set(left.get() - 1);
                let last = body.len() - 1; // of the last row, which no limit keeps from being opened
                body[last] ^= 1;
            }
            body
        });
        let theirs =
            block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
        let filter = Some(r#"{"n": {"$gt": -1}}"#.to_owned());
        let which = Selection { filter, ..Selection::default() };
        let parts = Parts { records: true, fetch: Fetch::Segments, ..Parts::default() };
        block_on(theirs.get(&lies, &which, parts, 0, None, None)).map(|found| found.rows.len())
    };
    let all = filtered(0).unwrap();
    assert_eq!(filtered(1).unwrap(), all);
    assert!(filtered(usize::MAX).is_err());
}

#[test]
fn a_segment_in_quarantine_is_so_under_every_address_of_its_server() {
    let server = Server::start();
    let (honest, _) = connection();
    notes(&server, &honest);
    // Whose commits are lost has its own storage alone to remember.
    let lies =
        Faulty::altering(|path, body| if path.ends_with("/query") { shifted(&body) } else { body })
            .losing(|request| request.url.ends_with("/commits"));
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    assert!(matches!(block_on(theirs.query(&lies, wanted())), Err(Error::Tampered { .. })));
    let elsewhere = client(&server.url.replace("127.0.0.1", "localhost"), &keys());
    let theirs = block_on(elsewhere.get_collection(&lies, "notes", false, None)).unwrap();
    assert!(matches!(block_on(theirs.query(&lies, wanted())), Err(Error::Quarantined { .. })));
}

/// Opens the collection through a server that shows another listing.
fn shown(server: &Server, lie: impl Fn(&mut Value)) -> Error {
    let lies = Faulty::altering(|path, body| {
        if path != PATH {
            return body;
        }
        let mut listing: Value = serde_json::from_slice(&body).unwrap();
        lie(&mut listing);
        serde_json::to_vec(&listing).unwrap()
    });
    block_on(server.client(&keys()).get_collection(&lies, "notes", false, None))
        .err()
        .expect("a lie is refused")
}

#[test]
fn a_listing_that_the_owner_did_not_make_is_refused() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = notes(&server, &host);
    block_on(docs.add(&host, rows(300, D, 2))).unwrap();
    let gone = Selection { ids: Some(vec![Id::from(1003)]), ..Selection::default() };
    block_on(docs.delete(&host, &gone, false)).unwrap();
    let segments = |listing: &mut Value| listing["segments"].as_array_mut().unwrap().clone();
    type Lie<'a> = (&'a str, Box<dyn Fn(&mut Value) + 'a>);
    let lies: [Lie<'_>; 6] = [
        ("left out", Box::new(|listing| listing["segments"] = json!([segments(listing)[0]]))),
        ("reordered", Box::new(|listing| listing["segments"].as_array_mut().unwrap().reverse())),
        ("undeleted", Box::new(|listing| listing["segments"][0]["deleted"] = json!([]))),
        ("deleted", Box::new(|listing| listing["segments"][1]["deleted"] = json!([7]))),
        ("other keys", Box::new(|listing| listing["evaluation"] = json!("0".repeat(64)))),
        (
            "no state",
            Box::new(|listing| {
                drop(listing["attachments"].as_object_mut().unwrap().remove("state"))
            }),
        ),
    ];
    for (what, lie) in lies {
        let error = shown(&server, lie);
        assert!(matches!(error, Error::RolledBack(_)), "{what}: {error:?}");
    }
    let epoch = shown(&server, |listing| {
        let meta = STANDARD.decode(listing["meta"].as_str().unwrap()).unwrap();
        let mut meta: Value = serde_json::from_slice(&meta).unwrap();
        meta["epoch"] = json!(7);
        listing["meta"] = json!(STANDARD.encode(serde_json::to_vec(&meta).unwrap()));
    });
    assert!(matches!(epoch, Error::RolledBack(_)), "{epoch:?}");
    let more = shown(&server, |listing| listing["segments"][0]["rows"] = json!(201));
    assert!(matches!(more, Error::RolledBack(_) | Error::Corrupt(_)), "{more:?}");
    for nonsense in [json!(null), json!(-1), json!(1e300), json!("x"), json!([[]])] {
        for field in ["version", "head", "meta", "segments", "name"] {
            let error = shown(&server, |listing| listing[field] = nonsense.clone());
            assert!(
                matches!(error, Error::Server { .. } | Error::Corrupt(_)),
                "{field} {nonsense}: {error:?}"
            );
        }
    }
}

#[test]
fn an_old_state_under_a_new_number_is_refused_by_who_saw_the_new_one() {
    let server = Server::start();
    let kept: RefCell<Option<(Value, Vec<u8>)>> = RefCell::new(None);
    let (replaying, seen) = (Cell::new(false), Cell::new(0));
    let lies = Faulty::altering(|path, body| match (path, &*kept.borrow()) {
        (PATH, Some((old, _))) if replaying.get() => {
            let now: Value = serde_json::from_slice(&body).unwrap();
            seen.set(seen.get() + 1);
            let mut old = old.clone();
            old["version"] = json!(now["version"].as_u64().unwrap());
            old["head"] = now["head"].clone();
            serde_json::to_vec(&old).unwrap()
        }
        (path, Some((_, state))) if replaying.get() && path.ends_with("/attachments/state") => {
            state.clone()
        }
        _ => body,
    });
    let (honest, _) = connection();
    let docs = notes(&server, &honest);
    let fetch = |path: &str| ureq_get(&format!("{}/{path}", server.url));
    let old: Value = serde_json::from_slice(&fetch(PATH)).unwrap();
    *kept.borrow_mut() = Some((old, fetch(&format!("{PATH}/attachments/state"))));
    block_on(docs.add(&honest, rows(5, D, 2))).unwrap();
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    assert_eq!(block_on(theirs.count(&lies)).unwrap(), 205);
    block_on(docs.add(&honest, rows(5, D, 3))).unwrap();
    replaying.set(true);
    let error = block_on(theirs.refresh(&lies)).err().unwrap();
    assert!(matches!(error, Error::RolledBack(_)), "{error:?}");
    assert!(seen.get() > 0 && lies.now() > std::time::Duration::ZERO);
}

fn ureq_get(url: &str) -> Vec<u8> {
    ureq::get(url).call().unwrap().body_mut().read_to_vec().unwrap()
}

pub fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_store_that_went_back_is_noticed_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let state = ciphervec_client::Connection::new(folder.path()).unwrap();
    let docs = filled(&server.client(&keys()), &state, &Choices::new("notes", D), rows(4, D, 1));
    let backup = tempfile::tempdir().unwrap();
    copy(&server.folder.path().join("db"), backup.path());
    block_on(docs.add(&state, rows(4, D, 2))).unwrap();
    drop(docs);
    // The same URL is served from the copy: what was seen is filed under it.
    let old = Server::start_on(server, backup.path());
    let error =
        block_on(old.client(&keys()).get_collection(&state, "notes", false, None)).err().unwrap();
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
    // A client that has seen nothing takes it: trust on first use.
    let (fresh, _) = connection();
    assert!(block_on(old.client(&keys()).get_collection(&fresh, "notes", false, None)).is_ok());
    // And who knows a checkpoint of the newer history does not.
    block_on(old.client(&keys()).forget(&state, "notes")).unwrap();
    assert!(block_on(old.client(&keys()).get_collection(&state, "notes", false, None)).is_ok());
}

#[test]
fn what_is_seen_after_a_change_of_keys_is_seen_for_the_new_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let state = Connection::new(folder.path()).unwrap();
    let docs = filled(&server.client(&keys()), &state, &Choices::new("notes", D), rows(4, D, 1));
    let new = std::sync::Arc::new(ciphervec_owner::Keys::from_master([9; 32]));
    block_on(docs.rotate_keys(&state, &new, false)).unwrap();
    let backup = tempfile::tempdir().unwrap();
    copy(&server.folder.path().join("db"), backup.path());
    block_on(docs.add(&state, rows(4, D, 2))).unwrap();
    drop(docs);
    let old = Server::start_on(server, backup.path());
    let opened = block_on(old.client(&new).get_collection(&state, "notes", false, None));
    let error = opened.err().unwrap();
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
}

#[test]
fn a_checkpoint_of_another_history_is_refused() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &Choices::new("notes", D), rows(4, D, 1));
    let checkpoint = block_on(docs.checkpoint(&host)).unwrap();
    block_on(docs.add(&host, rows(4, D, 2))).unwrap();
    block_on(docs.expect(&host, &checkpoint)).unwrap();
    let others = filled(&server.client(&keys()), &host, &Choices::new("letters", D), rows(4, D, 1));
    let error = block_on(others.expect(&host, &checkpoint)).err().unwrap();
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
    assert!(matches!(block_on(others.expect(&host, "nonsense")), Err(Error::Input(_))));
}
