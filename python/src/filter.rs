//! Keyed tags of filterable fields enter, the rows that carry them leave; the server's side.

use ciphervec::protect::filter::FilterTags;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;

/// Per row of a segment, the tags of its filterable fields.
#[pyclass(name = "FilterTags", module = "ciphervec._native", frozen)]
pub struct PyFilterTags(FilterTags);

#[pymethods]
impl PyFilterTags {
    #[new]
    fn new(rows: Vec<Vec<[u8; 16]>>) -> PyResult<Self> {
        let mut table = FilterTags::new();
        for row in &rows {
            table.push(row).map_err(Raise::raise)?;
        }
        Ok(Self(table))
    }

    /// Which rows carry all of these tags.
    fn matches<'py>(&self, py: Python<'py>, all_of: Vec<[u8; 16]>) -> Bound<'py, PyArray1<bool>> {
        let found = py.detach(|| self.0.matches(&all_of));
        PyArray1::from_vec(py, found)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(Self(FilterTags::from_bytes(data).map_err(Raise::raise)?))
    }

    fn __len__(&self) -> usize {
        self.0.rows() as usize
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}
