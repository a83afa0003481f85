//! The writer's half: seals rows under a card into segments that only the card's owner decrypts. Keeps no secret.

use std::time::{SystemTime, UNIX_EPOCH};

use ciphervec_owner::search::{Writer, WriterCard, WrittenSegment};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::Raise;
use crate::ids::{self, PyId};
use crate::spec::PyIndexSpec;
use crate::{arrays, runtime};

/// What a writer is given: public, and enough to add vectors that it cannot open.
#[pyclass(name = "WriterCard", module = "ciphervec", frozen)]
pub struct PyWriterCard(pub WriterCard);

#[pymethods]
impl PyWriterCard {
    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        runtime::detached(py, || WriterCard::from_bytes(data)).map(Self).map_err(Raise::raise)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The index it is for.
    #[getter]
    fn spec(&self) -> PyIndexSpec {
        PyIndexSpec(self.0.spec().clone())
    }

    /// The writer's name.
    #[getter]
    fn writer(&self) -> &str {
        self.0.writer()
    }

    /// The public name of the owner's key.
    #[getter]
    fn key_id(&self) -> String {
        self.0.owner().to_string()
    }

    /// Metadata fields that the server can compare once the owner has made their tags.
    #[getter]
    fn filterable(&self) -> Vec<String> {
        self.0.filterable().to_vec()
    }

    /// 32 hexadecimal digits that name this very card: what a writer pins.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        let digits = self.0.fingerprint();
        digits.bytes().fold(0, |hash, digit| hash << 4 | u64::from(digit & 15))
    }

    fn __repr__(&self) -> String {
        let (writer, collection) = (self.0.writer(), self.0.spec().collection());
        format!(
            "<ciphervec.WriterCard {} of writer {writer:?} for {collection:?}, owner's key {}>",
            self.0.fingerprint(),
            self.0.owner()
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

/// Seals for one index and opens nothing.
#[pyclass(name = "Writer", module = "ciphervec._native", frozen)]
pub struct PyWriter(Writer);

#[pymethods]
impl PyWriter {
    #[new]
    fn new(py: Python<'_>, card: &PyWriterCard) -> PyResult<Self> {
        py.detach(|| runtime::run(|| Writer::new(card.0.clone()))).map(Self).map_err(Raise::raise)
    }

    /// Seals rows under a key that is drawn, wrapped and forgotten: id, number of rows, and blobs by name.
    /// `payloads` has one entry a row, or none at all.
    #[pyo3(signature = (vectors, ids, payloads, expected = None))]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
        ids: Vec<PyId>,
        payloads: Vec<Bound<'py, PyBytes>>,
        expected: Option<usize>,
    ) -> PyResult<(Bound<'py, PyBytes>, u32, Bound<'py, PyDict>)> {
        let rows = arrays::rows(&vectors, self.0.card().spec().dimension())?;
        let names = ids::unwrap(ids);
        let payloads: Vec<Vec<u8>> =
            payloads.iter().map(|bytes| bytes.as_bytes().to_vec()).collect();
        let expected = expected.unwrap_or(names.len());
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
        let written =
            py.detach(|| runtime::run(|| self.0.seal(rows, &names, payloads, expected, now)));
        let WrittenSegment { sealed, records, wrap } = written.map_err(Raise::raise)?;
        let blobs = PyDict::new(py);
        blobs.set_item("rows", PyBytes::new(py, &sealed.segment))?;
        blobs.set_item("sidecar", PyBytes::new(py, &sealed.sidecar))?;
        if let Some(records) = records {
            blobs.set_item("records", PyBytes::new(py, &records))?;
        }
        blobs.set_item("wrap", PyBytes::new(py, &wrap))?;
        Ok((PyBytes::new(py, &sealed.id.0), sealed.rows, blobs))
    }

    fn __repr__(&self) -> String {
        format!("<ciphervec._native.Writer {:?}>", self.0.card().writer())
    }
}
