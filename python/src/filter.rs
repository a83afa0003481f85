//! Filters on metadata and documents, and the keyed tags that tell of some of them without opening anything.

use ciphervec_client::{Filter, Table};
use ciphervec_owner::protect::filter::FilterTags;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;
use crate::known_rows::PyKnownRows;

type Mask<'py> = Bound<'py, PyArray1<bool>>;

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
    fn matches<'py>(&self, py: Python<'py>, all_of: Vec<[u8; 16]>) -> Mask<'py> {
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

/// A checked filter, from the JSON of `where` and of `where_document`.
#[pyclass(name = "Filter", module = "ciphervec._native", frozen)]
pub struct PyFilter(Filter);

#[pymethods]
impl PyFilter {
    #[new]
    fn new(
        metadata: Option<&str>,
        document: Option<&str>,
        filterable: Vec<String>,
    ) -> PyResult<Self> {
        Ok(Self(Filter::new(metadata, document, &filterable).map_err(Raise::raise)?))
    }

    /// Whether a row with this record passes.
    fn matches(&self, record: &[u8]) -> PyResult<bool> {
        self.0.matches(record).map_err(Raise::raise)
    }

    /// Whether keyed tags are the whole filter, so that no record needs to be opened.
    #[getter]
    fn complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Which of a segment's rows may pass as far as their tags tell, and whether that is all there is to test.
    fn bound<'py>(
        &self,
        py: Python<'py>,
        owner: &PyKnownRows,
        tags: Option<&PyFilterTags>,
        rows: usize,
    ) -> (Mask<'py>, bool) {
        let found = py.detach(|| {
            self.0.bound(rows, tags.map(|tags| &tags.0), |field, value| owner.tag(field, value))
        });
        (PyArray1::from_vec(py, found.rows), found.exact)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a filter can't be pickled; make it again from `where`",
        ))
    }

    /// The (field, canonical value) pairs that must all hold on filterable fields.
    #[getter]
    fn equalities<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let found = self.0.equalities().iter();
        found.map(|(field, value)| (field.clone(), PyBytes::new(py, value))).collect()
    }
}

/// The metadata of the rows of a segment by field, which tells at once which rows pass.
#[pyclass(name = "MetadataTable", module = "ciphervec._native", frozen)]
pub struct PyTable(Table);

#[pymethods]
impl PyTable {
    #[new]
    fn new(records: Vec<Bound<'_, PyBytes>>) -> PyResult<Self> {
        let table = Table::new(records.iter().map(|one| one.as_bytes())).map_err(Raise::raise)?;
        Ok(Self(table))
    }

    /// By row, whether its metadata passes; of documents it knows nothing.
    fn matches<'py>(&self, py: Python<'py>, filter: &PyFilter) -> Mask<'py> {
        let found = py.detach(|| self.0.matches(&filter.0));
        PyArray1::from_vec(py, found)
    }

    /// About how much memory it takes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }
}

/// What a tag is made of for a scalar in JSON: bytes that are equal exactly where two scalars are equal under `$eq`.
#[pyfunction]
pub fn canonical<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &ciphervec_client::canonical(json).map_err(Raise::raise)?))
}
