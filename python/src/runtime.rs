//! Thread counts and back-ends: which part of the machine the work runs on; both sides.

use std::sync::{Arc, PoisonError, RwLock};

use ciphervec_arith::backend::Backend;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{InvalidInput, Raise};

static POOL: RwLock<Option<Arc<ThreadPool>>> = RwLock::new(None);

/// Runs `work` on the threads that `set_threads` asked for, or on all of them.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = POOL.read().unwrap_or_else(PoisonError::into_inner).clone();
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Sets how many threads sealing, scanning and opening use, in the whole process.
#[pyfunction]
pub fn set_threads(threads: isize) -> PyResult<()> {
    let count = usize::try_from(threads).ok().filter(|count| (1..=1024).contains(count));
    let Some(count) = count else {
        return Err(InvalidInput::new_err(format!("threads must be 1 to 1024, got {threads}")));
    };
    let pool = ThreadPoolBuilder::new()
        .num_threads(count)
        .thread_name(|index| format!("ciphervec-{index}"))
        .build()
        .map_err(|error| InvalidInput::new_err(format!("cannot start {count} threads: {error}")))?;
    *POOL.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pool));
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
