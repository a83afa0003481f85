//! Encrypted vectors and scores under any additively homomorphic scheme, scored against plain probes.

use std::any::Any;

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Table};
use ciphervec_he_secret::{Error as SchemeError, KeyId};
use ciphervec_owner::Metric;
use ciphervec_owner::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, OwnerScores, OwnerVectors, Probes,
    Rerandomization, Scores, VectorSpec, Vectors,
};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::additive::{PyAdditivePublicKey, PyAdditiveSecretKey};
use crate::errors::{InvalidInput, Raise};
use crate::runtime;
use crate::scheme::{Secret, on_public, on_secret};

type Outcome<T> = Result<T, ciphervec_owner::Error>;

/// Vectors of whichever scheme.
trait AnyVectors: Any + Send + Sync {
    fn key_id(&self) -> KeyId;
    fn spec(&self) -> &VectorSpec;
    fn len(&self) -> usize;
    fn ciphertexts(&self) -> usize;
}

impl<T: Table + 'static> AnyVectors for EncryptedVectors<T> {
    fn key_id(&self) -> KeyId {
        self.key_id()
    }

    fn spec(&self) -> &VectorSpec {
        self.spec()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn ciphertexts(&self) -> usize {
        self.ciphertexts()
    }
}

/// Scores of whichever scheme.
trait AnyScores: Any + Send + Sync {
    fn key_id(&self) -> KeyId;
    fn spec(&self) -> &VectorSpec;
    fn probes(&self) -> usize;
    fn vectors(&self) -> usize;
    fn ciphertexts(&self) -> usize;
}

impl<T: Table + 'static> AnyScores for EncryptedScores<T> {
    fn key_id(&self) -> KeyId {
        self.key_id()
    }

    fn spec(&self) -> &VectorSpec {
        self.spec()
    }

    fn probes(&self) -> usize {
        self.probes()
    }

    fn vectors(&self) -> usize {
        self.vectors()
    }

    fn ciphertexts(&self) -> usize {
        self.ciphertexts()
    }
}

/// The vectors inside, if they are of `key`'s kind of scheme; another scheme has another key.
fn vectors_of<'a, K: Evaluate<Table: 'static>>(
    key: &K,
    gallery: &'a dyn AnyVectors,
) -> Outcome<&'a EncryptedVectors<K::Table>> {
    let inside: &dyn Any = gallery;
    inside
        .downcast_ref()
        .ok_or_else(|| wrong_key("encrypted vectors", key.key_id(), gallery.key_id()))
}

/// The same for scores.
fn scores_of<'a, K: Evaluate<Table: 'static>>(
    key: &K,
    answer: &'a dyn AnyScores,
) -> Outcome<&'a EncryptedScores<K::Table>> {
    let inside: &dyn Any = answer;
    inside
        .downcast_ref()
        .ok_or_else(|| wrong_key("encrypted scores", key.key_id(), answer.key_id()))
}

fn boxed_vectors(vectors: EncryptedVectors<impl Table + 'static>) -> Box<dyn AnyVectors> {
    Box::new(vectors)
}

fn boxed_scores(scores: EncryptedScores<impl Table + 'static>) -> Box<dyn AnyScores> {
    Box::new(scores)
}

fn wrong_key(what: &'static str, expected: KeyId, actual: KeyId) -> ciphervec_owner::Error {
    SchemeError::WrongKey { what, expected, actual }.into()
}

fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send) -> PyResult<T> {
    py.detach(|| runtime::run(work)).map_err(Raise::raise)
}

pub fn spec(dimension: usize, metric: &str, precision: &str, layout: &str) -> PyResult<VectorSpec> {
    let metric: Metric = metric.parse().map_err(Raise::raise)?;
    let precision: GridPrecision = precision.parse().map_err(Raise::raise)?;
    let layout: Layout = layout.parse().map_err(Raise::raise)?;
    let dimension = u32::try_from(dimension).unwrap_or(u32::MAX);
    VectorSpec::new(dimension, metric, precision, layout).map_err(Raise::raise)
}

/// The numbers of a C-contiguous array, row after row.
pub fn numbers<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<&'a [f64]> {
    array.as_slice().map_err(|_| {
        InvalidInput::new_err("vectors must be C-contiguous; use numpy.ascontiguousarray")
    })
}

/// How many vectors share a ciphertext, and how many coordinates of one.
#[pyfunction]
pub fn additive_packing(
    key: &PyAdditivePublicKey,
    dimension: usize,
    metric: &str,
    precision: &str,
    layout: &str,
) -> PyResult<(usize, usize)> {
    let bits = on_public!(&key.0, key => Evaluate::message_bits(key));
    let packing =
        spec(dimension, metric, precision, layout)?.packing(bits).map_err(Raise::raise)?;
    Ok((packing.lanes(), packing.slots()))
}

/// Encrypted rows.
#[pyclass(name = "EncryptedVectors", module = "ciphervec._native", frozen)]
pub struct PyEncryptedVectors {
    gallery: Box<dyn AnyVectors>,
    norms: Vec<f64>,
}

#[pymethods]
impl PyEncryptedVectors {
    /// Encrypts with the public key.
    #[staticmethod]
    #[pyo3(signature = (key, rows, metric, precision, layout))]
    fn encrypt(
        py: Python<'_>,
        key: &PyAdditivePublicKey,
        rows: PyReadonlyArray2<'_, f64>,
        metric: &str,
        precision: &str,
        layout: &str,
    ) -> PyResult<Self> {
        let spec = spec(rows.shape()[1], metric, precision, layout)?;
        let rows = numbers(&rows)?;
        work(py, || {
            let vectors = Vectors::quantize(&spec, rows)?;
            let gallery = on_public!(&key.0, key => {
                boxed_vectors(EncryptedVectors::encrypt(&spec, key, &vectors)?)
            });
            Ok(Self { gallery, norms: vectors.norms().to_vec() })
        })
    }

    /// Encrypts with the secret key, which is faster.
    #[staticmethod]
    #[pyo3(signature = (keys, rows, metric, precision, layout))]
    fn encrypt_as_owner(
        py: Python<'_>,
        keys: &PyAdditiveSecretKey,
        rows: PyReadonlyArray2<'_, f64>,
        metric: &str,
        precision: &str,
        layout: &str,
    ) -> PyResult<Self> {
        let spec = spec(rows.shape()[1], metric, precision, layout)?;
        let rows = numbers(&rows)?;
        work(py, || {
            let vectors = Vectors::quantize(&spec, rows)?;
            let gallery = on_secret!(&*keys.0, keys => {
                boxed_vectors(EncryptedVectors::encrypt_as_owner(&spec, keys, &vectors)?)
            });
            Ok(Self { gallery, norms: vectors.norms().to_vec() })
        })
    }

    /// How many vectors.
    #[getter]
    fn rows(&self) -> usize {
        self.gallery.len()
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.gallery.spec().dimension()
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.gallery.spec().metric().as_str()
    }

    #[getter]
    fn precision(&self) -> &'static str {
        self.gallery.spec().precision().as_str()
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.gallery.spec().layout().as_str()
    }

    #[getter]
    fn ciphertexts(&self) -> usize {
        self.gallery.ciphertexts()
    }

    #[getter]
    fn key_id(&self) -> String {
        self.gallery.key_id().to_string()
    }

    /// Euclidean norms of the rows before they were normalised; none on vectors that came as bytes.
    fn norms<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.norms)
    }

    /// What the error of a cosine exceeds with probability below 2^-64.
    #[getter]
    fn error_bound(&self) -> f64 {
        self.gallery.spec().error_bound().tail
    }

    /// The encrypted scores of every probe, re-randomised unless `bare`, and the norms of the probes.
    #[pyo3(signature = (key, probes, *, bare = false))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        key: &PyAdditivePublicKey,
        probes: PyReadonlyArray2<'_, f64>,
        bare: bool,
    ) -> PyResult<(PyEncryptedScores, Bound<'py, PyArray1<f64>>)> {
        let spec = *self.gallery.spec();
        let width = probes.shape()[1];
        if width != spec.dimension() {
            return Err(InvalidInput::new_err(format!(
                "a probe must have {} dimensions, as the encrypted vectors do; got {width}",
                spec.dimension()
            )));
        }
        let rows = numbers(&probes)?;
        let rerandomization = if bare { Rerandomization::Bare } else { Rerandomization::Fresh };
        let (answer, norms) = work(py, || {
            let probes = Probes::quantize(&spec, rows)?;
            let answer = on_public!(&key.0, key => {
                boxed_scores(vectors_of(key, &*self.gallery)?.score_with(key, &probes, rerandomization)?)
            });
            Ok((answer, probes.norms().to_vec()))
        })?;
        Ok((PyEncryptedScores(answer), PyArray1::from_vec(py, norms)))
    }

    /// Galleries of one description and one key as one, in this order.
    #[staticmethod]
    fn append(
        py: Python<'_>,
        key: &PyAdditivePublicKey,
        parts: Vec<PyRef<'_, PyEncryptedVectors>>,
    ) -> PyResult<Self> {
        let galleries: Vec<&dyn AnyVectors> = parts.iter().map(|part| &*part.gallery).collect();
        let gallery = work(py, || {
            Ok(on_public!(&key.0, key => {
                let parts: Outcome<Vec<_>> =
                    galleries.iter().map(|gallery| vectors_of(key, *gallery)).collect();
                boxed_vectors(EncryptedVectors::append(&parts?)?)
            }))
        })?;
        let known = parts.iter().all(|part| part.norms.len() == part.rows());
        let norms = parts.iter().filter(|_| known).flat_map(|part| part.norms.iter().copied());
        Ok(Self { gallery, norms: norms.collect() })
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        key: &PyAdditivePublicKey,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes =
            work(py, || on_public!(&key.0, key => vectors_of(key, &*self.gallery)?.to_bytes(key)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, key: &PyAdditivePublicKey, data: &[u8]) -> PyResult<Self> {
        let gallery = work(py, || {
            Ok(on_public!(&key.0, key => boxed_vectors(EncryptedVectors::from_bytes(key, data)?)))
        })?;
        Ok(Self { gallery, norms: Vec::new() })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("native vectors can't be pickled; send their to_bytes()"))
    }
}

/// Encrypted scores, probe after probe.
#[pyclass(name = "EncryptedScores", module = "ciphervec._native", frozen)]
pub struct PyEncryptedScores(Box<dyn AnyScores>);

#[pymethods]
impl PyEncryptedScores {
    #[getter]
    fn probes(&self) -> usize {
        self.0.probes()
    }

    /// How many vectors each probe was compared with.
    #[getter]
    fn rows(&self) -> usize {
        self.0.vectors()
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.0.spec().metric().as_str()
    }

    #[getter]
    fn ciphertexts(&self) -> usize {
        self.0.ciphertexts()
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// The metric's values, probe after probe. Norms are looked at by `ip` and `l2` only.
    fn open<'py>(
        &self,
        py: Python<'py>,
        keys: &PyAdditiveSecretKey,
        norms: PyReadonlyArray1<'_, f64>,
        probe_norms: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (norms, probe_norms) = (norms.as_slice()?, probe_norms.as_slice()?);
        let values = work(py, || self.decrypt(&keys.0)?.values(norms, probe_norms))?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Whether each value is at least `threshold` (cosine, ip) or at most (l2, hamming), probe after probe.
    fn matches<'py>(
        &self,
        py: Python<'py>,
        keys: &PyAdditiveSecretKey,
        threshold: f64,
        norms: PyReadonlyArray1<'_, f64>,
        probe_norms: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (norms, probe_norms) = (norms.as_slice()?, probe_norms.as_slice()?);
        let found = work(py, || self.decrypt(&keys.0)?.matches(threshold, norms, probe_norms))?;
        Ok(PyArray1::from_vec(py, found))
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        key: &PyAdditivePublicKey,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes =
            work(py, || on_public!(&key.0, key => scores_of(key, &*self.0)?.to_bytes(key)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, key: &PyAdditivePublicKey, data: &[u8]) -> PyResult<Self> {
        let answer = work(py, || {
            Ok(on_public!(&key.0, key => boxed_scores(EncryptedScores::from_bytes(key, data)?)))
        })?;
        Ok(Self(answer))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("native scores can't be pickled; send their to_bytes()"))
    }
}

impl PyEncryptedVectors {
    /// Wraps vectors and the norms of their rows.
    pub fn new(vectors: EncryptedVectors<impl Table + 'static>, norms: Vec<f64>) -> Self {
        Self { gallery: Box::new(vectors), norms }
    }
}

impl PyEncryptedScores {
    fn decrypt(&self, keys: &Secret) -> Outcome<Scores> {
        on_secret!(keys, keys => scores_of(keys.public(), &*self.0)?.open(keys))
    }
}
