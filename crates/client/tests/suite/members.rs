//! Collections with members: what each may do, and what a removed one, a reader with the key and a lying store get.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use ciphervec_client::{
    Choices, Client, ClientOptions, Collection, Connection, Error, Face, Info, MemberInfo, Result,
    Selection, block_on,
};
use ciphervec_owner::members::{MemberList, Role};
use ciphervec_owner::protect::records::{Place, RecordBatch, open_record};
use ciphervec_owner::protect::state::StateSigner;
use ciphervec_owner::search::{Owner, RotationState, SealedSidecar};
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::store::{Change, Store};
use ciphervec_owner::{IndexSpec, Keys, Metric, Mode, Precision, SegmentId};
use serde_json::Value;

use crate::support::{Server, connection, filled, keys, rows};

const DIMENSION: usize = 16;

pub fn person(name: &str) -> Arc<Identity> {
    Arc::new(Identity::generate(name).unwrap())
}

pub fn on(server: &Server, who: &Arc<Identity>) -> Client {
    let keys = Some(Arc::clone(who).into());
    Client::new(ClientOptions { keys, ..ClientOptions::new(&*server.url) }).unwrap()
}

pub fn at(folder: &Path, who: &Arc<Identity>) -> Client {
    Client::in_folder(Face::Rust, folder, Some(Arc::clone(who).into()), false).unwrap()
}

pub fn open(client: &Client, host: &Connection) -> Result<Collection> {
    block_on(client.get_collection(host, "docs", false, None))
}

pub fn add(docs: &Collection, host: &Connection, seed: u64) -> Result<()> {
    block_on(docs.add(host, rows(5, DIMENSION, seed))).map(drop)
}

pub fn admit(
    docs: &Collection,
    host: &Connection,
    who: &Identity,
    role: Role,
) -> Result<MemberInfo> {
    block_on(docs.add_member(host, &who.member_card().to_bytes(), role))
}

fn info(docs: &Collection, host: &Connection) -> Info {
    block_on(docs.info(host, None)).unwrap()
}

fn author(docs: &Collection, host: &Connection) -> String {
    info(docs, host).author.unwrap().0.name
}

pub fn names(docs: &Collection, host: &Connection) -> Vec<String> {
    block_on(docs.members(host)).unwrap().into_iter().map(|one| one.name).collect()
}

pub fn choices() -> Choices {
    Choices { filterable: vec!["even".to_owned()], ..Choices::new("docs", DIMENSION) }
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// What a store shows of a collection in a folder, for whoever controls it.
pub struct Shown {
    pub store: Store,
    pub meta: Value,
    pub state: Vec<u8>,
}

impl Shown {
    pub fn of(folder: &Path) -> Self {
        let store = Store::open(&folder.join("docs")).unwrap();
        let meta = serde_json::from_slice(store.meta()).unwrap();
        let state = store.attachment("state").unwrap();
        Shown { store, meta, state }
    }

    pub fn field(&self, name: &str) -> Vec<u8> {
        BASE64_STANDARD.decode(self.meta[name].as_str().unwrap()).unwrap()
    }

    pub fn list(&self) -> MemberList {
        MemberList::from_bytes(&self.field("members")).unwrap()
    }

    /// What whoever has these keys may make of it.
    pub fn owner(&self, keys: &Keys) -> Owner {
        let spec = IndexSpec::from_bytes(&self.field("spec")).unwrap();
        Owner::with_rotation(keys, spec, &RotationState::default()).unwrap()
    }

    /// Puts another description and state there.
    pub fn put(&mut self, meta: &Value, state: Vec<u8>) {
        let change = Change {
            set_meta: Some(serde_json::to_vec(meta).unwrap()),
            attachments: vec![("state".to_owned(), state)],
            ..Change::default()
        };
        self.store.commit(change).unwrap();
    }
}

/// A folder with what alice, bob (a member) and carl (a reader) share, and the segments that there are.
pub fn shared(folder: &Path, host: &Connection, people: &[Arc<Identity>; 3]) {
    let [alice, bob, carl] = people;
    let docs = filled(&at(folder, alice), host, &choices(), rows(20, DIMENSION, 1));
    admit(&docs, host, bob, Role::Member).unwrap();
    admit(&docs, host, carl, Role::Reader).unwrap();
}

pub fn people() -> [Arc<Identity>; 3] {
    ["alice", "bob", "carl"].map(person)
}

/// How many blobs of these segments open with these keys, of how many.
fn opened(folder: &Path, keys: &Keys, segments: &[[u8; 16]]) -> (usize, usize) {
    let shown = Shown::of(folder);
    let owner = shown.owner(keys);
    let (mut opened, mut blobs) = (0, 0);
    for entry in shown.store.segments().iter().filter(|one| segments.contains(&one.id)) {
        let segment = SegmentId(entry.id);
        let sidecar = shown.store.read(&entry.id, "sidecar").unwrap();
        let sealed = SealedSidecar { segment, sidecar: &sidecar, wrap: None, rows: None };
        opened += owner.open_sidecars(&[sealed]).iter().filter(|one| one.is_ok()).count();
        blobs += 1;
        let binding = owner.spec().binding();
        let place = Place { collection: &binding, segment: &entry.id };
        for blob in ["records", "originals"] {
            let bytes = shown.store.read(&entry.id, blob).unwrap();
            let batch = RecordBatch::parse(&bytes).unwrap();
            for row in 0..batch.rows() {
                blobs += 1;
                // Whichever id it has.
                let sealed = batch.ciphertext(row).unwrap();
                let ids = (0..25).flat_map(|at| [1000 + at, 2000 + at]);
                let opens = |id: i64| open_record(owner.aead(), place, &id.into(), row, sealed);
                opened += usize::from(ids.map(opens).any(|one| one.is_ok()));
            }
        }
    }
    (opened, blobs)
}

fn segments(folder: &Path) -> Vec<[u8; 16]> {
    Shown::of(folder).store.segments().iter().map(|one| one.id).collect()
}

#[test]
fn members_open_by_their_identities_and_each_commit_names_its_author() {
    let ([alice, bob, carl], server) = (people(), Server::start());
    let (host, _warnings) = connection();
    // One that was made with keys, which go on reading.
    let made = filled(&server.client(&keys()), &host, &choices(), rows(20, DIMENSION, 1));
    assert!(info(&made, &host).author.is_none() && names(&made, &host).is_empty());
    block_on(made.found_members(&host, &alice)).unwrap();
    assert_eq!((author(&made, &host), names(&made, &host)), ("alice".into(), vec!["alice".into()]));
    let docs = open(&on(&server, &alice), &host).unwrap();
    assert!(
        matches!(open(&on(&server, &bob), &host), Err(Error::WrongKey(says)) if says.contains("alice"))
    );
    let known = admit(&docs, &host, &bob, Role::Member).unwrap();
    assert_eq!(known.fingerprint.len(), 32);
    admit(&docs, &host, &carl, Role::Reader).unwrap();
    let [bobs, carls] = [&bob, &carl].map(|who| open(&on(&server, who), &host).unwrap());
    add(&bobs, &host, 2).unwrap();
    for docs in [&docs, &carls] {
        block_on(docs.refresh(&host)).unwrap();
        assert_eq!((author(docs, &host), block_on(docs.count(&host)).unwrap()), ("bob".into(), 25));
    }
    let all = block_on(carls.get(&host, &Selection::default(), Default::default(), 0, None, None))
        .unwrap();
    assert_eq!(all.rows.len(), 25);
    for (docs, says) in [(&carls, "carl is a reader"), (&made_again(&server, &host), "keys alone")]
    {
        let refused = add(docs, &host, 3).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
        assert!(
            block_on(docs.delete(
                &host,
                &Selection { ids: Some(vec![1000.into()]), ..Selection::default() },
                false
            ))
            .is_err()
        );
        assert!(block_on(docs.rotate_query_key(&host)).is_err());
    }
    for docs in [&bobs, &carls] {
        assert!(admit(docs, &host, &person("eve"), Role::Owner).is_err());
        assert!(block_on(docs.remove_member(&host, "carl")).is_err());
        assert!(
            block_on(docs.rotate_keys(&host, &Arc::new(Keys::generate().unwrap()), false)).is_err()
        );
    }
    assert!(block_on(docs.writer_card(&host, "sensor")).is_err());
    let changes = block_on(docs.member_changes(&host)).unwrap();
    let said: Vec<_> =
        changes.iter().map(|one| (one.what, one.who.as_deref().unwrap(), &*one.by)).collect();
    assert_eq!(
        said,
        [("founded", "alice", "alice"), ("added", "bob", "alice"), ("added", "carl", "alice")]
    );
    // Whoever gets another role may do what it allows.
    block_on(docs.appoint_member(&host, "carl", Role::Member)).unwrap();
    block_on(carls.refresh(&host)).unwrap();
    add(&carls, &host, 4).unwrap();
}

fn made_again(server: &Server, host: &Connection) -> Collection {
    open(&server.client(&keys()), host).unwrap()
}

#[test]
fn nothing_that_comes_after_a_removal_opens_with_what_the_removed_member_held() {
    let (people, folder) = (people(), tempfile::tempdir().unwrap());
    let [alice, bob, carl] = &people;
    let (folder, (host, _warnings)) = (folder.path(), connection());
    shared(folder, &host, &people);
    let held = Shown::of(folder).list().open(bob).unwrap();
    let before = segments(folder);
    let (open_before, blobs) = opened(folder, &held, &before);
    assert_eq!((open_before, blobs), (blobs, 41), "20 records, 20 vectors and ids");

    let docs = open(&at(folder, alice), &host).unwrap();
    block_on(docs.remove_member(&host, "bob")).unwrap();
    assert!(info(&docs, &host).rotates_from.is_some());
    add(&docs, &host, 2).unwrap();
    drop(docs);
    let later: Vec<_> = segments(folder).into_iter().filter(|one| !before.contains(one)).collect();
    assert!(!later.is_empty());
    let (opens, of) = opened(folder, &held, &later);
    assert_eq!(opens, 0, "of {of}");
    assert!(of > 10);
    let shown = Shown::of(folder);
    assert!(shown.owner(&held).open_state(&shown.state).is_err());
    assert!(shown.list().open(bob).is_err());
    drop(shown);
    assert!(matches!(open(&at(folder, bob), &host), Err(Error::WrongKey(_))));
    // Who is left reads all of it, and what is sealed again opens no more for the other.
    let docs = open(&at(folder, carl), &host).unwrap();
    assert_eq!(block_on(docs.count(&host)).unwrap(), 25);
    drop(docs);
    let docs = open(&at(folder, alice), &host).unwrap();
    block_on(docs.reseal(&host)).unwrap();
    assert_eq!(info(&docs, &host).rotates_from, None);
    drop(docs);
    assert_eq!(opened(folder, &held, &segments(folder)).0, 0);
    assert_eq!(block_on(open(&at(folder, carl), &host).unwrap().count(&host)).unwrap(), 25);
    // Another removal draws another key, and finishes the change before.
    let docs = open(&at(folder, alice), &host).unwrap();
    let again = Shown::of_open(&docs, &host);
    block_on(docs.remove_member(&host, "carl")).unwrap();
    assert_ne!(Shown::of_open(&docs, &host), again);
    assert_eq!(names(&docs, &host), ["alice"]);
}

impl Shown {
    fn of_open(docs: &Collection, host: &Connection) -> String {
        info(docs, host).key_id
    }
}

#[test]
fn a_reader_with_the_key_forges_no_state() {
    let (people, folder) = (people(), tempfile::tempdir().unwrap());
    let [alice, bob, carl] = &people;
    let (root, (host, _warnings)) = (folder.path(), connection());
    let data = root.join("data");
    shared(&data, &host, &people);
    let shown = Shown::of(&data);
    let keys = shown.list().open(carl).unwrap();
    let (owner, meta, sealed) = (shown.owner(&keys), shown.meta.clone(), shown.state.clone());
    drop(shown);
    let honest = owner.open_state(&sealed).unwrap();
    let next = |signed| {
        let mut record = honest.clone();
        record.sequence += 1;
        record.ancestors.push(ciphervec_owner::protect::state::name(&sealed));
        record.signed = signed;
        let description = serde_json::to_vec(&meta).unwrap();
        record.description = *blake3::hash(&description).as_bytes();
        owner.seal_state(&record).unwrap()
    };
    let signer =
        |who: &Identity, changes| Some(StateSigner { author: who.member_fingerprint(), changes });
    let by = |claimed: &Identity, changes, signs: &Identity| {
        let body = next(signer(claimed, changes));
        let signature = signs.sign_state(&body);
        [body, signature.to_vec()].concat()
    };
    let eve = person("eve");
    let forged = [
        ("a reader's own", by(carl, 3, carl), "carl, who was a reader"),
        ("in another's name", by(bob, 3, carl), "bob did not sign"),
        ("of a stranger", by(&eve, 3, &eve), "was not a member"),
        ("after fewer changes", by(alice, 1, alice), "beside a list of 3"),
        ("without a signature", next(None), "nobody signed"),
        (
            "with another's signature",
            [next(signer(bob, 3)), sealed[sealed.len() - 64..].to_vec()].concat(),
            "bob did not sign",
        ),
    ];
    let control = by(bob, 3, bob);
    let tried = |state: Vec<u8>, turn: usize| {
        let copied = root.join(format!("copy-{turn}"));
        copy(&data, &copied);
        Shown::of(&copied).put(&meta, state);
        // Somebody who saw it before, and whoever comes for the first time.
        let (fresh, _warnings) = connection();
        [open(&at(&copied, alice), &host).map(drop), open(&at(&copied, bob), &fresh).map(drop)]
    };
    for (turn, (what, state, says)) in forged.into_iter().enumerate() {
        for found in tried(state, turn) {
            let found = found.unwrap_err();
            assert!(
                matches!(found, Error::RolledBack(_)) && found.to_string().contains(says),
                "{what}: {found}"
            );
        }
    }
    for found in tried(control, 99) {
        found.unwrap();
    }
}

#[test]
fn a_list_that_was_stripped_swapped_or_put_back_is_refused() {
    let (people, folder) = (people(), tempfile::tempdir().unwrap());
    let [alice, bob, carl] = &people;
    let (root, (host, _warnings)) = (folder.path(), connection());
    let data = root.join("data");
    shared(&data, &host, &people);
    let other = root.join("other");
    shared(&other, &host, &people);
    let old = root.join("old");
    copy(&data, &old);
    let docs = open(&at(&data, alice), &host).unwrap();
    block_on(docs.remove_member(&host, "bob")).unwrap();
    drop(docs);

    // The state before the removal, with its list.
    assert!(matches!(open(&at(&old, alice), &host), Err(Error::RolledBack(_))));
    // The list of another collection of that name and founder; that before the removal; none.
    let theirs = Shown::of(&other).meta["members"].clone();
    let before = Shown::of(&old).meta["members"].clone();
    let keys = Shown::of(&old).list().open(carl).unwrap();
    for (turn, members) in [theirs, before, Value::Null].into_iter().enumerate() {
        let copied = root.join(format!("copy-{turn}"));
        copy(&data, &copied);
        let mut shown = Shown::of(&copied);
        let (mut meta, state) = (shown.meta.clone(), shown.state.clone());
        meta["members"] = members;
        shown.put(&meta, state);
        drop(shown);
        for client in [at(&copied, alice), at(&copied, carl)] {
            let found = open(&client, &connection().0).map(drop).unwrap_err();
            assert!(
                matches!(found, Error::RolledBack(_) | Error::Corrupt(_) | Error::WrongKey(_)),
                "{turn}: {found}"
            );
        }
    }
    // Bob has the former key, and signs a state behind the latest one, beside the list that he is on.
    let latest = Shown::of(&data).state;
    let copied = root.join("branch");
    copy(&data, &copied);
    let before = Shown::of(&old);
    let owner = before.owner(&keys);
    let mut record = owner.open_state(&before.state).unwrap();
    record.sequence += 2;
    record
        .ancestors
        .extend([&before.state, &latest].map(|one| ciphervec_owner::protect::state::name(one)));
    record.signed = Some(StateSigner { author: bob.member_fingerprint(), changes: 3 });
    record.description = *blake3::hash(&serde_json::to_vec(&before.meta).unwrap()).as_bytes();
    let body = owner.seal_state(&record).unwrap();
    let signed = [&body[..], &bob.sign_state(&body)].concat();
    Shown::of(&copied).put(&before.meta, signed);
    drop(before);
    let branch = open(&at(&copied, alice), &host).map(drop).unwrap_err();
    assert!(branch.to_string().contains("without the 4 changes of its members"), "{branch}");
    // Somebody with the key strips the list and the signature off: who saw the list isn't deceived, nor is any member.
    let mut shown = Shown::of(&old);
    let owner = shown.owner(&keys);
    let mut meta = shown.meta.clone();
    meta.as_object_mut().unwrap().remove("members");
    let mut record = owner.open_state(&shown.state).unwrap();
    record.signed = None;
    record.sequence += 100;
    record.description = *blake3::hash(&serde_json::to_vec(&meta).unwrap()).as_bytes();
    shown.put(&meta, owner.seal_state(&record).unwrap());
    drop(shown);
    for who in [alice, bob] {
        assert!(matches!(open(&at(&old, who), &connection().0), Err(Error::WrongKey(_))));
    }
}

#[test]
fn owners_who_change_the_list_at_once_both_get_their_way_and_one_owner_always_stays() {
    let ([alice, bob, carl], server) = (people(), Server::start());
    let (host, _warnings) = connection();
    let docs = filled(&on(&server, &alice), &host, &choices(), rows(5, DIMENSION, 1));
    for found in [
        block_on(docs.remove_member(&host, "alice")).map(drop),
        block_on(docs.appoint_member(&host, "alice", Role::Reader)).map(drop),
    ] {
        assert!(found.unwrap_err().to_string().contains("at least one owner left"));
    }
    admit(&docs, &host, &bob, Role::Owner).unwrap();
    // Each goes on from what it saw last.
    let bobs = open(&on(&server, &bob), &host).unwrap();
    let people = (0..6).map(|n| person(&format!("p{n}"))).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        for (docs, some) in [(&docs, &people[..3]), (&bobs, &people[3..])] {
            scope.spawn(move || {
                let (host, _warnings) = connection();
                some.iter().for_each(|who| drop(admit(docs, &host, who, Role::Reader).unwrap()));
            });
        }
    });
    block_on(docs.refresh(&host)).unwrap();
    assert_eq!(names(&docs, &host).len(), 8);
    let again = admit(&docs, &host, &person("bob"), Role::Reader).unwrap_err();
    assert!(again.to_string().contains("a name that nobody else on the list has"), "{again}");
    block_on(docs.remove_member(&host, "p0")).unwrap();
    let gone = block_on(bobs.remove_member(&host, "p0")).unwrap_err();
    assert!(gone.to_string().contains("nobody of the name"), "{gone}");
    // Bob's client followed the change of keys, and leaves.
    add(&bobs, &host, 2).unwrap();
    block_on(bobs.remove_member(&host, "bob")).unwrap();
    block_on(docs.refresh(&host)).unwrap();
    assert!(matches!(block_on(bobs.refresh(&host)), Err(Error::WrongKey(_) | Error::Mismatch(_))));
    assert!(matches!(open(&on(&server, &carl), &host), Err(Error::WrongKey(_))));
    // A writer's card is no member's.
    let card = block_on(docs.add_member(&host, &carl.recipient().to_bytes(), Role::Member));
    assert!(card.unwrap_err().to_string().contains("a member's card"));
}

#[test]
fn a_removed_member_can_not_go_on_as_though_nothing_had_happened() {
    let (people, server) = (people(), Server::start());
    let [alice, bob, _] = &people;
    let (host, _warnings) = connection();
    let docs = filled(&on(&server, alice), &host, &choices(), rows(5, DIMENSION, 1));
    admit(&docs, &host, bob, Role::Member).unwrap();
    let bobs = open(&on(&server, bob), &host).unwrap();
    block_on(docs.remove_member(&host, "bob")).unwrap();
    // He was asked to commit on what he knew; the server has something newer, which he can't open.
    assert!(add(&bobs, &host, 2).is_err());
    block_on(docs.refresh(&host)).unwrap();
    assert_eq!((block_on(docs.count(&host)).unwrap(), author(&docs, &host)), (5, "alice".into()));
}

#[test]
fn every_mode_and_scheme_is_rekeyed() {
    let people = people();
    let [alice, bob, _] = &people;
    for (mode, metric) in [(Mode::SealedIndex, Metric::Cosine), (Mode::SealedQuery, Metric::L2)] {
        let (folder, (host, _warnings)) = (tempfile::tempdir().unwrap(), connection());
        let choices = Choices {
            mode,
            metric,
            precision: Precision::Standard,
            ..Choices::new("docs", DIMENSION)
        };
        let docs = filled(&at(folder.path(), alice), &host, &choices, rows(9, DIMENSION, 1));
        admit(&docs, &host, bob, Role::Member).unwrap();
        block_on(docs.remove_member(&host, "bob")).unwrap();
        block_on(docs.reseal(&host)).unwrap();
        drop(docs);
        let docs = open(&at(folder.path(), alice), &host).unwrap();
        assert_eq!(
            (block_on(docs.count(&host)).unwrap(), author(&docs, &host)),
            (9, "alice".into())
        );
        block_on(docs.rotate_keys(&host, &Arc::new(Keys::generate().unwrap()), false)).unwrap();
        let last = block_on(docs.member_changes(&host)).unwrap().pop().unwrap();
        assert_eq!((last.what, &*last.by), ("rekeyed", "alice"));
    }
}
