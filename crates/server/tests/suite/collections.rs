//! Collections in a folder, without HTTP: what is acknowledged is searched, and found again after a
//! restart.

use crate::support::{Client, KINDS, id_of, open, open_with, runtime};
use ciphervec_owner::store::Change;
use ciphervec_owner::{Mode, Precision, Scheme};
use ciphervec_server::{Collection, CommitKey, Committed, DatabaseError};
use std::time::{Duration, Instant};

const COMPACT: (Mode, Precision, Scheme) =
    (Mode::SealedIndex, Precision::Standard, Scheme::Lattice);

#[test]
fn every_kind_of_collection_is_made_filled_searched_and_found_again() {
    let runtime = runtime();
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path());
        let mut client = Client::new("faces", kind);
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        assert_eq!(database.names().unwrap(), ["faces"]);
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
    let described = Client::with_dimension("faces", 16, COMPACT).meta();
    let respecified = Change { set_meta: Some(described), ..Change::default() };
    for change in [foreign, wrong_rows, flipped, sidecar, renamed, bare, respecified] {
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
    assert!(database.names().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    database.create("a", client.meta(), client.attachments()).unwrap();
}

#[test]
fn a_key_is_good_for_one_change_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    let change = client.add(10);
    let key = CommitKey { key: [1; 16], digest: [2; 16] };
    let first = made.commit(change.clone(), Some(made.state().head), Some(key)).unwrap();
    let again = made.commit(change.clone(), Some([9; 32]), Some(key)).unwrap();
    assert_eq!(again, Committed { replayed: true, ..first });
    let remove = vec![id_of(&change)];
    made.commit(Change { remove, ..Change::default() }, None, None).unwrap();
    database.close();
    let made = open(folder.path()).get("faces").unwrap();
    assert_eq!(made.commit(change, None, Some(key)).unwrap(), again);
    let other = CommitKey { digest: [3; 16], ..key };
    let refused = made.commit(client.add(1), None, Some(other));
    assert!(matches!(refused, Err(DatabaseError::KeyReused)));
    assert!(made.state().manifest.segments.is_empty());
}

#[test]
fn snapshots_and_compaction_keep_the_answers() {
    let runtime = runtime();
    for kind in [KINDS[1], KINDS[5], KINDS[6]] {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path());
        let mut client = Client::new("faces", kind);
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        for rows in [20, 1, 1, 7] {
            made.commit(client.add(rows), None, None).unwrap();
        }
        let query = client.query(1, 5);
        let ask = |collection: &std::sync::Arc<ciphervec_server::Collection>| {
            let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
            client.best(&query, &runtime.block_on(collection.query(bytes)).unwrap().bytes)
        };
        let best = ask(&made);
        let done = made.compact().unwrap();
        assert!(done.files_after < done.files_before, "{done:?}");
        assert_eq!(ask(&made), best);
        let taken = made.snapshot("monday").unwrap();
        let entry = made.snapshots().unwrap().remove(0);
        assert_eq!((entry.version, entry.rows), (taken.version - 1, 29));
        let all = made.state().manifest.segments.iter().map(|segment| segment.id).collect();
        made.commit(Change { remove: all, ..Change::default() }, None, None).unwrap();
        assert_eq!(made.statistics().rows, 0);
        let copy = database.restore("faces", "monday", "copy").unwrap();
        assert_eq!(ask(&copy), best);
        let taken = database.restore("faces", "monday", "copy");
        assert!(matches!(taken, Err(DatabaseError::Exists(_))));
        let before = made.state().manifest.version;
        let back = database.restore("faces", "monday", "faces").unwrap();
        assert_eq!(ask(&back), best);
        assert_eq!(back.state().manifest.version, before + 1);
        assert!(matches!(
            database.restore("faces", "never", "faces"),
            Err(DatabaseError::NotFound(_))
        ));
        back.drop_snapshot("monday").unwrap();
        assert!(back.snapshots().unwrap().is_empty());
        let report = back.verify(&mut |_, _| {}).unwrap();
        assert!(report.problems.is_empty() && report.files > 3, "{report:?}");
    }
}

#[test]
fn a_collection_larger_than_the_budget_is_answered_and_says_so() {
    let runtime = runtime();
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let mut client = Client::new("faces", kind);
        let database = open(folder.path());
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        for rows in [30, 40, 50, 3] {
            made.commit(client.add(rows), None, None).unwrap();
        }
        let query = client.query(2, 5);
        let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
        let whole = runtime.block_on(made.query(bytes.clone())).unwrap();
        assert!(!whole.degraded);
        let all = made.statistics().resident;
        assert_eq!(all, database.resident());
        database.close();
        drop((made, database));
        // What expanded queries take comes out of the budget first.
        let trees = if matches!(kind.0, Mode::Sealed | Mode::SealedQuery) { 64 << 20 } else { 0 };
        // Nothing fits; the smaller segments fit; everything does.
        for (budget, degraded) in [(0, true), (all * 2 / 3, true), (all + trees, false)] {
            let database = open_with(path, budget);
            let found = database.get("faces").unwrap();
            assert_eq!(found.statistics().resident, 0);
            for _ in 0..3 {
                let answer = runtime.block_on(found.query(bytes.clone())).unwrap();
                assert_eq!(answer.degraded, degraded, "{kind:?}, {budget} of {all}");
                assert_eq!(found.statistics().degraded, degraded);
                assert_eq!(client.best(&query, &answer.bytes), client.best(&query, &whole.bytes));
                if !kind.2.is_additive() {
                    assert_eq!(answer.bytes, whole.bytes);
                }
                assert!(database.resident() <= budget);
            }
            if !degraded {
                // It is loaded behind the first answer.
                let patience = Instant::now() + Duration::from_secs(60);
                while database.resident() < all && Instant::now() < patience {
                    std::thread::sleep(Duration::from_millis(2));
                }
                assert_eq!(database.resident(), all);
                let answer = runtime.block_on(found.query(bytes.clone())).unwrap();
                assert_eq!(client.best(&query, &answer.bytes), client.best(&query, &whole.bytes));
            }
            assert!(budget == 0 || degraded && trees > 0 || database.resident() > 0);
            database.close();
        }
    }
}

#[test]
fn collections_that_push_each_other_out_of_memory_are_answered_and_say_so() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let (path, names) = (folder.path().to_str().unwrap().to_owned(), ["faces", "texts"]);
    let mut clients = names.map(|name| Client::new(name, COMPACT));
    let database = open(folder.path());
    for (name, client) in names.iter().zip(&mut clients) {
        let made = database.create(name, client.meta(), client.attachments()).unwrap();
        for _ in 0..3 {
            made.commit(client.add(50), None, None).unwrap();
        }
    }
    // Rows alone: what else is stored never stays in memory.
    let each = database.get("faces").unwrap().statistics().resident;
    database.close();
    // Either of them fits, both do not.
    let database = open_with(&path, each * 3 / 2);
    let queries = clients.each_ref().map(|client| client.query(1, 7));
    let ask = |which: usize| {
        let bytes = bytes::Bytes::copy_from_slice(queries[which].to_bytes());
        let answer = runtime.block_on(database.get(names[which]).unwrap().query(bytes)).unwrap();
        assert_eq!(clients[which].best(&queries[which], &answer.bytes)[0].len(), 5);
        answer.degraded
    };
    assert!(!ask(0), "cold, and nothing to complain of");
    let patience = Instant::now() + Duration::from_secs(60);
    while database.get("faces").unwrap().statistics().resident < each / 2
        && Instant::now() < patience
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(!ask(1));
    // The second one takes the first one's place, whose turn to load is not yet.
    let pushed_out = || database.get("faces").unwrap().statistics().resident < each * 2 / 3;
    while !pushed_out() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(ask(0), "read from the store because of the budget");
    assert!(database.resident() <= each * 3 / 2);
    database.close();
}

#[test]
fn queries_that_wait_together_are_answered_in_one_pass_and_leavers_are_skipped() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    made.commit(client.add(5000), None, None).unwrap();
    let queries: Vec<_> = (0..40).map(|seed| client.query(1, seed)).collect();
    let answers = runtime.block_on(async {
        let asked = queries.iter().map(|query| {
            let (made, bytes) = (made.clone(), bytes::Bytes::copy_from_slice(query.to_bytes()));
            tokio::spawn(async move { made.query(bytes).await })
        });
        let asked: Vec<_> = asked.collect();
        let left = tokio::spawn({
            let (made, bytes) =
                (made.clone(), bytes::Bytes::copy_from_slice(queries[0].to_bytes()));
            async move { made.query(bytes).await }
        });
        left.abort();
        let bad = made.query(bytes::Bytes::from_static(b"no query")).await;
        assert!(matches!(bad, Err(DatabaseError::Invalid(_))));
        let mut answers = Vec::new();
        for one in asked {
            answers.push(one.await.unwrap().unwrap());
        }
        answers
    });
    for (query, answer) in queries.iter().zip(&answers) {
        let alone = bytes::Bytes::copy_from_slice(query.to_bytes());
        let alone = runtime.block_on(made.query(alone)).unwrap();
        assert_eq!((alone.timings.batch, &alone.bytes), (1, &answer.bytes));
        assert!(answer.timings.batch <= 16);
    }
    assert!(answers.iter().any(|answer| answer.timings.batch > 1));
}

#[test]
fn a_damaged_segment_is_never_searched() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    made.commit(client.add(100), None, None).unwrap();
    let query = bytes::Bytes::copy_from_slice(client.query(1, 1).to_bytes());
    database.close();
    let blobs = folder.path().join("faces/blobs");
    let largest = std::fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path());
    let largest = largest.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&largest, bytes).unwrap();
    // The head is in the first block, which is checked as well.
    let database = open(folder.path());
    match database.get("faces") {
        Err(DatabaseError::Corrupt(text)) => assert!(text.contains("damaged"), "{text}"),
        Err(other) => panic!("{other}"),
        Ok(found) => {
            let answer = runtime.block_on(found.query(query));
            assert!(matches!(answer, Err(DatabaseError::Corrupt(_))), "{answer:?}");
        }
    }
}

#[test]
fn idle_collections_are_closed_and_opened_again() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    made.commit(client.add(20), None, None).unwrap();
    assert_eq!(database.close_idle(Duration::ZERO), 0, "somebody holds it");
    drop(made);
    assert_eq!(database.close_idle(Duration::from_secs(60)), 0, "just used");
    assert!(database.resident() > 0);
    assert_eq!(database.close_idle(Duration::ZERO), 1);
    assert_eq!(database.resident(), 0);
    // Its lock is free: an embedded client could write it now.
    drop(ciphervec_owner::store::Store::open(&folder.path().join("faces")).unwrap());
    let query = client.query(1, 1);
    let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
    let answer = runtime.block_on(database.get("faces").unwrap().query(bytes)).unwrap();
    assert_eq!(client.best(&query, &answer.bytes)[0].len(), 5);
}

#[test]
fn what_is_purged_is_not_on_the_disk() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    let (gone, stays) = (client.add(6), client.add(7));
    for change in [&gone, &stays] {
        made.commit(change.clone(), None, None).unwrap();
    }
    let stored = |change: &Change| {
        let rows = &change.add.first().unwrap().blobs.first().unwrap().1;
        let files = walk(folder.path());
        files.iter().filter(|bytes| bytes.windows(64).any(|part| part == &rows[128..192])).count()
    };
    // Both lie in one pack now: removing one of them leaves its bytes there.
    made.compact().unwrap();
    made.commit(Change { remove: vec![id_of(&gone)], ..Change::default() }, None, None).unwrap();
    made.commit(Change::default(), None, None).unwrap();
    assert_eq!((stored(&gone), stored(&stays)), (1, 1), "the case that this is about");
    let query = client.query(1, 5);
    made.purge().unwrap();
    assert_eq!((stored(&gone), stored(&stays)), (0, 1));
    let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
    assert_eq!(runtime.block_on(made.query(bytes)).unwrap().head, made.state().head);
    assert!(made.verify(&mut |_, _| {}).unwrap().problems.is_empty());
    made.snapshot("monday").unwrap();
    made.commit(Change { remove: vec![id_of(&stays)], ..Change::default() }, None, None).unwrap();
    made.purge().unwrap();
    assert_eq!(stored(&stays), 1, "a snapshot keeps it");
    made.drop_snapshot("monday").unwrap();
    made.purge().unwrap();
    assert_eq!(stored(&stays), 0);
}

#[test]
fn compaction_leaves_rows_where_they_are() {
    let runtime = runtime();
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path());
        let mut client = Client::new("faces", kind);
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        let (many, few, none) = (client.add(200), client.add(100), client.add(50));
        for change in [&many, &few, &none] {
            made.commit(change.clone(), None, None).unwrap();
        }
        let delete = |change: &Change, rows: Vec<u32>| Change {
            delete_rows: vec![(id_of(change), rows)],
            ..Change::default()
        };
        // Half of the rows of one segment, and a tenth of another's.
        let halves = delete(&many, (0..200).step_by(2).collect());
        let tenths = delete(&few, (0..100).step_by(10).collect());
        for change in [&halves, &tenths] {
            made.commit(change.clone(), None, None).unwrap();
        }
        for number in (0..200).step_by(2).chain((200..300).step_by(10)) {
            client.directory.mark_deleted(&ciphervec_owner::Id::Number(number));
        }
        let query = client.query(2, 5);
        let ask = || {
            let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
            let answer = runtime.block_on(made.query(bytes)).unwrap().bytes;
            (answer.len(), client.best(&query, &answer))
        };
        let (before, bytes) = (ask(), made.statistics().bytes);
        for upkeep in [
            (|made: &Collection| made.compact().map(drop))
                as fn(&Collection) -> Result<(), DatabaseError>,
            |made: &Collection| made.purge(),
        ] {
            upkeep(&made).unwrap();
            let after = made.statistics();
            assert_eq!((after.rows, after.deleted, after.bytes), (350, 110, bytes), "{kind:?}");
            // Answers are checked with the rows that are deleted.
            assert_eq!(ask(), before, "{kind:?}");
        }
        // It is found again after a restart, and a state kept before is whole.
        made.snapshot("now").unwrap();
        made.commit(delete(&none, vec![3]), None, None).unwrap();
        made.purge().unwrap();
        database.restore("faces", "now", "faces").unwrap();
        assert_eq!(ask(), before, "{kind:?}");
        assert!(made.verify(&mut |_, _| {}).unwrap().problems.is_empty());
        database.close();
        let again = open(folder.path()).get("faces").unwrap();
        let bytes = bytes::Bytes::copy_from_slice(query.to_bytes());
        let answer = runtime.block_on(again.query(bytes)).unwrap().bytes;
        assert_eq!((answer.len(), client.best(&query, &answer)), before);
    }
}

#[test]
fn a_new_segment_has_all_of_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    let mut change = client.add(10);
    // Nine of ten rows, as servers of release 0.1 left a segment.
    let rows = &mut change.add[0].blobs[0].1;
    let words = rows.len() - 128;
    rows.splice(128.., vec![0; 64 + words / 10 * 9]);
    rows[64 + 29] = 1;
    rows[64 + 32] = 9;
    rows[128..130].copy_from_slice(&[0xef, 0x03]);
    let payload = (rows.len() - 64) as u64;
    rows[24..32].copy_from_slice(&payload.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&rows[..32]).update(&rows[64..]);
    let checksum = hasher.finalize();
    rows[32..64].copy_from_slice(checksum.as_bytes());
    let refused = made.commit(change, None, None).unwrap_err();
    assert!(refused.to_string().contains("9 of its 10 rows came"), "{refused}");
}

/// The bytes of every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| if path.is_dir() { walk(&path) } else { vec![std::fs::read(path).unwrap()] },
        )
        .collect()
}

#[test]
fn reading_goes_on_while_states_come_and_their_files_go() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    let mut client = Client::new("faces", COMPACT);
    let made = database.create("faces", client.meta(), client.attachments()).unwrap();
    let kept = client.add(5);
    made.commit(kept.clone(), None, None).unwrap();
    let query = bytes::Bytes::copy_from_slice(client.query(1, 1).to_bytes());
    let changes: Vec<Change> = (0..30).map(|_| client.add(3)).collect();
    let running = std::sync::atomic::AtomicBool::new(true);
    let (running, relaxed) = (&running, std::sync::atomic::Ordering::Relaxed);
    let may_be = |done: &Result<(), DatabaseError>| {
        matches!(done, Ok(()) | Err(DatabaseError::NotFound(_) | DatabaseError::Busy { .. }))
    };
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (made, query, runtime, kept) = (made.clone(), query.clone(), &runtime, &kept);
            scope.spawn(move || {
                while running.load(relaxed) {
                    let done =
                        match reader {
                            0 => made.blob(&id_of(kept), "rows").map(drop),
                            1 => made.state().manifest.segments.iter().try_for_each(|segment| {
                                made.blob(&segment.id, "sidecar").map(drop)
                            }),
                            _ => runtime.block_on(made.query(query.clone())).map(drop),
                        };
                    assert!(may_be(&done), "reader {reader}: {done:?}");
                }
            });
        }
        for change in changes {
            let id = id_of(&change);
            made.commit(change, None, None).unwrap();
            made.compact().unwrap();
            made.commit(Change { remove: vec![id], ..Change::default() }, None, None).unwrap();
            made.purge().unwrap();
        }
        running.store(false, relaxed);
    });
    assert!(made.verify(&mut |_, _| {}).unwrap().problems.is_empty());
    assert_eq!(made.statistics().rows, 5);
    // A file that is gone for good is damage, and said to be.
    for entry in std::fs::read_dir(folder.path().join("faces/blobs")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let gone = made.blob(&id_of(&kept), "sidecar");
    assert!(matches!(gone, Err(DatabaseError::Corrupt(_))), "{gone:?}");
}

#[test]
fn the_trees_of_queries_are_part_of_the_memory_budget() {
    let runtime = runtime();
    let kind = (Mode::Sealed, Precision::Standard, Scheme::Lattice);
    let resident = |beside: u64| {
        let folder = tempfile::tempdir().unwrap();
        let mut client = Client::new("faces", kind);
        let database = open(folder.path());
        let made = database.create("faces", client.meta(), client.attachments()).unwrap();
        for _ in 0..4 {
            made.commit(client.add(600), None, None).unwrap();
        }
        let rows: u64 = made
            .state()
            .manifest
            .segments
            .iter()
            .map(|segment| segment.blob("rows").map_or(0, |blob| blob.length))
            .sum();
        drop(made);
        database.close();
        let again = open_with(folder.path().to_str().unwrap(), rows + beside);
        let found = again.get("faces").unwrap();
        let query = bytes::Bytes::copy_from_slice(client.query(8, 1).to_bytes());
        let mut degraded = false;
        for _ in 0..8 {
            degraded = runtime.block_on(found.query(query.clone())).unwrap().degraded;
            std::thread::sleep(Duration::from_millis(20));
        }
        (again.resident() >= rows, degraded)
    };
    // Room for the rows alone: eight queries' trees, of at least 64 KiB each, push some of them out.
    assert_eq!(resident(1 << 16), (false, true));
    assert_eq!(resident(256 << 20), (true, false));
}
