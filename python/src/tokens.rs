//! One-time tokens for queries: masks whose half of an answer the server computes ahead. Owner only.
//!
//! Nothing here can be copied or written down: a token serves once.

use std::sync::{Mutex, PoisonError};

use ciphervec_owner::search::{TokenPool, TokenRequest};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::InvalidInput;

/// Tokens that wait for queries.
#[pyclass(name = "TokenPool", module = "ciphervec._native", frozen)]
pub struct PyTokenPool(pub TokenPool);

#[pymethods]
impl PyTokenPool {
    #[new]
    fn new() -> Self {
        PyTokenPool(TokenPool::default())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Bytes of the halves of answers held.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.byte_len()
    }

    /// Throws all tokens away.
    fn clear(&self) {
        self.0.clear();
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "tokens serve once and can't be copied or pickled; fetch others where they are needed",
        ))
    }
}

/// Masks that were drawn, until the server's answer about them has come.
#[pyclass(name = "TokenRequest", module = "ciphervec._native", frozen)]
pub struct PyTokenRequest {
    bytes: Vec<u8>,
    request: Mutex<Option<TokenRequest>>,
}

impl PyTokenRequest {
    pub fn of(request: TokenRequest) -> Self {
        let bytes = request.to_bytes().to_vec();
        PyTokenRequest { bytes, request: Mutex::new(Some(request)) }
    }

    /// The masks themselves. Once.
    pub fn take(&self) -> PyResult<TokenRequest> {
        let taken = self.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| InvalidInput::new_err("this request for tokens has been answered"))
    }
}

#[pymethods]
impl PyTokenRequest {
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "tokens serve once and can't be copied or pickled; send this request's to_bytes()",
        ))
    }
}
