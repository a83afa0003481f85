//! Every released format at rest loads forever: a folder, key files, records and filter tags under `vectors/` open, and
//! what is written without randomness does not move by a bit.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_at_rest::` writes them where they are missing.

use ciphervec_owner::protect::aead::AeadKey;
use ciphervec_owner::protect::filter::{self, FilterTags};
use ciphervec_owner::protect::keyfile::{self, MIN_LOG_N, Protection};
use ciphervec_owner::protect::records::{Place, RecordBatch, open_row, seal_records};
use ciphervec_owner::protect::state::{self, SegmentFacts, SetAside, StateRecord};
use ciphervec_owner::search::Owner;
use ciphervec_owner::store::{BLOCK, Change, CommitKey, NewSegment, Store};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<(), Box<dyn Error>>;

const MASTER: [u8; 32] = *b"a published key protects nothing";
const KEY_ID: [u8; 16] = [0xc1; 16];
const PASSPHRASE: &str = "published, too";
const SEGMENT: [u8; 16] = *b"segment of three";
const PLACE: Place<'_> = Place { collection: b"vectors", segment: &SEGMENT };

fn at_rest() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/at-rest"))
}

fn rows() -> [(Id, Vec<u8>); 3] {
    let long = b"a payload of some length, so that offsets differ".to_vec();
    [(Id::from("one"), b"first".to_vec()), (Id::from(2), Vec::new()), (Id::from("three"), long)]
}

fn tags() -> Result<FilterTags, Box<dyn Error>> {
    let tag = |value: &str| filter::tag(&MASTER, "colour", value.as_bytes());
    let mut tags = FilterTags::new();
    for row in [vec![tag("red"), tag("blue")], vec![], vec![tag("red")]] {
        tags.push(&row)?;
    }
    Ok(tags)
}

fn blob() -> Vec<u8> {
    (0..300).map(|at| (at * at) as u8).collect()
}

fn changes() -> [Change; 2] {
    let blobs = vec![("rows".to_owned(), blob()), ("sidecar".to_owned(), Vec::new())];
    let add = vec![NewSegment { id: SEGMENT, rows: 100, blobs }];
    let attachments = vec![("evaluation-keys".to_owned(), vec![1, 2, 3])];
    let first = Change { add, attachments, ..Change::default() };
    let delete_rows = vec![(SEGMENT, vec![0, 99, 50])];
    [first, Change { delete_rows, set_meta: Some(b"described".to_vec()), ..Change::default() }]
}

fn write_folder(path: &Path) -> Outcome {
    let mut store = Store::create(path, b"a description")?;
    for change in changes() {
        store.commit(change)?;
    }
    Ok(())
}

const KEY: CommitKey = CommitKey { key: *b"a commit's key..", digest: *b"and its change.." };

/// A folder whose manifests need format 2: a key, a snapshot, and blobs in a pack.
fn write_folder_2(path: &Path) -> Outcome {
    let mut store = Store::create(path, b"a description")?;
    let [first, second] = changes();
    store.commit_keyed(&first, Some(KEY))?;
    store.take_snapshot("before")?;
    store.compact(false)?;
    store.commit(second)?;
    Ok(())
}

fn write(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)?;
    let cheap = Protection::PassphraseWithCost(PASSPHRASE, MIN_LOG_N);
    keyfile::save(&folder.join("encrypted.key"), &MASTER, &KEY_ID, cheap, false)?;
    keyfile::save(&folder.join("plain.key"), &MASTER, &KEY_ID, Protection::Plaintext, false)?;
    fs::write(folder.join("tags"), tags()?.to_bytes())?;
    write_folder(&folder.join("folder"))?;
    // Made anew by whoever locks; version control keeps no locks.
    fs::remove_file(folder.join("folder/LOCK"))?;
    Ok(())
}

#[test]
fn version_1_at_rest_opens_as_it_did() -> Outcome {
    let folder = at_rest();
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !folder.exists() {
        write(&folder)?;
    }
    let encrypted = fs::read(folder.join("encrypted.key"))?;
    let (master, key_id) = keyfile::decode(&encrypted, Some(PASSPHRASE))?;
    assert_eq!((*master, key_id), (MASTER, KEY_ID));
    let plain = fs::read(folder.join("plain.key"))?;
    assert_eq!(*keyfile::encode(&MASTER, &KEY_ID, Protection::Plaintext)?, plain);
    assert_eq!(*keyfile::decode(&plain, None)?.0, MASTER);

    opens_to_the_rows(&fs::read(folder.join("records"))?)?;
    assert_eq!(tags()?.to_bytes(), fs::read(folder.join("tags"))?);

    let store = Store::open_read_only(&folder.join("folder"))?;
    assert!(store.verify(&mut |_, _| {})?.problems.is_empty());
    assert_eq!((store.version(), store.meta()), (3, &b"described"[..]));
    assert_eq!(*store.read(&SEGMENT, "rows")?, blob());
    assert!(store.read(&SEGMENT, "sidecar")?.is_empty());
    assert_eq!(store.attachment("evaluation-keys")?, [1, 2, 3]);
    let segment = &store.segments()[0];
    assert_eq!(segment.deleted.iter().collect::<Vec<_>>(), [0, 50, 99]);
    assert_eq!((segment.rows, segment.added), (100, 2));
    Ok(())
}

fn opens_to_the_rows(records: &[u8]) -> Outcome {
    let batch = RecordBatch::parse(records)?;
    assert_eq!(batch.rows(), 3);
    for (row, (id, payload)) in (0..).zip(rows()) {
        assert_eq!(*open_row(&batch, &AeadKey::new(MASTER), PLACE, &id, row)?, payload);
    }
    Ok(())
}

/// Version 2 of sealed records, without tags; `records` beside it is version 1, with them.
#[test]
fn version_2_of_records_opens_as_it_did() -> Outcome {
    let path = at_rest().join("records-2");
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !path.exists() {
        fs::write(&path, seal_records(&AeadKey::new(MASTER), PLACE, &rows())?)?;
    }
    let (former, records) = (fs::read(at_rest().join("records"))?, fs::read(&path)?);
    opens_to_the_rows(&records)?;
    assert_eq!(former.len() - records.len(), 3 * 16);
    assert_eq!((former[8], records[8]), (1, 2));
    Ok(())
}

#[test]
fn version_2_at_rest_opens_as_it_did() -> Outcome {
    let path = at_rest().join("folder-2");
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !path.exists() {
        write_folder_2(&path)?;
        fs::remove_file(path.join("LOCK"))?;
    }
    let store = Store::open_read_only(&path)?;
    assert!(store.verify(&mut |_, _| {})?.problems.is_empty());
    assert_eq!((store.version(), store.meta()), (5, &b"described"[..]));
    assert_eq!(*store.read(&SEGMENT, "rows")?, blob());
    assert_eq!(store.attachment("evaluation-keys")?, [1, 2, 3]);
    assert_eq!(store.segments()[0].deleted.iter().collect::<Vec<_>>(), [0, 50, 99]);
    let committed = store.committed(&KEY)?.ok_or("the key is remembered")?;
    assert_eq!((committed.version, committed.replayed), (2, true));
    let [snapshot] = &store.snapshots()?[..] else { return Err("one snapshot".into()) };
    assert_eq!((snapshot.name.as_str(), snapshot.version, snapshot.rows), ("before", 2, 100));
    Ok(())
}

fn state() -> StateRecord {
    StateRecord {
        key: Keys::from_master(MASTER).key_id(),
        origin: [1; 16],
        lineage: [2; 16],
        begun: 1_790_000_000,
        sequence: 2,
        epoch: 1,
        segments: 1,
        segments_digest: state::digest(&state::leaf(&SegmentFacts {
            id: &SEGMENT,
            rows: 3,
            deleted: &[1],
            blobs: &["rows".to_owned(), "sidecar".to_owned()],
            digests: &[("sidecar".to_owned(), [3; 32])],
        })),
        description: [4; 32],
        evaluation: [5; 32],
        key_pair: [0; 32],
        ancestors: vec![[6; 16], [7; 16]],
        aside: vec![SetAside { segment: [8; 16], rows: vec![0, 2] }],
        routing: [0; 32],
        consumed: [0; 32],
        quarantine: Vec::new(),
        signed: None,
    }
}

/// A state of version 2, which a collection has that is routed.
#[test]
fn a_state_of_version_2_opens_as_it_did() -> Outcome {
    let spec = IndexSpec::new("vectors", 8, Metric::L2, Mode::Sealed, Precision::Standard)?;
    let owner = Owner::new(&Keys::from_master(MASTER), spec.with_incarnation([1; 16]))?;
    let routed = StateRecord { routing: [9; 32], ..state() };
    let sealed = owner.seal_state(&routed)?;
    let path = at_rest().join("state-2");
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !path.exists() {
        fs::write(&path, &sealed)?;
    }
    assert_eq!(sealed, fs::read(&path)?);
    assert_eq!(owner.open_state(&fs::read(&path)?)?, routed);
    Ok(())
}

/// A state has no randomness in it either, and neither has the index of an incarnation.
#[test]
fn a_state_of_version_1_and_its_index_open_as_they_did() -> Outcome {
    let spec = IndexSpec::new("vectors", 8, Metric::L2, Mode::Sealed, Precision::Standard)?;
    let spec = spec.with_incarnation([1; 16]);
    let owner = Owner::new(&Keys::from_master(MASTER), spec.clone())?;
    let sealed = owner.seal_state(&state())?;
    for (name, bytes) in [("state", &sealed), ("incarnation", &spec.to_bytes())] {
        let path = at_rest().join(name);
        if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !path.exists() {
            fs::write(&path, bytes)?;
        }
        assert_eq!(*bytes, fs::read(&path)?, "{name}");
    }
    assert_eq!(owner.open_state(&fs::read(at_rest().join("state"))?)?, state());
    assert_eq!(IndexSpec::from_bytes(&fs::read(at_rest().join("incarnation"))?)?, spec);
    let namesake = spec.with_incarnation([2; 16]);
    assert!(Owner::new(&Keys::from_master(MASTER), namesake)?.open_state(&sealed).is_err());
    Ok(())
}

/// A folder has no randomness in it: the same commits are the same bytes, today and in each version.
#[test]
fn the_same_commits_write_the_same_files() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("folder");
    write_folder(&path)?;
    same_files(&path, &at_rest().join("folder"))?;
    let path = folder.path().join("folder-2");
    write_folder_2(&path)?;
    same_files(&path, &at_rest().join("folder-2"))
}

fn same_files(path: &Path, expected: &Path) -> Outcome {
    let names = |folder: &Path| -> Result<Vec<String>, Box<dyn Error>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() && entry.file_name() != "LOCK" {
                names.push(entry.file_name().into_string().map_err(|_| "a name of ours is UTF-8")?);
            }
        }
        names.sort();
        Ok(names)
    };
    for place in ["", "blobs"] {
        let (new, old) = (path.join(place), expected.join(place));
        assert_eq!(names(&new)?, names(&old)?);
        for name in names(&new)? {
            assert_eq!(fs::read(new.join(&name))?, fs::read(old.join(&name))?, "{name}");
        }
    }
    Ok(())
}

/// A blob of two blocks is named as version 1 names it: too long to keep, its name is kept.
#[test]
fn the_name_of_a_blob_of_two_blocks_has_not_moved() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("folder");
    let attachments = vec![("long".to_owned(), vec![7; BLOCK + 1])];
    Store::create(&path, b"")?.commit(Change { attachments, ..Change::default() })?;
    // derive_key("ciphervec v1 blob root", length u64 || BLAKE3(block 0) || BLAKE3(block 1)).
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 blob root");
    hasher.update(&(BLOCK as u64 + 1).to_le_bytes());
    hasher.update(blake3::hash(&vec![7; BLOCK]).as_bytes());
    hasher.update(blake3::hash(&[7]).as_bytes());
    let name = hasher.finalize().to_hex();
    assert_eq!(&*name, "96035d88385a15f349b93956c5ce739dd399eb8c81321c451429e200167d250f");
    assert_eq!(fs::read_dir(path.join("blobs"))?.count(), 1);
    let file = fs::read(path.join("blobs").join(&*name))?;
    assert_eq!(file.len(), 64 + BLOCK + 1 + 64);
    Ok(())
}
