//! Vectors under an additively homomorphic scheme: rows enter encrypted, meet plain probes, and leave as scores.

use ciphervec::Metric;
use ciphervec::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, Probes, Rerandomization, Scores,
    VectorSpec, Vectors,
};
use ciphervec_he::additive::{Decrypt, Evaluate};
use ciphervec_he::{Error as SchemeError, elgamal, factoring};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::additive::{PyAdditivePublicKey, PyAdditiveSecretKey};
use crate::errors::{InvalidInput, Raise};
use crate::runtime;
use crate::scheme::{Secret, on_public, on_secret};

type Outcome<T> = Result<T, ciphervec::Error>;

/// Vectors of one of the schemes.
enum Gallery {
    Factoring(EncryptedVectors<factoring::Ciphertexts>),
    ElGamal(EncryptedVectors<elgamal::Ciphertexts>),
}

/// Scores of one of the schemes.
enum Answer {
    Factoring(EncryptedScores<factoring::Ciphertexts>),
    ElGamal(EncryptedScores<elgamal::Ciphertexts>),
}

macro_rules! on {
    ($kind:ident, $inner:expr, $value:ident => $body:expr) => {
        match $inner {
            $kind::Factoring($value) => $body,
            $kind::ElGamal($value) => $body,
        }
    };
}

/// A table type and where vectors and scores of it go.
trait Home: ciphervec_he::additive::Table {
    fn gallery(vectors: EncryptedVectors<Self>) -> Gallery;
    fn answer(scores: EncryptedScores<Self>) -> Answer;
    fn vectors(gallery: &Gallery) -> Option<&EncryptedVectors<Self>>;
    fn scores(answer: &Answer) -> Option<&EncryptedScores<Self>>;
}

macro_rules! home {
    ($table:ty, $variant:ident) => {
        impl Home for $table {
            fn gallery(vectors: EncryptedVectors<Self>) -> Gallery {
                Gallery::$variant(vectors)
            }

            fn answer(scores: EncryptedScores<Self>) -> Answer {
                Answer::$variant(scores)
            }

            fn vectors(gallery: &Gallery) -> Option<&EncryptedVectors<Self>> {
                match gallery {
                    Gallery::$variant(vectors) => Some(vectors),
                    _ => None,
                }
            }

            fn scores(answer: &Answer) -> Option<&EncryptedScores<Self>> {
                match answer {
                    Answer::$variant(scores) => Some(scores),
                    _ => None,
                }
            }
        }
    };
}

home!(factoring::Ciphertexts, Factoring);
home!(elgamal::Ciphertexts, ElGamal);

impl Gallery {
    fn key_id(&self) -> ciphervec_he::KeyId {
        on!(Gallery, self, vectors => vectors.key_id())
    }

    fn spec(&self) -> &VectorSpec {
        on!(Gallery, self, vectors => vectors.spec())
    }

    /// The vectors, if they are of `key`'s kind of scheme; another scheme has another key.
    fn of<'a, K: Evaluate>(&'a self, key: &K) -> Outcome<&'a EncryptedVectors<K::Table>>
    where
        K::Table: Home,
    {
        Home::vectors(self)
            .ok_or_else(|| wrong_key("encrypted vectors", key.key_id(), self.key_id()))
    }
}

impl Answer {
    fn key_id(&self) -> ciphervec_he::KeyId {
        on!(Answer, self, scores => scores.key_id())
    }

    fn spec(&self) -> &VectorSpec {
        on!(Answer, self, scores => scores.spec())
    }

    fn of<'a, K: Evaluate>(&'a self, key: &K) -> Outcome<&'a EncryptedScores<K::Table>>
    where
        K::Table: Home,
    {
        Home::scores(self).ok_or_else(|| wrong_key("encrypted scores", key.key_id(), self.key_id()))
    }
}

fn wrong_key(
    what: &'static str,
    expected: ciphervec_he::KeyId,
    actual: ciphervec_he::KeyId,
) -> ciphervec::Error {
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
    gallery: Gallery,
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
                Home::gallery(EncryptedVectors::encrypt(&spec, key, &vectors)?)
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
                Home::gallery(EncryptedVectors::encrypt_as_owner(&spec, keys, &vectors)?)
            });
            Ok(Self { gallery, norms: vectors.norms().to_vec() })
        })
    }

    /// How many vectors.
    #[getter]
    fn rows(&self) -> usize {
        on!(Gallery, &self.gallery, vectors => vectors.len())
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
        on!(Gallery, &self.gallery, vectors => vectors.ciphertexts())
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
                Home::answer(self.gallery.of(key)?.score_with(key, &probes, rerandomization)?)
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
        let galleries: Vec<&Gallery> = parts.iter().map(|part| &part.gallery).collect();
        let gallery = work(py, || {
            Ok(on_public!(&key.0, key => {
                let parts: Outcome<Vec<_>> =
                    galleries.iter().map(|gallery| gallery.of(key)).collect();
                Home::gallery(EncryptedVectors::append(&parts?)?)
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
        let bytes = work(py, || on_public!(&key.0, key => self.gallery.of(key)?.to_bytes(key)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, key: &PyAdditivePublicKey, data: &[u8]) -> PyResult<Self> {
        let gallery = work(py, || {
            Ok(on_public!(&key.0, key => Home::gallery(EncryptedVectors::from_bytes(key, data)?)))
        })?;
        Ok(Self { gallery, norms: Vec::new() })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("native vectors can't be pickled; send their to_bytes()"))
    }
}

/// Encrypted scores, probe after probe.
#[pyclass(name = "EncryptedScores", module = "ciphervec._native", frozen)]
pub struct PyEncryptedScores(Answer);

#[pymethods]
impl PyEncryptedScores {
    #[getter]
    fn probes(&self) -> usize {
        on!(Answer, &self.0, scores => scores.probes())
    }

    /// How many vectors each probe was compared with.
    #[getter]
    fn rows(&self) -> usize {
        on!(Answer, &self.0, scores => scores.vectors())
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.0.spec().metric().as_str()
    }

    #[getter]
    fn ciphertexts(&self) -> usize {
        on!(Answer, &self.0, scores => scores.ciphertexts())
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
        let bytes = work(py, || on_public!(&key.0, key => self.0.of(key)?.to_bytes(key)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, key: &PyAdditivePublicKey, data: &[u8]) -> PyResult<Self> {
        let answer = work(py, || {
            Ok(on_public!(&key.0, key => Home::answer(EncryptedScores::from_bytes(key, data)?)))
        })?;
        Ok(Self(answer))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("native scores can't be pickled; send their to_bytes()"))
    }
}

impl PyEncryptedVectors {
    /// Wraps vectors of a factoring scheme and the norms of their rows.
    pub fn factoring(vectors: EncryptedVectors<factoring::Ciphertexts>, norms: Vec<f64>) -> Self {
        Self { gallery: Gallery::Factoring(vectors), norms }
    }
}

impl PyEncryptedScores {
    fn decrypt(&self, keys: &Secret) -> Outcome<Scores> {
        on_secret!(keys, keys => self.0.of(keys.public())?.open(keys))
    }
}
