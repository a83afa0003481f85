//! Paillier with every precomputation on or off, for remaking a paper's tables. Owner only.

use ciphervec_he_secret::paillier::Noise;
use ciphervec_he_secret::paillier::precompute::{PrecomputeKey, PrecomputeOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{InvalidInput, Raise};
use crate::runtime;

/// A key of Paillier's scheme 1 or 3, one exponentiation after the other.
#[pyclass(name = "PaillierPrecompute", module = "ciphervec._native")]
pub struct PyPaillierPrecompute(PrecomputeKey);

#[pymethods]
impl PyPaillierPrecompute {
    #[new]
    #[pyo3(signature = (scheme, bits, *, insecure = false))]
    fn new(py: Python<'_>, scheme: u32, bits: u32, insecure: bool) -> PyResult<Self> {
        let noise = match scheme {
            1 => Noise::Uniform,
            3 => Noise::Subgroup,
            _ => {
                return Err(InvalidInput::new_err(format!("the scheme is 1 or 3, got {scheme}")));
            }
        };
        runtime::detached(py, || PrecomputeKey::generate(bits, noise, insecure))
            .map(Self)
            .map_err(Raise::raise)
    }

    /// Computes ahead what `using` names, and forgets everything else.
    fn prepare(
        &mut self,
        py: Python<'_>,
        messages: Vec<u64>,
        noises: usize,
        using: Vec<String>,
    ) -> PyResult<()> {
        let mut options = PrecomputeOptions::default();
        for name in &using {
            match name.as_str() {
                "message" => options.message_table = true,
                "noise" => options.noise_pool = true,
                "mu" => options.mu = true,
                "n_squared" => options.n_squared = true,
                "g_to_n" => options.g_n = true,
                _ => {
                    let known = "message, noise, mu, n_squared, g_to_n";
                    return Err(InvalidInput::new_err(format!("known are {known}; got {name:?}")));
                }
            }
        }
        runtime::detached(py, || self.0.prepare(options, &messages, noises)).map_err(Raise::raise)
    }

    /// A ciphertext, big-endian.
    fn encrypt<'py>(&mut self, py: Python<'py>, message: u64) -> PyResult<Bound<'py, PyBytes>> {
        let sealed = runtime::detached(py, || self.0.encrypt(message)).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &sealed))
    }

    fn decrypt(&self, py: Python<'_>, ciphertext: &[u8]) -> PyResult<u64> {
        runtime::detached(py, || self.0.decrypt(ciphertext)).map_err(Raise::raise)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("secret keys can't be pickled"))
    }
}
