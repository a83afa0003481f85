//! Queries and answers as bytes, which Python carries to a server and back.

use ciphervec_client::{OpenedAnswer, SealedQuery};
use ciphervec_owner::SegmentId;
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::values::names;

/// A batch of queries: bytes for a server, and what opens their answer.
#[pyclass(name = "Query", module = "ciphervec._native", frozen)]
pub struct PyQuery(pub SealedQuery);

#[pymethods]
impl PyQuery {
    /// Queries in the batch.
    #[getter]
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.to_bytes())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a query holds secrets and can't be pickled; send its to_bytes()"))
    }
}

/// Ids, distances, scores.
type Hits<'py> = (Vec<Bound<'py, PyAny>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);
/// The hits of each query; whether all was checked; whether scores carry noise of the key; segments that were passed over.
pub type Answered<'py> = (Vec<Hits<'py>>, bool, bool, Vec<Bound<'py, PyBytes>>);

pub fn answered<'py>(py: Python<'py>, opened: OpenedAnswer) -> PyResult<Answered<'py>> {
    let hits = opened.hits.into_iter().map(|hits| {
        let (distances, scores) = (hits.distances, hits.scores);
        let ids = names(py, hits.ids)?;
        Ok((ids, PyArray1::from_vec(py, distances), PyArray1::from_vec(py, scores)))
    });
    let hits: PyResult<Vec<_>> = hits.collect();
    let passed_over = segments(py, opened.disqualified);
    Ok((hits?, opened.checked, opened.owners_only, passed_over))
}

/// Their 16 bytes each.
pub fn segments<'py>(
    py: Python<'py>,
    ids: impl IntoIterator<Item = SegmentId>,
) -> Vec<Bound<'py, PyBytes>> {
    ids.into_iter().map(|id| PyBytes::new(py, &id.0)).collect()
}
