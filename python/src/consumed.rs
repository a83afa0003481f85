//! Consumed segments for Python: which of a writer's segments an owner has taken in, so that none counts twice.

use ciphervec_owner::protect::consumed::{Consumed, Written};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;

/// The list of consumed segments `before` (empty: none) with what is in `other`, such a list, and in `written`: writer, time,
/// segment id.
#[pyfunction]
#[pyo3(signature = (before, written, other = None))]
pub fn consumed_after<'py>(
    py: Python<'py>,
    before: &[u8],
    written: Vec<(String, u64, [u8; 16])>,
    other: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut consumed = Consumed::from_bytes(before).map_err(Raise::raise)?;
    if let Some(other) = other {
        consumed.merge(Consumed::from_bytes(other).map_err(Raise::raise)?);
    }
    for (writer, time, segment) in written {
        consumed.add(Written { writer, time, segment });
    }
    Ok(PyBytes::new(py, &consumed.to_bytes()))
}
