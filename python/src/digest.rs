//! BLAKE3 for Python: uploads and evaluation keys are checked by it. Needs no key.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The BLAKE3 hash of `data`, 32 bytes.
#[pyfunction]
pub fn blake3<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    let hash = py.detach(|| ::blake3::hash(data));
    PyBytes::new(py, hash.as_bytes())
}
