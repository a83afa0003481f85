//! Tables of ciphertexts of any additively homomorphic scheme: what keys make and compute on; both sides.

use ciphervec_he::additive::{Evaluate, Messages, Table};
use ciphervec_he::wire::KeyId;
use ciphervec_he::{Error, damgard_jurik, elgamal, factoring, okamoto_uchiyama};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::errors::{InvalidInput, Raise};

/// A table of one of the schemes.
#[derive(Clone)]
pub enum Tables {
    Factoring(factoring::Ciphertexts),
    ElGamal(elgamal::Ciphertexts),
}

/// Calls the same code on the table inside, whatever its scheme.
macro_rules! on_table {
    ($tables:expr, $table:ident => $body:expr) => {
        match $tables {
            $crate::ciphertexts::Tables::Factoring($table) => {
                $crate::ciphertexts::Tables::Factoring($body)
            }
            $crate::ciphertexts::Tables::ElGamal($table) => {
                $crate::ciphertexts::Tables::ElGamal($body)
            }
        }
    };
}

impl Tables {
    pub fn key_id(&self) -> KeyId {
        match self {
            Tables::Factoring(table) => table.key_id(),
            Tables::ElGamal(table) => table.key_id(),
        }
    }

    fn shape(&self) -> (usize, usize) {
        match self {
            Tables::Factoring(table) => (table.rows(), table.columns()),
            Tables::ElGamal(table) => (table.rows(), table.columns()),
        }
    }
}

/// A key whose tables are among [`Tables`].
pub trait Native: Evaluate {
    /// Wraps a table.
    fn wrap(table: Self::Table) -> Tables;

    /// The table inside, if it is of this kind of scheme.
    fn inside(tables: &Tables) -> Option<&Self::Table>;

    /// The table inside.
    ///
    /// # Errors
    /// [`Error::WrongKey`] for a table of another scheme, whose key is another too.
    fn unwrap<'a>(&self, tables: &'a Tables) -> Result<&'a Self::Table, Error> {
        Self::inside(tables).ok_or_else(|| Error::WrongKey {
            what: "a table of ciphertexts",
            expected: self.key_id(),
            actual: tables.key_id(),
        })
    }
}

macro_rules! native {
    ($key:ty, $variant:ident) => {
        impl Native for $key {
            fn wrap(table: Self::Table) -> Tables {
                Tables::$variant(table)
            }

            fn inside(tables: &Tables) -> Option<&Self::Table> {
                match tables {
                    Tables::$variant(table) => Some(table),
                    _ => None,
                }
            }
        }
    };
}

native!(damgard_jurik::PublicKey, Factoring);
native!(okamoto_uchiyama::PublicKey, Factoring);
native!(elgamal::PublicKey, ElGamal);

/// Rows and columns of ciphertexts. Immutable: every operation gives another table.
#[pyclass(name = "Ciphertexts", module = "ciphervec._native", frozen)]
pub struct PyCiphertexts(pub Tables);

#[pymethods]
impl PyCiphertexts {
    #[getter]
    fn rows(&self) -> usize {
        self.0.shape().0
    }

    #[getter]
    fn columns(&self) -> usize {
        self.0.shape().1
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// Rows and columns exchanged.
    fn transposed(&self, py: Python<'_>) -> Self {
        Self(py.detach(|| on_table!(&self.0, table => table.transposed())))
    }

    /// Columns `start` to `stop`.
    fn columns_in(&self, py: Python<'_>, start: usize, stop: usize) -> PyResult<Self> {
        let cut = || -> Result<Tables, Error> {
            Ok(on_table!(&self.0, table => table.columns_in(start..stop)?))
        };
        py.detach(cut).map(Self).map_err(Raise::raise)
    }

    /// Tables of one key with the same number of rows, side by side.
    #[staticmethod]
    fn beside(py: Python<'_>, tables: Vec<PyRef<'_, PyCiphertexts>>) -> PyResult<Self> {
        let all: Vec<&Tables> = tables.iter().map(|table| &table.0).collect();
        let Some(first) = all.first() else {
            return Err(InvalidInput::new_err("give at least one table of ciphertexts"));
        };
        let join = || -> Result<Tables, Error> {
            let wrong = |table: &&Tables| Error::WrongKey {
                what: "a table of ciphertexts",
                expected: first.key_id(),
                actual: table.key_id(),
            };
            match first {
                Tables::Factoring(_) => {
                    let inner = all.iter().map(|table| match table {
                        Tables::Factoring(inner) => Ok(inner),
                        _ => Err(wrong(table)),
                    });
                    let inner: Result<Vec<_>, Error> = inner.collect();
                    Table::beside(&inner?).map(Tables::Factoring)
                }
                Tables::ElGamal(_) => {
                    let inner = all.iter().map(|table| match table {
                        Tables::ElGamal(inner) => Ok(inner),
                        _ => Err(wrong(table)),
                    });
                    let inner: Result<Vec<_>, Error> = inner.collect();
                    Table::beside(&inner?).map(Tables::ElGamal)
                }
            }
        };
        py.detach(join).map(Self).map_err(Raise::raise)
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
