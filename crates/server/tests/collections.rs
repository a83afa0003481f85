//! Collections in a folder, without HTTP: what is acknowledged is searched, and found again after a restart.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use ciphervec::store::Change;
use ciphervec::{Mode, Precision, Scheme};
use ciphervec_server::DatabaseError;
use support::{Client, KINDS, id_of, open, runtime};

const COMPACT: (Mode, Precision, Scheme) = (Mode::SealedIndex, Precision::Standard, Scheme::Sealed);

#[test]
fn every_kind_of_collection_is_made_filled_searched_and_found_again() {
    let runtime = runtime();
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path());
        let mut client = Client::new("faces", kind);
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        assert_eq!(database.names(), ["faces"]);
        let first = client.add(40);
        let head = made.state().head;
        let committed = made.commit(first, Some(head), None).unwrap();
        assert_eq!(committed.head, made.state().head);
        made.commit(client.add(3), None, None).unwrap();
        let query = client.query(2, 99);
        let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
        let answer = runtime.block_on(made.query(bytes.clone())).unwrap();
        assert_eq!(answer.head, made.state().head);
        let best = client.best(&query, &answer.bytes);
        assert_eq!(best.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5]);
        drop(made);
        database.close();
        drop(database);
        let again = open(folder.path());
        let answer = runtime.block_on(again.get("faces").unwrap().query(bytes)).unwrap();
        assert_eq!(client.best(&query, &answer.bytes), best, "{kind:?}");
    }
}

#[test]
fn what_could_not_be_searched_is_refused_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    let good = client.add(10);
    let mut foreign = Client::new("others", COMPACT).add(10);
    let mut wrong_rows = good.clone();
    wrong_rows.add[0].rows = 11;
    let mut flipped = good.clone();
    flipped.add[0].blobs[0].1[200] ^= 1;
    let mut sidecar = good.clone();
    sidecar.add[0].blobs[1].1[0] ^= 1;
    let mut renamed = good.clone();
    renamed.add[0].id = [9; 16];
    let mut bare = good.clone();
    bare.add[0].blobs.remove(0);
    foreign.add[0].id = id_of(&good);
    let described = Client::new("faces", COMPACT).meta();
    let rekeyed = Change { set_meta: Some(described), ..Change::default() };
    for change in [foreign, wrong_rows, flipped, sidecar, renamed, bare, rekeyed] {
        let refused = made.commit(change, None, None).unwrap_err();
        assert!(matches!(refused, DatabaseError::Invalid(_)), "{refused}");
    }
    assert_eq!(made.state().manifest.segments.len(), 0);
    made.commit(good, None, None).unwrap();
    let unknown = Change { remove: vec![[1; 16]], ..Change::default() };
    assert!(matches!(made.commit(unknown, None, None), Err(DatabaseError::NotFound(_))));
    let stale = made.commit(client.add(1), Some([0; 32]), None).unwrap_err();
    assert!(matches!(stale, DatabaseError::Conflict { version: 3, .. }), "{stale:?}");
}

#[test]
fn names_are_checked_and_collections_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    for name in ["", ".", "..", "a/b", "a..b", "-a", "a-", ".new-1", "a\0", &"a".repeat(129)] {
        let client = Client::new("x", COMPACT);
        let refused = database.create(name, client.meta(), client.attachments());
        assert!(matches!(refused, Err(DatabaseError::Invalid(_))), "{name:?}");
        assert!(matches!(database.get(name), Err(DatabaseError::NotFound(_))), "{name:?}");
        assert!(matches!(database.drop_collection(name), Err(DatabaseError::NotFound(_))));
    }
    let client = Client::new("a", COMPACT);
    database.create("a", client.meta(), client.attachments()).unwrap();
    let twice = database.create("a", client.meta(), client.attachments());
    assert!(matches!(twice, Err(DatabaseError::Exists(_))));
    let other = database.create("b", client.meta(), client.attachments());
    assert!(matches!(other, Err(DatabaseError::Invalid(_))), "its name is part of its spec");
    database.drop_collection("a").unwrap();
    assert!(database.names().is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    database.create("a", client.meta(), client.attachments()).unwrap();
}
