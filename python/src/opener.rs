//! Bytes of an answer enter as they come, ids and scores leave at the end. Owner only.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use ciphervec_owner::Error;
use ciphervec_owner::search::{
    Flood, OpenOptions, Opened, Owner, Retrieval, SegmentDirectory, Selection,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::ids::{self, PyId};
use crate::owner::{Answers, PyOwner, PySealedQuery, answers, retrieval};
use crate::runtime;
use crate::segment_directory::PySegmentDirectory;

/// Pieces that wait to be opened.
const WAITING: usize = 2;

/// What is opened, of whom and for what. Everything that an answer is compared with is as it was when this was made.
struct Task {
    owner: Py<PyOwner>,
    query: Py<PySealedQuery>,
    directory: SegmentDirectory,
    selection: Option<Selection>,
    retrieval: Retrieval,
    flood: Option<f64>,
    /// Whether the server is in this process.
    local: bool,
}

impl Task {
    fn open(&self, pieces: Receiver<Vec<u8>>) -> ciphervec_owner::Result<Opened> {
        let flood = self.flood.map(Flood::new).transpose()?;
        let wanted = OpenOptions {
            retrieval: self.retrieval,
            selection: self.selection.as_ref(),
            newer: &[],
            flood: flood.as_ref(),
        };
        let mut pieces = Pieces { pieces, piece: Vec::new(), read: 0 };
        // The pool's threads never wait for bytes: they get what has come.
        let run = |work: &mut (dyn FnMut() + Send)| runtime::run(work);
        let (owner, query) = (&self.owner.get().0, &self.query.get().query);
        let open = if self.local { Owner::open_local } else { Owner::open_stream };
        open(owner, query, &mut pieces, &self.directory, &wanted, &run)
    }
}

/// The pieces that were written, as one stream.
struct Pieces {
    pieces: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    read: usize,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            match self.pieces.recv() {
                Ok(piece) => (self.piece, self.read) = (piece, 0),
                Err(_) => return Ok(0),
            }
        }
        let count = out.len().min(self.piece.len() - self.read);
        out[..count].copy_from_slice(&self.piece[self.read..][..count]);
        self.read += count;
        Ok(count)
    }
}

/// A thread that opens what is written.
struct Running {
    pieces: SyncSender<Vec<u8>>,
    thread: JoinHandle<ciphervec_owner::Result<Opened>>,
}

impl Running {
    /// Nothing more comes.
    fn end(self) -> thread::Result<ciphervec_owner::Result<Opened>> {
        drop(self.pieces);
        self.thread.join()
    }
}

/// Opens one answer as it comes.
#[pyclass(name = "AnswerOpener", module = "ciphervec._native", frozen)]
pub struct PyAnswerOpener {
    task: Arc<Task>,
    count: Option<usize>,
    running: Mutex<Option<Running>>,
}

impl PyAnswerOpener {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> io::Result<Running> {
        let (pieces, read) = sync_channel(WAITING);
        let task = Arc::clone(&self.task);
        let thread = thread::Builder::new().name("ciphervec-open".to_owned());
        Ok(Running { pieces, thread: thread.spawn(move || task.open(read))? })
    }
}

#[pymethods]
impl PyAnswerOpener {
    /// Of the segments that the directory knows now; otherwise as `Owner.open`. `local`: what `ServerIndex.evaluate_into`
    /// writes in this process, which has no checksum.
    #[new]
    #[pyo3(signature = (owner, query, directory, count = None, threshold = None, allow = None, flood = None, local = false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the keyword arguments of one Python call"
    )]
    fn new(
        py: Python<'_>,
        owner: Py<PyOwner>,
        query: Py<PySealedQuery>,
        directory: &PySegmentDirectory,
        count: Option<usize>,
        threshold: Option<f64>,
        allow: Option<Vec<PyId>>,
        flood: Option<f64>,
        local: bool,
    ) -> PyResult<Self> {
        let retrieval = retrieval(count, threshold)?;
        let allow = allow.map(ids::unwrap);
        let (directory, selection) = py.detach(|| {
            let known = directory.read();
            (known.snapshot(), allow.as_ref().map(|names| known.select(names)))
        });
        let task = Arc::new(Task { owner, query, directory, selection, retrieval, flood, local });
        Ok(PyAnswerOpener { task, count, running: Mutex::new(None) })
    }

    /// Begins anew: what was written is forgotten. Raises TamperedAnswer or MismatchedAnswer if it has failed its check already.
    fn restart(&self, py: Python<'_>) -> PyResult<()> {
        let ended = py.detach(|| {
            let before = self.running().take();
            before.map(Running::end)
        });
        match ended {
            Some(Ok(Err(error @ (Error::Tampered { .. } | Error::Mismatched { .. })))) => {
                Err(error.raise())
            }
            Some(Ok(Ok(Opened { disqualified: segments, .. }))) if !segments.is_empty() => {
                Err(Error::Tampered { segments }.raise())
            }
            _ => Ok(()),
        }
    }

    /// The next bytes of the answer. Waits while those before are opened.
    fn write(&self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        let piece = piece.to_vec();
        py.detach(|| {
            let mut running = self.running();
            if running.is_none() {
                *running = Some(self.start()?);
            }
            // A thread that has ended knows what is wrong, and says so at the end.
            if let Some(running) = running.as_ref() {
                running.pieces.send(piece).ok();
            }
            Ok(())
        })
    }

    /// What was written is the whole answer. Raises as `Owner.open`.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Answers<'py>> {
        let opened = py.detach(|| {
            let mut running = self.running();
            let running = match running.take() {
                Some(running) => running,
                None => self.start()?,
            };
            let ended = running.end();
            ended
                .map_err(|_| PyRuntimeError::new_err("opening the answer has panicked"))?
                .map_err(Raise::raise)
        })?;
        self.task.query.get().note(opened.timings);
        answers(py, opened, self.count)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an opener holds secrets and can't be pickled"))
    }
}

impl Drop for PyAnswerOpener {
    fn drop(&mut self) {
        if let Some(running) = self.running().take() {
            running.end().ok();
        }
    }
}
