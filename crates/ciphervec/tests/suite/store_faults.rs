//! A small folder with one byte changed, cut off or gone: the error names the file, and no read returns wrong bytes.

use ciphervec::store::{BLOCK, Change, NewSegment, Store, StoreError};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<(), Box<dyn Error>>;

const SEGMENT: [u8; 16] = [1; 16];

fn small(path: &Path) -> Result<(), StoreError> {
    let mut store = Store::create(path, b"spec")?;
    let blobs =
        vec![("segment".to_owned(), (0..90).collect()), ("sidecar".to_owned(), vec![7; 20])];
    store.commit(Change {
        add: vec![NewSegment { id: SEGMENT, rows: 12, blobs }],
        attachments: vec![("keys".to_owned(), vec![9; 30]), ("empty".to_owned(), Vec::new())],
        ..Change::default()
    })?;
    store.commit(Change { delete_rows: vec![(SEGMENT, vec![3])], ..Change::default() })?;
    Ok(())
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}

/// Whether opening, or verifying after it, blames this file; and what can still be read must be what was stored.
fn is_found(store: &Path, damaged: &Path) -> bool {
    let opened = match Store::open_read_only(store) {
        Ok(opened) => opened,
        Err(error) => return error.to_string().contains(&damaged.display().to_string()),
    };
    for (name, expected) in [("segment", (0..90).collect::<Vec<u8>>()), ("sidecar", vec![7; 20])] {
        if let Ok(read) = opened.read(&SEGMENT, name) {
            assert_eq!(*read, *expected, "{name} after damage to {}", damaged.display());
        }
    }
    match opened.verify(&mut |_, _| {}) {
        Ok(report) => report.problems.iter().any(|problem| problem.path == damaged),
        Err(_) => false,
    }
}

#[test]
fn every_flipped_byte_is_found() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("c");
    small(&store)?;
    let mut flips = 0;
    // What LOCK says is who holds it, for messages.
    for file in files(&store)?.into_iter().filter(|file| !file.ends_with("LOCK")) {
        let good = fs::read(&file)?;
        for at in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                fs::write(&file, &bad)?;
                assert!(is_found(&store, &file), "byte {at} of {} ^ {flip:#x}", file.display());
                flips += 1;
            }
        }
        fs::write(&file, &good)?;
    }
    assert!(flips > 3000, "{flips}");
    assert!(Store::open(&store)?.verify(&mut |_, _| {})?.problems.is_empty());
    Ok(())
}

#[test]
fn every_truncation_and_every_missing_file_is_found() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("c");
    small(&store)?;
    for file in files(&store)?.iter().filter(|file| !file.ends_with("LOCK")) {
        let good = fs::read(file)?;
        for length in (0..good.len()).chain([good.len() + 1]) {
            let mut bad = good.clone();
            bad.resize(length, 0);
            fs::write(file, &bad)?;
            assert!(is_found(&store, file), "{} bytes of {}", length, file.display());
        }
        fs::remove_file(file)?;
        let newest = file.to_string_lossy().ends_with('3');
        let is_manifest = file.to_string_lossy().contains("manifest");
        if newest && is_manifest {
            // The state before it may not pass for the newest: its own predecessor is gone.
            assert!(matches!(Store::open(&store), Err(StoreError::Missing { .. })));
        } else {
            assert!(is_found(&store, file), "{} is gone", file.display());
        }
        fs::write(file, &good)?;
    }
    Ok(())
}

#[test]
fn reading_a_large_blob_names_the_block_that_is_wrong() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let payload: Vec<u8> = (0..3 * BLOCK + 5).map(|at| (at * at / 7) as u8).collect();
    let mut store = Store::create(&path, b"")?;
    let blobs = vec![("segment".to_owned(), payload.clone())];
    store.commit(Change {
        add: vec![NewSegment { id: SEGMENT, rows: 1, blobs }],
        ..Change::default()
    })?;
    let read = store.read(&SEGMENT, "segment")?;
    assert!(*read == *payload);
    assert_eq!(read.as_ptr().align_offset(64), 0);

    let file = files(&path.join("blobs"))?.remove(0);
    let good = fs::read(&file)?;
    for (at, block) in [(0, 0), (2 * BLOCK + 77, 2), (3 * BLOCK + 4, 3)] {
        let mut bad = good.clone();
        bad[64 + at] ^= 4;
        fs::write(&file, bad)?;
        let Err(StoreError::Corrupt { path, offset, .. }) = store.read(&SEGMENT, "segment") else {
            panic!("a flip at {at} was not found");
        };
        assert_eq!((path, offset), (file.clone(), 64 + block * BLOCK as u64));
    }
    // Two damaged blocks are two problems, and progress still ends at the whole.
    let mut bad = good;
    bad[64] ^= 1;
    bad[64 + 3 * BLOCK] ^= 1;
    fs::write(&file, bad)?;
    let mut last = (0, 0);
    let report = store.verify(&mut |done, total| {
        assert!(done >= last.0 && done <= total);
        last = (done, total);
    })?;
    let offsets: Vec<u64> = report.problems.iter().map(|problem| problem.offset).collect();
    assert_eq!(offsets, [64, 64 + 3 * BLOCK as u64]);
    assert_eq!(last, (payload.len() as u64, payload.len() as u64));
    Ok(())
}

#[test]
fn a_later_format_is_named_as_such() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    small(&path)?;
    let file = path.join("manifest-00000000000000000003");
    let mut bytes = fs::read(&file)?;
    bytes[8] = 3;
    let end = bytes.len() - 32;
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(checksum.as_bytes());
    fs::write(&file, bytes)?;
    let error = Store::open(&path).err();
    assert!(
        matches!(error, Some(StoreError::Unsupported { newest: 2, actual: 3, .. })),
        "{error:?}"
    );
    Ok(())
}

#[test]
fn a_manifest_of_another_history_is_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    small(&ours)?;
    Store::create(&theirs, b"other")?
        .commit(Change { set_meta: Some(vec![1]), ..Change::default() })?;
    let name = "manifest-00000000000000000002";
    fs::copy(theirs.join(name), ours.join(name))?;
    assert!(matches!(Store::open(&ours), Err(StoreError::Corrupt { offset: 28, .. })));
    Ok(())
}
