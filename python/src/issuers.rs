//! Identity providers of a file of issuers, for services in Python: whom a signed token names. No secret.

use crate::errors::{InvalidInput, ServerError};
use ciphervec_server::auth::issuers::{BlockingIssuers, Verified};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A file of issuers, with the keys that they sign by.
#[pyclass(name = "Issuers", module = "ciphervec._native", frozen)]
pub struct PyIssuers(BlockingIssuers);

#[pymethods]
impl PyIssuers {
    /// Reads a file as that of `ciphervec serve --issuers`. Raises InvalidInput.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let opened = BlockingIssuers::open(&path);
        opened.map(PyIssuers).map_err(|error| InvalidInput::new_err(format!("{error}.")))
    }

    /// Issuer and subject of a token that is right in all parts; None for any other. Raises ServerError where the issuer's
    /// keys can't be had.
    fn verify(&self, py: Python<'_>, token: &str) -> PyResult<Option<(String, String)>> {
        match py.detach(|| self.0.verify(token)) {
            Verified::Known(identity) => {
                Ok(Some((identity.issuer.clone(), identity.subject.clone())))
            }
            Verified::Refused(_) => Ok(None),
            Verified::Unreachable => {
                Err(ServerError::new_err("the issuer of a token does not answer. Try again."))
            }
        }
    }
}
