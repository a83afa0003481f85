//! CKKS for Python: the key owner and the server. Rows of doubles and bytes enter, arrays and bytes leave.

use std::path::Path;
use std::sync::Arc;

use ciphervec::keyfile;
use ciphervec::pairs::{
    EncryptedArray, KeyList, Lengths, Operation, Options, Owner, Plan, Request, Rows, Server,
    encrypt_for,
};
use ciphervec_he::ckks::{Params, ParamsSpec, PublicKey, PublishPolicy, Ring};
use ciphervec_he::params::Security;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::additive::protection;
use crate::ckks_array::PyCkksArray;
use crate::errors::{CorruptData, InvalidInput, Raise};
use crate::runtime;

type Outcome<T> = Result<T, ciphervec::Error>;

/// Runs product code on our threads, without the GIL.
fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send) -> PyResult<T> {
    py.detach(|| runtime::run(work)).map_err(Raise::raise)
}

/// The rows of a C-contiguous array.
fn rows<'a>(array: &'a PyReadonlyArray2<'_, f64>, batch: bool) -> PyResult<Rows<'a>> {
    let shape = array.shape();
    let values = array.as_slice().map_err(|_| {
        InvalidInput::new_err("rows must be C-contiguous; use numpy.ascontiguousarray")
    })?;
    let rows = Rows::new(values, shape[0], shape[1]).map_err(Raise::raise)?;
    Ok(if batch { rows.as_batch() } else { rows })
}

/// How rows are encrypted, by the names that Python uses.
fn options(
    (layout, role, spread): (&str, &str, &str),
    normalise: bool,
    magnitude: Option<f64>,
) -> Outcome<Options> {
    let (layout, role, spread) = (layout.parse()?, role.parse()?, spread.parse()?);
    Ok(Options { layout, role, spread, normalise, magnitude })
}

fn security(quantum: bool) -> Security {
    if quantum { Security::Quantum128 } else { Security::Classical128 }
}

fn ring(name: &str) -> PyResult<Ring> {
    match name {
        "real" => Ok(Ring::ConjugateInvariant),
        "standard" => Ok(Ring::Standard),
        other => {
            Err(InvalidInput::new_err(format!("ring must be real or standard, got {other:?}")))
        }
    }
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
        Ok(out)
    }

    /// Serialised bytes of the relinearisation key and of the rotation keys.
    fn key_bytes(&self) -> (usize, usize) {
        let [products, rotations] = self.0.keys();
        let bytes = |keys: &ciphervec_he::ckks::EvaluationKeys| {
            if keys.is_empty() { 0 } else { keys.bytes() }
        };
        (bytes(products), bytes(rotations))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.0.to_bytes());
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

fn unknown(operation: &str) -> ciphervec::Error {
    ciphervec::Error::Choice {
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
pub struct PyCkksPublicKey(PublicKey);

#[pymethods]
impl PyCkksPublicKey {
    #[pyo3(signature = (values, batch, layout, role, spread, *, normalise, magnitude = None))]
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
    ) -> PyResult<PyCkksArray> {
        let values = rows(&values, batch)?;
        let names = (layout, role, spread);
        work(py, || encrypt_for(&self.0, &values, &options(names, normalise, magnitude)?))
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
            Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
        };
        work(py, read).map(Self)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("send to_bytes() of the context it belongs to"))
    }
}

/// Who holds the secret key.
#[pyclass(name = "CkksOwner", module = "ciphervec._native", frozen)]
pub struct PyCkksOwner(Arc<Owner>);

#[pymethods]
impl PyCkksOwner {
    /// Parameters and keys for one similarity.
    #[staticmethod]
    #[pyo3(signature = (operation, layout, dimension, *, magnitude, precision_bits, plain, quantum))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn for_similarity(
        py: Python<'_>,
        operation: &str,
        layout: &str,
        dimension: usize,
        magnitude: f64,
        precision_bits: u32,
        plain: bool,
        quantum: bool,
    ) -> PyResult<Self> {
        let make = || {
            let operation: Operation = operation.parse()?;
            let layout = layout.parse()?;
            let security = security(quantum);
            let request = Request {
                operation,
                layout,
                dimension,
                magnitude,
                precision_bits,
                plain,
                security,
            };
            Owner::for_plan(&Plan::new(request)?)
        };
        work(py, make).map(|owner| Self(Arc::new(owner)))
    }

    /// Parameters for so many products in a row, and keys for products and the rotations listed.
    #[staticmethod]
    #[pyo3(signature = (depth, *, precision_bits, ring_name, quantum, rotations, sums))]
    fn for_depth(
        py: Python<'_>,
        depth: usize,
        precision_bits: u32,
        ring_name: &str,
        quantum: bool,
        rotations: Vec<i64>,
        sums: usize,
    ) -> PyResult<Self> {
        let ring = ring(ring_name)?;
        Self::with_params(py, rotations, sums, move || {
            Ok(Params::for_depth_in(ring, depth, precision_bits, security(quantum))?)
        })
    }

    /// Parameters of one's choice: log2 N, bits of base prime, scale and special primes, levels, special primes, digits.
    #[staticmethod]
    #[pyo3(signature = (sizes, *, ring_name, quantum, rotations, sums))]
    fn from_sizes(
        py: Python<'_>,
        sizes: (u32, u32, u32, u32, usize, usize, usize),
        ring_name: &str,
        quantum: bool,
        rotations: Vec<i64>,
        sums: usize,
    ) -> PyResult<Self> {
        let (log_degree, base_bits, scale_bits, special_bits, levels, special_primes, digits) =
            sizes;
        let security = security(quantum);
        let ring = ring(ring_name)?;
        Self::with_params(py, rotations, sums, move || {
            Ok(Params::new(ParamsSpec {
                log_degree,
                ring,
                base_bits,
                scale_bits,
                levels,
                special_primes,
                special_bits,
                digits,
                security,
            })?)
        })
    }

    #[getter]
    fn server(&self) -> PyCkksServer {
        PyCkksServer(self.0.server().clone())
    }

    fn public_key(&self, py: Python<'_>) -> PyResult<PyCkksPublicKey> {
        work(py, || self.0.public_key()).map(PyCkksPublicKey)
    }

    #[pyo3(signature = (values, batch, layout, role, spread, *, normalise, magnitude = None))]
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
    ) -> PyResult<PyCkksArray> {
        let values = rows(&values, batch)?;
        let names = (layout, role, spread);
        work(py, || self.0.encrypt(&values, &options(names, normalise, magnitude)?))
            .map(PyCkksArray)
    }

    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        array: &PyCkksArray,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let numbers = work(py, || self.0.decrypt(&array.0))?;
        PyArray1::from_vec(py, numbers).reshape([array.0.rows(), array.0.dimension()])
    }

    /// The numbers flooded with noise, for others to see.
    fn publish<'py>(
        &self,
        py: Python<'py>,
        array: &PyCkksArray,
        uses: u64,
        statistical_bits: u32,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let policy = PublishPolicy { uses, statistical_bits };
        let numbers = work(py, || self.0.publish(&array.0, policy))?;
        PyArray1::from_vec(py, numbers).reshape([array.0.rows(), array.0.dimension()])
    }

    #[pyo3(signature = (path, passphrase = None, *, allow_plaintext = false))]
    fn save(
        &self,
        py: Python<'_>,
        path: &str,
        passphrase: Option<&str>,
        allow_plaintext: bool,
    ) -> PyResult<()> {
        let protection = protection(passphrase, allow_plaintext)?;
        py.detach(|| {
            let secret = self.0.to_secret_bytes();
            keyfile::save_secret(Path::new(path), &secret, &self.0.label(), protection, false)
        })
        .map_err(Raise::raise)
    }

    #[staticmethod]
    #[pyo3(signature = (path, passphrase = None))]
    fn load(py: Python<'_>, path: &str, passphrase: Option<&str>) -> PyResult<Self> {
        let (secret, label) = py
            .detach(|| keyfile::load_secret(Path::new(path), passphrase))
            .map_err(Raise::raise)?;
        Self::read(py, &secret, label)
    }

    /// The bytes of a key file.
    #[pyo3(signature = (passphrase = None, *, allow_plaintext = false))]
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        passphrase: Option<&str>,
        allow_plaintext: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let protection = protection(passphrase, allow_plaintext)?;
        let bytes = py
            .detach(|| {
                keyfile::encode_secret(&self.0.to_secret_bytes(), &self.0.label(), protection)
            })
            .map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    #[pyo3(signature = (data, passphrase = None))]
    fn from_bytes(py: Python<'_>, data: &[u8], passphrase: Option<&str>) -> PyResult<Self> {
        let (secret, label) =
            py.detach(|| keyfile::decode_secret(data, passphrase)).map_err(Raise::raise)?;
        Self::read(py, &secret, label)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "secret keys can't be pickled; save them to a file and load them there",
        ))
    }
}

impl PyCkksOwner {
    fn with_params(
        py: Python<'_>,
        rotations: Vec<i64>,
        sums: usize,
        params: impl FnOnce() -> Outcome<Arc<Params>> + Send,
    ) -> PyResult<Self> {
        let make = || {
            let params = params()?;
            let level = params.max_level();
            let rotations = rotations.into_iter().collect();
            let list = KeyList { relinearise: Some(level), rotations, rotation_level: level };
            let width = sums.min(params.max_slots()).next_power_of_two();
            Owner::generate(&params, list.sums(width))
        };
        work(py, make).map(|owner| Self(Arc::new(owner)))
    }

    fn read(py: Python<'_>, secret: &[u8], label: [u8; 16]) -> PyResult<Self> {
        let owner = work(py, || Owner::from_secret_bytes(secret))?;
        if owner.label() != label {
            return Err(CorruptData::new_err(
                "the key file names another key than the one it holds; restore it from a copy",
            ));
        }
        Ok(Self(Arc::new(owner)))
    }
}
