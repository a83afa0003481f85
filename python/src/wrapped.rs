//! Wrapped key files and shares of a key, for their owner. Python sees file keys; a master key stays in Rust.

use std::path::Path;

use ciphervec_owner::Keys;
use ciphervec_owner::decode::hex;
use ciphervec_owner::protect::keyfile::{self, KeyfileError, Sort};
use ciphervec_owner::protect::shares::Share;
use ciphervec_owner::protect::wrapped::{FileKey, WrappedFile};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Raise, WrongKey};
use crate::keys::PyKeys;

/// A key file whose own key is wrapped elsewhere.
#[pyclass(name = "WrappedKeyFile", module = "ciphervec._native", frozen)]
pub struct PyWrappedKeyFile(WrappedFile);

#[pymethods]
impl PyWrappedKeyFile {
    /// The file at this path; None if it is a key file of another kind.
    #[staticmethod]
    fn read(py: Python<'_>, path: &str) -> PyResult<Option<Self>> {
        let found = py.detach(|| WrappedFile::read(Path::new(path))).map_err(Raise::raise)?;
        Ok(found.map(Self))
    }

    #[staticmethod]
    fn seal(keys: &PyKeys, uri: &str, file_key: &[u8], wrapped: &[u8]) -> PyResult<Self> {
        let file_key = key(file_key, uri)?;
        keys.0.wrapped(uri, &file_key, wrapped).map(Self).map_err(Raise::raise)
    }

    #[getter]
    fn key_id(&self) -> String {
        hex(&self.0.key_id()[..8])
    }

    #[getter]
    fn uri(&self) -> &str {
        self.0.uri()
    }

    #[getter]
    fn wrapped<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.wrapped())
    }

    /// The keys, once what wrapped the file's own key has unwrapped it.
    fn open(&self, file_key: &[u8]) -> PyResult<PyKeys> {
        let file_key = key(file_key, self.0.uri())?;
        Keys::from_wrapped(&self.0, &file_key).map(PyKeys::new).map_err(Raise::raise)
    }

    #[pyo3(signature = (path, *, overwrite = false))]
    fn save(&self, py: Python<'_>, path: &str, overwrite: bool) -> PyResult<()> {
        py.detach(|| self.0.save(Path::new(path), overwrite)).map_err(Raise::raise)
    }
}

/// What a service returned as a file key.
fn key(bytes: &[u8], uri: &str) -> PyResult<FileKey> {
    let wrong = || {
        WrongKey::new_err(format!(
            "{uri} gave {} bytes where a file key has 32: it unwrapped something else",
            bytes.len()
        ))
    };
    FileKey::from_bytes(bytes).ok_or_else(wrong)
}

/// A new key for one file. Python's bytes can't be wiped; without the file they open nothing.
#[pyfunction]
pub fn new_file_key(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let key = FileKey::generate().map_err(Raise::raise)?;
    Ok(PyBytes::new(py, key.expose()))
}

/// A file key sealed under a wrapping key that is kept on this machine.
#[pyfunction]
pub fn wrap_locally<'py>(
    py: Python<'py>,
    file_key: &[u8],
    wrapping: &[u8],
    context: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let (file_key, wrapping) = (key(file_key, "the caller")?, key(wrapping, "the keyring")?);
    let wrapped = file_key.wrap(&wrapping, context).map_err(Raise::raise)?;
    Ok(PyBytes::new(py, &wrapped))
}

/// What `wrap_locally` sealed.
#[pyfunction]
pub fn unwrap_locally<'py>(
    py: Python<'py>,
    wrapped: &[u8],
    wrapping: &[u8],
    context: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let file_key = FileKey::unwrap(wrapped, &key(wrapping, "the keyring")?, context);
    Ok(PyBytes::new(py, file_key.map_err(Raise::raise)?.expose()))
}

/// What a key file says in clear: how it is protected (passphrase, clear, wrapped or share), what it holds, the key's id, and
/// the URI of the wrapping key.
#[pyfunction]
pub fn key_file_label(
    py: Python<'_>,
    path: &str,
) -> PyResult<(&'static str, &'static str, String, Option<String>)> {
    match py.detach(|| keyfile::load_label(Path::new(path))) {
        Ok(label) => {
            let sort = match label.sort {
                Sort::Master => "master",
                Sort::Scheme => "scheme",
                Sort::Person => "person",
            };
            let protection = if label.encrypted { "passphrase" } else { "clear" };
            Ok((protection, sort, hex(&label.key_id[..8]), None))
        }
        Err(KeyfileError::Wrapped { key_id }) => {
            let file = PyWrappedKeyFile::read(py, path)?;
            Ok(("wrapped", "master", key_id, file.map(|file| file.uri().to_owned())))
        }
        Err(KeyfileError::Share { key_id }) => Ok(("share", "master", key_id, None)),
        Err(error) => Err(error.raise()),
    }
}

/// One of the shares that a key was split into. Some of them together are the key.
#[pyclass(name = "KeyShare", module = "ciphervec", frozen)]
pub struct PyKeyShare(Share);

#[pymethods]
impl PyKeyShare {
    #[staticmethod]
    fn _split(keys: &PyKeys, need: u8, of: u8) -> PyResult<Vec<Self>> {
        let shares = keys.0.split(need, of).map_err(Raise::raise)?;
        Ok(shares.into_iter().map(Self).collect())
    }

    #[staticmethod]
    fn _combine(shares: Vec<PyRef<'_, Self>>) -> PyResult<PyKeys> {
        let shares: Vec<&Share> = shares.iter().map(|one| &one.0).collect();
        Keys::combine(&shares).map(PyKeys::new).map_err(Raise::raise)
    }

    /// How many shares of the split give the key.
    #[getter]
    fn need(&self) -> u8 {
        self.0.need()
    }

    /// How many there are.
    #[getter]
    fn of(&self) -> u8 {
        self.0.of()
    }

    /// Which one this is, from 1.
    #[getter]
    fn number(&self) -> u8 {
        self.0.number()
    }

    /// The public name of the key.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_name()
    }

    /// The name of the split: shares of another one are refused.
    #[getter]
    fn split(&self) -> String {
        hex(&self.0.split())
    }

    /// Writes the share to a new file, readable by its owner only. Raises StorageError.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.detach(|| self.0.save(Path::new(path))).map_err(Raise::raise)
    }

    /// Reads a file that `save` wrote. Raises CorruptData, StorageError.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str) -> PyResult<Self> {
        py.detach(|| Share::load(Path::new(path))).map(Self).map_err(Raise::raise)
    }

    fn __repr__(&self) -> String {
        let (number, of) = (self.0.number(), self.0.of());
        format!("<ciphervec.KeyShare {number} of {of} of key {}, secret>", self.key_id())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a share of a key can't be pickled; save it and load it there"))
    }
}
