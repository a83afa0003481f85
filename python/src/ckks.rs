//! CKKS for Python: the server, which holds parameters and evaluation keys, and who encrypts for it.

use ciphervec_he_secret::ckks::PublicKey;
use ciphervec_owner::similarity::ckks::{
    EncryptOptions, EncryptedArray, Lengths, PlainRows, Server, encrypt_for,
};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::ckks_array::PyCkksArray;
use crate::errors::{InvalidInput, Raise};
use crate::runtime;
use crate::security::put_estimate;

pub type Outcome<T> = Result<T, ciphervec_owner::Error>;

/// Runs product code on our threads, without the GIL.
pub fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send) -> PyResult<T> {
    py.detach(|| runtime::run(work)).map_err(Raise::raise)
}

/// The rows of a C-contiguous array.
pub fn rows<'a>(array: &'a PyReadonlyArray2<'_, f64>, batch: bool) -> PyResult<PlainRows<'a>> {
    let shape = array.shape();
    let values = array.as_slice().map_err(|_| {
        InvalidInput::new_err("rows must be C-contiguous; use numpy.ascontiguousarray")
    })?;
    let rows = PlainRows::new(values, shape[0], shape[1]).map_err(Raise::raise)?;
    Ok(if batch { rows.as_batch() } else { rows })
}

/// How rows are encrypted, by the names that Python uses.
pub fn options(
    (layout, role, spread): (&str, &str, &str),
    normalise: bool,
    (magnitude, level): (Option<f64>, Option<usize>),
) -> Outcome<EncryptOptions> {
    let (layout, role, spread) = (layout.parse()?, role.parse()?, spread.parse()?);
    Ok(EncryptOptions { layout, role, spread, normalize: normalise, magnitude, level })
}

/// Who computes: parameters and evaluation keys.
#[pyclass(name = "CkksServer", module = "ciphervec._native", frozen)]
pub struct PyCkksServer(pub Server);

#[pymethods]
impl PyCkksServer {
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    #[getter]
    fn degree(&self) -> usize {
        self.0.params().degree()
    }

    #[getter]
    fn slots(&self) -> usize {
        self.0.params().max_slots()
    }

    /// Rescalings of a fresh ciphertext.
    #[getter]
    fn levels(&self) -> usize {
        self.0.params().max_level()
    }

    /// The level to encrypt at.
    #[getter]
    fn fresh_level(&self) -> usize {
        self.0.fresh_level()
    }

    /// Whether the set has levels of bootstrapping.
    #[getter]
    fn bootstraps(&self) -> bool {
        !self.0.params().stages().is_empty()
    }

    /// What the parameters were chosen for: operation, layout, largest coordinate, error bound; None for a depth.
    #[getter]
    fn purpose(&self) -> PyResult<Option<(&'static str, &'static str, f64, f64)>> {
        let Some(request) = self.0.request() else { return Ok(None) };
        let error = request.error_under(self.0.params());
        let (operation, layout) = (request.operation.as_str(), request.layout.as_str());
        Ok(Some((operation, layout, request.coordinate(), error)))
    }

    fn explain(&self) -> String {
        match self.0.request() {
            Some(request) => request.explain(self.0.params(), self.0.key_bytes()),
            None => self.0.params().explain(),
        }
    }

    fn security<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let says = self.0.params().security();
        let out = PyDict::new(py);
        out.set_item("bits", says.bits)?;
        out.set_item("table", says.table)?;
        out.set_item("assumption", says.assumption)?;
        out.set_item("post_quantum", says.post_quantum)?;
        out.set_item("insecure", says.insecure)?;
        put_estimate(&out, says.lattice)?;
        Ok(out)
    }

    /// Serialised bytes of the relinearisation key and of the rotation keys.
    fn key_bytes(&self) -> (usize, usize) {
        let [products, rotations] = self.0.keys();
        let bytes = |keys: &ciphervec_he_secret::ckks::EvaluationKeys| {
            if keys.is_empty() { 0 } else { keys.bytes() }
        };
        (bytes(products), bytes(rotations))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = runtime::detached(py, || self.0.to_bytes());
        PyBytes::new(py, &bytes)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        work(py, || Server::from_bytes(data)).map(Self)
    }

    fn array_from_bytes(&self, py: Python<'_>, data: &[u8]) -> PyResult<PyCkksArray> {
        self.make(py, |server| EncryptedArray::from_bytes(server, data))
    }

    /// Two arrays combined: add, sub, multiply, dot, squared_distance, distance or cosine.
    fn combine(
        &self,
        py: Python<'_>,
        operation: &str,
        a: &PyCkksArray,
        b: &PyCkksArray,
    ) -> PyResult<PyCkksArray> {
        let (a, b) = (&a.0, &b.0);
        self.make(py, |server| match operation {
            "add" => server.add(a, b),
            "sub" => server.sub(a, b),
            "multiply" => server.multiply(a, b),
            "dot" => server.dot(a, b),
            "squared_distance" => server.squared_distance(a, b),
            "distance" => server.distance(a, b),
            "cosine" => server.cosine(a, b),
            other => Err(unknown(other)),
        })
    }

    /// An array and plain rows combined, as `combine`.
    fn combine_plain(
        &self,
        py: Python<'_>,
        operation: &str,
        a: &PyCkksArray,
        b: PyReadonlyArray2<'_, f64>,
        batch: bool,
    ) -> PyResult<PyCkksArray> {
        let (a, b) = (&a.0, rows(&b, batch)?);
        self.make(py, |server| match operation {
            "add" => server.add_plain(a, &b),
            "sub" => server.sub_plain(a, &b),
            "multiply" => server.multiply_plain(a, &b),
            "dot" => server.dot_plain(a, &b),
            "squared_distance" => server.squared_distance_plain(a, &b),
            "distance" => server.distance_plain(a, &b),
            "cosine" => server.cosine_plain(a, &b),
            other => Err(unknown(other)),
        })
    }

    /// Cosines or distances of vectors whose lengths, or distances, lie in an interval.
    fn combine_within(
        &self,
        py: Python<'_>,
        operation: &str,
        a: &PyCkksArray,
        b: &PyCkksArray,
        interval: (f64, f64, u32),
    ) -> PyResult<PyCkksArray> {
        let (a, b) = (&a.0, &b.0);
        self.make(py, |server| {
            let lengths = lengths(interval)?;
            match operation {
                "cosine" => server.cosine_within(a, b, &lengths),
                "distance" => server.distance_within(a, b, &lengths),
                other => Err(unknown(other)),
            }
        })
    }

    /// The same with plain rows.
    fn combine_within_plain(
        &self,
        py: Python<'_>,
        operation: &str,
        a: &PyCkksArray,
        b: PyReadonlyArray2<'_, f64>,
        batch: bool,
        interval: (f64, f64, u32),
    ) -> PyResult<PyCkksArray> {
        let (a, b) = (&a.0, rows(&b, batch)?);
        self.make(py, |server| {
            let lengths = lengths(interval)?;
            match operation {
                "cosine" => server.cosine_within_plain(a, &b, &lengths),
                "distance" => server.distance_within_plain(a, &b, &lengths),
                other => Err(unknown(other)),
            }
        })
    }

    fn negate(&self, py: Python<'_>, a: &PyCkksArray) -> PyResult<PyCkksArray> {
        self.make(py, |server| server.negate(&a.0))
    }

    fn sum(&self, py: Python<'_>, a: &PyCkksArray) -> PyResult<PyCkksArray> {
        self.make(py, |server| server.sum(&a.0))
    }

    fn rotate(&self, py: Python<'_>, a: &PyCkksArray, by: i64) -> PyResult<PyCkksArray> {
        self.make(py, |server| server.rotate(&a.0, by))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

fn lengths((low, high, bits): (f64, f64, u32)) -> Outcome<Lengths> {
    Lengths::new(low, high, bits)
}

/// Levels that a cosine or a distance of vectors with lengths in an interval takes.
#[pyfunction]
pub fn ckks_depth(
    py: Python<'_>,
    operation: &str,
    interval: (f64, f64, u32),
    batch: bool,
) -> PyResult<usize> {
    work(py, || {
        let lengths = lengths(interval)?;
        match operation {
            "cosine" => Ok(lengths.cosine_depth(batch)),
            "distance" => Ok(lengths.distance_depth(batch)),
            other => Err(unknown(other)),
        }
    })
}

fn unknown(operation: &str) -> ciphervec_owner::Error {
    ciphervec_owner::Error::Choice {
        what: "operation",
        expected: "add, sub, multiply, dot, squared_distance, distance or cosine",
        actual: operation.to_owned(),
    }
}

impl PyCkksServer {
    fn make(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&Server) -> Outcome<EncryptedArray> + Send,
    ) -> PyResult<PyCkksArray> {
        work(py, || make(&self.0)).map(PyCkksArray)
    }
}

/// A key that encrypts and does nothing else.
#[pyclass(name = "CkksPublicKey", module = "ciphervec._native", frozen)]
pub struct PyCkksPublicKey(pub PublicKey);

#[pymethods]
impl PyCkksPublicKey {
    #[pyo3(signature = (values, batch, layout, role, spread, *, normalise, magnitude = None, level = None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: PyReadonlyArray2<'_, f64>,
        batch: bool,
        layout: &str,
        role: &str,
        spread: &str,
        normalise: bool,
        magnitude: Option<f64>,
        level: Option<usize>,
    ) -> PyResult<PyCkksArray> {
        let values = rows(&values, batch)?;
        let names = (layout, role, spread);
        let bounds = (magnitude, level);
        work(py, || encrypt_for(&self.0, &values, &options(names, normalise, bounds)?))
            .map(PyCkksArray)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// A key that was sent beside `server`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, server: &PyCkksServer, data: &[u8]) -> PyResult<Self> {
        let read = || {
            let key = PublicKey::from_bytes(server.0.params(), data)?;
            let (expected, actual) = (server.0.key_id(), key.key_id());
            if expected == actual {
                return Ok(key);
            }
            let what = "the public key";
            Err(ciphervec_he_secret::Error::WrongKey { what, expected, actual }.into())
        };
        work(py, read).map(Self)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("send to_bytes() of the context it belongs to"))
    }
}
