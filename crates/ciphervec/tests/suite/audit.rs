//! Audit logs: whatever is changed, left out, put in or cut off, up to what others have seen, is found.

use ciphervec::protect::audit::{AuditLog, Broken, Mark, verify, verifying_key};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const KEY: [u8; 32] = [7; 32];

fn written(folder: &Path, lines: u32, key: Option<[u8; 32]>) -> PathBuf {
    let path = folder.join("audit.log");
    let mut log = AuditLog::open(&path, key).unwrap();
    for line in 0..lines {
        log.append(&format!("{{\"action\":\"query\",\"number\":{line}}}")).unwrap();
    }
    path
}

fn refused(path: &Path, marks: &[Mark]) -> (u64, String) {
    match verify(path, Some(&verifying_key(&KEY)), marks) {
        Err(Broken::Line { line, why, .. }) => (line, why),
        other => panic!("{other:?}"),
    }
}

/// Computed by Python's blake3 and cryptography packages from the texts alone.
#[test]
fn a_log_is_what_the_format_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    drop(AuditLog::open(&path, Some(KEY)).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, include_str!("audit.log"));
}

#[test]
fn lines_go_on_over_restarts_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), 3, Some(KEY));
    let mut log = AuditLog::open(&path, Some(KEY)).unwrap();
    let busy = AuditLog::open(&path, None).err().unwrap();
    assert!(busy.to_string().contains("another process writes to it"), "{busy}");
    log.reopen().unwrap(); // nothing was moved
    log.append("{\"a\":1}").unwrap();
    let old = folder.path().join("old.log");
    std::fs::rename(&path, &old).unwrap();
    log.append("{\"a\":2}").unwrap();
    log.reopen().unwrap();
    log.append("{\"a\":3}").unwrap();
    drop(log);
    let key = verifying_key(&KEY);
    let [old, new] = [&old, &path].map(|path| verify(path, Some(&key), &[]).unwrap());
    // begun, signed, 3 lines, signed; continued, signed, two lines, signed.
    assert_eq!((old.end.line, old.signed, old.after), (11, 10, None));
    assert_eq!((new.after, new.end.line, new.signed), (Some(old.end), 4, 3));
    let other = verify(&path, Some(&verifying_key(&[8; 32])), &[]).unwrap_err();
    assert!(other.to_string().contains("has not signed"), "{other}");
}

#[test]
fn what_was_seen_is_still_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), 5, Some(KEY));
    let seen = verify(&path, None, &[]).unwrap().end;
    assert_eq!(verify(&path, None, &[seen]).unwrap().end, seen);
    let text = std::fs::read_to_string(&path).unwrap();
    let cut: String = text.split_inclusive('\n').take(4).collect();
    std::fs::write(&path, cut).unwrap();
    assert!(verify(&path, None, &[]).is_ok());
    assert_eq!(
        refused(&path, &[seen]),
        (4, format!("the log ends here; line {} was seen before", seen.line))
    );
    // Written anew from its beginning, as whoever has no mark can.
    std::fs::remove_file(&path).unwrap();
    let path = written(folder.path(), 6, Some([8; 32]));
    assert!(matches!(verify(&path, None, &[seen]), Err(Broken::Line { line: 8, .. })));
}

#[test]
fn torn_lines_go_and_what_is_no_log_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), 2, Some(KEY));
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"torn\":")).unwrap();
    assert_eq!(refused(&path, &[]).0, 6);
    drop(AuditLog::open(&path, Some(KEY)).unwrap());
    let found = verify(&path, Some(&verifying_key(&KEY)), &[]).unwrap();
    assert_eq!((found.end.line, found.signed, found.unsigned), (7, 6, 0));
    let changed = whole.replacen("query", "qvery", 1);
    let others = ["{\"old\":1}\n", "no log", "a text\nof two lines"].map(str::to_owned);
    for other in others.into_iter().chain([format!("{whole}\n"), changed]) {
        std::fs::write(&path, &other).unwrap();
        let error = AuditLog::open(&path, Some(KEY)).err().unwrap();
        assert!(error.to_string().contains("move the file away"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    }
}

/// By whoever can write the file while nobody writes it: the server goes on, and says what it can't vouch for.
#[test]
fn lines_that_were_written_anew_are_told_apart_from_signed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let key = verifying_key(&KEY);
    let path = written(folder.path(), 3, None);
    let other = verify(&path, Some(&key), &[]).unwrap_err();
    assert!(other.to_string().contains("has signed none"), "{other}");
    drop(AuditLog::open(&path, Some(KEY)).unwrap());
    let found = verify(&path, Some(&key), &[]).unwrap();
    assert_eq!((found.signed, found.unsigned), (5, 4));
}

#[cfg(target_os = "linux")]
#[test]
fn lines_go_where_they_went_while_the_new_file_takes_none() {
    let folder = tempfile::tempdir().unwrap();
    let [path, old] = ["audit.log", "old.log"].map(|name| folder.path().join(name));
    assert!(AuditLog::open(Path::new("/dev/full"), None).is_err());
    let mut log = AuditLog::open(&path, Some(KEY)).unwrap();
    std::fs::rename(&path, &old).unwrap();
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    assert!(log.reopen().is_err());
    log.append("{\"a\":1}").unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "{\"planted\":1}\n").unwrap();
    assert!(log.reopen().unwrap_err().to_string().contains("something in the new file"));
    log.append("{\"a\":2}").unwrap();
    drop(log);
    let old = verify(&old, Some(&verifying_key(&KEY)), &[]).unwrap();
    // begun, signed, two lines, signed.
    assert_eq!((old.end.line, old.signed, old.lost), (5, 4, 0));
}

#[test]
fn what_is_no_line_is_not_appended() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = AuditLog::open(&folder.path().join("audit.log"), None).unwrap();
    let mark = log.mark();
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 19));
    for bad in [long.as_str(), "", "{}", "{\"a\":1", "{\"a\":\n1}"] {
        assert!(log.append(bad).is_err());
    }
    assert_eq!(log.mark(), mark);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Any byte changed, any run of bytes taken out or doubled.
    #[test]
    fn no_change_goes_unseen(at in 0.0..1.0f64, to: u8, length in 0usize..400, what in 0..3) {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), 4, Some(KEY));
        let seen = verify(&path, Some(&verifying_key(&KEY)), &[]).unwrap().end;
        let before = std::fs::read(&path).unwrap();
        let mut text = before.clone();
        let at = ((text.len() as f64 * at) as usize).min(text.len() - 1);
        let end = (at + length).min(text.len());
        match what {
            0 => text[at] = to,
            1 => drop(text.drain(at..end)),
            _ => { let run = text[at..end].to_vec(); text.splice(end..end, run); }
        }
        std::fs::write(&path, &text).unwrap();
        let verified = verify(&path, Some(&verifying_key(&KEY)), &[seen]);
        prop_assert_eq!(verified.is_ok(), text == before);
    }

    #[test]
    fn no_bytes_make_it_panic(text: Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, &text).unwrap();
        let stands = verify(&path, None, &[]).is_ok();
        // A line that was not ended goes.
        prop_assert!(AuditLog::open(&path, None).is_ok() || !stands);
    }
}
