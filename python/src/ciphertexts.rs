//! Tables of ciphertexts of any additively homomorphic scheme: what keys make and compute on; both sides.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use ciphervec_he_secret::Error;
use ciphervec_he_secret::additive::{Evaluate, Messages, Table};
use ciphervec_he_secret::wire::KeyId;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::errors::{InvalidInput, Raise};
use crate::runtime;

/// A table of whichever scheme.
trait AnyTable: Any + Send + Sync {
    fn shape(&self) -> (usize, usize);
    fn transposed(&self) -> Arc<dyn AnyTable>;
    fn columns_in(&self, range: Range<usize>) -> Result<Arc<dyn AnyTable>, Error>;

    /// Tables of one kind and of `key`, side by side.
    fn beside(&self, key: KeyId, tables: &[&Tables]) -> Result<Arc<dyn AnyTable>, Error>;
}

impl<T: Table + 'static> AnyTable for T {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.columns())
    }

    fn transposed(&self) -> Arc<dyn AnyTable> {
        Arc::new(Table::transposed(self))
    }

    fn columns_in(&self, range: Range<usize>) -> Result<Arc<dyn AnyTable>, Error> {
        Ok(Arc::new(Table::columns_in(self, range)?))
    }

    fn beside(&self, key: KeyId, tables: &[&Tables]) -> Result<Arc<dyn AnyTable>, Error> {
        let inside = tables
            .iter()
            .map(|&table| table.inside::<T>().ok_or_else(|| wrong_key(key, table.key)));
        let tables: Vec<&T> = inside.collect::<Result<_, _>>()?;
        let joined: T = Table::beside(&tables)?;
        Ok(Arc::new(joined))
    }
}

/// A table of one of the schemes, and whose it is.
#[derive(Clone)]
pub struct Tables {
    key: KeyId,
    table: Arc<dyn AnyTable>,
}

impl Tables {
    /// `table` of `key`'s scheme.
    pub fn of<K: Evaluate<Table: 'static>>(key: &K, table: K::Table) -> Self {
        Self { key: key.key_id(), table: Arc::new(table) }
    }

    /// The table inside, if it is a `T`.
    fn inside<T: 'static>(&self) -> Option<&T> {
        let table: &dyn Any = &*self.table;
        table.downcast_ref()
    }

    /// The same with another table.
    fn with(&self, table: Arc<dyn AnyTable>) -> Self {
        Self { key: self.key, table }
    }
}

/// A key that finds its tables among [`Tables`].
pub trait Native: Evaluate<Table: 'static> {
    /// The table inside.
    ///
    /// # Errors
    /// [`Error::WrongKey`] for a table of another scheme, whose key is another too.
    fn unwrap<'a>(&self, tables: &'a Tables) -> Result<&'a Self::Table, Error> {
        tables.inside().ok_or_else(|| wrong_key(self.key_id(), tables.key))
    }
}

impl<K: Evaluate<Table: 'static>> Native for K {}

fn wrong_key(expected: KeyId, actual: KeyId) -> Error {
    Error::WrongKey { what: "a table of ciphertexts", expected, actual }
}

/// Rows and columns of ciphertexts. Immutable: every operation gives another table.
#[pyclass(name = "Ciphertexts", module = "ciphervec._native", frozen)]
pub struct PyCiphertexts(pub Tables);

#[pymethods]
impl PyCiphertexts {
    #[getter]
    fn rows(&self) -> usize {
        self.0.table.shape().0
    }

    #[getter]
    fn columns(&self) -> usize {
        self.0.table.shape().1
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key.to_string()
    }

    /// Rows and columns exchanged.
    fn transposed(&self, py: Python<'_>) -> Self {
        Self(self.0.with(runtime::detached(py, || self.0.table.transposed())))
    }

    /// Columns `start` to `stop`.
    fn columns_in(&self, py: Python<'_>, start: usize, stop: usize) -> PyResult<Self> {
        let cut =
            runtime::detached(py, || self.0.table.columns_in(start..stop)).map_err(Raise::raise)?;
        Ok(Self(self.0.with(cut)))
    }

    /// Tables of one key with the same number of rows, side by side.
    #[staticmethod]
    fn beside(py: Python<'_>, tables: Vec<PyRef<'_, PyCiphertexts>>) -> PyResult<Self> {
        let all: Vec<&Tables> = tables.iter().map(|table| &table.0).collect();
        let Some(first) = all.first() else {
            return Err(InvalidInput::new_err("give at least one table of ciphertexts"));
        };
        let join = || first.table.beside(first.key, &all);
        runtime::detached(py, join).map(|table| Self(first.with(table))).map_err(Raise::raise)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a native table can't be pickled; pickle the array or the vectors that hold it",
        ))
    }
}

/// Messages from little-endian two's complement numbers of `width` words of eight bytes each.
pub fn messages(width: usize, data: &[u8]) -> PyResult<Messages> {
    if width == 0 || !data.len().is_multiple_of(8 * width) {
        let message = format!("numbers of {width} words expected, got {} bytes", data.len());
        return Err(InvalidInput::new_err(message));
    }
    let mut messages = Messages::zeros(width, data.len() / (8 * width));
    for index in 0..messages.len() {
        let bytes = &data[index * 8 * width..][..8 * width];
        for (word, bytes) in messages.row_mut(index).iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
    Ok(messages)
}

/// The width of messages in words, and their bytes.
pub fn to_python<'py>(py: Python<'py>, messages: &Messages) -> (usize, Bound<'py, PyBytes>) {
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * messages.width() * messages.len()));
    for index in 0..messages.len() {
        messages.row(index).iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
    (messages.width(), PyBytes::new(py, &bytes))
}
