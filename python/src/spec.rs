//! The description of an index for Python: its choices by name, checked together. Public.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use ciphervec_owner::IndexSpec;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{CorruptData, Raise, UnsupportedVersion};
use crate::security::put_estimate;

/// What both sides know about an index: name, dimension, metric, mode, precision and scheme. Nothing secret.
#[pyclass(name = "IndexSpec", module = "ciphervec", frozen)]
pub struct PyIndexSpec(pub IndexSpec);

#[pymethods]
impl PyIndexSpec {
    #[new]
    #[pyo3(signature = (
        collection,
        dimension,
        metric = "cosine",
        mode = "sealed",
        precision = "standard",
        scheme = "lattice",
        bits = None,
        incarnation = None
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the keyword arguments of one Python call"
    )]
    fn new(
        collection: &str,
        dimension: u32,
        metric: &str,
        mode: &str,
        precision: &str,
        scheme: &str,
        bits: Option<u32>,
        incarnation: Option<[u8; 16]>,
    ) -> PyResult<Self> {
        let (metric, mode, precision) = (
            metric.parse().map_err(Raise::raise)?,
            mode.parse().map_err(Raise::raise)?,
            precision.parse().map_err(Raise::raise)?,
        );
        let scheme = scheme.parse().map_err(Raise::raise)?;
        IndexSpec::new(collection, dimension, metric, mode, precision)
            .and_then(|spec| spec.with_scheme(scheme, bits))
            .map(|spec| match incarnation {
                Some(incarnation) => spec.with_incarnation(incarnation),
                None => spec,
            })
            .map(Self)
            .map_err(Raise::raise)
    }

    /// The collection's name.
    #[getter]
    fn collection(&self) -> &str {
        self.0.collection()
    }

    /// Numbers per vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    /// `cosine`, `ip`, `l2` or `hamming`.
    #[getter]
    fn metric(&self) -> &'static str {
        self.0.metric().as_str()
    }

    /// `sealed`, `sealed-query`, `sealed-index` or `open`.
    #[getter]
    fn mode(&self) -> &'static str {
        self.0.mode().as_str()
    }

    /// `standard`, `small` or `wide`.
    #[getter]
    fn precision(&self) -> &'static str {
        self.0.precision().as_str()
    }

    /// `lattice`, `paillier`, `damgard-jurik`, `okamoto-uchiyama` or `elgamal`.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.0.scheme().as_str()
    }

    /// What descriptions on disk and on the wire call the scheme.
    #[getter]
    fn stored_scheme(&self) -> &'static str {
        self.0.scheme().stored_name()
    }

    /// Length of the modulus of the index's own key pair, None where there is none.
    #[getter]
    fn bits(&self) -> Option<u32> {
        self.0.bits()
    }

    /// The 16 random bytes that tell a collection from others of its name, made before or after it; None where an index was made
    /// by hand, or by release 0.1.
    #[getter]
    fn incarnation<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.incarnation().map(|bytes| PyBytes::new(py, bytes))
    }

    /// What the index rests on and what the server learns: bits, degree, log_modulus, limit, table, assumption,
    /// post_quantum, leakage; on a lattice also core_svp, guidelines, quantum_core_svp: what the cheapest attack costs by each
    /// model, and model in words. Degree and limit are 0 under the additively homomorphic schemes.
    fn security<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statement = self.0.security();
        let out = PyDict::new(py);
        out.set_item("bits", statement.bits)?;
        out.set_item("degree", statement.degree)?;
        out.set_item("log_modulus", statement.log_modulus)?;
        out.set_item("limit", statement.limit)?;
        out.set_item("table", statement.table)?;
        out.set_item("assumption", statement.assumption)?;
        out.set_item("post_quantum", statement.post_quantum)?;
        put_estimate(&out, statement.estimate)?;
        out.set_item("leakage", statement.leakage)?;
        Ok(out)
    }

    /// What `from_bytes` takes, on either side.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        IndexSpec::from_bytes(data).map(Self).map_err(|error| {
            let raised = Raise::raise(error);
            // Bytes that parse into a forbidden choice are damaged bytes, whoever made them.
            if raised.is_instance_of::<CorruptData>(py)
                || raised.is_instance_of::<UnsupportedVersion>(py)
            {
                raised
            } else {
                CorruptData::new_err(format!("an index description: {raised}"))
            }
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let (name, dimension) = (self.collection(), self.dimension());
        let scheme = match self.0.scheme().is_additive() {
            true => format!(", {}", self.scheme()),
            false => String::new(),
        };
        format!(
            "<ciphervec.IndexSpec {name:?}, {dimension}-d {}, {}, {}{scheme}>",
            self.metric(),
            self.mode(),
            self.precision()
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}
