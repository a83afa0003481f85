//! Keyed private lookup for Python: records by key become a table's file; keys become queries, and answers records.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ciphervec_client::{KeyedTable as Remote, TableRow};
use ciphervec_owner::fetch::{FetchKeys, FetchTable};
use ciphervec_owner::keyed::{
    AskedKeys, Description, KeyedClient, KeyedTable, LookupKey, Records, new_records, read_record,
    write_table,
};
use ciphervec_owner::store::StoreError;
use ciphervec_owner::{Error, Keys};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

use crate::ckks::work;
use crate::client::host::{PyCallHost, run};
use crate::errors::InvalidInput;
use crate::keys::PyKeys;

/// A key as Python gives it.
pub enum OwnKey {
    Bytes(Vec<u8>),
    Text(String),
    Integer(i128),
}

impl OwnKey {
    fn borrow(&self) -> LookupKey<'_> {
        match self {
            OwnKey::Bytes(bytes) => LookupKey::Bytes(bytes),
            OwnKey::Text(text) => LookupKey::Text(text),
            OwnKey::Integer(integer) => LookupKey::Integer(*integer),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for OwnKey {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(OwnKey::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_str().map_err(|_| {
                InvalidInput::new_err(
                    "a key that is a text must be of Unicode, without lone surrogates",
                )
            })?;
            return Ok(OwnKey::Text(text.to_owned()));
        }
        let number = object.is_instance_of::<PyInt>() || object.hasattr("__index__")?;
        if number && !object.is_instance_of::<PyBool>() {
            return object.extract().map(OwnKey::Integer).map_err(|_| {
                InvalidInput::new_err("a key that is an integer must fit in 128 bits")
            });
        }
        let kind = object.get_type().name()?;
        Err(InvalidInput::new_err(format!("a key is bytes, a text or an integer, got {kind}")))
    }
}

fn facts<'py>(py: Python<'py>, description: &Description) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let table = description.geometry();
    out.set_item("records", description.records())?;
    out.set_item("record_bytes", table.content)?;
    out.set_item("sealed", table.sealed)?;
    out.set_item("fingerprint", PyBytes::new(py, &description.fingerprint()))?;
    out.set_item("places", table.parts)?;
    out.set_item("bucket_records", table.slots())?;
    out.set_item("buckets", table.all_buckets())?;
    Ok(out)
}

fn shared(keys: Option<&PyKeys>) -> Option<Arc<Keys>> {
    keys.map(|keys| Arc::clone(&keys.0))
}

type Found<'py> = Vec<Option<Bound<'py, PyBytes>>>;

fn found<'py>(py: Python<'py>, records: Vec<Option<impl AsRef<[u8]>>>) -> Found<'py> {
    let bytes = |record: Option<_>| record.map(|bytes: _| PyBytes::new(py, AsRef::as_ref(&bytes)));
    records.into_iter().map(bytes).collect()
}

/// Records on their way into a table.
#[pyclass(name = "KeyedRecords", module = "ciphervec._native", frozen)]
pub struct PyKeyedRecords {
    records: Mutex<Records>,
    keys: Option<Arc<Keys>>,
}

#[pymethods]
impl PyKeyedRecords {
    #[new]
    fn new(keys: Option<&PyKeys>, seed: Option<[u8; 32]>, py: Python<'_>) -> PyResult<Self> {
        let keys = shared(keys);
        let records = work(py, || new_records(keys.as_deref(), seed))?;
        Ok(Self { records: Mutex::new(records), keys })
    }

    fn push(&self, py: Python<'_>, key: OwnKey, record: &[u8]) -> PyResult<()> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        // Of an error alone the interpreter is told.
        match records.push(key.borrow(), record) {
            Ok(()) => Ok(()),
            Err(error) => work(py, || Err(error)),
        }
    }

    /// The table, in a new file or in memory.
    fn write(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        record_bytes: usize,
    ) -> PyResult<PyKeyedTable> {
        let table = work(py, || {
            let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            let keys = self.keys.as_deref();
            let Some(path) = path else {
                let mut file = Cursor::new(Vec::new());
                write_table(&records, keys, record_bytes, Path::new("(memory)"), &mut file)?;
                return KeyedTable::from_bytes(file.into_inner());
            };
            let mut file = create(&path)?;
            write_table(&records, keys, record_bytes, &path, &mut file)?;
            file.sync_all().map_err(failed(&path))?;
            KeyedTable::open(&path)
        })?;
        Ok(PyKeyedTable::new(table))
    }
}

fn create(path: &Path) -> Result<File, Error> {
    File::create_new(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| {
        Error::Store(StoreError::Io { operation: "write the table", path: path.clone(), source })
    }
}

/// A table, and a server's half of lookups in it.
#[pyclass(name = "KeyedTable", module = "ciphervec._native", frozen)]
pub struct PyKeyedTable {
    table: KeyedTable,
    served: OnceLock<FetchTable>,
    /// The keys that came last, by their hash.
    keys: Mutex<Option<([u8; 32], FetchKeys)>>,
}

impl PyKeyedTable {
    fn new(table: KeyedTable) -> Self {
        Self { table, served: OnceLock::new(), keys: Mutex::new(None) }
    }

    fn served(&self) -> Result<&FetchTable, Error> {
        if let Some(served) = self.served.get() {
            return Ok(served);
        }
        let made = self.table.served()?;
        Ok(self.served.get_or_init(|| made))
    }

    fn fetch_keys(&self, bytes: &[u8]) -> Result<FetchKeys, Error> {
        let hash = *blake3::hash(bytes).as_bytes();
        let mut held = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keys)) = held.as_ref().filter(|(of, _)| *of == hash) {
            return Ok(keys.clone());
        }
        let keys = FetchKeys::from_bytes(bytes)?;
        *held = Some((hash, keys.clone()));
        Ok(keys)
    }
}

#[pymethods]
impl PyKeyedTable {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        work(py, || KeyedTable::open(&path)).map(Self::new)
    }

    fn description<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.table.description().to_bytes())
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = facts(py, self.table.description())?;
        out.set_item("bytes", self.table.byte_len())?;
        Ok(out)
    }

    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        work(py, || self.table.verify())
    }

    /// The record of a key, in the clear.
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: OwnKey,
        keys: Option<&PyKeys>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keys = shared(keys);
        let record = work(py, || read_record(&self.table, keys.as_deref(), key.borrow()))?;
        Ok(record.map(|record| PyBytes::new(py, &record)))
    }

    /// The answer to one query, with its client's evaluation keys.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        keys: &[u8],
        query: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let answer = work(py, || self.served()?.answer(&self.fetch_keys(keys)?, query))?;
        Ok(PyBytes::new(py, &answer))
    }

    /// Writes all of it to a new file.
    fn copy_to(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        work(py, || {
            let mut file = create(&path)?;
            self.table.copy_to(&path, &mut file)?;
            file.flush().and_then(|()| file.sync_all()).map_err(failed(&path))
        })
    }
}

/// A client's half of lookups.
#[pyclass(name = "KeyedClient", module = "ciphervec._native", frozen)]
pub struct PyKeyedClient(Mutex<KeyedClient>);

/// What a lookup asked for.
#[pyclass(name = "AskedKeys", module = "ciphervec._native", frozen)]
pub struct PyAskedKeys(AskedKeys);

impl PyKeyedClient {
    fn client(&self) -> MutexGuard<'_, KeyedClient> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyKeyedClient {
    #[new]
    fn new(py: Python<'_>, description: &[u8], keys: Option<&PyKeys>) -> PyResult<Self> {
        let keys = shared(keys);
        let made = || KeyedClient::new(Description::from_bytes(description)?, keys.as_deref());
        work(py, made).map(|client| Self(Mutex::new(client)))
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let description = py.detach(|| self.client().description().clone());
        facts(py, &description)
    }

    /// What was asked for, and queries.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<OwnKey>,
        bound: usize,
    ) -> PyResult<(PyAskedKeys, Vec<Bound<'py, PyBytes>>)> {
        let (asked, queries) = work(py, || {
            let keys: Vec<_> = keys.iter().map(OwnKey::borrow).collect();
            let mut client = self.client();
            client.renew_for(keys.len(), bound)?;
            client.ask(&keys, bound)
        })?;
        let queries = queries.iter().map(|query| PyBytes::new(py, query)).collect();
        Ok((PyAskedKeys(asked), queries))
    }

    fn open<'py>(
        &self,
        py: Python<'py>,
        asked: &PyAskedKeys,
        answers: Vec<Vec<u8>>,
    ) -> PyResult<Found<'py>> {
        let records = work(py, || self.client().open(&asked.0, &answers))?;
        Ok(found(py, records))
    }
}

#[pymethods]
impl PyAskedKeys {
    /// What the server needs to answer the queries.
    fn evaluation_keys<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.evaluation_keys())
    }
}

/// A table on a server.
#[pyclass(name = "RemoteTable", module = "ciphervec._native", frozen)]
pub struct PyRemoteTable(pub Remote);

#[pymethods]
impl PyRemoteTable {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let description = py.detach(|| self.0.description());
        facts(py, &description)
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        keys: Vec<OwnKey>,
        bound: Option<usize>,
    ) -> PyResult<Found<'py>> {
        let records = run(py, host, async |host| {
            let keys: Vec<_> = keys.iter().map(OwnKey::borrow).collect();
            self.0.get(host, &keys, bound).await
        })?;
        Ok(found(py, records))
    }

    /// How many lookups failed a check, and whether none is made any more.
    fn failures(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<(u32, bool)> {
        let failures = run(py, host, async |host| self.0.failures(host).await)?;
        Ok((failures.count, failures.ended))
    }

    fn resume(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<()> {
        run(py, host, async |host| self.0.resume(host).await)
    }
}

/// A row of a listing.
pub fn row<'py>(py: Python<'py>, row: &TableRow) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", &row.name)?;
    out.set_item("records", row.records)?;
    out.set_item("record_bytes", row.record_bytes)?;
    out.set_item("sealed", row.sealed)?;
    out.set_item("bytes", row.bytes)?;
    out.set_item("fingerprint", &row.fingerprint)?;
    Ok(out)
}
