//! Vectors under CKKS, for Python: what is known about them without a key, and their bytes.

use ciphervec_owner::similarity::ckks::{EncryptedArray, PostProcessing};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;
use crate::runtime;

/// Encrypted vectors or scores.
#[pyclass(name = "CkksArray", module = "ciphervec._native", frozen)]
pub struct PyCkksArray(pub EncryptedArray);

#[pymethods]
impl PyCkksArray {
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    /// Whether the rows are a batch, be it of one.
    #[getter]
    fn batch(&self) -> bool {
        self.0.packing().is_batch()
    }

    /// Whether each row is one number.
    #[getter]
    fn scores(&self) -> bool {
        self.0.packing().is_scores()
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.0.packing().layout().as_str()
    }

    #[getter]
    fn role(&self) -> &'static str {
        self.0.role().as_str()
    }

    #[getter]
    fn spread(&self) -> &'static str {
        self.0.packing().spread().as_str()
    }

    /// Whether every vector has length 1.
    #[getter]
    fn unit(&self) -> bool {
        self.0.is_unit()
    }

    /// Whether the owner takes a root of the decrypted numbers.
    #[getter]
    fn root(&self) -> bool {
        self.0.post_processing() == PostProcessing::Root
    }

    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    #[getter]
    fn ciphertexts(&self) -> usize {
        self.0.ciphertexts()
    }

    #[getter]
    fn capacity(&self) -> usize {
        self.0.packing().capacity()
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// Standard deviation of the error of a number.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error_estimate()
    }

    /// The declared bound on the absolute value of a number.
    #[getter]
    fn magnitude(&self) -> f64 {
        self.0.magnitude()
    }

    /// The same with a bound that the caller knows to hold.
    fn with_magnitude(&self, magnitude: f64) -> PyResult<Self> {
        self.0.with_magnitude(magnitude).map(Self).map_err(Raise::raise)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = runtime::detached(py, || self.0.to_bytes());
        PyBytes::new(py, &bytes)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("send to_bytes(), and read it with array_from_bytes of a context"))
    }
}
