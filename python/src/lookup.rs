//! Private lookup for Python: tables and queries as bytes at the server, indices and rows at the client.

use std::str::FromStr;
use std::sync::Arc;

use ciphervec_owner::KeyId;
use ciphervec_owner::lookup::{
    Client, Documents, Next, Options, Planner, Pooling, Request, Server, Spec, Strategy, Table,
    Transport,
};
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::ckks::work;
use crate::errors::InvalidInput;
use crate::secret_file;

/// What a description says, for both halves.
fn describe<'py>(py: Python<'py>, spec: &Spec) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let options = spec.options();
    out.set_item("strategy", options.strategy.as_str())?;
    out.set_item("pooling", options.pooling.as_str())?;
    out.set_item("limit", options.limit)?;
    out.set_item("transport", options.transport.as_str())?;
    out.set_item("tables", spec.tables())?;
    out.set_item("rows", spec.choices())?;
    out.set_item("columns", spec.columns())?;
    out.set_item("padding", spec.rows() > spec.choices())?;
    out.set_item("error_bound", spec.error_bound())?;
    Ok(out)
}

/// The server's half.
#[pyclass(name = "LookupServer", module = "ciphervec._native", frozen)]
pub struct PyLookupServer(Arc<Server>);

#[pymethods]
impl PyLookupServer {
    #[new]
    #[pyo3(signature = (tables, strategy, pooling, *, limit, padding, word_bytes, precision_bits, transport))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn new(
        py: Python<'_>,
        tables: PyReadonlyArray3<'_, f64>,
        strategy: &str,
        pooling: &str,
        limit: usize,
        padding: bool,
        word_bytes: usize,
        precision_bits: u32,
        transport: &str,
    ) -> PyResult<Self> {
        let [count, rows, columns] = tables.shape() else {
            return Err(InvalidInput::new_err("tables must have three axes"));
        };
        let shape = (*count, *rows, *columns);
        let values = contiguous(tables.as_slice())?;
        let make = || {
            let table = Table::new(values, shape)?;
            let table = if padding { table.with_zero_row()? } else { table };
            let (strategy, pooling) = (Strategy::from_str(strategy)?, Pooling::from_str(pooling)?);
            let transport = Transport::from_str(transport)?;
            let options = Options {
                strategy,
                pooling,
                limit,
                word_bytes,
                precision_bits,
                levels: 0,
                transport,
            };
            Server::new(table, options)
        };
        work(py, make).map(|server| Self(Arc::new(server)))
    }

    /// The cheapest strategy and transport for `batch` tokens at once over tables of `shape` (tables, rows, columns), and the
    /// table that the choice was made from. A `document` of so many tokens is pooled; of 0, every row is wanted. `network` is
    /// bytes a second, and seconds there and back; `strategy` and `transport` what may be chosen, "auto" for any.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "Python's arguments, in their order")]
    fn plan(
        py: Python<'_>,
        shape: (usize, usize, usize),
        batch: usize,
        precision_bits: u32,
        document: usize,
        network: (f64, f64),
        strategy: &str,
        transport: &str,
    ) -> PyResult<(&'static str, &'static str, String)> {
        let (tables, rows, columns) = shape;
        let next = if document == 0 { Next::Decrypt } else { Next::Pool(document) };
        let (bytes_per_second, latency) = network;
        let transport = match transport {
            "auto" => None,
            name => Some(work(py, || Transport::from_str(name))?),
        };
        let strategy = match strategy {
            "auto" => None,
            name => Some(work(py, || Strategy::from_str(name))?),
        };
        let request = Request {
            rows,
            columns,
            tables,
            batch,
            precision_bits,
            next,
            bytes_per_second,
            latency,
            strategy,
            transport,
        };
        let planner = work(py, || Planner::new(request))?;
        let best = planner.best();
        Ok((best.strategy.as_str(), best.transport.as_str(), planner.explain()))
    }

    /// What clients get.
    fn description<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.spec().to_bytes())
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        describe(py, self.0.spec())
    }

    /// Keeps a client's evaluation keys; the name of its key.
    fn register(&self, py: Python<'_>, keys: &[u8]) -> PyResult<String> {
        work(py, || self.0.register(keys)).map(|name| name.to_string())
    }

    /// Drops a client's evaluation keys, by the name that `register` gave; whether there were any.
    fn forget(&self, name: &str) -> bool {
        let bytes = (0..8).map(|at| u8::from_str_radix(name.get(2 * at..2 * at + 2)?, 16).ok());
        let key = bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| bytes.try_into().ok());
        name.len() == 16 && key.is_some_and(|key| self.0.forget(KeyId(key)))
    }

    fn embed<'py>(&self, py: Python<'py>, query: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let answer = work(py, || self.0.answer(query))?;
        Ok(PyBytes::new(py, &answer))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        work(py, || Server::from_bytes(data)).map(|server| Self(Arc::new(server)))
    }
}

/// The client's half: holds a key.
#[pyclass(name = "LookupClient", module = "ciphervec._native", frozen)]
pub struct PyLookupClient(Arc<Client>);

#[pymethods]
impl PyLookupClient {
    /// A fresh key for the tables that a server described.
    #[staticmethod]
    fn generate(py: Python<'_>, description: &[u8]) -> PyResult<Self> {
        work(py, || Client::generate(Spec::from_bytes(description)?))
            .map(|client| Self(Arc::new(client)))
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        describe(py, self.0.spec())
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// The evaluation keys that the server needs first, if it needs any.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(work(py, || self.0.keys())?.map(|keys| PyBytes::new(py, &keys)))
    }

    fn query<'py>(
        &self,
        py: Python<'py>,
        indices: PyReadonlyArray2<'_, i64>,
        offsets: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tables = indices.shape()[1];
        let (indices, offsets) = (contiguous(indices.as_slice())?, contiguous(offsets.as_slice())?);
        let offsets: Vec<usize> = offsets
            .iter()
            .map(|&offset| usize::try_from(offset))
            .collect::<Result<_, _>>()
            .map_err(|_| InvalidInput::new_err("offsets must not be negative"))?;
        let query = work(py, || self.0.query(&Documents::new(indices, tables, &offsets)?))?;
        Ok(PyBytes::new(py, &query))
    }

    fn decode<'py>(&self, py: Python<'py>, answer: &[u8]) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let numbers = work(py, || self.0.decode(answer))?;
        let columns = self.0.spec().columns();
        let rows = numbers.len() / columns;
        PyArray1::from_vec(py, numbers).reshape([rows, columns])
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
        let client = work(py, || Client::from_secret_bytes(&secret))?;
        secret_file::check_label(label, client.label())?;
        Ok(Self(Arc::new(client)))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "secret keys can't be pickled; save them to a file and load them there",
        ))
    }
}

fn contiguous<T>(slice: Result<&[T], impl core::fmt::Debug>) -> PyResult<&[T]> {
    slice.map_err(|_| {
        InvalidInput::new_err("arrays must be C-contiguous; use numpy.ascontiguousarray")
    })
}
