//! Contiguous float32 arrays as slices without a copy, and Rust vectors as arrays.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::InvalidInput;

/// The rows of a C-contiguous (n, dimension) array.
///
/// # Errors
/// `InvalidInput` for another width or layout; the Python layer makes arrays contiguous before they come here.
pub fn rows<'a>(array: &'a PyReadonlyArray2<'_, f32>, dimension: usize) -> PyResult<&'a [f32]> {
    let shape = array.shape();
    if shape[1] != dimension {
        let message =
            format!("vectors must have shape (n, {dimension}), got ({}, {})", shape[0], shape[1]);
        return Err(InvalidInput::new_err(message));
    }
    array.as_slice().map_err(|_| {
        InvalidInput::new_err("vectors must be C-contiguous; use numpy.ascontiguousarray")
    })
}

/// An (n, dimension) array from its rows.
pub fn matrix<'py>(
    py: Python<'py>,
    rows: Vec<f32>,
    dimension: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let count = rows.len().checked_div(dimension).unwrap_or(0);
    PyArray1::from_vec(py, rows).reshape([count, dimension])
}
