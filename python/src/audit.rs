//! Audit logs, for Python's services and for whoever checks them. No secret of the collection's owner.

use crate::errors::{CorruptData, InvalidInput, StorageError};
use ciphervec_owner::protect::audit::{
    AUDIT_KEY_BYTES, AuditLog, Broken, Mark, verify, verifying_key,
};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A log that is written.
#[pyclass(name = "AuditLog", module = "ciphervec._native", frozen)]
pub struct PyAuditLog {
    path: PathBuf,
    /// None once it is closed.
    log: Mutex<Option<AuditLog>>,
}

impl PyAuditLog {
    fn failed(path: &Path, error: &std::io::Error) -> PyErr {
        StorageError::new_err(format!("cannot write the audit log {}: {error}.", path.display()))
    }

    /// Appends a line, for callers in Rust.
    pub fn note(&self, object: &str) -> std::io::Result<()> {
        self.with(|log| log.append(object))
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut AuditLog) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        work(log.as_mut().ok_or_else(|| std::io::Error::other("it was closed"))?)
    }

    fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut AuditLog) -> std::io::Result<T> + Send,
    ) -> PyResult<T> {
        let changed = py.detach(|| self.with(change));
        changed.map_err(|error| Self::failed(&self.path, &error))
    }
}

#[pymethods]
impl PyAuditLog {
    #[new]
    #[pyo3(signature = (path, key=None))]
    fn new(path: PathBuf, key: Option<[u8; AUDIT_KEY_BYTES]>) -> PyResult<Self> {
        match AuditLog::open(&path, key) {
            Ok(log) => Ok(Self { path, log: Mutex::new(Some(log)) }),
            Err(error) => Err(Self::failed(&path, &error)),
        }
    }

    /// Appends a JSON object on one line. Raises StorageError: then nothing of it is in the log.
    fn append(&self, py: Python<'_>, object: &str) -> PyResult<()> {
        self.change(py, |log| log.append(object))
    }

    /// Signs what came last, if it has a key.
    fn sign(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, AuditLog::sign)
    }

    /// Signs it and lets go of the file; closing twice is fine.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let held = py.detach(|| self.log.lock().unwrap_or_else(PoisonError::into_inner).take());
        let signed = held.map_or(Ok(()), |mut log| py.detach(|| log.sign()));
        signed.map_err(|error| Self::failed(&self.path, &error))
    }
}

/// The half of an audit key that others check by.
#[pyfunction]
pub fn audit_verifying_key(key: [u8; AUDIT_KEY_BYTES]) -> [u8; AUDIT_KEY_BYTES] {
    verifying_key(&key)
}

type Seen = (u64, [u8; 32]);
type Checked = (Seen, u64, u64, u64, Option<Seen>);

/// Checks a log: the last line and the chain there, the last line that is signed, lines that were not when it was gone on with, lines
/// that were lost, and where the log before ended. Raises CorruptData, StorageError.
#[pyfunction]
#[pyo3(signature = (path, key, marks))]
pub fn verify_audit(
    py: Python<'_>,
    path: PathBuf,
    key: Option<[u8; AUDIT_KEY_BYTES]>,
    marks: Vec<Seen>,
) -> PyResult<Checked> {
    let marks: Vec<Mark> = marks.into_iter().map(|(line, chain)| Mark { line, chain }).collect();
    let seen = |mark: Mark| (mark.line, mark.chain);
    match py.detach(|| verify(&path, key.as_ref(), &marks)) {
        Ok(found) => {
            let after = found.after.map(seen);
            Ok((seen(found.end), found.signed, found.unsigned, found.lost, after))
        }
        Err(broken @ Broken::Read { .. }) => Err(StorageError::new_err(format!("{broken}."))),
        Err(Broken::Line { line: 0, why, .. }) => Err(InvalidInput::new_err(format!("{why}."))),
        Err(broken) => Err(CorruptData::new_err(format!("{broken}."))),
    }
}
