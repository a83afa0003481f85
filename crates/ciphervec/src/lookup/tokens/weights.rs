//! A table's rows in the basis of a recipe's functions, at the server.

use super::basis::Basis;
use super::bound::{ROOM, WEIGHT_BITS};
use super::recipe::Recipe;
use crate::error::{Error, Result};
use ciphervec_he::ckks::PlainMatrix;

/// Tables, as weights of a recipe's functions.
#[derive(Clone, Debug)]
pub struct Weights {
    pub(super) columns: usize,
    /// Functions of an index, the constant included.
    functions: usize,
    /// `[table][column][function]`.
    values: Vec<Vec<f64>>,
    /// By column: what weights are multiplied by, and what sums are at most.
    pub(super) scales: Vec<f64>,
    pub(super) magnitudes: Vec<f64>,
    /// Columns that share a ciphertext of an answer.
    each: usize,
}

impl Weights {
    /// Changes tables to the basis of `recipe`. A table is row-major, one row of numbers for each
    /// index.
    ///
    /// # Errors
    /// [`Error::Range`] for no tables, other sizes than the recipe's, or numbers that are not
    /// finite.
    pub fn new(recipe: &Recipe, tables: &[&[f64]]) -> Result<Self> {
        let (rows, columns) = (recipe.shape().rows, recipe.shape().columns);
        let range =
            |what, expected: String, actual: String| Error::Range { what, expected, actual };
        if tables.is_empty() {
            return Err(range("the number of tables", "at least 1".into(), "0".into()));
        }
        for table in tables {
            if table.len() != rows * columns {
                let expected = format!("{rows} rows of {columns}");
                return Err(range("the numbers of a table", expected, table.len().to_string()));
            }
            if let Some(value) = table.iter().find(|value| !value.is_finite()) {
                return Err(range("the numbers of a table", "finite".into(), value.to_string()));
            }
        }
        let values: Vec<Vec<f64>> =
            tables.iter().map(|table| change_basis(recipe, table, columns)).collect();
        let functions = values[0].len() / columns;
        let magnitudes = magnitudes(tables, columns);
        let each = recipe.columns_each();
        let params = recipe.params();
        let level = recipe.design().sum_level();
        let room = f64::exp2(params.log_modulus(level)) / (ROOM * params.scale(level));
        let scale = |column: usize| {
            let weights = values.iter().flat_map(|table| &table[column * functions..][..functions]);
            let most = weights.fold(0.0f64, |most, weight| most.max(weight.abs()));
            let fits =
                f64::exp2(f64::from(WEIGHT_BITS)) / most.max(magnitudes[column] * f64::EPSILON);
            let scale = fits.min(room / peak(&magnitudes, each, column));
            // What a rescale takes to a canonical scale is multiplied by an integer first, which
            // must be large.
            if recipe.shape().levels > 0 {
                scale.min(params.scale(level).sqrt() / 4.0)
            } else {
                scale
            }
        };
        let scales = (0..columns).map(scale).collect();
        Ok(Weights { columns, functions, values, scales, magnitudes, each })
    }

    /// What the numbers of a column are at most, together with those of the column that it shares a
    /// ciphertext with.
    pub(super) fn peak(&self, column: usize) -> f64 {
        peak(&self.magnitudes, self.each, column)
    }

    /// Tables.
    pub fn tables(&self) -> usize {
        self.values.len()
    }

    pub(super) fn row(&self, table: usize, column: usize) -> &[f64] {
        &self.values[table][column * self.functions..][..self.functions]
    }

    /// `matrix[column]` are the weights of `functions` in every column.
    pub(super) fn matrix(&self, table: usize, functions: &[usize]) -> Result<PlainMatrix> {
        let pick = |column| {
            let row = self.row(table, column);
            functions.iter().map(|&function| row[function]).collect()
        };
        let rows: Vec<Vec<f64>> = (0..self.columns).map(pick).collect();
        Ok(PlainMatrix::with_scales(&rows, &self.scales)?)
    }
}

/// What the sums of rows of `tables` are at most, column by column.
pub(super) fn magnitudes(tables: &[&[f64]], columns: usize) -> Vec<f64> {
    let largest = |column: usize| -> f64 {
        let of = |table: &&[f64]| {
            table.chunks_exact(columns).map(|row| row[column].abs()).fold(0.0, f64::max)
        };
        tables.iter().map(of).sum()
    };
    // A column of zeros has a size too.
    (0..columns).map(|column| largest(column).max(f64::exp2(-60.0))).collect()
}

fn peak(magnitudes: &[f64], each: usize, column: usize) -> f64 {
    let first = column - column % each;
    let group = magnitudes.iter().skip(first).take(each);
    group.fold(0.0f64, |most, one| most.max(*one)) * (each as f64).sqrt()
}

/// `[column][function]`: weights whose sums with the functions of an index are its row.
fn change_basis(recipe: &Recipe, table: &[f64], columns: usize) -> Vec<f64> {
    let indices: usize = recipe.bases().iter().map(Basis::size).product();
    let mut values = table.to_vec();
    values.resize(indices * columns, 0.0);
    // Digit by digit, from the lowest on: what is after a digit is changed already.
    let mut after = columns;
    for basis in recipe.bases().iter().rev() {
        let blocks = values.chunks_exact(basis.size() * after);
        values = blocks.flat_map(|block| basis.weigh(block, after)).collect();
        after *= basis.len() + 1;
    }
    let column = |column: usize| values.iter().skip(column).step_by(columns).copied();
    (0..columns).flat_map(column).collect()
}
