//! Crash tests: every step of a commit fails in every way; what is found afterwards is a state that
//! was acknowledged or attempted.

use super::disk::Step;
use super::failpoint::{self, Fault};
use super::{Change, NewSegment, SegmentId, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

type Blobs = BTreeMap<String, Vec<u8>>;

/// All that a user can read, by a model that shares no code with the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    meta: Vec<u8>,
    attachments: Blobs,
    segments: BTreeMap<SegmentId, (u32, BTreeSet<u32>, Blobs)>,
}

impl State {
    pub(super) fn starting(meta: &[u8]) -> Self {
        Self { meta: meta.to_vec(), ..Self::default() }
    }

    pub(super) fn apply(&mut self, change: &Change) {
        for id in &change.remove {
            self.segments.remove(id);
        }
        for segment in &change.add {
            let blobs = segment.blobs.iter().cloned().collect();
            self.segments.insert(segment.id, (segment.rows, BTreeSet::new(), blobs));
        }
        for (id, rows) in &change.delete_rows {
            self.segments.get_mut(id).expect("a segment of the model").1.extend(rows);
        }
        for name in &change.drop_attachments {
            self.attachments.remove(name);
        }
        self.attachments.extend(change.attachments.iter().cloned());
        if let Some(meta) = &change.set_meta {
            self.meta.clone_from(meta);
        }
    }

    pub(super) fn read(store: &Store) -> Result<Self, StoreError> {
        let mut state = Self { meta: store.meta().to_vec(), ..Self::default() };
        for (name, _) in store.attachments() {
            state.attachments.insert(name.to_owned(), store.attachment(name)?);
        }
        for segment in store.segments() {
            let mut blobs = Blobs::new();
            for (name, _) in segment.blobs() {
                blobs.insert(name.to_owned(), store.read(&segment.id, name)?.to_vec());
            }
            state
                .segments
                .insert(segment.id, (segment.rows, segment.deleted.iter().collect(), blobs));
        }
        Ok(state)
    }
}

pub(super) fn segment(id: u8, rows: u32) -> NewSegment {
    let blob = |name: &str, byte, length| (name.to_owned(), vec![byte; length]);
    NewSegment {
        id: [id; 16],
        rows,
        blobs: vec![blob("segment", id, 100), blob("sidecar", id + 100, 7)],
    }
}

/// Append, append beside removal and deletion, deletion alone, compaction, and an attachment that
/// goes.
fn workload() -> Vec<Change> {
    vec![
        Change {
            add: vec![segment(1, 10), segment(2, 20)],
            attachments: vec![("keys".into(), vec![1; 50])],
            ..Change::default()
        },
        Change {
            add: vec![segment(3, 30)],
            remove: vec![[1; 16]],
            delete_rows: vec![([2; 16], vec![0, 19]), ([3; 16], vec![5])],
            attachments: vec![("keys".into(), vec![2; 60])],
            set_meta: Some(b"second".to_vec()),
            ..Change::default()
        },
        Change { delete_rows: vec![([3; 16], (0..20).collect())], ..Change::default() },
        Change { add: vec![segment(4, 25)], remove: vec![[2; 16], [3; 16]], ..Change::default() },
        Change { drop_attachments: vec!["keys".into()], ..Change::default() },
    ]
}

fn states() -> Vec<State> {
    let mut state = State::starting(b"first");
    let mut states = vec![state.clone()];
    for change in workload() {
        state.apply(&change);
        states.push(state.clone());
    }
    states
}

/// Commits the workload until something fails; how many were acknowledged, and the failure.
fn run(store: &mut Store) -> (usize, Option<StoreError>) {
    for (acked, change) in workload().into_iter().enumerate() {
        if let Err(error) = store.commit(change) {
            return (acked, Some(error));
        }
    }
    (workload().len(), None)
}

/// In memory where the system has that: what an fsync is good for is modelled, not waited for.
pub(super) fn scratch() -> tempfile::TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("temporary folder")
}

pub(super) fn fresh(folder: &Path) -> Store {
    Store::create(&folder.join("c"), b"first").expect("create")
}

fn steps() -> Vec<Step> {
    let folder = scratch();
    let mut store = fresh(folder.path());
    let ((acked, error), steps) = failpoint::run(usize::MAX, Fault::Crash(0), || run(&mut store));
    assert_eq!((acked, error.is_none()), (5, true));
    steps
}

/// What reopening finds is one of the allowed states, whole and free of strays, and the folder
/// works on.
fn check_recovery(path: &Path, allowed: std::ops::RangeInclusive<usize>, context: &str) -> usize {
    let mut store = Store::open(path).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = store.version() as usize - 1;
    assert!(allowed.contains(&found), "{context}: found {found}, allowed {allowed:?}");
    let state = State::read(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(state, states()[found], "{context}");
    let report = store.verify(&mut |_, _| {}).expect("verify");
    assert!(report.problems.is_empty() && report.strays == 0, "{context}: {report:?}");
    for change in workload().into_iter().skip(found) {
        store.commit(change).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    assert_eq!(State::read(&store).expect("read"), states()[5], "{context}");
    found
}

#[test]
fn a_crash_at_any_step_loses_nothing_acknowledged_and_keeps_nothing_half_done() {
    let masks = [0, u64::MAX, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa, 0x3333_3333_3333_3333];
    let mut recovered_ahead = 0;
    let steps = steps().len();
    for stop_at in 1..=steps {
        for mask in masks {
            let folder = scratch();
            let mut store = fresh(folder.path());
            let ((acked, _), _) = failpoint::run(stop_at, Fault::Crash(mask), || run(&mut store));
            drop(store);
            let context = format!(
                "crash at step {stop_at} of {steps}, losing {mask:x}, {acked} acknowledged"
            );
            let found =
                check_recovery(&folder.path().join("c"), acked..=(acked + 1).min(5), &context);
            recovered_ahead += found - acked;
        }
    }
    assert!(recovered_ahead > 0, "some crashes fall between the rename and the acknowledgement");
}

#[test]
fn a_crash_at_any_step_of_creation_leaves_a_collection_or_room_for_one() {
    for stop_at in 1..30 {
        for mask in [0, u64::MAX] {
            let folder = scratch();
            let path = folder.path().join("c");
            let (created, steps) = failpoint::run(stop_at, Fault::Crash(mask), || {
                Store::create(&path, b"first").is_ok()
            });
            match Store::open(&path) {
                Ok(store) => assert_eq!(State::read(&store).expect("read"), states()[0]),
                Err(StoreError::NotFound { .. }) if !created => drop(fresh(folder.path())),
                Err(error) => panic!("step {stop_at}: {error}"),
            }
            assert_eq!(created, steps.len() < stop_at);
        }
    }
}

/// Two segments and an attachment in one commit, the blobs of the segments written before.
fn staged(store: &mut Store) -> Result<(), StoreError> {
    let staged = store.stage(vec![segment(1, 10), segment(2, 20)])?;
    store.commit_staged(&staged, vec![("ledger".into(), vec![1; 50])]).map(drop)
}

#[test]
fn a_crash_at_any_step_of_a_staged_commit_leaves_all_or_nothing() {
    let before = State::starting(b"first");
    let mut after = before.clone();
    after.apply(&Change {
        add: vec![segment(1, 10), segment(2, 20)],
        attachments: vec![("ledger".into(), vec![1; 50])],
        ..Change::default()
    });
    let folder = scratch();
    let mut store = fresh(folder.path());
    let (done, steps) = failpoint::run(usize::MAX, Fault::Crash(0), || staged(&mut store));
    assert!(done.is_ok() && steps.len() > 20, "{}", steps.len());
    for stop_at in 1..=steps.len() {
        for fault in
            [Fault::Crash(0), Fault::Crash(u64::MAX), Fault::Crash(0x5555_5555), Fault::Full]
        {
            let folder = scratch();
            let mut store = fresh(folder.path());
            let (done, _) = failpoint::run(stop_at, fault, || staged(&mut store));
            drop(store);
            let context = format!("{fault:?} at step {stop_at}, {done:?}");
            let mut store = Store::open(&folder.path().join("c")).expect("open");
            let found = State::read(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(found == after || done.is_err() && found == before, "{context}");
            let report = store.verify(&mut |_, _| {}).expect("verify");
            assert!(report.problems.is_empty() && report.strays == 0, "{context}: {report:?}");
            if found == before {
                staged(&mut store).unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            assert_eq!(State::read(&store).expect("read"), after, "{context}");
        }
    }
}

#[test]
fn a_full_disk_is_a_clean_error_and_needs_no_repair() {
    let steps = steps();
    for stop_at in 1..=steps.len() {
        let folder = scratch();
        let mut store = fresh(folder.path());
        let ((acked, error), _) = failpoint::run(stop_at, Fault::Full, || run(&mut store));
        if let Some(error) = error {
            assert!(matches!(error, StoreError::Full { .. }), "step {stop_at}: {error}");
        }
        assert_eq!(State::read(&store).expect("read"), states()[acked], "step {stop_at}");
        let report = store.verify(&mut |_, _| {}).expect("verify");
        assert!(report.problems.is_empty() && report.strays == 0, "step {stop_at}: {report:?}");
        for change in workload().into_iter().skip(acked) {
            store.commit(change).expect("room again");
        }
        drop(store);
        check_recovery(&folder.path().join("c"), 5..=5, "full disk");
    }
}

#[test]
fn a_failed_fsync_ends_the_writer_and_other_failures_do_not() {
    let steps = steps();
    for (stop_at, step) in (1..).zip(&steps) {
        let folder = scratch();
        let mut store = fresh(folder.path());
        let fault = Fault::Once(ErrorKind::PermissionDenied);
        let ((acked, error), _) = failpoint::run(stop_at, fault, || run(&mut store));
        let context = format!("step {stop_at}, {step:?}");
        assert_eq!(State::read(&store).expect("read"), states()[acked], "{context}");
        match step {
            Step::Sync | Step::SyncFolder => {
                assert!(matches!(error, Some(StoreError::Sync { .. })), "{context}");
                let again = store.commit(workload()[acked].clone());
                assert!(matches!(again, Err(StoreError::Poisoned { .. })), "{context}");
            }
            // A removal happens after the commit; what stays is collected later.
            Step::Remove => assert!(error.is_none(), "{context}"),
            Step::Create | Step::Write | Step::Rename => {
                assert!(matches!(error, Some(StoreError::Io { .. })), "{context}");
                store.commit(workload()[acked].clone()).expect("the writer lives");
                drop(store);
                check_recovery(&folder.path().join("c"), acked + 1..=acked + 1, &context);
                continue;
            }
        }
        drop(store);
        check_recovery(&folder.path().join("c"), acked..=(acked + 1).min(5), &context);
    }
}

#[test]
fn the_workload_meets_every_kind_of_step() {
    let steps = steps();
    for kind in
        [Step::Create, Step::Write, Step::Sync, Step::Rename, Step::SyncFolder, Step::Remove]
    {
        assert!(steps.contains(&kind), "{kind:?}");
    }
    assert!(steps.len() > 60, "{}", steps.len());
}
