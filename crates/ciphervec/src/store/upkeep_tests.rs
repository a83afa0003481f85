//! Upkeep tests: keys of commits, snapshots, restoring and compaction, also when every step fails
//! in every way.

use super::crash_tests::{State, fresh, scratch, segment};
use super::disk::Step;
use super::failpoint::{self, Fault};
use super::{BlobPlace, Change, CommitKey, Committed, KEYS_KEPT, Store, StoreError};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

const STEPS: usize = 9;

fn key(byte: u8) -> CommitKey {
    CommitKey { key: [byte; 16], digest: [byte ^ 0xff; 16] }
}

fn added() -> Change {
    Change {
        add: vec![segment(1, 10), segment(2, 20), segment(3, 5)],
        attachments: vec![("keys".into(), vec![1; 50])],
        ..Change::default()
    }
}

/// All rows of segment 3 go, and some of segment 2.
fn deleted() -> Change {
    let delete_rows = vec![([3; 16], (0..5).collect()), ([2; 16], vec![4])];
    Change { delete_rows, ..Change::default() }
}

fn replaced() -> Change {
    Change { add: vec![segment(4, 7)], remove: vec![[1; 16]], ..Change::default() }
}

/// Step `at` of a life in which every kind of upkeep happens.
fn step(store: &mut Store, at: usize) -> Result<u64, StoreError> {
    match at {
        0 => store.commit_keyed(&added(), Some(key(1))).map(|done| done.version),
        1 => store.take_snapshot("monday").map(|done| done.version),
        2 => store.commit_keyed(&deleted(), Some(key(2))).map(|done| done.version),
        3 => store.compact(false).map(|_| store.version()),
        4 => store.commit(replaced()),
        5 => store.compact(true).map(|_| store.version()),
        6 => store.restore("monday").map(|done| done.version),
        7 => store.drop_snapshot("monday").map(|done| done.version),
        _ => store.compact(true).map(|_| store.version()),
    }
}

/// What a reader finds after each step, by the model of the crash tests.
fn states() -> Vec<State> {
    let first = State::starting(b"first");
    let mut states = vec![first];
    let then = |states: &mut Vec<State>, change: &Change| {
        let mut next = states.last().expect("a state").clone();
        next.apply(change);
        states.push(next);
    };
    let nothing = Change::default();
    then(&mut states, &added());
    then(&mut states, &nothing);
    then(&mut states, &deleted());
    // The compaction drops the segment without live rows.
    then(&mut states, &Change { remove: vec![[3; 16]], ..Change::default() });
    then(&mut states, &replaced());
    then(&mut states, &nothing);
    let snapshot = states[2].clone();
    states.push(snapshot);
    then(&mut states, &nothing);
    then(&mut states, &nothing);
    states
}

fn live(store: &mut Store) -> (usize, Option<StoreError>) {
    for at in 0..STEPS {
        if let Err(error) = step(store, at) {
            return (at, Some(error));
        }
    }
    (STEPS, None)
}

fn steps() -> Vec<Step> {
    let folder = scratch();
    let mut store = fresh(folder.path());
    let ((done, error), steps) = failpoint::run(usize::MAX, Fault::Crash(0), || live(&mut store));
    assert!(done == STEPS && error.is_none(), "{error:?}");
    steps
}

fn check(path: &Path, allowed: std::ops::RangeInclusive<usize>, context: &str) -> usize {
    let mut store = Store::open(path).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = store.version() as usize - 1;
    assert!(allowed.contains(&found), "{context}: found {found}, allowed {allowed:?}");
    let states = states();
    let state = State::read(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(state, states[found], "{context}");
    let report = store.verify(&mut |_, _| {}).expect("verify");
    assert!(report.problems.is_empty() && report.strays == 0, "{context}: {report:?}");
    let kept: Vec<u64> =
        store.snapshots().expect("snapshots").iter().map(|snapshot| snapshot.version).collect();
    assert_eq!(kept, if (2..8).contains(&found) { vec![2] } else { vec![] }, "{context}");
    if found > 0 {
        let head = store.head();
        let again = store.commit_keyed(&added(), Some(key(1))).expect("a replay");
        assert_eq!((again.version, again.replayed, store.head()), (2, true, head), "{context}");
    }
    for at in found..STEPS {
        step(&mut store, at).unwrap_or_else(|error| panic!("{context}, step {at}: {error}"));
    }
    assert_eq!(State::read(&store).expect("read"), states[STEPS], "{context}");
    found
}

#[test]
fn upkeep_keeps_what_it_should() {
    let folder = scratch();
    let mut store = fresh(folder.path());
    for (at, expected) in (0..STEPS).zip(states().iter().skip(1)) {
        let before = files(&store);
        step(&mut store, at).expect("a step");
        assert_eq!(&State::read(&store).expect("read"), expected, "step {at}");
        if at == 3 {
            let packed =
                store.view().manifest().references().all(|blob| blob.place != BlobPlace::File);
            let names = store.view().manifest().references().count();
            // Two segments of two blobs and the attachment in one pack; the snapshot stays alone.
            assert!(!packed && names == 6, "{names}");
            assert_eq!((before.len(), files(&store).len()), (8, 2));
        }
    }
    let compacted = store.compact(true).expect("nothing left to do");
    assert_eq!((compacted.bytes_moved, compacted.segments_dropped), (0, 0));
    // What only older states named is gone from the disk after one more commit.
    store.commit(Change { set_meta: Some(b"x".to_vec()), ..Change::default() }).expect("commit");
    let on_disk = fs::read_dir(folder.path().join("c/blobs")).expect("list").count();
    assert_eq!(on_disk, files(&store).len());
}

fn files(store: &Store) -> BTreeSet<String> {
    store.view().manifest().references().map(|blob| blob.file()).collect()
}

#[test]
fn a_crash_at_any_step_of_upkeep_loses_nothing() {
    let steps = steps().len();
    for stop_at in 1..=steps {
        for mask in [0, u64::MAX, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa] {
            let folder = scratch();
            let mut store = fresh(folder.path());
            let ((done, _), _) = failpoint::run(stop_at, Fault::Crash(mask), || live(&mut store));
            drop(store);
            let context =
                format!("crash at step {stop_at} of {steps}, losing {mask:x}, {done} done");
            check(&folder.path().join("c"), done..=(done + 1).min(STEPS), &context);
        }
    }
}

#[test]
fn upkeep_on_a_full_disk_and_with_failing_calls_leaves_the_old_state() {
    for (stop_at, kind) in (1..).zip(steps()) {
        for fault in [Fault::Full, Fault::Once(ErrorKind::PermissionDenied)] {
            let folder = scratch();
            let mut store = fresh(folder.path());
            let ((done, error), _) = failpoint::run(stop_at, fault, || live(&mut store));
            let context = format!("step {stop_at}, {kind:?}, {fault:?}, {error:?}");
            assert_eq!(State::read(&store).expect("read"), states()[done], "{context}");
            drop(store);
            // A failed fsync leaves unknown whether the step happened.
            check(&folder.path().join("c"), done..=(done + 1).min(STEPS), &context);
        }
    }
}

#[test]
fn a_purge_that_is_stopped_anywhere_keeps_the_state_and_can_be_repeated() {
    let prepared = || {
        let folder = scratch();
        let mut store = fresh(folder.path());
        for at in [0, 2, 3, 4] {
            step(&mut store, at).expect("a step");
        }
        (folder, store)
    };
    let (_folder, mut store) = prepared();
    let kept = State::read(&store).expect("read");
    let (done, steps) = failpoint::run(usize::MAX, Fault::Crash(0), || store.purge());
    done.expect("a purge");
    assert!(steps.len() > 6, "it moves what lies beside dead bytes: {steps:?}");
    for stop_at in 1..=steps.len() {
        let faults = [
            Fault::Crash(0),
            Fault::Crash(u64::MAX),
            Fault::Full,
            Fault::Once(ErrorKind::PermissionDenied),
        ];
        for fault in faults {
            let (folder, mut store) = prepared();
            let (_, _) = failpoint::run(stop_at, fault, || store.purge());
            drop(store);
            let context = format!("{fault:?} at step {stop_at}");
            let mut store = Store::open(&folder.path().join("c")).expect("open");
            assert_eq!(State::read(&store).expect("read"), kept, "{context}");
            store.purge().unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(State::read(&store).expect("read"), kept, "{context}");
            let named = files(&store);
            let list = fs::read_dir(folder.path().join("c/blobs")).expect("list");
            assert_eq!(list.count(), named.len(), "{context}");
            let lengths: u64 =
                named.iter().map(|name| length(&folder.path().join("c").join(name))).sum();
            let references = store.view();
            let needed: u64 = references
                .manifest()
                .references()
                .map(|blob| blob.file_length().next_multiple_of(64))
                .sum();
            assert!(lengths <= needed, "{context}: {lengths} bytes on disk, {needed} named");
        }
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").len()
}

#[test]
fn a_key_answers_as_it_did_and_refuses_another_change() {
    let folder = scratch();
    let mut store = fresh(folder.path());
    let first = store.commit_keyed(&added(), Some(key(1))).expect("commit");
    assert!(!first.replayed);
    let replayed = Committed { replayed: true, ..first };
    assert_eq!(store.commit_keyed(&added(), Some(key(1))).expect("at once"), replayed);
    store.commit(deleted()).expect("another");
    assert_eq!(store.commit_keyed(&added(), Some(key(1))).expect("later"), replayed);
    drop(store);
    let mut store = Store::open(&folder.path().join("c")).expect("open");
    assert_eq!(store.commit_keyed(&added(), Some(key(1))).expect("after a restart"), replayed);
    let other = CommitKey { digest: [0; 16], ..key(1) };
    let refused = store.commit_keyed(&replaced(), Some(other));
    assert!(matches!(refused, Err(StoreError::KeyReused { .. })), "{refused:?}");
    for number in 0..KEYS_KEPT as u64 {
        let mut key = key(0);
        key.key[..8].copy_from_slice(&number.to_le_bytes());
        let change = Change { set_meta: Some(number.to_le_bytes().to_vec()), ..Change::default() };
        assert!(!store.commit_keyed(&change, Some(key)).expect("a fresh key").replayed);
    }
    assert!(store.committed(&key(1)).expect("looks").is_none(), "the oldest key is forgotten");
}

#[test]
fn a_snapshot_outlives_what_it_names_and_comes_back_elsewhere() {
    let folder = scratch();
    let mut store = fresh(folder.path());
    store.commit(added()).expect("commit");
    let kept = State::read(&store).expect("read");
    store.take_snapshot("monday").expect("snapshot");
    assert!(matches!(store.take_snapshot("monday"), Err(StoreError::SnapshotExists { .. })));
    assert!(matches!(store.take_snapshot("../x"), Err(StoreError::InvalidChange { .. })));
    assert!(matches!(store.restore("tuesday"), Err(StoreError::UnknownBlob { .. })));
    let remove = vec![[1; 16], [2; 16], [3; 16]];
    store.commit(Change { remove, ..Change::default() }).expect("remove");
    for _ in 0..3 {
        store.commit(replaced_meta()).expect("commit");
    }
    store.collect_garbage().expect("collect");
    let copy = folder.path().join("copy");
    fs::create_dir_all(copy.join("blobs")).expect("a folder");
    let medium = std::sync::Arc::new(super::Folder::new(&copy));
    store.copy_snapshot("monday", medium).expect("a copy");
    let copied = Store::open(&copy).expect("open the copy");
    assert_eq!(State::read(&copied).expect("read"), kept);
    store.restore("monday").expect("restore");
    assert_eq!(State::read(&store).expect("read"), kept);
    assert!(store.segments().iter().all(|segment| segment.added == store.version()));
}

fn replaced_meta() -> Change {
    Change { set_meta: Some(vec![9; 9]), ..Change::default() }
}

#[test]
fn every_flipped_bit_of_a_pack_is_found() {
    let folder = scratch();
    let mut store = fresh(folder.path());
    store.commit(added()).expect("commit");
    store.compact(false).expect("compact");
    store.commit(replaced_meta()).expect("so that the old files go");
    let blobs = folder.path().join("c/blobs");
    let [pack] = fs::read_dir(&blobs)
        .expect("list")
        .map(|entry| entry.expect("an entry").path())
        .collect::<Vec<_>>()
        .try_into()
        .expect("one pack");
    let whole = fs::read(&pack).expect("read");
    // Padding between members is nobody's.
    let mut named = vec![false; whole.len()];
    for blob in store.view().manifest().references() {
        let BlobPlace::Pack { slot, .. } = blob.place else { panic!("a blob outside the pack") };
        named[slot as usize * 64..][..blob.file_length() as usize].fill(true);
    }
    for at in (0..whole.len()).filter(|&at| named[at]) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&pack, changed).expect("write");
        let report = store.verify(&mut |_, _| {}).expect("verify");
        assert!(!report.problems.is_empty(), "byte {at} of {}", whole.len());
        assert!(report.problems.iter().all(|problem| problem.path == pack));
    }
    fs::write(&pack, &whole[..whole.len() / 2]).expect("write");
    assert!(!store.verify(&mut |_, _| {}).expect("verify").problems.is_empty());
    fs::remove_file(&pack).expect("remove");
    assert!(!store.verify(&mut |_, _| {}).expect("verify").problems.is_empty());
}
