//! Row ids from Python's strings and integers, and back. Key owner's side.

use ciphervec_owner::protect::id::Id;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::errors::InvalidInput;

/// One id as Python gave it.
pub struct PyId(pub Id);

impl<'py> FromPyObject<'_, 'py> for PyId {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self(Id::Text(text.to_str()?.to_owned())));
        }
        if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
            return Ok(Self(Id::Number(object.extract()?)));
        }
        let kind = object.get_type().name()?;
        Err(InvalidInput::new_err(format!("an id is a string or an integer, got {kind}")))
    }
}

/// The ids of a batch.
pub fn unwrap(ids: Vec<PyId>) -> Vec<Id> {
    ids.into_iter().map(|PyId(id)| id).collect()
}

/// One id as a Python string or integer.
pub fn to_python<'py>(py: Python<'py>, id: &Id) -> PyResult<Bound<'py, PyAny>> {
    Ok(match id {
        Id::Number(number) => number.into_pyobject(py)?.into_any(),
        Id::Text(text) => PyString::new(py, text).into_any(),
    })
}
