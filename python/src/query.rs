//! Queries for Python, and what opens their answers, whole or as they come: ids, distances and scores.

use std::sync::{Arc, Mutex, PoisonError};

use ciphervec_client::{AnswerReceiver, AskedQuery, Host, OpenedAnswer, OwnersHalf};
use ciphervec_owner::SegmentId;
use ciphervec_owner::search::OwnerTimings;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::client::{Answered, PyCallHost, answered, run};
use crate::errors::Raise;

/// A batch of queries: bytes for the server, and what opening the answer needs.
#[pyclass(name = "SealedQuery", module = "ciphervec._native", frozen)]
pub struct PySealedQuery {
    pub query: AskedQuery,
    opened: Mutex<Option<OwnerTimings>>,
}

impl PySealedQuery {
    pub fn new(query: AskedQuery) -> Self {
        Self { query, opened: Mutex::new(None) }
    }

    /// Keeps what opening an answer took.
    fn note(&self, timings: OwnerTimings) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(timings);
    }
}

#[pymethods]
impl PySealedQuery {
    #[getter]
    fn nbytes(&self) -> usize {
        self.query.query().to_bytes().len()
    }

    #[getter]
    fn rows(&self) -> usize {
        self.query.query().len()
    }

    /// Of the query key.
    #[getter]
    fn epoch(&self) -> u32 {
        self.query.epoch()
    }

    /// The segments that it names; None where it is about all of them.
    #[getter]
    fn segments<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        let named = self.query.query().segments()?;
        Some(named.iter().map(|id| PyBytes::new(py, &id.0)).collect())
    }

    /// Bytes of the halves of its answers that were fetched ahead; 0 where it is answered whole.
    #[getter]
    fn ahead(&self) -> usize {
        self.query.query().ahead()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.query.query().to_bytes())
    }

    /// Which rows the filter chooses, by the owner's own tags: for each segment its id and a byte a row. Only the first word
    /// counts.
    fn expect_matching(&self, rows: Vec<([u8; 16], Vec<u8>)>) {
        let rows = rows
            .into_iter()
            .map(|(id, rows)| (SegmentId(id), rows.into_iter().map(|one| one != 0).collect()));
        self.query.query().expect_matching(rows);
    }

    /// Milliseconds: `prepare_ms`, and once the answer was opened `decrypt_ms` and `top_k_ms`; and how many rows' noise was taken off
    /// for that, `settled_rows`.
    fn timings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        out.set_item("prepare_ms", self.query.query().seconds() * 1e3)?;
        if let Some(opened) = *self.opened.lock().unwrap_or_else(PoisonError::into_inner) {
            out.set_item("decrypt_ms", opened.decrypt * 1e3)?;
            out.set_item("top_k_ms", opened.rank * 1e3)?;
            out.set_item("settled_rows", opened.settled)?;
        }
        Ok(out)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a sealed query holds secrets and can't be pickled; send its to_bytes()",
        ))
    }
}

/// What an answer says, and whether that depends on rows and queries alone; its query notes what opening it took.
pub fn noted<'py>(
    py: Python<'py>,
    query: &PySealedQuery,
    (opened, timings): (OpenedAnswer, OwnerTimings),
) -> PyResult<(Answered<'py>, bool)> {
    query.note(timings);
    let exact = opened.exact;
    Ok((answered(py, opened)?, exact))
}

/// Opens one answer as it comes.
#[pyclass(name = "AnswerOpener", module = "ciphervec._native", frozen)]
pub struct PyAnswerOpener {
    half: Arc<OwnersHalf>,
    query: Py<PySealedQuery>,
    receiver: AnswerReceiver,
}

impl PyAnswerOpener {
    pub fn new(half: Arc<OwnersHalf>, query: Py<PySealedQuery>, receiver: AnswerReceiver) -> Self {
        Self { half, query, receiver }
    }
}

#[pymethods]
impl PyAnswerOpener {
    /// Begins anew: what was written is forgotten. Raises TamperedAnswer or MismatchedAnswer if it has failed its check already.
    fn restart(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.receiver.restart()).map_err(Raise::raise)
    }

    /// The next bytes of the answer. Waits while those before are opened.
    fn write(&self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        let piece = piece.to_vec();
        py.detach(|| self.receiver.write(piece)).map_err(Raise::raise)
    }

    /// What was written is the whole answer. Raises as `Owner.open`.
    fn finish<'py>(&self, py: Python<'py>, host: &PyCallHost) -> PyResult<(Answered<'py>, bool)> {
        let query = self.query.get();
        let finish = async |host: &dyn Host| self.half.finish(host, &query.query, &self.receiver);
        noted(py, query, run(py, host, finish)?)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an opener holds secrets and can't be pickled"))
    }
}
