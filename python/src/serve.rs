//! Runs the server's program from Python, without the GIL, and returns its exit code.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs `serve` or `token` with these words, the program's name first, and returns the exit code.
#[pyfunction]
pub fn run_server(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| ciphervec_server::cli::run(arguments))
}
