//! A command line enters, an exit code leaves: the server's program, without the GIL while it runs.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs `serve` or `token` with these words, the program's name first, and returns the exit code.
#[pyfunction]
pub fn run_server(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| ciphervec_server::cli::run(arguments))
}
