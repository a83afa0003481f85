//! Identity providers of a file of issuers, for services in Python: whom a signed token names. No secret.

use crate::errors::{InvalidInput, ServerError};
use crate::limits::PyLimits;
use ciphervec_server::auth::Verb;
use ciphervec_server::auth::issuers::{BlockingIssuers, Identity, Verified};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Whom a signed token names, and what the file grants to it.
#[pyclass(name = "Subject", module = "ciphervec._native", frozen)]
pub struct PySubject(Arc<Identity>);

#[pymethods]
impl PySubject {
    /// A hash of issuer and subject: 32 hex digits.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    #[getter]
    fn issuer(&self) -> &str {
        &self.0.issuer
    }

    #[getter]
    fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Whether it may do that in a tenant of a sidecar, or in a database of one.
    #[pyo3(signature = (permission, tenant, database = None))]
    fn allows(&self, permission: &str, tenant: &str, database: Option<&str>) -> PyResult<bool> {
        let unknown = || InvalidInput::new_err(format!("there is no permission {permission:?}."));
        let verb = Verb::named(permission).ok_or_else(unknown)?;
        Ok(self.0.allows_tenant(verb, tenant, database))
    }

    /// What it may use.
    #[getter]
    fn limits(&self) -> PyLimits {
        PyLimits(self.0.limits)
    }

    /// Whether it may do everything in every tenant.
    #[getter]
    fn is_operator(&self) -> bool {
        self.0.has_all_tenants()
    }
}

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

    /// Whom a token names that is right in all parts; None for any other. Raises ServerError where the issuer's
    /// keys can't be had.
    fn verify(&self, py: Python<'_>, token: &str) -> PyResult<Option<PySubject>> {
        match py.detach(|| self.0.verify(token)) {
            Verified::Known(identity) => Ok(Some(PySubject(identity))),
            Verified::Refused(_) => Ok(None),
            Verified::Unreachable => {
                Err(ServerError::new_err("the issuer of a token does not answer. Try again."))
            }
        }
    }
}
