//! Receipts of two towers, for Python: the cloud's word for an answer, made and checked under a shared key. No secret of the
//! collection's owner.

use ciphervec_owner::protect::receipt::{RECEIPT_KEY_BYTES, ReceiptKey};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What the cloud and the key owner share; 32 bytes.
#[pyclass(name = "ReceiptKey", module = "ciphervec._native", frozen)]
pub struct PyReceiptKey(ReceiptKey);

#[pymethods]
impl PyReceiptKey {
    #[new]
    fn new(key: [u8; RECEIPT_KEY_BYTES]) -> Self {
        Self(ReceiptKey::new(key))
    }

    /// The receipt for having answered `query` with `answer`, at `now` in seconds since 1970.
    fn issue<'py>(
        &self,
        py: Python<'py>,
        now: u64,
        collection: &str,
        query: &[u8],
        answer: &[u8],
    ) -> Bound<'py, PyBytes> {
        let receipt = py.detach(|| self.0.asked(collection, query).issue(now, answer));
        PyBytes::new(py, &receipt)
    }

    /// When `receipt` was issued for this answer to this query; None if it was not.
    fn issued(
        &self,
        py: Python<'_>,
        receipt: &[u8],
        collection: &str,
        query: &[u8],
        answer: &[u8],
    ) -> Option<u64> {
        py.detach(|| self.0.asked(collection, query).issued(receipt, answer))
    }
}
