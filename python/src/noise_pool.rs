//! Noise computed ahead, for one key of the factoring schemes. Counts enter; ciphertexts and sealed files leave. Key owner's side.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use ciphervec::protect::aead::AeadKey;
use ciphervec::protect::noise_pool::{self, NoisePoolError};
use ciphervec::similarity::additive::{EncryptedVectors, Vectors};
use ciphervec_he::additive::{Decrypt, Evaluate};
use ciphervec_he::factoring::{NoisePool, Pooled};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::additive::PyAdditiveSecretKey;
use crate::ciphertexts::{PyCiphertexts, Tables, messages};
use crate::errors::{InvalidInput, Raise};
use crate::runtime;
use crate::scheme::Secret;
use crate::vectors::{PyEncryptedVectors, numbers, spec};

/// Calls the same code on a secret key that has noise to precompute.
macro_rules! on_factoring {
    ($secret:expr, $key:ident => $body:expr) => {
        match $secret {
            Secret::DamgardJurik($key) => $body,
            Secret::OkamotoUchiyama($key) => $body,
            Secret::ElGamal(_) => Err(InvalidInput::new_err(
                "ElGamal keys need no noise pool: their noise is quick to draw",
            )),
        }
    };
}

/// One-shot noises of one key.
#[pyclass(name = "NoisePool", module = "ciphervec._native", frozen)]
pub struct PyNoisePool {
    secret: Arc<Secret>,
    /// None once it is saved.
    pool: RwLock<Option<NoisePool>>,
}

#[pymethods]
impl PyNoisePool {
    /// An empty pool.
    #[new]
    fn new(keys: &PyAdditiveSecretKey) -> PyResult<Self> {
        let pool = on_factoring!(&*keys.0, key => Ok(NoisePool::new(key)))?;
        Ok(Self { secret: Arc::clone(&keys.0), pool: RwLock::new(Some(pool)) })
    }

    /// Draws `count` elements more; other threads may encrypt meanwhile.
    fn fill(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.with(|pool| {
            on_factoring!(&*self.secret, key => {
                py.detach(|| runtime::run(|| pool.fill(key, count))).map_err(Raise::raise)
            })
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with(|pool| Ok(pool.len()))
    }

    /// As the key's `encrypt`, with noise of the pool.
    fn encrypt(
        &self,
        py: Python<'_>,
        rows: usize,
        columns: usize,
        width: usize,
        data: &[u8],
    ) -> PyResult<PyCiphertexts> {
        let plain = messages(width, data)?;
        self.with(|pool| {
            on_factoring!(&*self.secret, key => {
                let seal = || Pooled::new(key.public(), pool)?.encrypt(rows, columns, &plain);
                let table = py.detach(|| runtime::run(seal)).map_err(Raise::raise)?;
                Ok(PyCiphertexts(Tables::Factoring(table)))
            })
        })
    }

    /// As the key's `encrypt_vectors`, with noise of the pool.
    fn encrypt_vectors(
        &self,
        py: Python<'_>,
        rows: PyReadonlyArray2<'_, f64>,
        metric: &str,
        precision: &str,
        layout: &str,
    ) -> PyResult<PyEncryptedVectors> {
        let spec = spec(rows.shape()[1], metric, precision, layout)?;
        let rows = numbers(&rows)?;
        self.with(|pool| {
            on_factoring!(&*self.secret, key => {
                let seal = || -> Result<_, ciphervec::Error> {
                    let vectors = Vectors::quantize(&spec, rows)?;
                    let pooled = Pooled::new(key.public(), pool)?;
                    let gallery = EncryptedVectors::encrypt(&spec, &pooled, &vectors)?;
                    Ok(PyEncryptedVectors::factoring(gallery, vectors.norms().to_vec()))
                };
                py.detach(|| runtime::run(seal)).map_err(Raise::raise)
            })
        })
    }

    /// Writes the pool, sealed under the secret key. It can be used from the file only.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let taken = self.pool.write().unwrap_or_else(PoisonError::into_inner).take();
        let pool = taken.ok_or_else(used_up)?;
        on_factoring!(&*self.secret, key => {
            let write = || noise_pool::save(Path::new(path), pool, key, &sealing(&self.secret));
            py.detach(write).map_err(Raise::raise)
        })
    }

    /// Takes a pool out of its file, which is gone then.
    #[staticmethod]
    fn claim(py: Python<'_>, path: &str, keys: &PyAdditiveSecretKey) -> PyResult<Self> {
        let pool = on_factoring!(&*keys.0, key => {
            let take = || noise_pool::claim(Path::new(path), key, &sealing(&keys.0));
            py.detach(take).map_err(Raise::raise)
        })?;
        Ok(Self { secret: Arc::clone(&keys.0), pool: RwLock::new(Some(pool)) })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a noise pool can't be pickled; save it to a file and claim it there",
        ))
    }
}

impl PyNoisePool {
    fn with<T>(&self, work: impl FnOnce(&NoisePool) -> PyResult<T>) -> PyResult<T> {
        let pool = self.pool.read().unwrap_or_else(PoisonError::into_inner);
        work(pool.as_ref().ok_or_else(used_up)?)
    }
}

fn used_up() -> PyErr {
    InvalidInput::new_err("this noise pool was saved; claim it from its file")
}

/// Seals the pool's files: whoever holds the secret key can derive it.
fn sealing(secret: &Secret) -> AeadKey {
    noise_pool::sealing_key(&secret.to_bytes())
}

impl Raise for NoisePoolError {
    fn raise(self) -> PyErr {
        use crate::errors::{CiphervecError, CorruptData, StorageError};
        match self {
            Self::Envelope(error) => error.raise(),
            Self::Scheme(error) => error.raise(),
            Self::Damaged { .. } => CorruptData::new_err(self.to_string()),
            Self::NotFound { .. } | Self::Exists { .. } | Self::Io { .. } => {
                StorageError::new_err(self.to_string())
            }
            _ => CiphervecError::new_err(self.to_string()),
        }
    }
}
