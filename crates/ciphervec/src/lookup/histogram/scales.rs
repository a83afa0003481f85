//! Scales of counts and weights in strategy `histogram`, from a table and the longest document.
//! Public numbers only.
//!
//! A document is one vector of ℓ·p counts, encrypted in the count form
//! ([`ciphervec_he::lattice::histogram`]); its sum over the tables is the product of that vector
//! with the ℓ·p rows. One server-side multiply-add a count, no keys, no levels.
//!
//! # Error
//!
//! With X = Δx + ξ, w = σW + η, |ξ|, |η| ≤ ½, and noise ε of variance (3.2·2^W/q)² + 1/12 + 2^-8 a
//! word:
//!
//! ```text
//! Σ w X − Δσ Σ W x = Δ Σ η x + σ Σ W ξ + Σ η ξ + Σ w ε
//! ```
//!
//! Whole counts have ξ = 0; means round. The bound adds the largest possible roundings, 9.5
//! standard deviations of the noise (2⁻⁶⁴) and half of the unit that results are rounded to.

use crate::error::{Error, Result};
use crate::lookup::options::Pooling;
use crate::lookup::table::Table;
use crate::lookup::tokens::bound::TAIL_DEVIATIONS;
use ciphervec_he::lattice::histogram::Histogram;

/// What counts and weights are multiplied by before they are rounded, and what that costs.
///
/// With counts x, weights W, X = Δ·x + ξ and w = σ·W + η, where |ξ|, |η| ≤ ½ and ξ = 0 for whole
/// counts under a whole Δ, and noise ε of the words and of the hint:
///
/// ```text
/// Σ w X − Δσ Σ W x = Δ Σ η x + σ Σ W ξ + Σ η ξ + Σ w ε
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HistogramScales {
    /// Δ, of the counts. A power of two.
    pub count: f64,
    /// σ, of the weights. A power of two.
    pub weight: f64,
    /// What results are rounded to, a power of two not below the noise: an exact decryption that
    /// others see would be a linear equation in a secret.
    pub unit: f64,
    /// No sum is off by more, but with probability 2^-64 a sum.
    pub bound: f64,
}

/// How large the sums of a table can be.
struct Magnitudes {
    /// `Σ_j max_i |W_ji|` of the worst output.
    largest: f64,
    /// The greatest Euclidean length of an output's weights.
    norm: f64,
}

impl Magnitudes {
    fn of(table: &Table) -> Self {
        let columns = table.columns();
        let mut largest = vec![0.0f64; columns];
        let mut squares = vec![0.0f64; columns];
        for values in table.values().chunks_exact(table.rows() * columns) {
            let mut most = vec![0.0f64; columns];
            for row in values.chunks_exact(columns) {
                for (column, value) in row.iter().enumerate() {
                    most[column] = most[column].max(value.abs());
                    squares[column] += value * value;
                }
            }
            largest.iter_mut().zip(most).for_each(|(sum, most)| *sum += most);
        }
        let greatest = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
        Magnitudes { largest: greatest(largest), norm: greatest(squares).sqrt() }
    }
}

impl HistogramScales {
    /// The scales whose bound is least, for documents of up to `limit` tokens.
    ///
    /// # Errors
    /// [`Error::Range`] if no scales leave the words room for the sums: numbers that differ too
    /// much in size.
    pub fn new(scheme: &Histogram, table: &Table, pooling: Pooling, limit: usize) -> Result<Self> {
        let magnitudes = Magnitudes::of(table);
        let candidates = (0..40).filter_map(|log| {
            Self::at(scheme, table, &magnitudes, (pooling, limit), f64::from(log).exp2())
        });
        candidates.min_by(|a, b| a.bound.total_cmp(&b.bound)).ok_or_else(|| Error::Range {
            what: "the numbers of a table",
            expected: "of sizes between 2^-200 and 2^200, for documents that words have room for"
                .into(),
            actual: format!("sums up to {:e} of {limit} tokens", magnitudes.largest),
        })
    }

    /// With this Δ, the σ that fills the words, if one does.
    fn at(
        scheme: &Histogram,
        table: &Table,
        magnitudes: &Magnitudes,
        (pooling, limit): (Pooling, usize),
        count: f64,
    ) -> Option<Self> {
        let (tables, limit) = (table.tables() as f64, limit as f64);
        // Σ x over one table, and the most of it that rounding of counts can add.
        let (most, rounded) = match pooling {
            Pooling::Mean => (1.0, 0.5 * limit / count),
            Pooling::None | Pooling::Sum => (limit, 0.0),
        };
        let largest = if magnitudes.largest > 0.0 { magnitudes.largest } else { 1.0 };
        let room = scheme.capacity() / count / (most + rounded);
        // Rounding makes a weight half a step larger at most, in each table.
        let weight = ((room - 0.5 * tables) / largest).log2().floor().exp2();
        let norm = magnitudes.norm * weight + 0.5 * (tables * table.rows() as f64).sqrt();
        let product = count * weight;
        let noise = scheme.sum_noise(norm) / product;
        if !(weight.is_normal() && weight.log2().abs() < 200.0 && noise.is_normal()) {
            return None;
        }
        let unit = noise.log2().ceil().exp2();
        let bound = TAIL_DEVIATIONS * noise
            + 0.5 * tables * (most + rounded) / weight
            + rounded * magnitudes.largest
            + 0.5 * unit;
        // The sum and what it is off by stay below half of a word's range.
        let fits = (largest * (most + rounded) + bound) * product;
        let half = f64::exp2(f64::from(scheme.word_bits()) - 1.0);
        (fits < half).then_some(HistogramScales { count, weight, unit, bound })
    }

    /// w: the weights of every output, `d` rows of ℓ·p integers.
    pub(in crate::lookup) fn weights(&self, table: &Table) -> Vec<i64> {
        let columns = table.columns();
        let dimension = table.tables() * table.rows();
        let mut weights = vec![0; columns * dimension];
        for (place, row) in table.values().chunks_exact(columns).enumerate() {
            for (column, value) in row.iter().enumerate() {
                weights[column * dimension + place] =
                    (value * self.weight).round_ties_even() as i64;
            }
        }
        weights
    }

    /// The sum that an opened integer stands for, rounded to [`Self::unit`].
    #[doc(hidden)]
    pub fn read(&self, opened: i64) -> f64 {
        (opened as f64 / (self.count * self.weight) / self.unit).round_ties_even() * self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_words_and_means_have_smaller_bounds() {
        let values: Vec<f64> = (0..1024).map(|i| f64::from(i * 37 % 101) / 50.0 - 1.0).collect();
        let table = Table::new(&values, (4, 256, 1)).unwrap();
        let bounds = [4, 5, 6].map(|bytes| {
            let scheme = Histogram::new(bytes).unwrap();
            let [sum, mean] = [Pooling::Sum, Pooling::Mean]
                .map(|pooling| HistogramScales::new(&scheme, &table, pooling, 128).unwrap());
            assert!(mean.bound < sum.bound && sum.unit >= sum.bound / 100.0);
            mean.bound
        });
        assert!(bounds[0] < 4e-3 && bounds[1] < 3e-4 && bounds[2] < 3e-5, "{bounds:?}");
    }

    #[test]
    fn a_table_of_zeros_has_scales_and_absurd_numbers_have_none() {
        let scheme = Histogram::new(5).unwrap();
        let zeros = Table::new(&[0.0; 8], (2, 4, 1)).unwrap();
        assert!(HistogramScales::new(&scheme, &zeros, Pooling::Mean, 10).is_ok());
        let huge = Table::new(&[1e300, 0.0], (1, 2, 1)).unwrap();
        assert!(HistogramScales::new(&scheme, &huge, Pooling::Mean, 10).is_err());
    }
}
