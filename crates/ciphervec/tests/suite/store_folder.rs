//! Folders as users have them: shared, read-only, full, half made, wrong; each refusal is the one it should be.

use ciphervec::store::{Change, NewSegment, Store, StoreError};
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome = Result<(), Box<dyn Error>>;

fn add(id: u8, bytes: usize) -> Change {
    let blobs = vec![("segment".to_owned(), vec![id; bytes])];
    Change { add: vec![NewSegment { id: [id; 16], rows: 4, blobs }], ..Change::default() }
}

#[test]
fn a_second_writer_is_locked_out_and_readers_are_not() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let mut first = Store::create(&path, b"spec")?;
    assert!(matches!(Store::open(&path), Err(StoreError::Locked { .. })));
    assert!(matches!(Store::create(&path, b""), Err(StoreError::AlreadyExists { .. })));
    assert_eq!(first.commit(add(1, 10))?, 2);
    let mut reader = Store::open_read_only(&path)?;
    assert!(!reader.is_writable());
    assert!(matches!(reader.commit(add(2, 10)), Err(StoreError::ReadOnly { .. })));
    assert!(matches!(reader.collect_garbage(), Err(StoreError::ReadOnly { .. })));
    assert_eq!(first.commit(add(2, 10))?, 3);
    assert_eq!((reader.version(), reader.segments().len()), (2, 1), "a reader stays at its commit");
    assert_eq!(reader.read(&[1; 16], "segment")?.as_slice(), [1; 10]);
    drop(first);
    let second = Store::open(&path)?;
    assert_eq!((second.version(), second.segments().len()), (3, 2), "no commit was lost");
    Ok(())
}

/// Removing the lock file lets a second writer in; the first one then refuses rather than lose its commit.
#[test]
fn a_writer_that_got_past_the_lock_is_not_overwritten() -> Outcome {
    for commits in 1..=4 {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("c");
        let mut first = Store::create(&path, b"")?;
        first.commit(add(1, 10))?;
        fs::remove_file(path.join("LOCK"))?;
        let mut second = Store::open(&path)?;
        for id in 0..commits {
            second.commit(add(10 + id, 10))?;
        }
        let refused = first.commit(add(2, 10));
        assert!(matches!(refused, Err(StoreError::Conflict { expected: 2, .. })), "{refused:?}");
        assert!(matches!(first.commit(add(2, 10)), Err(StoreError::Poisoned { .. })));
        drop(first);
        second.commit(add(3, 10))?;
        drop(second);
        let found = Store::open(&path)?;
        assert_eq!(found.version(), 3 + u64::from(commits));
        assert!(found.verify(&mut |_, _| {})?.problems.is_empty());
    }
    Ok(())
}

#[test]
fn a_writer_in_another_process_is_locked_out() -> Outcome {
    const VARIABLE: &str = "CIPHERVEC_TEST_LOCKED";
    if let Ok(path) = env::var(VARIABLE) {
        assert!(matches!(Store::open(Path::new(&path)), Err(StoreError::Locked { .. })));
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let store = Store::create(&path, b"")?;
    let test = ["--exact", "store_folder::a_writer_in_another_process_is_locked_out"];
    let other = Command::new(env::current_exe()?).args(test).env(VARIABLE, &path).output()?;
    let text = String::from_utf8_lossy(&other.stdout);
    assert!(other.status.success() && text.contains("1 passed"), "{text}");
    drop(store);
    Ok(())
}

#[test]
fn changes_that_make_no_sense_are_refused_before_anything_is_written() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let mut store = Store::create(&path, b"")?;
    store.commit(add(1, 10))?;
    let before = fs::read_dir(path.join("blobs"))?.count();
    let delete = |id, rows| Change { delete_rows: vec![([id; 16], rows)], ..Change::default() };
    let blobs = |blobs| Change {
        add: vec![NewSegment { id: [9; 16], rows: 1, blobs }],
        ..Change::default()
    };
    let named = |name: &str| (name.to_owned(), vec![1]);
    let no_rows =
        NewSegment { id: [9; 16], rows: 0, blobs: vec![("segment".to_owned(), Vec::new())] };
    let twice = Change { add: [add(2, 1).add, add(2, 2).add].concat(), ..Change::default() };
    for (change, segment) in [(add(1, 10), "01"), (twice, "02")] {
        let there = store.commit(change);
        let named = matches!(&there, Err(StoreError::SegmentExists { id, .. }) if *id == segment.repeat(16));
        assert!(named, "{there:?}");
    }
    let invalid = [
        Change { add: vec![no_rows], ..Change::default() },
        delete(1, vec![4]),
        blobs(Vec::new()),
        blobs(vec![named("a"), named("a")]),
        blobs(vec![named("../a")]),
        Change { attachments: vec![named("")], ..Change::default() },
    ];
    for change in invalid {
        let refused = store.commit(change.clone());
        assert!(
            matches!(refused, Err(StoreError::InvalidChange { .. })),
            "{change:?}: {refused:?}"
        );
    }
    let remove_and_delete = Change { remove: vec![[1; 16]], ..delete(1, vec![0]) };
    let unknown = Change { remove: vec![[7; 16]], ..Change::default() };
    let twice = Change { remove: vec![[1; 16], [1; 16]], ..Change::default() };
    for change in [delete(7, vec![0]), unknown, twice, remove_and_delete] {
        let refused = store.commit(change.clone());
        assert!(matches!(refused, Err(StoreError::UnknownSegment { .. })), "{change:?}");
    }
    let drop_unknown = Change { drop_attachments: vec!["keys".to_owned()], ..Change::default() };
    assert!(matches!(store.commit(drop_unknown), Err(StoreError::UnknownBlob { .. })));
    assert!(matches!(store.read(&[7; 16], "segment"), Err(StoreError::UnknownSegment { .. })));
    assert!(matches!(store.read(&[1; 16], "other"), Err(StoreError::UnknownBlob { .. })));
    assert!(matches!(store.attachment("keys"), Err(StoreError::UnknownBlob { .. })));
    assert_eq!(store.version(), 2);
    assert_eq!(fs::read_dir(path.join("blobs"))?.count(), before);
    assert_eq!(store.commit(Change::default())?, 2, "nothing to do is no commit");
    // An id that is removed in the same change may be used again, and a row deleted twice is deleted.
    store.commit(Change { remove: vec![[1; 16]], ..add(1, 20) })?;
    store.commit(delete(1, vec![2, 2]))?;
    store.commit(delete(1, vec![2, 0]))?;
    assert_eq!(store.segments()[0].deleted.iter().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(store.segments()[0].added, 3);
    Ok(())
}

#[test]
fn wrong_folders_are_named() -> Outcome {
    let folder = tempfile::tempdir()?;
    let absent = folder.path().join("not/there");
    assert!(matches!(Store::open(&absent), Err(StoreError::NotFound { .. })));
    assert!(!absent.exists(), "opening makes nothing");
    assert!(matches!(Store::open_read_only(folder.path()), Err(StoreError::NotFound { .. })));
    assert!(matches!(Store::open(folder.path()), Err(StoreError::NotFound { .. })));
    assert_eq!(fs::read_dir(folder.path())?.count(), 0, "not even a lock file");
    drop(Store::create(&absent, b"")?);
    Store::open(&absent)?.destroy()?;
    fs::write(folder.path().join("letter.txt"), "mine")?;
    assert!(matches!(Store::create(folder.path(), b""), Err(StoreError::AlreadyExists { .. })));
    let file = folder.path().join("letter.txt");
    assert!(matches!(Store::create(&file, b""), Err(StoreError::Io { .. })));
    assert!(matches!(Store::open(&file), Err(StoreError::NotFound { .. })));
    Ok(())
}

#[test]
fn strays_are_cleared_away_and_foreign_files_are_not() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    Store::create(&path, b"")?.commit(add(1, 10))?;
    let stray = path.join("blobs").join("ab".repeat(32));
    for name in [stray.with_extension("tmp"), stray, path.join("manifest-00000000000000000009.tmp")]
    {
        fs::write(name, b"left by a crash")?;
    }
    let foreign = [path.join("notes.txt"), path.join("blobs").join("README")];
    for name in &foreign {
        fs::write(name, b"mine")?;
    }
    assert_eq!(Store::open_read_only(&path)?.verify(&mut |_, _| {})?.strays, 3);
    let mut store = Store::open(&path)?;
    assert_eq!(store.verify(&mut |_, _| {})?.strays, 0);
    assert_eq!(store.collect_garbage()?, 0);
    assert!(foreign.iter().all(|name| name.exists()));
    Ok(())
}

#[test]
fn removed_segments_leave_the_disk_after_one_more_commit() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let mut store = Store::create(&path, b"")?;
    store.commit(add(1, 10))?;
    let head = store.head();
    store.commit(Change { remove: vec![[1; 16]], ..Change::default() })?;
    assert_ne!(store.head(), head);
    assert_eq!(fs::read_dir(path.join("blobs"))?.count(), 1, "the state before still has it");
    store.commit(Change { set_meta: Some(b"x".to_vec()), ..Change::default() })?;
    assert_eq!(fs::read_dir(path.join("blobs"))?.count(), 0);
    assert_eq!(fs::read_dir(&path)?.count(), 4, "lock, blobs, two manifests");
    store.destroy()?;
    assert_eq!(fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}

/// Runs the named test of this file as another process in a mount namespace of its own, after `mount`; false where
/// the system allows no such namespace.
#[cfg(target_os = "linux")]
fn in_namespace(
    test: &str,
    variable: &str,
    folder: &Path,
    mount: &str,
) -> Result<bool, Box<dyn Error>> {
    let script = format!("{mount} && exec \"$0\" --exact store_folder::{test} --nocapture");
    let unshare = ["--map-root-user", "--mount", "sh", "-c", "true"];
    if !Command::new("unshare").args(unshare).output().is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: no mount namespaces here; the fault-injected tests cover the same errors"
        );
        return Ok(false);
    }
    let output = Command::new("unshare")
        .args(&unshare[..4])
        .arg(script)
        .arg(env::current_exe()?)
        .env(variable, folder)
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    Ok(true)
}

#[test]
#[cfg(target_os = "linux")]
fn a_really_full_disk_is_a_clean_error_and_recovers_without_repair() -> Outcome {
    const VARIABLE: &str = "CIPHERVEC_TEST_FULL";
    let Ok(mounted) = env::var(VARIABLE) else {
        let folder = tempfile::tempdir()?;
        let mount = format!("mount -t tmpfs -o size=256k none \"${VARIABLE}\"");
        let test = "a_really_full_disk_is_a_clean_error_and_recovers_without_repair";
        in_namespace(test, VARIABLE, folder.path(), &mount)?;
        return Ok(());
    };
    let path = PathBuf::from(mounted).join("c");
    let mut store = Store::create(&path, b"spec")?;
    let mut ids = 0;
    let error = loop {
        match store.commit(add(ids + 1, 20_000)) {
            Ok(_) => ids += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!((2..20).contains(&ids), "{ids}");
    let check = |store: &Store, ids: u8| -> Outcome {
        assert_eq!(store.segments().len(), usize::from(ids));
        for id in 1..=ids {
            assert_eq!(*store.read(&[id; 16], "segment")?, vec![id; 20_000]);
        }
        assert!(store.verify(&mut |_, _| {})?.problems.is_empty());
        Ok(())
    };
    check(&store, ids)?;
    drop(store);
    let mut store = Store::open(&path)?;
    check(&store, ids)?;
    assert!(store.commit(add(ids + 1, 20_000)).is_err(), "still full");
    // A small commit fits, and frees what it removes one commit later.
    store.commit(Change { remove: vec![[ids; 16]], ..Change::default() })?;
    store.commit(Change { set_meta: Some(b"x".to_vec()), ..Change::default() })?;
    store.commit(add(ids, 20_000))?;
    check(&store, ids)
}

#[test]
#[cfg(target_os = "linux")]
fn a_read_only_folder_can_be_read_and_says_why_it_cannot_be_written() -> Outcome {
    const VARIABLE: &str = "CIPHERVEC_TEST_READ_ONLY";
    let test = "a_read_only_folder_can_be_read_and_says_why_it_cannot_be_written";
    let Ok(mounted) = env::var(VARIABLE) else {
        let folder = tempfile::tempdir()?;
        Store::create(&folder.path().join("c"), b"spec")?.commit(add(1, 10))?;
        let bind = format!("mount --bind \"${VARIABLE}\" \"${VARIABLE}\"");
        let mount = format!("{bind} && mount -o remount,bind,ro \"${VARIABLE}\"");
        in_namespace(test, VARIABLE, folder.path(), &mount)?;
        return Ok(());
    };
    let path = PathBuf::from(mounted).join("c");
    let Err(error) = Store::open(&path) else { panic!("opened for writing") };
    assert!(
        matches!(error, StoreError::Io { .. }) && error.to_string().contains("LOCK"),
        "{error}"
    );
    assert!(matches!(Store::create(&path.join("d"), b""), Err(StoreError::Io { .. })));
    let store = Store::open_read_only(&path)?;
    assert_eq!(store.read(&[1; 16], "segment")?.as_slice(), [1; 10]);
    Ok(())
}
