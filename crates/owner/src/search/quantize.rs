//! Checks rows and their norms, and rounds them to integers at a scale, for all who seal or query.
//!
//! Under hamming, inner products of ±1 vectors of one dimension differ by at least 2, so an error below 1 gives the count of
//! differing bits exactly. In the compact form Δq = 1 and Δx = ⌊0.93 · 2^31 / d⌋ (2^23 in the small variant), so ±d never wraps,
//! with the bound of the noise on top: always exact, but in segments of release 0.1, whose noise is at most d (29/2^5 + ½)/Δx, small
//! ones only up to d = 3,500. In the ring form both scales are multiples of √d, so quantising ±1/√d is exact; Δx grows with d
//! beyond 2,048; segments are packed only for levels at which the 2⁻⁶⁴ tail of a score's error stays below 1.

use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::segment::HEADROOM;
use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::lattice::Plaintext;
use core::ops::Range;

/// Rows that passed the checks, with their norms.
pub(super) struct Checked<'a> {
    rows: &'a [f32],
    dimension: usize,
    /// Euclidean norm of each row.
    pub norms: Vec<f64>,
}

/// Checks shape, finiteness and, per metric, direction or signs.
///
/// # Errors
/// [`Error::Dimension`], [`Error::Coordinate`], [`Error::ZeroVector`].
pub(super) fn check<'a>(spec: &IndexSpec, rows: &'a [f32]) -> Result<Checked<'a>> {
    let dimension = spec.dimension();
    if !rows.len().is_multiple_of(dimension) {
        return Err(Error::Dimension {
            expected: dimension,
            actual: rows.len(),
            rows: rows.len().div_ceil(dimension),
        });
    }
    let mut norms = Vec::with_capacity(rows.len() / dimension);
    for (row, values) in rows.chunks_exact(dimension).enumerate() {
        // Eight partial sums let the compiler use vector registers; f64 holds the square of every f32.
        let mut sums = [0.0f64; 8];
        let (chunks, rest) = values.as_chunks::<8>();
        for chunk in chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += f64::from(x) * f64::from(x));
        }
        let squared = sums.iter().sum::<f64>()
            + rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        if !squared.is_finite() {
            return Err(coordinate(row, values, "a finite number", |x| x.is_finite()));
        }
        if spec.metric().compares_signs() && values.iter().any(|x| x.abs() != 1.0) {
            return Err(coordinate(row, values, "+1 or -1 under hamming", |x| x.abs() == 1.0));
        }
        let norm = squared.sqrt();
        if norm == 0.0 && spec.metric().needs_direction() {
            return Err(Error::ZeroVector { row, metric: spec.metric().as_str() });
        }
        if norm > f64::from(f32::MAX) {
            return Err(Error::Range {
                what: "the norm of a vector",
                expected: "at most 3.4e38".into(),
                actual: format!("{norm:e} in row {row}"),
            });
        }
        norms.push(norm);
    }
    Ok(Checked { rows, dimension, norms })
}

fn coordinate(
    row: usize,
    values: &[f32],
    expected: &'static str,
    good: impl Fn(f32) -> bool,
) -> Error {
    let coordinate = values.iter().position(|&x| !good(x)).unwrap_or(0);
    Error::Coordinate { row, coordinate, expected, actual: values[coordinate] }
}

impl<'a> Checked<'a> {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// The rows as they were given, row-major.
    pub fn as_given(&self) -> &'a [f32] {
        self.rows
    }

    /// Unit rows, as float32.
    pub fn unit(&self) -> Vec<f32> {
        let rows = self.rows.chunks_exact(self.dimension).zip(&self.norms);
        rows.flat_map(|(row, &norm)| {
            let inverse = inverse_norm(norm);
            row.iter().map(move |&x| (f64::from(x) * inverse) as f32)
        })
        .collect()
    }

    /// [`Self::unit`] as little-endian bytes behind `headroom` free ones.
    pub fn unit_words(&self, headroom: usize) -> AlignedBytes {
        let unit = self.unit();
        let mut bytes = AlignedBytes::zeroed(headroom + unit.len() * 4);
        let words = bytes.as_mut_slice()[headroom..].as_chunks_mut::<4>().0;
        words.iter_mut().zip(unit).for_each(|(word, value)| *word = value.to_le_bytes());
        bytes
    }

    /// Unit rows times `scale`, to be rounded on demand.
    pub fn quantize(&self, scale: f64) -> Quantized<'a> {
        let factors = self.norms.iter().map(|&norm| inverse_norm(norm) * scale).collect();
        Quantized { rows: self.rows, dimension: self.dimension, factors, signs: &[] }
    }
}

/// Decrypted coordinates as unit rows: signs exactly, others divided by the `scale` that vectors were multiplied by.
pub(super) fn signs_or_units(
    spec: &IndexSpec,
    scale: f64,
    values: impl Iterator<Item = f64>,
) -> Vec<f32> {
    if spec.metric().compares_signs() {
        return values.map(|value| if value < 0.0 { -1.0 } else { 1.0 }).collect();
    }
    let inverse = 1.0 / scale;
    values.map(|value| (value * inverse) as f32).collect()
}

/// Refuses weights that are not a unit vector times `scale`, every coordinate rounded: their norm is within √d/2 of it. Signs
/// are all of one `size`.
pub(super) fn expect_unit(weights: &[i64], scale: f64, size: Option<u64>) -> Result<()> {
    let square: f64 = weights.iter().map(|&weight| (weight as f64).powi(2)).sum();
    let slack = (weights.len() as f64).sqrt() / 2.0 + 1.0;
    let fits = match size {
        Some(size) => weights.iter().all(|weight| weight.unsigned_abs() == size),
        None => (square.sqrt() - scale).abs() <= slack,
    };
    if fits {
        return Ok(());
    }
    Err(Error::Range {
        what: "the norm of a probe",
        expected: match size {
            Some(size) => format!("that of weights {size} and -{size}"),
            None => format!("{scale:.0}, as of a unit vector, give or take {slack:.0}"),
        },
        actual: format!("{:.0}", square.sqrt()),
    })
}

/// A zero vector (allowed where norms carry the value) stays zero.
fn inverse_norm(norm: f64) -> f64 {
    if norm == 0.0 { 0.0 } else { 1.0 / norm }
}

/// Rows that are scaled and rounded when they are read: |value| ≤ Δ + ½ for a unit vector times Δ.
pub(super) struct Quantized<'a> {
    rows: &'a [f32],
    dimension: usize,
    factors: Vec<f64>,
    /// What dimensions are multiplied by once they are rounded; none where that is nothing.
    signs: &'a [i64],
}

/// 1.5 · 2^52: adding it rounds a double of magnitude below 2^51 to the nearest integer, ties to even, without a branch.
const ROUND: f64 = 6_755_399_441_055_744.0;

impl<'a> Quantized<'a> {
    /// The same with a sign for each dimension, or with none.
    pub fn signed(self, signs: &'a [i64]) -> Self {
        Quantized { signs, ..self }
    }

    /// Every coordinate of every row.
    pub fn values(&self) -> Vec<i64> {
        let mut values = vec![0; self.rows.len()];
        for (row, out) in values.chunks_exact_mut(self.dimension).enumerate() {
            self.fill(row, 0..self.dimension, out);
        }
        values
    }
}

impl Plaintext for Quantized<'_> {
    fn rows(&self) -> usize {
        self.factors.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn headroom(&self) -> usize {
        HEADROOM
    }

    fn content(&self) -> &[u8] {
        bytemuck::cast_slice(self.rows)
    }

    #[inline]
    fn fill(&self, row: usize, dims: Range<usize>, out: &mut [i64]) {
        let factor = self.factors[row];
        let values = &self.rows[row * self.dimension..][dims.clone()];
        for (out, &x) in out.iter_mut().zip(values) {
            *out = (f64::from(x) * factor + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i64;
        }
        if !self.signs.is_empty() {
            out.iter_mut().zip(&self.signs[dims]).for_each(|(out, sign)| *out *= sign);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, Mode, Precision};

    fn spec(metric: Metric, mode: Mode, dimension: u32) -> IndexSpec {
        IndexSpec::new("test", dimension, metric, mode, Precision::Standard).unwrap()
    }

    #[test]
    fn rounding_agrees_with_round_ties_even() {
        let spec = spec(Metric::L2, Mode::Sealed, 1);
        for x in [0.0f32, 0.49, 0.5, 1.5, 2.5, -0.5, -1.5, 123_456.79, -99_999.5] {
            let rows = [x];
            let checked = check(&spec, &rows).unwrap();
            let quantised = Quantized { rows: &rows, dimension: 1, factors: vec![1.0], signs: &[] };
            assert_eq!(quantised.values(), [f64::from(x).round_ties_even() as i64]);
            assert_eq!(checked.norms, [f64::from(x.abs())]);
        }
    }

    #[test]
    fn bad_rows_are_named() {
        let cosine = spec(Metric::Cosine, Mode::Sealed, 3);
        assert!(matches!(
            check(&cosine, &[1.0, 2.0]),
            Err(Error::Dimension { expected: 3, actual: 2, .. })
        ));
        let nan = [1.0, 2.0, 3.0, 1.0, f32::NAN, 0.0];
        assert!(matches!(
            check(&cosine, &nan),
            Err(Error::Coordinate { row: 1, coordinate: 1, .. })
        ));
        assert!(matches!(check(&cosine, &[0.0; 3]), Err(Error::ZeroVector { row: 0, .. })));
        assert!(check(&spec(Metric::L2, Mode::Sealed, 3), &[0.0; 3]).is_ok());
        let hamming = spec(Metric::Hamming, Mode::Sealed, 3);
        assert!(check(&hamming, &[1.0, -1.0, 1.0]).is_ok());
        assert!(matches!(
            check(&hamming, &[1.0, -1.0, 0.5]),
            Err(Error::Coordinate { coordinate: 2, .. })
        ));
        assert!(check(&cosine, &[f32::MAX; 3]).is_err());
    }
}
