//! The two halves of a program for Python, the one with the key and the one that computes; what passes between them is bytes.

use std::time::Instant;

use ciphervec_owner::program::{Client, Sealed, Server};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::planning::PyProgramPlan;
use super::raw::{RawAnswer, raw_answers};
use crate::ckks::work;
use crate::secret_file;

/// The half of a program that holds the key.
#[pyclass(name = "ProgramClient", module = "ciphervec._native", frozen)]
pub struct PyProgramClient(Client);

#[pymethods]
impl PyProgramClient {
    #[staticmethod]
    fn generate(py: Python<'_>, plan: &PyProgramPlan) -> PyResult<Self> {
        Ok(PyProgramClient(work(py, || Client::generate(plan.0.clone()))?))
    }

    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, plan: &PyProgramPlan, bytes: &[u8]) -> PyResult<Self> {
        Ok(PyProgramClient(work(py, || Client::from_secret_bytes(plan.0.clone(), bytes))?))
    }

    fn to_secret_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_secret_bytes())
    }

    #[pyo3(signature = (path, passphrase = None, *, allow_plaintext = false))]
    fn save(
        &self,
        py: Python<'_>,
        path: &str,
        passphrase: Option<&str>,
        allow_plaintext: bool,
    ) -> PyResult<()> {
        let secret = || (self.0.to_secret_bytes(), label(&self.0));
        secret_file::save(py, path, (passphrase, allow_plaintext), secret)
    }

    #[staticmethod]
    #[pyo3(signature = (plan, path, passphrase = None))]
    fn load(
        py: Python<'_>,
        plan: &PyProgramPlan,
        path: &str,
        passphrase: Option<&str>,
    ) -> PyResult<Self> {
        let (secret, found) = secret_file::load(py, path, passphrase)?;
        let client = work(py, || Client::from_secret_bytes(plan.0.clone(), &secret))?;
        secret_file::check_label(found, label(&client))?;
        Ok(PyProgramClient(client))
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    fn evaluation_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let keys = work(py, || self.0.evaluation_keys())?;
        Ok(PyBytes::new(py, &keys))
    }

    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        values: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let values = values.as_slice()?;
        let bytes = work(py, || self.0.encrypt(name, values))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn decrypt<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Vec<RawAnswer<'py>>> {
        let answers = work(py, || self.0.decrypt(bytes))?;
        Ok(raw_answers(py, answers))
    }
}

/// The id of the key, which its file carries in clear.
fn label(client: &Client) -> [u8; 16] {
    let mut label = [0; 16];
    label[..8].copy_from_slice(&client.key_id().0);
    label
}

/// One input, encrypted or public, read and checked.
#[pyclass(name = "ProgramInput", module = "ciphervec._native", frozen)]
pub struct PyProgramInput(Sealed);

/// The half of a program that computes.
#[pyclass(name = "ProgramServer", module = "ciphervec._native", frozen)]
pub struct PyProgramServer(Server);

#[pymethods]
impl PyProgramServer {
    #[new]
    fn new(py: Python<'_>, plan: &PyProgramPlan, keys: &[u8]) -> PyResult<Self> {
        Ok(PyProgramServer(work(py, || Server::new(plan.0.clone(), keys))?))
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    fn read(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<PyProgramInput> {
        Ok(PyProgramInput(work(py, || self.0.read(bytes))?))
    }

    /// The answer, and the milliseconds that every step took.
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<PyRef<'py, PyProgramInput>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<f64>)> {
        let inputs: Vec<Sealed> = inputs.iter().map(|input| input.0.clone()).collect();
        let (answer, times) = work(py, || {
            let (mut times, mut last) = (Vec::new(), Instant::now());
            let answer = self.0.run(&inputs, |_| {
                let now = Instant::now();
                times.push((now - last).as_secs_f64() * 1e3);
                last = now;
            })?;
            Ok((answer, times))
        })?;
        Ok((PyBytes::new(py, &answer), times))
    }
}
