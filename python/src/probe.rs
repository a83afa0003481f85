//! Makes plain queries for an edge device from a public description. Holds no secret.

use ciphervec_owner::search::Probe;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Raise;
use crate::spec::PyIndexSpec;
use crate::{arrays, runtime};

/// Asks an index whose queries are plain.
#[pyclass(name = "Probe", module = "ciphervec._native", frozen)]
pub struct PyProbe(Probe);

#[pymethods]
impl PyProbe {
    #[new]
    #[pyo3(signature = (spec, public_key = None))]
    fn new(py: Python<'_>, spec: &PyIndexSpec, public_key: Option<&[u8]>) -> PyResult<Self> {
        py.detach(|| runtime::run(|| Probe::new(spec.0.clone(), public_key)))
            .map(Self)
            .map_err(Raise::raise)
    }

    /// Query bytes of the rows: normalised and rounded, not encrypted.
    fn query<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let rows = arrays::rows(&vectors, self.0.spec().dimension())?;
        let bytes = py.detach(|| runtime::run(|| self.0.query(rows))).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &bytes))
    }
}
