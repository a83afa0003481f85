//! Receiver: one answer is opened on a thread of its own, as it comes; whoever writes its bytes waits while those before are opened.

use std::io::{self, Read};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use ciphervec_owner::Error as SchemeError;
use ciphervec_owner::search::{OpenOptions, Opened, Owner, Query, SegmentDirectory};

use crate::error::{Error, Result};
use crate::half::opening::Opening;
use crate::threads::runner;

/// Pieces that wait to be opened.
const WAITING: usize = 2;

/// What is opened, of whom and for what. Everything that an answer is compared with is as it was when this was made.
struct Task {
    owner: Arc<Owner>,
    query: Arc<Query>,
    directory: SegmentDirectory,
    opening: Opening,
    /// Whether the server is in this process.
    local: bool,
}

type Ended = ciphervec_owner::Result<Opened>;

impl Task {
    fn open(&self, pieces: Receiver<Vec<u8>>) -> Ended {
        let wanted = OpenOptions {
            retrieval: self.opening.retrieval,
            selection: self.opening.selection.as_deref(),
            newer: &[],
            flood: self.opening.flood.as_deref(),
        };
        let mut pieces = Pieces { pieces, piece: Vec::new(), read: 0 };
        // The threads that open never wait for bytes: they get what has come.
        let open = if self.local { Owner::open_local } else { Owner::open_stream };
        open(&self.owner, &self.query, &mut pieces, &self.directory, &wanted, &runner)
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
    thread: JoinHandle<Ended>,
}

impl Running {
    fn start(task: &Arc<Task>) -> Result<Self> {
        let (pieces, read) = sync_channel(WAITING);
        let task = Arc::clone(task);
        let thread = thread::Builder::new().name("ciphervec-open".to_owned());
        let thread = thread.spawn(move || task.open(read)).map_err(|error| {
            Error::Storage(format!("no thread can be started to open the answer on: {error}."))
        })?;
        Ok(Running { pieces, thread })
    }

    /// Nothing more comes.
    fn end(self) -> Ended {
        drop(self.pieces);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Opens one answer as it comes: no more than a few megabytes of it are in memory. Nothing is given of one that is damaged or does not end.
pub struct AnswerReceiver {
    task: Arc<Task>,
    running: Mutex<Option<Running>>,
}

impl AnswerReceiver {
    pub(super) fn new(
        owner: &Arc<Owner>,
        query: &Arc<Query>,
        directory: SegmentDirectory,
        opening: Opening,
        local: bool,
    ) -> Self {
        let (owner, query) = (Arc::clone(owner), Arc::clone(query));
        let task = Arc::new(Task { owner, query, directory, opening, local });
        AnswerReceiver { task, running: Mutex::new(None) }
    }

    pub(super) fn opening(&self) -> &Opening {
        &self.task.opening
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew: what was written is forgotten.
    ///
    /// # Errors
    /// Where it has failed its check already, which is not.
    pub fn restart(&self) -> Result<()> {
        let before = self.running().take();
        match before.map(Running::end) {
            Some(Err(error @ (SchemeError::Tampered { .. } | SchemeError::Mismatched { .. }))) => {
                Err(error.into())
            }
            Some(Ok(Opened { disqualified: segments, .. })) if !segments.is_empty() => {
                Err(SchemeError::Tampered { segments }.into())
            }
            _ => Ok(()),
        }
    }

    /// The next bytes of the answer.
    ///
    /// # Errors
    /// [`Error::Storage`] where no thread can be started.
    pub fn write(&self, piece: Vec<u8>) -> Result<()> {
        let mut running = self.running();
        let now = match running.take() {
            Some(now) => now,
            None => Running::start(&self.task)?,
        };
        // A thread that has ended knows what is wrong, and says so at the end.
        running.insert(now).pieces.send(piece).ok();
        Ok(())
    }

    /// What was written is the whole answer.
    pub(super) fn finish(&self) -> Result<Opened> {
        let running = match self.running().take() {
            Some(running) => running,
            None => Running::start(&self.task)?,
        };
        Ok(running.end()?)
    }
}

impl Drop for AnswerReceiver {
    fn drop(&mut self) {
        if let Some(Running { pieces, thread }) = self.running().take() {
            drop(pieces);
            thread.join().ok();
        }
    }
}
