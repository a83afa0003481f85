//! CKKS for Python: the key owner, who encrypts rows of doubles, and decrypts results, with flooding noise where
//! others see them.

use std::sync::Arc;

use ciphervec_he_secret::ckks::{Params, ParamsSpec, PublishPolicy, Ring};
use ciphervec_he_secret::params::Security;
use ciphervec_owner::similarity::ckks::{
    Client, KeyList, Operation, Plan, PlanRequest, params_for_depth,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::ckks::{Outcome, PyCkksPublicKey, PyCkksServer, options, rows, work};
use crate::ckks_array::PyCkksArray;
use crate::errors::InvalidInput;
use crate::secret_file;

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

/// Who holds the secret key.
#[pyclass(name = "CkksOwner", module = "ciphervec._native", frozen)]
pub struct PyCkksOwner(Arc<Client>);

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
            let request = PlanRequest {
                operation,
                layout,
                dimension,
                magnitude,
                precision_bits,
                plain,
                security,
            };
            Client::for_plan(&Plan::new(request)?)
        };
        work(py, make).map(|owner| Self(Arc::new(owner)))
    }

    /// Parameters for so many products in a row with results up to `magnitude`, and keys for products and the rotations listed.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one call of Python's")]
    #[pyo3(signature = (depth, *, precision_bits, ring_name, quantum, rotations, sums, magnitude))]
    fn for_depth(
        py: Python<'_>,
        depth: usize,
        precision_bits: u32,
        ring_name: &str,
        quantum: bool,
        rotations: Vec<i64>,
        sums: usize,
        magnitude: f64,
    ) -> PyResult<Self> {
        let ring = ring(ring_name)?;
        Self::with_params(py, rotations, sums, move || {
            params_for_depth(ring, depth, precision_bits, magnitude, security(quantum))
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
        work(py, || self.0.encrypt(&values, &options(names, normalise, bounds)?)).map(PyCkksArray)
    }

    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        array: &PyCkksArray,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let numbers = work(py, || self.0.decrypt(&array.0))?;
        PyArray1::from_vec(py, numbers).reshape([array.0.rows(), array.0.dimension()])
    }

    /// The uses that publishing an array takes, all else being in order.
    fn uses_of(
        &self,
        py: Python<'_>,
        array: &PyCkksArray,
        expected: &PyCkksArray,
        uses: u64,
        statistical_bits: u32,
    ) -> PyResult<u64> {
        let policy = PublishPolicy { uses, statistical_bits };
        work(py, || self.0.uses_of(&array.0, &expected.0, policy))
    }

    /// The policy that the key has published under, if it has, and how often.
    #[getter]
    fn published(&self) -> (Option<(u64, u32)>, u64) {
        let budget = self.0.published();
        (budget.policy.map(|policy| (policy.uses, policy.statistical_bits)), budget.used)
    }

    /// Takes over what a ledger has counted.
    fn count_published(
        &self,
        py: Python<'_>,
        uses: u64,
        statistical_bits: u32,
        used: u64,
    ) -> PyResult<()> {
        let policy = PublishPolicy { uses, statistical_bits };
        work(py, || self.0.count_published(policy, used))
    }

    /// The numbers flooded with noise for what is expected, for others to see.
    fn publish<'py>(
        &self,
        py: Python<'py>,
        array: &PyCkksArray,
        expected: &PyCkksArray,
        uses: u64,
        statistical_bits: u32,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let policy = PublishPolicy { uses, statistical_bits };
        let numbers = work(py, || self.0.publish(&array.0, &expected.0, policy))?;
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
        let secret = || (self.0.to_secret_bytes(), self.0.label());
        secret_file::save(py, path, (passphrase, allow_plaintext), secret)
    }

    #[staticmethod]
    #[pyo3(signature = (path, passphrase = None))]
    fn load(py: Python<'_>, path: &str, passphrase: Option<&str>) -> PyResult<Self> {
        let (secret, label) = secret_file::load(py, path, passphrase)?;
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
        let secret = || (self.0.to_secret_bytes(), self.0.label());
        let bytes = secret_file::encode(py, (passphrase, allow_plaintext), secret)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    #[pyo3(signature = (data, passphrase = None))]
    fn from_bytes(py: Python<'_>, data: &[u8], passphrase: Option<&str>) -> PyResult<Self> {
        let (secret, label) = secret_file::decode(py, data, passphrase)?;
        Self::read(py, &secret, label)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "secret keys can't be pickled; save them to a file and load them there",
        ))
    }
}

impl PyCkksOwner {
    pub fn of(client: Client) -> Self {
        Self(Arc::new(client))
    }

    pub fn client(&self) -> &Client {
        &self.0
    }

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
            Client::generate(&params, list.sums(width))
        };
        work(py, make).map(|owner| Self(Arc::new(owner)))
    }

    fn read(py: Python<'_>, secret: &[u8], label: [u8; 16]) -> PyResult<Self> {
        let owner = work(py, || Client::from_secret_bytes(secret))?;
        secret_file::check_label(label, owner.label())?;
        Ok(Self(Arc::new(owner)))
    }
}
