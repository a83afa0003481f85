//! The world as the core asks for it: requests, warnings and progress go to a Python object, what is remembered to a folder.

use core::any::Any;
use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ciphervec_client::{
    COUNTS, Error, FORMER_COUNTS, Head, Host, Later, Lost, Note, Progress, Request, Result, Sink,
    Storage, block_on, budgets,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::audit::PyAuditLog;
use crate::errors::Raise;
use crate::runtime;

mod python {
    pyo3::import_exception!(ciphervec.http.transport_types, Lost);
}

type Attempt<T> = core::result::Result<T, Lost>;

/// What clients of one user remember, in a folder or in memory.
#[pyclass(name = "Storage", module = "ciphervec._native", frozen)]
pub struct PyStorage(pub Arc<Storage>);

#[pymethods]
impl PyStorage {
    /// In a folder, which is made, at once unless `later`; without one in memory. Raises StorageError.
    #[new]
    #[pyo3(signature = (folder = None, *, later = false))]
    fn new(py: Python<'_>, folder: Option<std::path::PathBuf>, later: bool) -> PyResult<Self> {
        let made = py.detach(|| match folder {
            None => Ok(Storage::in_memory()),
            Some(folder) if later => Ok(Storage::unmade(folder)),
            Some(folder) => Storage::new(folder),
        });
        made.map(|storage| Self(Arc::new(storage))).map_err(Raise::raise)
    }

    /// What is counted here of results for others: the secret, scores used, and allowed where that is known. Raises StorageError, CorruptData.
    fn budgets(&self, py: Python<'_>) -> PyResult<Vec<(String, u64, Option<u64>)>> {
        let found = py.detach(|| budgets(&self.0)).map_err(Raise::raise)?;
        Ok(found.into_iter().map(|one| (one.name, one.used, one.allowed)).collect())
    }
}

/// What one client's calls are done under.
#[pyclass(name = "CallHost", module = "ciphervec._native", frozen)]
pub struct PyCallHost {
    object: Py<PyAny>,
    storage: Arc<Storage>,
    counts: Arc<Storage>,
    log: Option<Py<PyAuditLog>>,
    began: Instant,
}

impl PyCallHost {
    fn storage(&self, name: &str) -> &Storage {
        if name.starts_with(COUNTS) { &self.counts } else { &self.storage }
    }
}

#[pymethods]
impl PyCallHost {
    /// `object` has `send(method, url, headers, body, seconds)`, which returns an answer with `status`, `headers`, `read()` and `close()`
    /// or raises Lost; `sleep(seconds)`; `check()`, which raises what ends a call; `warn(text)`; `progress(phase, done, total)`;
    /// `noted(count, sent, received)` when it ends.
    /// `former_counts(spec)` gives what a former release counted of that, of the index of this description in hexadecimal digits; or None.
    /// `counts` is where it is counted now what others were shown; `log` has a line of each call, if there is one.
    #[new]
    #[pyo3(signature = (object, storage, counts, log = None))]
    fn new(
        object: Py<PyAny>,
        storage: &PyStorage,
        counts: &PyStorage,
        log: Option<Py<PyAuditLog>>,
    ) -> Self {
        let (storage, counts) = (Arc::clone(&storage.0), Arc::clone(&counts.0));
        Self { object, storage, counts, log, began: Instant::now() }
    }
}

/// One call.
struct Calling<'a> {
    host: &'a PyCallHost,
    /// What Python raised, which ends the call.
    raised: Mutex<Option<PyErr>>,
    /// Bytes of bodies.
    sent: AtomicU64,
    received: AtomicU64,
}

/// Runs what the core does to its end, without the GIL. What Python raises meanwhile ends it, and is raised.
pub fn run<T: Send>(
    py: Python<'_>,
    host: &PyCallHost,
    work: impl AsyncFnOnce(&dyn Host) -> Result<T> + Send,
) -> PyResult<T> {
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let calling = Calling { host, raised: Mutex::new(None), sent, received };
    let done = py.detach(|| block_on(work(&calling)));
    match calling.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => done.map_err(Raise::raise),
    }
}

impl Calling<'_> {
    fn keep(&self, error: PyErr) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.get_or_insert(error);
    }

    fn ended(&self, error: PyErr) -> Error {
        let says = error.to_string();
        self.keep(error);
        Error::Ended(says)
    }

    /// Whether the server may have seen the request; anything but a lost connection ends the call.
    fn lost(&self, py: Python<'_>, error: PyErr) -> Lost {
        if error.is_instance_of::<python::Lost>(py) {
            let value = error.value(py);
            let truth =
                |name: &str| value.getattr(name).and_then(|one| one.is_truthy()).unwrap_or(false);
            let (sent, last) = (truth("sent"), truth("final"));
            return Lost { says: error.value(py).to_string(), sent, last, ended: false };
        }
        let says = error.to_string();
        self.keep(error);
        Lost { says, sent: true, last: true, ended: true }
    }

    fn attempt(&self, request: &Request<'_>, within: Duration, sink: &mut dyn Sink) -> Attempt<()> {
        let began = |py: Python<'_>| -> PyResult<(Py<PyAny>, Head)> {
            let body = request.body.map(|body| PyBytes::new(py, body));
            let headers: Vec<_> =
                request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let given = (request.method, &request.url, headers, body, within.as_secs_f64());
            let answer = self.host.object.bind(py).call_method1("send", given)?;
            let status = answer.getattr("status")?.extract()?;
            let headers = answer.getattr("headers")?.extract()?;
            Ok((answer.unbind(), Head { status, headers }))
        };
        let length = request.body.map_or(0, |body| body.len() as u64);
        self.sent.fetch_add(length, Ordering::Relaxed);
        let (answer, head) = Python::attach(|py| began(py).map_err(|error| self.lost(py, error)))?;
        let read = || {
            Python::attach(|py| -> Attempt<Option<Vec<u8>>> {
                let piece = answer.bind(py).call_method0("read");
                let piece = piece.and_then(|piece| piece.extract::<Option<Vec<u8>>>());
                piece.map_err(|error| self.lost(py, error))
            })
        };
        let mut taken = || {
            sink.begin(&head)?;
            while let Some(piece) = read()? {
                self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
                sink.take(&piece)?;
            }
            Ok(())
        };
        let taken: Attempt<()> = taken();
        let closed = Python::attach(|py| {
            answer.bind(py).call_method0("close").map(drop).map_err(|error| self.lost(py, error))
        });
        taken.and(closed)
    }

    fn told(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        Python::attach(|py| {
            if let Err(error) = call(self.host.object.bind(py)) {
                self.keep(error);
            }
        });
    }
}

impl Host for Calling<'_> {
    fn send<'a>(
        &'a self,
        request: &'a Request<'a>,
        within: Duration,
        sink: &'a mut dyn Sink,
    ) -> Later<'a, Attempt<()>> {
        Box::pin(async move { self.attempt(request, within, sink) })
    }

    fn sleep(&self, time: Duration) -> Later<'_, Result<()>> {
        Box::pin(async move {
            Python::attach(|py| {
                let slept = self.host.object.bind(py).call_method1("sleep", (time.as_secs_f64(),));
                slept.map(drop).map_err(|error| self.ended(error))
            })
        })
    }

    fn now(&self) -> Duration {
        self.host.began.elapsed()
    }

    fn clock(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn get<'a>(&'a self, name: &'a str) -> Later<'a, Result<Option<Vec<u8>>>> {
        let done = match name.strip_prefix(FORMER_COUNTS) {
            Some(spec) => Python::attach(|py| {
                let found = self.host.object.bind(py).call_method1("former_counts", (spec,));
                found.and_then(|found| found.extract()).map_err(|error| self.ended(error))
            }),
            None => self.host.storage(name).get(name),
        };
        Box::pin(async move { done })
    }

    fn put<'a>(&'a self, name: &'a str, data: &'a [u8]) -> Later<'a, Result<()>> {
        let done = self.host.storage(name).put(name, data);
        Box::pin(async move { done })
    }

    fn delete<'a>(&'a self, name: &'a str) -> Later<'a, Result<()>> {
        let done = self.host.storage(name).delete(name);
        Box::pin(async move { done })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Later<'a, Result<Vec<(String, u64)>>> {
        let done = self.host.storage(prefix).list(prefix);
        Box::pin(async move { done })
    }

    fn lengths<'a>(
        &'a self,
        prefix: &'a str,
        names: &'a [String],
    ) -> Later<'a, Result<Vec<Option<u64>>>> {
        let done = self.host.storage(prefix).lengths(names);
        Box::pin(async move { done })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Later<'a, Result<Box<dyn Any>>> {
        let done = self.host.storage(name).lock(name);
        Box::pin(async move { done })
    }

    fn process(&self) -> u64 {
        std::process::id().into()
    }

    fn durable(&self) -> bool {
        self.host.storage.durable()
    }

    fn counts(&self) -> bool {
        self.host.counts.durable()
    }

    fn warn(&self, text: &str) {
        self.told(|object| object.call_method1("warn", (text,)).map(drop));
    }

    fn note(&self, note: &Note<'_>) {
        let (sent, received) =
            (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        let told = (note.count, sent, received);
        self.told(|object| object.call_method1("noted", told).map(drop));
        let Some(log) = &self.host.log else { return };
        let time = self.clock().as_millis() as f64 / 1e3;
        if let Err(error) = log.get().note(&note.line(time, sent, received)) {
            self.warn(&format!("what this client did is not in its log: {error}."));
        }
    }

    fn progress(&self, Progress { phase, done, total, .. }: Progress) {
        self.told(|object| object.call_method1("progress", (phase, done, total)).map(drop));
    }

    fn meanwhile(&self, work: Box<dyn FnOnce() + Send>) {
        runtime::spawn(work);
    }

    fn check(&self) -> Result<()> {
        let ended = Python::attach(|py| {
            py.check_signals()?;
            self.host.object.bind(py).call_method0("check").map(drop)
        });
        if let Err(error) = ended {
            return Err(self.ended(error));
        }
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        match raised.is_some() {
            true => Err(Error::Ended("the call was ended.".to_owned())),
            false => Ok(()),
        }
    }
}
