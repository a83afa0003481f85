//! Evaluation keys of clients' sessions, checked, kept by token, index and session within a limit of memory. For the
//! server, which holds no secret.

use ciphervec_owner::search::{SessionKeys, SessionStore};
use pyo3::prelude::*;

use crate::spec::PyIndexSpec;

/// Evaluation keys of one session, which `ServerIndex.session_keys` has read and checked.
#[pyclass(name = "SessionKeys", module = "ciphervec._native", frozen)]
pub struct PySessionKeys(pub SessionKeys);

#[pymethods]
impl PySessionKeys {
    /// The session.
    #[getter]
    fn epoch(&self) -> u32 {
        self.0.epoch()
    }
}

/// The session keys that a process holds in a server's place, by token, index and session. In memory, within a sixteenth
/// of `memory`, 16 MiB at the least.
#[pyclass(name = "SessionStore", module = "ciphervec._native", frozen)]
pub struct PySessionStore(SessionStore);

#[pymethods]
impl PySessionStore {
    #[new]
    fn new(memory: u64) -> Self {
        Self(SessionStore::within(memory))
    }

    /// The token's id where no tokens are asked for.
    #[classattr]
    const ANYONE: &'static str = SessionStore::ANYONE;

    /// Bytes held.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Takes in the keys that a token sends for an index; false where the token has sent others of this session, which stay.
    fn put(&self, token: &str, spec: &PyIndexSpec, keys: &PySessionKeys) -> bool {
        self.0.put(token, spec.0.id(), keys.0.clone()).is_ok()
    }

    /// The keys that this token sent for this session; None where it sent none, or they are gone.
    fn get(&self, token: &str, spec: &PyIndexSpec, epoch: u32) -> Option<PySessionKeys> {
        self.0.get(token, spec.0.id(), epoch).map(PySessionKeys)
    }
}
