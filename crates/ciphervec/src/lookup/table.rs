//! Tables of finite numbers that a server looks up in, with their digest.

use crate::error::{Error, Result};

/// Most tables that are summed, rows of a table, numbers of a row, and numbers of all together.
pub const MAX_TABLES: usize = 64;
/// See [`MAX_TABLES`].
pub const MAX_TABLE_ROWS: usize = 1 << 16;
/// See [`MAX_TABLES`].
pub const MAX_COLUMNS: usize = 1 << 16;
const MAX_NUMBERS: usize = 1 << 28;

/// The first 16 bytes of BLAKE3 over a table: what queries and answers name it by.
pub type TableDigest = [u8; 16];

/// ℓ tables of p rows of d numbers each: an index names a row of every table, and what is looked up
/// is their sum.
///
/// In the words of the paper (arXiv 2606.03191, section 3) the transpose of table j is its matrix
/// M_j ∈ R^{d×p}.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    shape: (usize, usize, usize),
    /// `[table][row][column]`.
    values: Vec<f64>,
    zero_row: bool,
}

impl Table {
    /// Tables of `shape` (ℓ, p, d), row-major.
    ///
    /// # Errors
    /// [`Error::Range`] for a shape outside the limits or another count of numbers;
    /// [`Error::Lookup`] for one that is not finite.
    pub fn new(values: &[f64], shape: (usize, usize, usize)) -> Result<Self> {
        let (tables, rows, columns) = shape;
        within("the number of tables", tables, MAX_TABLES)?;
        within("the rows of a table", rows, MAX_TABLE_ROWS)?;
        within("the columns of a table", columns, MAX_COLUMNS)?;
        within("the numbers of all tables", tables * rows * columns, MAX_NUMBERS)?;
        if values.len() != tables * rows * columns {
            return Err(Error::Range {
                what: "the numbers of all tables",
                expected: format!("{tables} × {rows} × {columns}"),
                actual: values.len().to_string(),
            });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (place, column) = (at / columns, at % columns);
            return Err(Error::Lookup {
                operation: "setup",
                detail: format!(
                    "finite numbers expected, table {} has {} in row {}, column {column}",
                    place / rows,
                    values[at],
                    place % rows
                ),
            });
        }
        Ok(Table { shape, values: values.to_vec(), zero_row: false })
    }

    /// Tables whose last row may be that of zeros, as [`Self::with_zero_row`] left them.
    pub(super) fn from_parts(
        values: Vec<f64>,
        shape: (usize, usize, usize),
        zero_row: bool,
    ) -> Result<Self> {
        let table = Table { zero_row, ..Self::new(&values, shape)? };
        let last = |at| table.row(at, table.rows() - 1).iter().all(|value| *value == 0.0);
        if zero_row && !(0..table.tables()).all(last) {
            return Err(Error::Lookup {
                operation: "setup",
                detail: "the last row of every table stands for padding and must be zero".into(),
            });
        }
        Ok(table)
    }

    /// The same tables with one row of zeros more, for padding: strategies that look up one index a
    /// slot need it where slots are to hold nothing.
    ///
    /// # Errors
    /// [`Error::Range`] if a table is as long as one may be.
    pub fn with_zero_row(self) -> Result<Self> {
        let (tables, rows, columns) = self.shape;
        if self.zero_row {
            return Ok(self);
        }
        within("the rows of a table, with one for padding", rows + 1, MAX_TABLE_ROWS)?;
        let mut values = Vec::with_capacity(tables * (rows + 1) * columns);
        for table in self.values.chunks_exact(rows * columns) {
            values.extend_from_slice(table);
            values.resize(values.len() + columns, 0.0);
        }
        Ok(Table { shape: (tables, rows + 1, columns), values, zero_row: true })
    }

    /// ℓ: tables that are summed.
    pub fn tables(&self) -> usize {
        self.shape.0
    }

    /// p: rows of a table, with that of zeros if there is one.
    pub fn rows(&self) -> usize {
        self.shape.1
    }

    /// d: numbers of a row.
    pub fn columns(&self) -> usize {
        self.shape.2
    }

    /// Whether the last row of every table is zero and stands for padding.
    pub fn has_zero_row(&self) -> bool {
        self.zero_row
    }

    /// All numbers, `[table][row][column]`.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Row `row` of table `table`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, table: usize, row: usize) -> &[f64] {
        let (_, rows, columns) = self.shape;
        assert!(row < rows, "row {row} of {rows}");
        &self.values[(table * rows + row) * columns..][..columns]
    }

    /// The rows of table `table`, row-major.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn table(&self, table: usize) -> &[f64] {
        let (_, rows, columns) = self.shape;
        &self.values[table * rows * columns..][..rows * columns]
    }

    /// The name of these numbers in this shape.
    pub fn digest(&self) -> TableDigest {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 lookup table");
        let (tables, rows, columns) = self.shape;
        for number in [tables, rows, columns, usize::from(self.zero_row)] {
            hasher.update(&(number as u64).to_le_bytes());
        }
        self.values.iter().for_each(|value| {
            hasher.update(&value.to_le_bytes());
        });
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        digest
    }
}

fn within(what: &'static str, actual: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&actual) {
        return Ok(());
    }
    let (expected, actual) = (format!("from 1 to {most}"), actual.to_string());
    Err(Error::Range { what, expected, actual })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_row_is_the_last_of_every_table() {
        let values: Vec<f64> = (1..=12).map(f64::from).collect();
        let table = Table::new(&values, (2, 3, 2)).unwrap();
        assert_eq!(table.table(1), [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let padded = table.clone().with_zero_row().unwrap();
        assert_eq!((padded.rows(), padded.has_zero_row()), (4, true));
        for one in 0..2 {
            for row in 0..3 {
                assert_eq!(padded.row(one, row), table.row(one, row));
            }
            assert_eq!(padded.row(one, 3), [0.0, 0.0]);
        }
        assert_eq!(padded.clone().with_zero_row().unwrap(), padded);
        assert_ne!(padded.digest(), table.digest());
    }

    #[test]
    fn numbers_that_are_none_and_shapes_that_do_not_fit_are_refused() {
        let refused = |values: &[f64], shape| Table::new(values, shape).unwrap_err().to_string();
        assert!(refused(&[1.0, f64::NAN], (1, 2, 1)).contains("row 1, column 0"));
        assert!(refused(&[1.0, f64::INFINITY], (1, 1, 2)).contains("row 0, column 1"));
        assert!(refused(&[1.0; 5], (1, 2, 2)).contains("1 × 2 × 2"));
        assert!(refused(&[], (0, 2, 2)).contains("number of tables"));
        assert!(refused(&[], (1, 0, 2)).contains("rows"));
        assert!(refused(&[1.0; 65], (65, 1, 1)).contains("from 1 to 64"));
    }
}
