//! Attacks on collections with members by stores that make collections up, by people who choose their names, and by copies that were
//! put back.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use ciphervec_client::{Choices, Client, Connection, Error, Face, block_on};
use ciphervec_owner::decode::hex;
use ciphervec_owner::members::{MemberList, Role};
use ciphervec_owner::protect::records::{Place, seal_records};
use ciphervec_owner::search::Owner;
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::store::{Change, Store};
use ciphervec_owner::{IndexSpec, Keys, Metric, Mode, Precision};
use serde_json::{Value, json};

use crate::members::{
    Shown, add, admit, at, choices, copy, names, on, open, people, person, shared,
};
use crate::support::{Server, connection, filled, rows};

const DIMENSION: usize = 16;

/// A description like this one, of another spec, list, key and settings.
fn described(of: &Value, owner: &Owner, list: &MemberList, epoch: u64, settings: &Value) -> Value {
    let text = settings.to_string().into_bytes();
    let binding = owner.spec().binding();
    let place = Place { collection: &binding, segment: &[0; 16] };
    let id = "ciphervec collection settings";
    let sealed = seal_records(owner.aead(), place, &[(id.into(), text)]).unwrap();
    let mut meta = of.clone();
    meta["spec"] = json!(BASE64_STANDARD.encode(owner.spec().to_bytes()));
    meta["members"] = json!(BASE64_STANDARD.encode(list.to_bytes()));
    meta["key_id"] = json!(owner.key_id().to_string());
    meta["epoch"] = json!(epoch);
    meta["settings"] = json!(BASE64_STANDARD.encode(sealed));
    meta
}

fn store_of(folder: &Path, meta: &Value, attachments: Vec<(String, Vec<u8>)>) {
    fs::create_dir_all(folder).unwrap();
    let meta = serde_json::to_vec(meta).unwrap();
    let mut store = Store::create(&folder.join("docs"), &meta).unwrap();
    store.commit(Change { attachments, ..Change::default() }).unwrap();
}

fn forget(client: &Client, host: &Connection) {
    block_on(client.forget(host, "docs")).unwrap();
}

#[test]
fn who_saw_a_collection_in_a_folder_is_shown_no_made_up_one_in_its_place() {
    let (people, folder) = (people(), tempfile::tempdir().unwrap());
    let [_, bob, _] = &people;
    let (root, (host, _warnings)) = (folder.path(), connection());
    let data = root.join("data");
    shared(&data, &host, &people);
    drop(open(&at(&data, bob), &host).unwrap());
    // Whoever keeps the folder has no key, calls herself alice, and takes bob's public keys from the list.
    let (mallory, theirs) = (person("alice"), root.join("theirs"));
    let made = filled(&at(&theirs, &mallory), &connection().0, &choices(), rows(3, DIMENSION, 9));
    admit(&made, &connection().0, bob, Role::Owner).unwrap();
    drop(made);
    let true_one = root.join("true");
    fs::rename(data.join("docs"), &true_one).unwrap();
    copy(&theirs.join("docs"), &data.join("docs"));
    // What bob would add, she would read.
    for _ in 0..2 {
        let refused = open(&at(&data, bob), &host).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Mismatch(_)), "{refused}");
        assert!(refused.to_string().contains("client.forget"), "{refused}");
        assert!(block_on(at(&data, bob).accept_restore(&host, "docs")).is_err());
    }
    // The path may be said otherwise.
    let again = Client::in_folder(Face::Rust, data.join("."), Some(Arc::clone(bob).into()), true);
    assert!(open(&again.unwrap(), &host).is_err());
    // A stranger trusts on first use, and so does bob where he says so.
    drop(open(&at(&data, bob), &connection().0).unwrap());
    forget(&at(&data, bob), &host);
    assert_eq!(names(&open(&at(&data, bob), &host).unwrap(), &host), ["alice", "bob"]);
    // Nor is he shown one without keys, whatever he allows elsewhere.
    fs::remove_dir_all(data.join("docs")).unwrap();
    let plain = Choices { mode: Mode::Open, ..choices() };
    let keyless = Client::in_folder(Face::Rust, &data, None, false).unwrap();
    drop(block_on(keyless.create_collection(&connection().0, &plain)).unwrap());
    let shown = block_on(at(&data, bob).get_collection(&host, "docs", true, None)).map(drop);
    assert!(matches!(shown, Err(Error::Mismatch(_))), "{shown:?}");
    forget(&at(&data, bob), &host);
    fs::remove_dir_all(data.join("docs")).unwrap();
    fs::rename(&true_one, data.join("docs")).unwrap();
    drop(open(&at(&data, bob), &host).unwrap());
    // One that he makes anew himself is another one, too.
    block_on(at(&data, bob).delete_collection(&host, "docs")).unwrap();
    drop(block_on(at(&data, bob).create_collection(&host, &choices())).unwrap());
    add(&open(&at(&data, bob), &host).unwrap(), &host, 2).unwrap();
}

#[test]
fn a_true_list_stands_for_no_rows_that_nobody_signed() {
    let (people, folder) = (people(), tempfile::tempdir().unwrap());
    let [_, bob, carl] = &people;
    let (root, (host, _warnings)) = (folder.path(), connection());
    let data = root.join("data");
    shared(&data, &host, &people);
    // Carl reads, and has the store: he shows the list as it is beside settings of a release that authenticated nothing.
    let shown = Shown::of(&data);
    let list = shown.list();
    let keys = list.open(carl).unwrap();
    let meta = shown.meta.clone();
    drop(shown);
    let spec =
        IndexSpec::new("docs", DIMENSION as u32, Metric::Cosine, Mode::Sealed, Precision::Standard);
    let owner = Owner::new(&keys, spec.unwrap()).unwrap();
    let forged = described(&meta, &owner, &list, 0, &json!({ "filterable": [] }));
    let evaluation = owner.evaluation(0).unwrap().unwrap().to_bytes();
    let copied = root.join("forged");
    store_of(&copied, &forged, vec![("evaluation".to_owned(), evaluation)]);
    for host in [&host, &connection().0] {
        let refused = open(&at(&copied, bob), host).map(drop).unwrap_err();
        assert!(matches!(refused, Error::RolledBack(_)), "{refused}");
        assert!(refused.to_string().contains("no authenticated state"), "{refused}");
    }
}

#[test]
fn nobody_takes_anothers_fingerprint_or_a_name_that_looks_like_another_for_a_name() {
    let ([alice, bob, _], folder) = (people(), tempfile::tempdir().unwrap());
    let (folder, (host, _warnings)) = (folder.path(), connection());
    let docs = filled(&at(folder, &alice), &host, &choices(), rows(3, DIMENSION, 1));
    let print = hex(&bob.member_fingerprint());
    let taken = [
        &*print,
        &*print.to_uppercase(),
        "alice ",
        " alice",
        "alice\u{200b}",
        "al\u{202e}ice",
        "al\u{a0}ice",
        "alice\u{2060}",
        "alice\u{fe0f}",
        "alice\u{3164}",
    ];
    for name in taken {
        let refused = admit(&docs, &host, &person(name), Role::Reader).map(drop).unwrap_err();
        assert!(refused.to_string().contains("a name that can be seen whole"), "{refused}");
        let other = tempfile::tempdir().unwrap();
        let client = at(other.path(), &person(name));
        assert!(block_on(client.create_collection(&host, &choices())).is_err(), "{name}");
    }
    admit(&docs, &host, &bob, Role::Reader).unwrap();
    for name in ["Ana María", "李雷", "שרה", "bob (laptop)"] {
        admit(&docs, &host, &person(name), Role::Reader).unwrap();
    }
    let owner = block_on(docs.appoint_member(&host, &print, Role::Owner)).unwrap();
    assert_eq!((&*owner.name, owner.fingerprint), ("bob", print));
}

#[test]
fn a_copy_whose_members_were_changed_otherwise_is_accepted_with_a_warning() {
    let (people, folder) = (people(), tempfile::tempdir().unwrap());
    let [alice, bob, _] = &people;
    let (root, (host, warnings)) = (folder.path(), connection());
    let data = root.join("data");
    shared(&data, &host, &people);
    let docs = open(&at(&data, alice), &host).unwrap();
    block_on(docs.appoint_member(&host, "bob", Role::Owner)).unwrap();
    drop(docs);
    let old = root.join("old");
    copy(&data, &old);
    let docs = open(&at(&data, alice), &host).unwrap();
    block_on(docs.remove_member(&host, "bob")).unwrap();
    drop(docs);
    // Bob goes on where he was an owner, with as many changes and more.
    let (bobs, _warnings) = connection();
    let docs = open(&at(&old, bob), &bobs).unwrap();
    admit(&docs, &bobs, &person("mallory"), Role::Owner).unwrap();
    admit(&docs, &bobs, &person("eve"), Role::Owner).unwrap();
    drop(docs);
    assert!(matches!(open(&at(&old, alice), &host).map(drop), Err(Error::RolledBack(_))));
    while warnings.try_recv().is_ok() {}
    drop(block_on(at(&old, alice).accept_restore(&host, "docs")).unwrap());
    let said: Vec<_> = warnings.try_iter().collect();
    assert!(said.iter().any(|one| one.contains("are not those that were seen here")), "{said:?}");
    assert!(said.iter().all(|one| !one.contains("  ")), "{said:?}");
}

#[test]
fn a_server_that_shows_made_up_keys_once_does_not_shut_members_out_for_good() {
    let ([alice, bob, _], server) = (people(), Server::start());
    let (host, _warnings) = connection();
    let docs = filled(&on(&server, &alice), &host, &choices(), rows(3, DIMENSION, 1));
    admit(&docs, &host, &bob, Role::Member).unwrap();
    drop(open(&on(&server, &bob), &host).unwrap());
    let Server { folder, .. } = &server;
    let (data, liar) = (folder.path().join("db"), folder.path().join("liar"));
    copy(&data, &liar);
    for seed in [2, 3] {
        add(&docs, &host, seed).unwrap(); // which bob has not seen
    }
    // The server has the seed of the public masks in its evaluation keys, and keys of its own for bob.
    let mut shown = Shown::of(&liar);
    let (meta, state) = (shown.meta.clone(), shown.state.clone());
    let truly = shown.owner(&shown.list().open(&bob).unwrap());
    let (mallory, keys) = (Identity::generate("alice").unwrap(), Keys::generate().unwrap());
    let list = MemberList::found(&mallory, *shown.list().origin(), &keys, 0).unwrap();
    let list = list.admit(&mallory, &bob.member_card(), Role::Member, &keys, 0).unwrap();
    let owner = Owner::new(&keys, truly.spec().clone()).unwrap();
    let settings =
        json!({ "filterable": [], "authenticated": true, "mask_seed": hex(truly.mask_seed()) });
    shown.put(&described(&meta, &owner, &list, 9, &settings), state);
    drop(shown);
    let [honest, lying] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    copy(&data, honest.path());
    copy(&liar, lying.path());
    let server = Server::start_on(server, lying.path());
    assert!(open(&on(&server, &bob), &host).is_err());
    let server = Server::start_on(server, honest.path());
    let docs = open(&on(&server, &bob), &host).unwrap();
    add(&docs, &host, 4).unwrap();
}
