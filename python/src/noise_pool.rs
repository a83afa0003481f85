//! Noise computed ahead for one key of the factoring schemes, each used once, in memory or in a sealed file. Key
//! owner's side.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use ciphervec_he_secret::additive::{Decrypt, Evaluate};
use ciphervec_he_secret::factoring::{FactoringKey, NoisePool, NoiseSource, Pooled, Precompute};
use ciphervec_he_secret::scheme::SchemePublicKey;
use ciphervec_owner::protect::aead::AeadKey;
use ciphervec_owner::protect::noise_pool::{self, NoisePoolError};
use ciphervec_owner::similarity::additive::{EncryptedVectors, Vectors};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::additive::{PyAdditiveSecretKey, work};
use crate::ciphertexts::{PyCiphertexts, Tables, messages};
use crate::errors::{InvalidInput, Raise};
use crate::runtime;
use crate::scheme::{Secret, on_secret};
use crate::vectors::{PyEncryptedVectors, numbers, spec};

/// What draws noise ahead and what uses it up, of a secret key that has noise to precompute.
fn precomputable(secret: &Secret) -> PyResult<(&dyn NoiseSource, &dyn FactoringKey)> {
    on_secret!(secret, key => {
        Precompute::precomputable(key).ok_or_else(|| {
            let scheme = SchemePublicKey::scheme(key.public()).as_str();
            InvalidInput::new_err(format!(
                "{scheme} keys need no noise pool: their noise is quick to draw"
            ))
        })
    })
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
        let (source, _) = precomputable(&keys.0)?;
        let pool = RwLock::new(Some(NoisePool::new(source)));
        Ok(Self { secret: Arc::clone(&keys.0), pool })
    }

    /// Draws `count` elements more; other threads may encrypt meanwhile.
    fn fill(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        let (source, _) = precomputable(&self.secret)?;
        self.with(|pool| {
            py.detach(|| runtime::run(|| pool.fill(source, count))).map_err(Raise::raise)
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
        let (_, key) = precomputable(&self.secret)?;
        self.with(|pool| {
            let seal = || {
                let pooled = Pooled::new(key, pool)?;
                Ok(Tables::of(&pooled, pooled.encrypt(rows, columns, &plain)?))
            };
            work(py, seal).map(PyCiphertexts)
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
        let (_, key) = precomputable(&self.secret)?;
        self.with(|pool| {
            let seal = || -> Result<_, ciphervec_owner::Error> {
                let vectors = Vectors::quantize(&spec, rows)?;
                let pooled = Pooled::new(key, pool)?;
                let gallery = EncryptedVectors::encrypt(&spec, &pooled, &vectors)?;
                Ok(PyEncryptedVectors::new(gallery, vectors.norms().to_vec()))
            };
            py.detach(|| runtime::run(seal)).map_err(Raise::raise)
        })
    }

    /// Writes the pool, sealed under the secret key. It can be used from the file only.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        // Whoever fills it holds it without the GIL, and asks for that to let it go.
        let taken = py.detach(|| self.pool.write().unwrap_or_else(PoisonError::into_inner).take());
        let pool = taken.ok_or_else(used_up)?;
        let (source, _) = precomputable(&self.secret)?;
        let write = || noise_pool::save(Path::new(path), pool, source, &sealing(&self.secret));
        runtime::detached(py, write).map_err(Raise::raise)
    }

    /// Takes a pool out of its file, which is gone then.
    #[staticmethod]
    fn claim(py: Python<'_>, path: &str, keys: &PyAdditiveSecretKey) -> PyResult<Self> {
        let (source, _) = precomputable(&keys.0)?;
        let take = || noise_pool::claim(Path::new(path), source, &sealing(&keys.0));
        let pool = runtime::detached(py, take).map_err(Raise::raise)?;
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
