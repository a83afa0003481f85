//! Files of a master key that several people can each decrypt with their own identity. Owner only, but for reading who
//! is named.

use std::path::Path;
use std::sync::Arc;

use ciphervec_owner::decode::hex;
use ciphervec_owner::members::MemberCard;
use ciphervec_owner::sharing::{Identity, Recipient, SharedKeys};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;
use crate::keys::PyKeys;
use crate::secret_file;

/// A person's pair.
#[pyclass(name = "Identity", module = "ciphervec._native", frozen)]
pub struct PyIdentity(pub Arc<Identity>);

impl PyIdentity {
    fn new(identity: Identity) -> Self {
        Self(Arc::new(identity))
    }
}

#[pymethods]
impl PyIdentity {
    #[staticmethod]
    fn generate(name: &str) -> PyResult<Self> {
        Identity::generate(name).map(Self::new).map_err(Raise::raise)
    }

    #[staticmethod]
    #[pyo3(signature = (path, passphrase = None))]
    fn load(py: Python<'_>, path: &str, passphrase: Option<&str>) -> PyResult<Self> {
        py.detach(|| Identity::load(Path::new(path), passphrase))
            .map(Self::new)
            .map_err(Raise::raise)
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

    #[getter]
    fn recipient(&self) -> PyRecipient {
        PyRecipient(self.0.recipient())
    }

    #[getter]
    fn member_card(&self) -> PyMemberCard {
        PyMemberCard(self.0.member_card())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "secret keys can't be pickled; save them to a file and load them there",
        ))
    }
}

/// A person's public key and name, for those who share keys with them.
#[pyclass(name = "Recipient", module = "ciphervec", frozen, eq, hash)]
#[derive(PartialEq)]
pub struct PyRecipient(Recipient);

impl core::hash::Hash for PyRecipient {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.fingerprint().hash(state);
    }
}

#[pymethods]
impl PyRecipient {
    /// The name that the person gave.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// 32 hexadecimal digits that name this key and its holder: compare them by another way than the file came.
    #[getter]
    fn fingerprint(&self) -> String {
        hex(&self.0.fingerprint())
    }

    /// What `from_bytes` takes; public.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| Recipient::from_bytes(data)).map(Self).map_err(Raise::raise)
    }

    fn __repr__(&self) -> String {
        format!("<ciphervec.Recipient {:?}, {}>", self.0.name(), self.fingerprint())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

/// A person's public keys and name, for owners of collections who make them a member.
#[pyclass(name = "MemberCard", module = "ciphervec", frozen, eq, hash)]
#[derive(PartialEq)]
pub struct PyMemberCard(MemberCard);

impl core::hash::Hash for PyMemberCard {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.fingerprint().hash(state);
    }
}

#[pymethods]
impl PyMemberCard {
    /// The name that the person gave.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// 32 hexadecimal digits that name these keys and their holder: compare them by another way than the file came.
    #[getter]
    fn fingerprint(&self) -> String {
        hex(&self.0.fingerprint())
    }

    /// What `from_bytes` takes; public.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| MemberCard::from_bytes(data)).map(Self).map_err(Raise::raise)
    }

    fn __repr__(&self) -> String {
        format!("<ciphervec.MemberCard {:?}, {}>", self.0.name(), self.fingerprint())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

/// A master key, sealed to several people: each of them opens it, and nobody else.
#[pyclass(name = "SharedKeys", module = "ciphervec", frozen)]
pub struct PySharedKeys(SharedKeys);

#[pymethods]
impl PySharedKeys {
    #[staticmethod]
    fn _seal(
        py: Python<'_>,
        keys: &PyKeys,
        recipients: Vec<PyRef<'_, PyRecipient>>,
    ) -> PyResult<Self> {
        let people: Vec<Recipient> = recipients.iter().map(|one| one.0.clone()).collect();
        py.detach(|| SharedKeys::seal(&keys.0, &people)).map(Self).map_err(Raise::raise)
    }

    fn _open(&self, py: Python<'_>, identity: &PyIdentity) -> PyResult<PyKeys> {
        py.detach(|| self.0.open(&identity.0)).map(PyKeys::new).map_err(Raise::raise)
    }

    /// The public name of the keys inside.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// (name, fingerprint) of each who can open it. `Keys.open_shared` makes sure of it.
    #[getter]
    fn recipients(&self) -> Vec<(String, String)> {
        self.0.recipients().map(|(print, name)| (name.to_owned(), hex(&print))).collect()
    }

    /// What `from_bytes` takes; it may lie anywhere.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| SharedKeys::from_bytes(data)).map(Self).map_err(Raise::raise)
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.0.recipients().map(|(_, name)| name).collect();
        format!("<ciphervec.SharedKeys {}, sealed to {}>", self.0.key_id(), names.join(", "))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}
