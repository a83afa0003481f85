//! Thread counts and back-ends: which part of the machine the work runs on; both sides.

use std::mem::forget;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use ciphervec_arith::backend::Backend;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::errors::{InvalidInput, Raise};

/// A pool and the process that made it.
type Owned = Option<(u32, Arc<ThreadPool>)>;

/// The pool, and the threads asked for (0: one per core).
static POOL: Mutex<(Owned, usize)> = Mutex::new((None, 0));

/// Runs `work` on the threads that `set_threads` asked for, or on all of them.
///
/// The pool is ours and belongs to one process: Python programs fork, a forked child has none of its parent's
/// threads, and work handed to rayon's global pool would wait for them forever.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Begins `work` on these threads, and does not wait for it; it may be left out.
pub fn spawn(work: Box<dyn FnOnce() + Send>) {
    if let Some(pool) = pool() {
        pool.spawn(work);
    }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let mut state = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let (pool, threads) = &mut *state;
    if let Some((_, stale)) = pool.take_if(|(owner, _)| *owner != process::id()) {
        forget(stale); // its threads are not here to be told to stop
    }
    if pool.is_none() {
        *pool = start(*threads).ok().map(|made| (process::id(), made));
    }
    pool.as_ref().map(|(_, pool)| Arc::clone(pool))
}

/// [`run`] without the GIL. Whatever seals, opens, scans or hashes has to come here by this way or the
/// other: a fork that meets rayon's global pool waits for ever. Locks are taken before, never in it:
/// threads that wait for one may be those that its holder waits for.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| run(work))
}

fn start(threads: usize) -> Result<Arc<ThreadPool>, ThreadPoolBuildError> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    Ok(Arc::new(builder.thread_name(|index| format!("ciphervec-{index}")).build()?))
}

/// Sets how many threads sealing, scanning and opening use, in the whole process.
#[pyfunction]
pub fn set_threads(threads: isize) -> PyResult<()> {
    let count = usize::try_from(threads).ok().filter(|count| (1..=1024).contains(count));
    let Some(count) = count else {
        return Err(InvalidInput::new_err(format!("threads must be 1 to 1024, got {threads}")));
    };
    let pool = start(count).map_err(|error| {
        InvalidInput::new_err(format!("cannot start {count} threads: {error}; ask for fewer"))
    })?;
    let old = {
        let mut state = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = count;
        state.0.replace((process::id(), pool))
    };
    if let Some((_, stale)) = old.filter(|(owner, _)| *owner != process::id()) {
        forget(stale);
    }
    Ok(())
}

/// How many threads the work uses.
#[pyfunction]
pub fn get_threads() -> usize {
    run(rayon::current_num_threads)
}

/// The instruction set in use: `portable`, `avx2` or `avx512`. `CIPHERVEC_BACKEND` forces one.
#[pyfunction]
pub fn backend() -> &'static str {
    Backend::current().name()
}

/// The instruction sets that this machine can run.
#[pyfunction]
pub fn available_backends() -> Vec<&'static str> {
    Backend::available().into_iter().map(Backend::name).collect()
}

/// Refuses an unknown or unsupported `CIPHERVEC_BACKEND` while the module is imported.
pub fn check_backend() -> PyResult<()> {
    Backend::from_env().map(drop).map_err(Raise::raise)
}
