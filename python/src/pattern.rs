//! Regular expressions in time linear in the text, whatever the pattern: a stranger may write it.

use pyo3::prelude::*;
use regex::{Regex, RegexBuilder};

use crate::errors::InvalidInput;

/// Bytes that a compiled pattern takes at most: what a character of a text may cost grows with it.
const MOST: usize = 1 << 20;

/// A regular expression in the syntax of Rust's crate `regex`, which Chroma's server reads too: no references
/// back, no looking around.
#[pyclass(frozen, module = "ciphervec._native", name = "Pattern")]
pub struct PyPattern(Regex);

#[pymethods]
impl PyPattern {
    #[new]
    fn new(pattern: &str) -> PyResult<Self> {
        let built = RegexBuilder::new(pattern).size_limit(MOST).build();
        built.map(Self).map_err(|error| InvalidInput::new_err(error.to_string()))
    }

    /// Whether it is found anywhere in `text`. Other threads go on meanwhile.
    fn found_in(&self, py: Python<'_>, text: &str) -> bool {
        py.detach(|| self.0.is_match(text))
    }
}
