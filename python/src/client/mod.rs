//! Collections as the core has them, for the Python package: arrays and JSON text cross, and the core does the rest.

mod answers;
mod collection;
mod facts;
mod host;
mod keyed;
mod members;
pub mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ciphervec_client::{Choices, Client, ClientOptions, Face, Holder};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

pub use answers::{Answered, PyQuery, answered};
pub use collection::PyCollection;
pub use host::{PyCallHost, PyStorage, run};
pub use keyed::{PyAskedKeys, PyKeyedClient, PyKeyedRecords, PyKeyedTable, PyRemoteTable};
pub use members::PyMembers;

pub use crate::client::values::{audience, network};
use crate::client::values::{choices, fetch};
use crate::errors::Raise;
use crate::keys::PyKeys;
use crate::runtime;
use crate::sharing::PyIdentity;

/// Collections on a server, in a folder or in memory.
#[pyclass(name = "Client", module = "ciphervec._native", frozen)]
pub struct PyClient(Client);

/// Name, rows, bytes.
type Listed = (String, u64, u64);
/// Id, rows, deleted ones, bytes by blob.
type Segment = (String, u32, usize, BTreeMap<String, u64>);

/// What opens collections: keys, or a person who is a member.
#[derive(FromPyObject)]
enum PyHolder<'py> {
    Keys(PyRef<'py, PyKeys>),
    Member(PyRef<'py, PyIdentity>),
}

fn holder(holder: Option<PyHolder<'_>>) -> Option<Holder> {
    holder.map(|holder| match holder {
        PyHolder::Keys(keys) => Arc::clone(&keys.0).into(),
        PyHolder::Member(identity) => Arc::clone(&identity.0).into(),
    })
}

/// Has the core do its work on this module's threads.
pub fn start() {
    ciphervec_client::run_on(|work| runtime::run(work));
}

/// That this is a standard deviation of the noise that scores for others may carry. Raises InvalidInput.
#[pyfunction]
pub fn check_flooding(deviation: f64) -> PyResult<()> {
    ciphervec_client::check_deviation(deviation).map_err(Raise::raise)
}

#[pymethods]
impl PyClient {
    /// On a server that holds no key. Nothing is sent yet. `timeout` is in seconds; `fetch` is auto, private, rows, segments or collection.
    /// Raises InvalidInput.
    #[staticmethod]
    #[pyo3(signature = (url, keys, token, *, insecure, timeout, retries, cache_bytes, fetch = "auto", queries_per_key = 1024))]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of one Python call")]
    fn on_server(
        url: String,
        keys: Option<PyHolder<'_>>,
        token: Option<String>,
        insecure: bool,
        timeout: f64,
        retries: u32,
        cache_bytes: u64,
        fetch: &str,
        queries_per_key: usize,
    ) -> PyResult<Self> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX);
        let made = ClientOptions {
            keys: holder(keys),
            token,
            insecure,
            timeout,
            retries,
            cache_bytes,
            fetch: self::fetch(fetch)?,
            queries_per_key,
            ..ClientOptions::new(url)
        };
        Client::new(ClientOptions { face: Face::Python, ..made }).map(Self).map_err(Raise::raise)
    }

    /// In a folder, which this process searches itself. Raises StorageError.
    #[staticmethod]
    fn in_folder(
        py: Python<'_>,
        folder: PathBuf,
        keys: Option<PyHolder<'_>>,
        read_only: bool,
    ) -> PyResult<Self> {
        let keys = holder(keys);
        py.detach(|| Client::in_folder(Face::Python, folder, keys, read_only))
            .map(Self)
            .map_err(Raise::raise)
    }

    /// In memory.
    #[staticmethod]
    fn in_memory(keys: Option<PyHolder<'_>>) -> PyResult<Self> {
        Client::in_memory(Face::Python, holder(keys)).map(Self).map_err(Raise::raise)
    }

    /// Shows the server another token from now on. Raises InvalidInput.
    fn set_token(&self, token: &str) -> PyResult<()> {
        self.0.set_token(token).map_err(Raise::raise)
    }

    /// A server's URL, or a folder.
    #[getter]
    fn place(&self) -> &str {
        self.0.place()
    }

    /// That a collection may be made of these choices. Raises InvalidInput.
    fn check_new(&self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let choices = choices(given)?;
        given.py().detach(|| self.0.check_new(&choices)).map_err(Raise::raise)
    }

    fn create_collection(
        &self,
        host: &PyCallHost,
        given: &Bound<'_, PyAny>,
    ) -> PyResult<PyCollection> {
        let choices: Choices = choices(given)?;
        run(given.py(), host, async |host| self.0.create_collection(host, &choices).await)
            .map(PyCollection::new)
    }

    fn get_collection(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        name: &str,
        allow_open: bool,
        expect: Option<&str>,
    ) -> PyResult<PyCollection> {
        let get = async |host: &dyn ciphervec_client::Host| {
            self.0.get_collection(host, name, allow_open, expect).await
        };
        run(py, host, get).map(PyCollection::new)
    }

    /// Every collection that the token may see.
    fn list_collections(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<Vec<Listed>> {
        let rows = run(py, host, async |host| self.0.list_collections(host).await)?;
        Ok(rows.into_iter().map(|row| (row.name, row.rows, row.bytes)).collect())
    }

    fn delete_collection(&self, py: Python<'_>, host: &PyCallHost, name: &str) -> PyResult<()> {
        run(py, host, async |host| self.0.delete_collection(host, name).await)
    }

    fn accept_restore(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        name: &str,
    ) -> PyResult<PyCollection> {
        run(py, host, async |host| self.0.accept_restore(host, name).await).map(PyCollection::new)
    }

    /// Copies one state of a collection, sealed as it is, to what another client has; its rows. It takes no key.
    fn copy_to(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        name: &str,
        target: &PyClient,
    ) -> PyResult<u64> {
        run(py, host, async |host| self.0.copy_to(host, name, &target.0).await)
    }

    /// The description's bytes, and of each segment its id in hexadecimal, rows, deleted ones among them, bytes by blob. It takes no key.
    fn look<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        name: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Segment>)> {
        let look = run(py, host, async |host| self.0.look(host, name).await)?;
        let segments = look.segments.into_iter();
        let segments = segments.map(|one| (one.id, one.rows, one.deleted, one.bytes));
        Ok((PyBytes::new(py, &look.meta), segments.collect()))
    }

    /// Opens a keyed table on the server. `fingerprint` is its publisher's; without one it must be that which was seen first.
    fn get_table(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        name: &str,
        fingerprint: Option<&str>,
    ) -> PyResult<PyRemoteTable> {
        let get = async |host: &dyn ciphervec_client::Host| {
            self.0.get_table(host, name, fingerprint).await
        };
        run(py, host, get).map(PyRemoteTable)
    }

    fn list_tables<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = run(py, host, async |host| self.0.list_tables(host).await)?;
        rows.iter().map(|row| keyed::row(py, row)).collect()
    }

    /// Stores a table's file on the server.
    fn put_table<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        name: &str,
        file: &[u8],
    ) -> PyResult<Bound<'py, PyDict>> {
        let row = run(py, host, async |host| self.0.put_table(host, name, file).await)?;
        keyed::row(py, &row)
    }

    fn delete_table(&self, py: Python<'_>, host: &PyCallHost, name: &str) -> PyResult<()> {
        run(py, host, async |host| self.0.delete_table(host, name).await)
    }

    /// Files, bytes, files that nothing refers to. It takes no key. Raises CorruptData naming every fault.
    fn verify(&self, py: Python<'_>, host: &PyCallHost, name: &str) -> PyResult<(u64, u64, u64)> {
        let found = run(py, host, async |host| self.0.verify(host, name).await)?;
        Ok((found.files, found.bytes, found.strays))
    }

    fn forget(&self, py: Python<'_>, host: &PyCallHost, name: &str) -> PyResult<()> {
        run(py, host, async |host| self.0.forget(host, name).await)
    }
}
