//! An index in one file, for Python: the core writes it, reads it, and checks what its owner said.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ciphervec_client::{Error, IndexFile, IndexPart};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;
use crate::segment;
use crate::server::PyServerIndex;

use super::PyOwner;

/// Segment id, sealed sidecar, deleted rows.
type Part<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<u32>);

/// What is kept of an index beside the server's half.
#[pyclass(name = "IndexFile", module = "ciphervec._native", frozen)]
pub struct PyIndexFile(Mutex<IndexFile>);

impl PyIndexFile {
    fn held(&self) -> MutexGuard<'_, IndexFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Either side's error of reading one.
struct Refused(PyErr);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error.raise())
    }
}

#[pymethods]
impl PyIndexFile {
    /// Of an index without rows.
    #[new]
    fn new(key_id: String, key_pair: Vec<u8>) -> Self {
        Self(Mutex::new(IndexFile { key_id, key_pair, ..IndexFile::default() }))
    }

    /// Of the owner's key.
    #[getter]
    fn key_id(&self) -> String {
        self.held().key_id.clone()
    }

    /// Sealed; empty where the scheme has none.
    #[getter]
    fn key_pair<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.held().key_pair)
    }

    /// Segment id, sealed sidecar and deleted rows of each segment.
    fn parts<'py>(&self, py: Python<'py>) -> Vec<Part<'py>> {
        let part = |one: &IndexPart| {
            (PyBytes::new(py, &one.id.0), PyBytes::new(py, &one.sidecar), one.deleted.clone())
        };
        self.held().parts.iter().map(part).collect()
    }

    /// Takes in a segment that was added to the server's half.
    fn add(&self, segment_id: &[u8], sidecar: &[u8]) -> PyResult<()> {
        let id = segment::id(segment_id)?;
        self.held().parts.push(IndexPart { id, sidecar: sidecar.to_vec(), deleted: Vec::new() });
        Ok(())
    }

    /// Notes that these rows are gone: segment id, row.
    fn remove(&self, rows: Vec<([u8; 16], u32)>) {
        let mut held = self.held();
        for (id, row) in rows {
            let part = held.parts.iter_mut().find(|part| part.id.0 == id);
            part.into_iter().for_each(|part| part.deleted.push(row));
        }
    }

    /// All of it with the server's half; an owner says anew what it holds.
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        server: &PyServerIndex,
        owner: Option<&PyOwner>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let owner = owner.map(|owner| owner.0.owner().as_ref());
            self.held().to_bytes(&server.pack()?, owner).map_err(Raise::raise)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads what `to_bytes` wrote, and the server's half in it. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<(Self, PyServerIndex)> {
        let read = |server: &[u8]| {
            let server = PyServerIndex::unpack(server).map_err(Refused)?;
            let ids = server.ids();
            Ok::<_, Refused>((server, ids))
        };
        let (file, server) =
            py.detach(|| IndexFile::from_bytes(data, read)).map_err(|Refused(error)| error)?;
        Ok((Self(Mutex::new(file)), server))
    }

    /// Whether its owner has said all this; False where nothing is said. Raises CorruptData where the owner has said something else,
    /// and WrongKey.
    fn is_authenticated(
        &self,
        py: Python<'_>,
        server: &PyServerIndex,
        owner: &PyOwner,
    ) -> PyResult<bool> {
        py.detach(|| {
            let server = server.pack()?;
            self.held().is_authenticated(&server, owner.0.owner()).map_err(Raise::raise)
        })
    }
}
