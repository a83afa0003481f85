//! Plain rows of doubles, laid out like the ciphertexts that they are combined with.

use super::array::{EncryptedArray, Side, arrange};
use super::layout::{ArrayLayout, ArrayPacking};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Encoding, Params, Plaintext};
use std::sync::Arc;

/// Rows of numbers, borrowed. One row stands for as many as are needed, and one column for a whole
/// row.
#[derive(Clone, Copy, Debug)]
pub struct PlainRows<'a> {
    values: &'a [f64],
    rows: usize,
    dimension: usize,
    batch: bool,
}

impl<'a> PlainRows<'a> {
    /// `values` row after row.
    ///
    /// # Errors
    /// [`Error::Range`] for another count than rows × dimension, for none, and for numbers that are
    /// not finite.
    pub fn new(values: &'a [f64], rows: usize, dimension: usize) -> Result<Self> {
        if values.is_empty() || rows.checked_mul(dimension) != Some(values.len()) {
            return Err(Error::Range {
                what: "the shape of plain numbers",
                expected: "rows × dimension, neither of them 0".to_owned(),
                actual: format!("{rows} × {dimension} for {} numbers", values.len()),
            });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::CkksSimilarity {
                operation: "encoding",
                detail: format!(
                    "finite numbers expected, row {}, coordinate {} is {}",
                    at / dimension,
                    at % dimension,
                    values[at]
                ),
            });
        }
        Ok(PlainRows { values, rows, dimension, batch: rows > 1 })
    }

    /// The same rows as a batch, be it of one.
    pub fn as_batch(self) -> Self {
        PlainRows { batch: true, ..self }
    }

    /// Whether they are one.
    #[doc(hidden)]
    pub fn is_batch(&self) -> bool {
        self.batch
    }

    /// Rows given.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers in each.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The only number, if there is but one.
    pub(super) fn scalar(&self) -> Option<f64> {
        (self.values.len() == 1).then(|| self.values[0])
    }

    pub(super) fn get(&self, row: usize, i: usize) -> f64 {
        let row = if self.rows == 1 { 0 } else { row };
        let i = if self.dimension == 1 { 0 } else { i };
        self.values[row * self.dimension + i]
    }

    /// Every row scaled to length 1.
    ///
    /// # Errors
    /// [`Error::ZeroVector`] for a row without a direction.
    pub fn normalized(&self) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(self.values.len());
        for (index, row) in self.values.chunks_exact(self.dimension).enumerate() {
            // Scaled by the largest first, so that squares neither overflow nor vanish.
            let largest = row.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            if largest == 0.0 {
                return Err(Error::ZeroVector { row: index, metric: "cosine" });
            }
            let norm = row.iter().map(|value| (value / largest).powi(2)).sum::<f64>().sqrt();
            out.extend(row.iter().map(|value| value / largest / norm));
        }
        Ok(out)
    }

    /// Refuses numbers beyond a declared bound.
    #[doc(hidden)]
    pub fn expect_within(&self, magnitude: f64) -> Result<()> {
        // Rows scaled to length 1 may exceed it by a rounding.
        let limit = magnitude * (1.0 + 1e-9);
        match self.values.iter().find(|value| value.abs() > limit) {
            None => Ok(()),
            Some(value) => Err(Error::Range {
                what: "a coordinate",
                expected: format!(
                    "at most {magnitude} in absolute value, as the parameters were chosen for (magnitude)"
                ),
                actual: value.to_string(),
            }),
        }
    }

    /// Refuses rows that do not stand for those of `packing`.
    pub(super) fn expect(&self, operation: &'static str, packing: &ArrayPacking) -> Result<()> {
        let fits = |mine, theirs| mine == 1 || mine == theirs;
        if fits(self.rows, packing.rows) && fits(self.dimension, packing.dimension) {
            return Ok(());
        }
        Err(Error::CkksSimilarity {
            operation,
            detail: format!(
                "{} vectors of dimension {} met plain numbers of shape {} × {}",
                packing.rows, packing.dimension, self.rows, self.dimension
            ),
        })
    }

    /// The plaintext for ciphertext `index` of one side.
    #[doc(hidden)]
    pub fn encode(
        &self,
        params: &Arc<Params>,
        packing: &ArrayPacking,
        side: Side,
        index: usize,
        options: &Encoding,
    ) -> Result<Plaintext> {
        let values = arrange(packing, side, (index, params.degree()), |row, i| self.get(row, i));
        Ok(if packing.layout == ArrayLayout::Coefficients {
            Plaintext::encode_coefficients(params, &values, options)?
        } else {
            Plaintext::encode_with(params, &values, options)?
        })
    }
}

/// How a plain summand of `array` is encoded: at its level and scale.
pub(super) fn like(array: &EncryptedArray) -> Encoding {
    let first = array.all().next();
    Encoding {
        level: first.map(|cipher| cipher.level()),
        scale: first.map(|cipher| cipher.scale()),
        ..Encoding::default()
    }
}
