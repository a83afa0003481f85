//! Signed weights of a plaintext matrix, checked once to be below `2^31` in magnitude. For the
//! server.

use crate::error::ArithError;

/// Weights are below `2^WEIGHT_BITS` in magnitude.
pub const WEIGHT_BITS: u32 = 31;

/// A matrix of signed weights, checked once and used for every prime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    rows: usize,
    columns: usize,
    values: Vec<i32>,
    bits: u32,
}

impl Weights {
    /// `values` are row-major: row `k` says how much of each input goes into output `k`.
    ///
    /// # Errors
    /// [`ArithError::Length`] unless there are `rows columns` values, [`ArithError::Weight`] when
    /// one is not below `2^31` in magnitude.
    pub fn new(rows: usize, columns: usize, values: &[i64]) -> Result<Self, ArithError> {
        if rows.checked_mul(columns) != Some(values.len()) {
            let expected = rows.saturating_mul(columns);
            return Err(ArithError::Length { expected, actual: values.len() });
        }
        let limit = 1u64 << WEIGHT_BITS;
        if let Some(index) = values.iter().position(|w| w.unsigned_abs() >= limit) {
            return Err(ArithError::Weight { index, value: values[index] });
        }
        let most = values.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0);
        Ok(Weights {
            rows,
            columns,
            values: values.iter().map(|&w| w as i32).collect(),
            bits: u64::BITS - most.leading_zeros(),
        })
    }

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The least `b` with every magnitude below `2^b`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The weights of output `k`.
    ///
    /// # Panics
    /// When there is no such output.
    pub fn row(&self, k: usize) -> &[i32] {
        assert!(k < self.rows, "row {k} of {}", self.rows);
        &self.values[k * self.columns..][..self.columns]
    }
}
