//! Keys of the additively homomorphic schemes for Python: public ones for anybody, secret ones for the owner.

use std::sync::Arc;

use ciphervec_he_secret::Error;
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages};
use ciphervec_he_secret::scheme::KeyOptions;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::ciphertexts::{Native, PyCiphertexts, Tables, messages, to_python};
use crate::errors::{InvalidInput, Raise};
use crate::runtime;
use crate::scheme::{Public, Secret, on_public, on_secret, scheme_name};
use crate::secret_file;

fn contiguous<'a>(weights: &'a PyReadonlyArray1<'_, i64>) -> PyResult<&'a [i64]> {
    weights.as_slice().map_err(|_| {
        InvalidInput::new_err("weights must be C-contiguous; use numpy.ascontiguousarray")
    })
}

/// Runs scheme code on our threads, without the GIL.
pub fn work<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(|| runtime::run(work)).map_err(Raise::raise)
}

/// What anybody may have.
#[pyclass(name = "AdditivePublicKey", module = "ciphervec._native", frozen)]
pub struct PyAdditivePublicKey(pub Public);

#[pymethods]
impl PyAdditivePublicKey {
    #[getter]
    fn scheme(&self) -> &'static str {
        scheme_name(self.0.scheme())
    }

    /// The length of n; of the field for ElGamal.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// Damgård–Jurik's s, 1 for Paillier; None for the other schemes.
    #[getter]
    fn s(&self) -> Option<u32> {
        self.0.s()
    }

    #[getter]
    fn key_id(&self) -> String {
        on_public!(&self.0, key => key.key_id()).to_string()
    }

    /// Messages m have |m| < 2^(message_bits - 1).
    #[getter]
    fn message_bits(&self) -> u32 {
        on_public!(&self.0, key => Evaluate::message_bits(key))
    }

    fn security<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let says = self.0.security();
        let out = PyDict::new(py);
        out.set_item("bits", says.bits)?;
        out.set_item("table", says.table)?;
        out.set_item("assumption", says.assumption)?;
        out.set_item("post_quantum", says.post_quantum)?;
        out.set_item("insecure", says.insecure)?;
        Ok(out)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &on_public!(&self.0, key => key.to_bytes()))
    }

    #[staticmethod]
    #[pyo3(signature = (data, *, insecure = false))]
    fn from_bytes(py: Python<'_>, data: &[u8], insecure: bool) -> PyResult<Self> {
        work(py, || Public::read(data, insecure)).map(Self)
    }

    /// Encrypts rows x columns numbers of `width` words of eight bytes each, row after row.
    fn encrypt(
        &self,
        py: Python<'_>,
        rows: usize,
        columns: usize,
        width: usize,
        data: &[u8],
    ) -> PyResult<PyCiphertexts> {
        let plain = messages(width, data)?;
        self.make(py, |public| {
            on_public!(public, key => Ok(Tables::of(key, key.encrypt(rows, columns, &plain)?)))
        })
    }

    /// Other ciphertexts of the same numbers.
    fn rerandomise(&self, py: Python<'_>, table: &PyCiphertexts) -> PyResult<PyCiphertexts> {
        self.make(py, |public| {
            on_public!(public, key => {
                let mut fresh = key.unwrap(&table.0)?.clone();
                key.rerandomise(&mut fresh)?;
                Ok(Tables::of(key, fresh))
            })
        })
    }

    fn add(
        &self,
        py: Python<'_>,
        left: &PyCiphertexts,
        right: &PyCiphertexts,
    ) -> PyResult<PyCiphertexts> {
        self.make(py, |public| {
            on_public!(public, key => {
                Ok(Tables::of(key, key.add(key.unwrap(&left.0)?, key.unwrap(&right.0)?)?))
            })
        })
    }

    fn negate(&self, py: Python<'_>, table: &PyCiphertexts) -> PyResult<PyCiphertexts> {
        self.make(py, |public| {
            on_public!(public, key => Ok(Tables::of(key, key.negate(key.unwrap(&table.0)?)?)))
        })
    }

    fn add_plain(
        &self,
        py: Python<'_>,
        table: &PyCiphertexts,
        width: usize,
        data: &[u8],
    ) -> PyResult<PyCiphertexts> {
        let plain = messages(width, data)?;
        self.make(py, |public| {
            on_public!(public, key => {
                Ok(Tables::of(key, key.add_plain(key.unwrap(&table.0)?, &plain)?))
            })
        })
    }

    fn multiply_plain(
        &self,
        py: Python<'_>,
        table: &PyCiphertexts,
        width: usize,
        data: &[u8],
    ) -> PyResult<PyCiphertexts> {
        let factors = messages(width, data)?;
        self.make(py, |public| {
            on_public!(public, key => {
                Ok(Tables::of(key, key.multiply_plain(key.unwrap(&table.0)?, &factors)?))
            })
        })
    }

    /// Row i times weights[i], summed over the rows: one row.
    fn weighted_sum(
        &self,
        py: Python<'_>,
        table: &PyCiphertexts,
        weights: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<PyCiphertexts> {
        let weights = contiguous(&weights)?;
        self.make(py, |public| {
            on_public!(public, key => {
                let table = key.unwrap(&table.0)?;
                Ok(Tables::of(key, key.weighted_sum_vartime(table, weights)?))
            })
        })
    }

    /// The same for a table of one row, over its columns.
    fn weighted_sum_along(
        &self,
        py: Python<'_>,
        table: &PyCiphertexts,
        weights: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<PyCiphertexts> {
        let weights = contiguous(&weights)?;
        self.make(py, |public| {
            on_public!(public, key => {
                let table = key.unwrap(&table.0)?;
                Ok(Tables::of(key, key.weighted_sum_along_vartime(table, weights)?))
            })
        })
    }

    fn table_to_bytes<'py>(
        &self,
        py: Python<'py>,
        table: &PyCiphertexts,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes =
            work(py, || on_public!(&self.0, key => Ok(key.table_to_bytes(key.unwrap(&table.0)?))))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn table_from_bytes(&self, py: Python<'_>, data: &[u8]) -> PyResult<PyCiphertexts> {
        self.make(
            py,
            |public| on_public!(public, key => Ok(Tables::of(key, key.table_from_bytes(data)?))),
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

impl PyAdditivePublicKey {
    fn make(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&Public) -> Result<Tables, Error> + Send,
    ) -> PyResult<PyCiphertexts> {
        work(py, || make(&self.0)).map(PyCiphertexts)
    }
}

/// What only the key owner has.
#[pyclass(name = "AdditiveSecretKey", module = "ciphervec._native", frozen)]
pub struct PyAdditiveSecretKey(pub Arc<Secret>);

#[pymethods]
impl PyAdditiveSecretKey {
    #[staticmethod]
    #[pyo3(signature = (scheme, bits = 0, s = 1, noise = None, *, insecure = false))]
    fn generate(
        py: Python<'_>,
        scheme: &str,
        bits: u32,
        s: u32,
        noise: Option<&str>,
        insecure: bool,
    ) -> PyResult<Self> {
        let options = KeyOptions { bits, s, noise, insecure };
        py.detach(|| runtime::run(|| Secret::generate(scheme, &options)))
            .map(|secret| Self(Arc::new(secret)))
    }

    #[getter]
    fn public(&self) -> PyAdditivePublicKey {
        PyAdditivePublicKey(Public::Of(Arc::clone(&self.0)))
    }

    /// As the public key's, faster where the secret helps.
    fn encrypt(
        &self,
        py: Python<'_>,
        rows: usize,
        columns: usize,
        width: usize,
        data: &[u8],
    ) -> PyResult<PyCiphertexts> {
        let plain = messages(width, data)?;
        let seal = || {
            on_secret!(&*self.0, key => {
                Ok(Tables::of(key.public(), key.encrypt(rows, columns, &plain)?))
            })
        };
        work(py, seal).map(PyCiphertexts)
    }

    /// Numbers below 2^(bits - 1) in absolute value: their width in words of eight bytes, and those.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        table: &PyCiphertexts,
        bits: u32,
    ) -> PyResult<(usize, Bound<'py, PyBytes>)> {
        let open = || -> Result<Messages, Error> {
            on_secret!(&*self.0, key => key.decrypt(key.public().unwrap(&table.0)?, bits))
        };
        let plain = work(py, open)?;
        Ok(to_python(py, &plain))
    }

    #[pyo3(signature = (path, passphrase = None, *, allow_plaintext = false))]
    fn save(
        &self,
        py: Python<'_>,
        path: &str,
        passphrase: Option<&str>,
        allow_plaintext: bool,
    ) -> PyResult<()> {
        let secret = || (self.0.to_bytes(), self.0.label());
        secret_file::save(py, path, (passphrase, allow_plaintext), secret)
    }

    #[staticmethod]
    #[pyo3(signature = (path, passphrase = None, *, insecure = false))]
    fn load(
        py: Python<'_>,
        path: &str,
        passphrase: Option<&str>,
        insecure: bool,
    ) -> PyResult<Self> {
        let (frame, label) = secret_file::load(py, path, passphrase)?;
        Self::read(py, &frame, label, insecure)
    }

    /// The bytes of a key file.
    #[pyo3(signature = (passphrase = None, *, allow_plaintext = false))]
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        passphrase: Option<&str>,
        allow_plaintext: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let secret = || (self.0.to_bytes(), self.0.label());
        let bytes = secret_file::encode(py, (passphrase, allow_plaintext), secret)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    #[pyo3(signature = (data, passphrase = None, *, insecure = false))]
    fn from_bytes(
        py: Python<'_>,
        data: &[u8],
        passphrase: Option<&str>,
        insecure: bool,
    ) -> PyResult<Self> {
        let (frame, label) = secret_file::decode(py, data, passphrase)?;
        Self::read(py, &frame, label, insecure)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "secret keys can't be pickled; save them to a file and load them there",
        ))
    }
}

impl PyAdditiveSecretKey {
    fn read(py: Python<'_>, frame: &[u8], label: [u8; 16], insecure: bool) -> PyResult<Self> {
        let secret = work(py, || Secret::read(frame, insecure))?;
        secret_file::check_label(label, secret.label())?;
        Ok(Self(Arc::new(secret)))
    }
}
