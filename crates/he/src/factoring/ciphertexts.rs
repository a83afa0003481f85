//! Table of ciphertexts of a factoring scheme: group elements of one key.

use crate::additive::Table;
use crate::error::{Error, Result};
use crate::wire::KeyId;
use ciphervec_arith::montgomery::Residues;
use core::ops::Range;

/// Ciphertexts of one key, `rows x columns`, as residues in the form that products are computed in.
#[derive(Clone, Debug)]
pub struct Ciphertexts {
    pub(crate) key: KeyId,
    pub(crate) residues: Residues,
}

impl Ciphertexts {
    /// The public name of the key they were made with.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// The residues.
    #[doc(hidden)]
    pub fn residues(&self) -> &Residues {
        &self.residues
    }
}

impl Table for Ciphertexts {
    fn rows(&self) -> usize {
        self.residues.rows()
    }

    fn columns(&self) -> usize {
        self.residues.columns()
    }

    fn transposed(&self) -> Self {
        Ciphertexts { key: self.key, residues: self.residues.transposed() }
    }

    fn beside(tables: &[&Self]) -> Result<Self> {
        let Some(first) = tables.first() else {
            return Err(Error::Range {
                what: "the number of tables",
                expected: "at least 1".to_owned(),
                actual: "0".to_owned(),
            });
        };
        for table in tables {
            if table.key != first.key {
                return Err(Error::WrongKey {
                    what: "a table of ciphertexts",
                    expected: first.key,
                    actual: table.key,
                });
            }
            if table.rows() != first.rows() {
                return Err(Error::Range {
                    what: "the number of rows of tables side by side",
                    expected: first.rows().to_string(),
                    actual: table.rows().to_string(),
                });
            }
        }
        let residues: Vec<&Residues> = tables.iter().map(|table| &table.residues).collect();
        Ok(Ciphertexts { key: first.key, residues: Residues::beside(&residues) })
    }

    fn columns_in(&self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.columns() {
            return Err(Error::Range {
                what: "a range of columns",
                expected: format!("within 0..{}", self.columns()),
                actual: format!("{range:?}"),
            });
        }
        Ok(Ciphertexts { key: self.key, residues: self.residues.columns_in(range) })
    }
}
