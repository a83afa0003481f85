//! The owner's keys for Python, from a file and its passphrase. Secret keys stay in Rust; evaluation keys go to the
//! server.

use std::path::Path;
use std::sync::Arc;

use ciphervec_he_secret::lattice::ring::{EvaluationKeys, Ring};
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::Keys;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{CorruptData, InvalidInput, Raise};
use crate::runtime;
use crate::scheme::Public;
use crate::secret_file;
use crate::spec::PyIndexSpec;

/// The owner's 32 secret bytes.
#[pyclass(name = "Keys", module = "ciphervec._native", frozen)]
pub struct PyKeys(pub Arc<Keys>);

impl PyKeys {
    pub fn new(keys: Keys) -> Self {
        Self(Arc::new(keys))
    }
}

#[pymethods]
impl PyKeys {
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    #[staticmethod]
    fn generate() -> PyResult<Self> {
        Keys::generate().map(Self::new).map_err(Raise::raise)
    }

    #[staticmethod]
    fn _from_master(master: &[u8]) -> PyResult<Self> {
        let bytes = <[u8; 32]>::try_from(master).map_err(|_| {
            InvalidInput::new_err(format!("a master key has 32 bytes, got {}", master.len()))
        })?;
        Ok(Self::new(Keys::from_master(bytes)))
    }

    #[staticmethod]
    #[pyo3(signature = (path, passphrase = None))]
    fn load(py: Python<'_>, path: &str, passphrase: Option<&str>) -> PyResult<Self> {
        py.detach(|| Keys::load(Path::new(path), passphrase)).map(Self::new).map_err(Raise::raise)
    }

    #[pyo3(signature = (path, passphrase = None, *, allow_plaintext = false))]
    fn save(
        &self,
        py: Python<'_>,
        path: &str,
        passphrase: Option<&str>,
        allow_plaintext: bool,
    ) -> PyResult<()> {
        secret_file::protection(passphrase, allow_plaintext)?;
        py.detach(|| self.0.save(Path::new(path), passphrase)).map_err(Raise::raise)
    }

    /// 24 words that are the key. Python's text can't be wiped; the copy here is.
    fn recovery_phrase<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, &self.0.recovery_phrase())
    }

    #[staticmethod]
    fn from_recovery_phrase(words: &str) -> PyResult<Self> {
        Keys::from_recovery_phrase(words).map(Self::new).map_err(Raise::raise)
    }

    #[pyo3(signature = (spec, epoch = 0))]
    fn evaluation(
        &self,
        py: Python<'_>,
        spec: &PyIndexSpec,
        epoch: u32,
    ) -> PyResult<PyEvaluationKeys> {
        if spec.0.scheme().is_additive() {
            return Err(InvalidInput::new_err(format!(
                "under scheme {:?} the server's key is half of a pair that the index's owner holds; take \
                 owner.evaluation(), collection.evaluation() for a collection",
                spec.0.scheme().as_str()
            )));
        }
        let made = py
            .detach(|| runtime::run(|| self.0.evaluation(&spec.0, epoch)))
            .map_err(Raise::raise)?;
        let bytes = made.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(PyEvaluationKeys { bytes, epoch, key_id: self.key_id() })
    }

    fn for_tenant(&self, name: &str) -> PyResult<Self> {
        self.0.for_tenant(name).map(Self::new).map_err(Raise::raise)
    }

    fn for_collection(&self, name: &str) -> PyResult<Self> {
        self.0.for_collection(name).map(Self::new).map_err(Raise::raise)
    }

    /// Whether they are the same keys in full.
    fn same(&self, other: &Self) -> bool {
        self.0.same(&other.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "secret keys can't be pickled; save them to a file and load them there",
        ))
    }
}

/// What a server needs to answer queries: Galois keys where they are encrypted, the public key of an additively homomorphic
/// scheme, and nothing else.
#[pyclass(name = "EvaluationKeys", module = "ciphervec", frozen)]
pub struct PyEvaluationKeys {
    bytes: Vec<u8>,
    epoch: u32,
    key_id: String,
}

#[pymethods]
impl PyEvaluationKeys {
    /// Bytes to send.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// The epoch of the query key they belong to.
    #[getter]
    fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The public name of the owner's key.
    #[getter]
    fn key_id(&self) -> &str {
        &self.key_id
    }

    /// What `ServerIndex.set_evaluation_keys` takes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        if data.is_empty() {
            return Ok(Self { bytes: Vec::new(), epoch: 0, key_id: String::new() });
        }
        if let Ok((header, _)) = wire::open(Kind::PublicKey, data) {
            py.detach(|| Public::read(data, false)).map_err(Raise::raise)?;
            return Ok(Self::of_public_key(data.to_vec(), header.key.to_string()));
        }
        let keys = py.detach(|| read(data))?;
        Ok(Self { bytes: data.to_vec(), epoch: keys.epoch(), key_id: keys.key_id().to_string() })
    }

    fn __repr__(&self) -> String {
        if self.bytes.is_empty() {
            return "<ciphervec.EvaluationKeys, 0 bytes: this mode's server needs none>".to_owned();
        }
        let size = grouped(self.bytes.len());
        format!(
            "<ciphervec.EvaluationKeys of key {}, epoch {}, {size} bytes>",
            self.key_id, self.epoch
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

impl PyEvaluationKeys {
    /// A public key, which has no epoch.
    pub fn new(bytes: Vec<u8>, epoch: u32, key_id: String) -> Self {
        Self { bytes, epoch, key_id }
    }

    /// What a collection has for its server: keys of an epoch, or a public key, or nothing.
    pub fn of_collection(bytes: Vec<u8>, epoch: u32, owner: String) -> PyResult<Self> {
        let header = match wire::kind_of(&bytes) {
            Some(kind) => Some(wire::open(kind, &bytes).map_err(Raise::raise)?.0),
            None => None,
        };
        let key_id = header.map_or(owner, |header| header.key.to_string());
        Ok(Self { bytes, epoch, key_id })
    }

    pub fn of_public_key(bytes: Vec<u8>, key_id: String) -> Self {
        Self { bytes, epoch: 0, key_id }
    }
}

/// Checks evaluation keys of any dimension: the number of levels, which follows from it, stands in the frame.
fn read(data: &[u8]) -> PyResult<EvaluationKeys> {
    let (_, payload) = wire::open(Kind::EvaluationKeys, data).map_err(Raise::raise)?;
    let levels = payload
        .get(44..48)
        .and_then(|bytes| bytes.first_chunk::<4>())
        .map(|bytes| u32::from_le_bytes(*bytes));
    let Some(levels @ 0..=12) = levels else {
        return Err(CorruptData::new_err("evaluation keys: 0 to 12 levels expected"));
    };
    let ring = Ring::new().map_err(Raise::raise)?;
    EvaluationKeys::from_bytes(&ring, data, 1 << levels).map_err(Raise::raise)
}

/// A number with a comma at every thousand.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|part| std::str::from_utf8(part).ok())
        .collect();
    parts.join(",")
}
