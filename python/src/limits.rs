//! Limits of those who ask a service in Python, and what each uses of them: the code that `ciphervec serve` counts by.
//! No secret.

use crate::errors::InvalidInput;
use ciphervec_server::auth::{Accounts, Asked, InFlightGuard, Limits, Turned};
use ciphervec_server::http::Problem;
use pyo3::import_exception;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

import_exception!(ciphervec.ingest.limits, OverLimit);

/// How often accounts are looked through for those that begin anew just as well.
const SWEEP: Duration = Duration::from_secs(600);

/// What a sender may use.
#[pyclass(name = "Limits", module = "ciphervec._native", frozen)]
pub struct PyLimits(pub Limits);

#[pymethods]
impl PyLimits {
    /// Reads a JSON object, as in a file of issuers. Raises InvalidInput.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let read = Limits::from_json(text);
        read.map(PyLimits)
            .map_err(|why| InvalidInput::new_err(format!("these limits are none: {why}.")))
    }

    /// The smaller of both, limit by limit.
    fn least(&self, other: &Self) -> Self {
        PyLimits(self.0.least(other.0))
    }

    /// Whether what is stored is limited.
    #[getter]
    fn of_storage(&self) -> bool {
        self.0.of_storage()
    }

    /// Lets bytes and rows come, where there are so many after it. Raises OverLimit.
    fn room(&self, adds: [u64; 2], after: [u64; 2]) -> PyResult<()> {
        self.0.room(adds, after).map_err(|full| raised(Turned::Full(full)))
    }
}

/// What senders have used.
#[pyclass(name = "Accounts", module = "ciphervec._native", frozen)]
pub struct PyAccounts {
    accounts: Arc<Accounts>,
    swept: Mutex<Instant>,
}

#[pymethods]
impl PyAccounts {
    /// `usage` is a file where the queries of days are counted; None where nobody has a day's.
    #[new]
    fn new(usage: Option<PathBuf>) -> Self {
        let accounts = Arc::new(Accounts::new(usize::MAX, usage.as_deref()));
        PyAccounts { accounts, swept: Mutex::new(Instant::now()) }
    }

    /// One more request of that sender, until `leave`. Raises OverLimit.
    fn enter(&self, py: Python<'_>, id: &str, limits: &PyLimits) -> PyResult<PyEntered> {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = swept.elapsed() > SWEEP;
        if is_due {
            *swept = Instant::now();
        }
        // Others wait for it with the interpreter's lock, which the sweep lets go of and takes again.
        drop(swept);
        if is_due {
            py.detach(|| self.accounts.sweep());
        }
        let entered = self.accounts.enter(id, &limits.0);
        entered.map(|guard| PyEntered(Mutex::new(Some(guard)))).map_err(raised)
    }

    /// So many queries more of that sender, which are on the disk now; None where it has no day's. Raises OverLimit.
    fn ask(
        &self,
        py: Python<'_>,
        id: &str,
        limits: &PyLimits,
        queries: u64,
    ) -> PyResult<Option<PyAsked>> {
        let Some(quota) = limits.0.queries_per_day else { return Ok(None) };
        let asked = py.detach(|| self.accounts.ask_and_wait(id, quota, queries));
        asked.map(|asked| Some(PyAsked(Mutex::new(Some(asked))))).map_err(raised)
    }

    /// Notes exactly what was asked, before the service ends.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.accounts.close());
    }
}

/// A request under way.
#[pyclass(name = "Entered", module = "ciphervec._native", frozen)]
pub struct PyEntered(Mutex<Option<InFlightGuard>>);

#[pymethods]
impl PyEntered {
    /// It is answered.
    fn leave(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Queries that are counted.
#[pyclass(name = "Asked", module = "ciphervec._native", frozen)]
pub struct PyAsked(Mutex<Option<Asked>>);

#[pymethods]
impl PyAsked {
    /// They answered nothing, and can be asked again. Once.
    fn take_back(&self) {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        asked.into_iter().for_each(Asked::take_back);
    }
}

/// The exception, with what an answer of `ciphervec serve` would say, and the cause for the log of the service.
fn raised(turned: Turned) -> PyErr {
    let cause = match &turned {
        Turned::Uncounted(why) => Some(why.clone()),
        _ => None,
    };
    let problem = Problem::from(turned);
    let message = format!("{}.", problem.detail());
    OverLimit::new_err((
        message,
        problem.status().as_u16(),
        problem.reached(),
        problem.pause(),
        cause,
    ))
}
