//! A writer is killed at random moments, again and again; what is found is what its client's ledger allows.
//!
//! `CIPHERVEC_KILL_ROUNDS` sets the number of kills (100 unless given).

use ciphervec::store::{Change, NewSegment, SegmentId, Store};
use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The test that a child runs of this binary.
const TEST: &str = "store_kill::a_killed_writer_keeps_every_acknowledged_commit";
const VARIABLE: &str = "CIPHERVEC_TEST_KILL";

fn id(commit: u64, part: u8) -> SegmentId {
    let mut id = [part; 16];
    id[..8].copy_from_slice(&commit.to_le_bytes());
    id
}

fn payload(commit: u64, part: u8) -> Vec<u8> {
    let length = 1 + (commit * 7919 + u64::from(part) * 104_729) % 40_000;
    (0..length).map(|at| ((at * (commit + 1)) >> 3) as u8 ^ part).collect()
}

/// Commit n adds two segments, deletes two rows of those of commit n - 1, removes those of commit n - 8, and replaces
/// the attachment: the version alone says what the whole state must be.
fn change(version: u64) -> Change {
    let new = |part| NewSegment {
        id: id(version, part),
        rows: 10,
        blobs: vec![("segment".to_owned(), payload(version, part))],
    };
    let rows = |part| (id(version - 1, part), vec![2, version as u32 % 10]);
    let parts = [0, 1];
    Change {
        add: parts.map(new).to_vec(),
        remove: if version >= 10 {
            parts.map(|part| id(version - 8, part)).to_vec()
        } else {
            Vec::new()
        },
        delete_rows: if version >= 3 { parts.map(rows).to_vec() } else { Vec::new() },
        attachments: vec![("ledger".to_owned(), version.to_le_bytes().to_vec())],
        ..Change::default()
    }
}

fn check(store: &Store) -> Outcome {
    let version = store.version();
    if version == 1 {
        assert!(store.segments().is_empty());
        return Ok(());
    }
    assert_eq!(store.attachment("ledger")?, version.to_le_bytes());
    let first = version.saturating_sub(7).max(2);
    let expected: Vec<_> =
        (first..=version).flat_map(|commit| [(commit, 0), (commit, 1)]).collect();
    let found: Vec<_> = store.segments().iter().map(|segment| segment.id).collect();
    assert_eq!(found, expected.iter().map(|(commit, part)| id(*commit, *part)).collect::<Vec<_>>());
    for ((commit, part), segment) in expected.into_iter().zip(store.segments()) {
        assert_eq!(*store.read(&segment.id, "segment")?, payload(commit, part));
        let mut deleted = vec![2, (commit as u32 + 1) % 10];
        deleted.sort_unstable();
        deleted.dedup();
        let deleted = if commit < version { deleted } else { Vec::new() };
        assert_eq!(
            segment.deleted.iter().collect::<Vec<_>>(),
            deleted,
            "commit {commit} of {version}"
        );
    }
    Ok(())
}

/// The child: opens, then commits for ever, telling its client before and after each commit.
fn write_until_killed(path: &Path) -> Outcome {
    let mut told = std::io::stdout().lock();
    let mut store = match Store::open(path) {
        Ok(store) => store,
        Err(_) => Store::create(path, b"spec")?,
    };
    loop {
        let version = store.version() + 1;
        writeln!(told, "attempt {version}")?;
        told.flush()?;
        assert_eq!(store.commit(change(version))?, version);
        writeln!(told, "done {version}")?;
        told.flush()?;
    }
}

/// When a child is killed: `delay` after it has said that many lines.
struct Life {
    lines: u64,
    delay: Duration,
}

/// Starts the child, kills it, and returns the last version attempted and the last acknowledged.
fn one_life(path: &Path, life: &Life) -> Outcome<(u64, u64)> {
    let mut child = Command::new(env::current_exe()?)
        .args(["--exact", TEST, "--nocapture"])
        .env(VARIABLE, path)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("no pipe")?;
    let (tell, told) = std::sync::mpsc::channel();
    let listener = std::thread::spawn(move || {
        // Ends with the pipe; the receiver outlives it.
        BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
    });
    let mut ledger = (0, 0);
    let mut note = |line: String| match line.split_once(' ') {
        Some(("attempt", version)) => version.parse().map(|version| ledger.0 = version).is_ok(),
        Some(("done", version)) => version.parse().map(|version| ledger.1 = version).is_ok(),
        _ => false,
    };
    let mut heard = 0;
    while heard < life.lines {
        heard += u64::from(note(told.recv_timeout(Duration::from_secs(60))?));
    }
    std::thread::sleep(life.delay);
    child.kill()?;
    child.wait()?;
    listener.join().map_err(|_| "the listener failed")?;
    for line in told.try_iter() {
        note(line);
    }
    Ok(ledger)
}

#[test]
fn a_killed_writer_keeps_every_acknowledged_commit() -> Outcome {
    if let Ok(path) = env::var(VARIABLE) {
        return write_until_killed(Path::new(&path));
    }
    let rounds: u64 = env::var("CIPHERVEC_KILL_ROUNDS").map_or(Ok(100), |rounds| rounds.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let (mut acknowledged, mut attempted, mut ahead, mut commits) = (0, 0, 0, 0);
    let started = Instant::now();
    for round in 0..rounds {
        // Most lives end around a commit, however slow the disk; each fourth while starting and recovering.
        let lines = if round % 4 == 0 { 0 } else { 1 + round * 7 % 12 };
        let life = Life { lines, delay: Duration::from_micros(round * 7_919 % 9_000) };
        let (tried, done) = one_life(&path, &life)?;
        acknowledged = acknowledged.max(done);
        attempted = attempted.max(tried);
        if acknowledged == 0 && !path.exists() {
            continue;
        }
        match Store::open(&path) {
            Ok(store) => {
                let found = store.version();
                assert!(
                    (acknowledged..=attempted.max(1)).contains(&found),
                    "round {round}: acknowledged {acknowledged}, found {found}, attempted {attempted}"
                );
                check(&store).map_err(|error| format!("round {round}: {error}"))?;
                let report = store.verify(&mut |_, _| {})?;
                assert!(report.problems.is_empty() && report.strays == 0, "{report:?}");
                ahead += found.saturating_sub(acknowledged.max(1));
                commits = found;
                // What is found durable after a crash counts as acknowledged from here on.
                acknowledged = found;
            }
            Err(error) => assert_eq!(acknowledged, 0, "round {round}: {error}"),
        }
    }
    println!(
        "{rounds} kills in {:?}: {commits} commits, {ahead} found before they were acknowledged",
        started.elapsed()
    );
    assert!(commits >= rounds, "the writer gets somewhere: {commits} commits in {rounds} lives");
    Ok(())
}
