//! Sealed metadata and documents of a segment as one batch. Either side holds it; only the owner decrypts it.

use ciphervec_owner::protect::records::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;

/// The sealed metadata and documents of one segment's rows.
#[pyclass(name = "RecordBatch", module = "ciphervec._native", frozen)]
pub struct PyRecordBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl PyRecordBatch {
    /// Takes in untrusted bytes, noting once where each record lies.
    pub fn read(bytes: Vec<u8>) -> PyResult<Self> {
        let batch = RecordBatch::parse(&bytes).map_err(Raise::raise)?;
        let sizes: Vec<usize> =
            (0..batch.rows()).filter_map(|row| batch.ciphertext(row)).map(<[u8]>::len).collect();
        // The records are the tail of the bytes, one after the other.
        let mut end = bytes.len() - sizes.iter().sum::<usize>();
        let mut ends = vec![end];
        for size in sizes {
            end += size;
            ends.push(end);
        }
        Ok(Self { bytes, ends })
    }

    /// The sealed record of one row.
    pub fn ciphertext(&self, row: usize) -> Option<&[u8]> {
        let (start, end) = (*self.ends.get(row)?, *self.ends.get(row + 1)?);
        self.bytes.get(start..end)
    }
}

#[pymethods]
impl PyRecordBatch {
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| Self::read(data.to_vec()))
    }

    fn __len__(&self) -> usize {
        self.ends.len() - 1
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}
