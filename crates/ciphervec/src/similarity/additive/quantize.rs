//! Scales rows to length 1, rounds them to the integer grid and keeps their norms.

use super::grid::Grid;
use super::layout::Layout;
use super::spec::VectorSpec;
use crate::error::{Error, Result};
use crate::index::spec::MAX_QUERIES;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Vectors on the integer grid, ready to be encrypted. Wiped on drop.
#[derive(ZeroizeOnDrop)]
pub struct Vectors {
    #[zeroize(skip)]
    grid: Grid,
    values: Vec<i64>,
    norms: Vec<f64>,
}

impl Vectors {
    /// Normalises and rounds rows of `spec.dimension()` numbers each, row after row.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::Coordinate`] for NaN, infinities and, under `hamming`,
    /// anything but ±1; [`Error::ZeroVector`] under `cosine`; [`Error::Range`] for a norm beyond
    /// double precision or no rows.
    pub fn quantize<F: Copy + Into<f64>>(spec: &VectorSpec, rows: &[F]) -> Result<Self> {
        let grid = *spec.grid();
        let scale = grid.scales().vector;
        let mut vectors = Vectors { grid, values: Vec::with_capacity(rows.len()), norms: vec![] };
        for (row, values) in split(&grid, rows)?.enumerate() {
            let unit = Unit::new(&grid, row, values)?;
            if grid.signs() {
                vectors.values.extend(values.iter().map(|&x| x.into() as i64));
            } else {
                unit.round(scale, &mut vectors.values);
            }
            vectors.norms.push(unit.norm);
            debug_assert!(square(vectors.row(row)) <= grid.vector_square());
        }
        Ok(vectors)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// Whether there are none, which never happens.
    pub fn is_empty(&self) -> bool {
        self.norms.is_empty()
    }

    /// Their Euclidean norms before normalisation: what inner products and distances are computed
    /// from. They are not encrypted and stay with the owner.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }

    #[doc(hidden)]
    pub fn row(&self, index: usize) -> &[i64] {
        let dimension = self.grid.dimension();
        &self.values[index * dimension..(index + 1) * dimension]
    }
}

impl core::fmt::Debug for Vectors {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Vectors({} of {} dimensions, redacted)", self.len(), self.grid.dimension())
    }
}

/// Plain vectors that encrypted ones are compared with, as integer weights. Wiped on drop.
///
/// Weights are bounded on both sides: none exceeds what a unit vector can have, nor does their
/// norm. A probe with weights 1, B, B², … would otherwise write a whole template into a single
/// score.
#[derive(ZeroizeOnDrop)]
pub struct Probes {
    #[zeroize(skip)]
    grid: Grid,
    weights: Vec<i64>,
    scales: Vec<u64>,
    norms: Vec<f64>,
}

impl Probes {
    /// Normalises and rounds rows of `spec.dimension()` numbers each, every probe with a scale of
    /// its own.
    ///
    /// # Errors
    /// Those of [`Vectors::quantize`].
    pub fn quantize<F: Copy + Into<f64>>(spec: &VectorSpec, rows: &[F]) -> Result<Self> {
        let grid = *spec.grid();
        expect_few(rows.len() / grid.dimension())?;
        let mut probes = Probes {
            grid,
            weights: Vec::with_capacity(rows.len()),
            scales: Vec::new(),
            norms: Vec::new(),
        };
        for (row, values) in split(&grid, rows)?.enumerate() {
            let unit = Unit::new(&grid, row, values)?;
            let scale = if grid.signs() {
                let weight = *grid.probe_scales().start();
                probes.weights.extend(values.iter().map(|&x| x.into() as i64 * weight as i64));
                weight
            } else {
                let scale = grid.scales().probe_scale(unit.peak());
                unit.round(scale, &mut probes.weights);
                scale
            };
            probes.scales.push(scale);
            probes.norms.push(unit.norm);
        }
        Ok(probes)
    }

    /// Takes weights that someone else has rounded, with the scale of each probe, and checks them.
    /// Their norms are not known here and count as one.
    ///
    /// # Errors
    /// [`Error::Dimension`] unless there are whole rows, one a scale; [`Error::Range`] for a scale,
    /// a weight or a norm out of bounds.
    pub fn from_weights(spec: &VectorSpec, weights: &[i64], scales: &[u64]) -> Result<Self> {
        let grid = *spec.grid();
        let rows = split(&grid, weights)?;
        if rows.len() != scales.len() {
            return Err(Error::Range {
                what: "the number of scales",
                expected: format!("{}, one a probe", rows.len()),
                actual: scales.len().to_string(),
            });
        }
        expect_few(scales.len())?;
        for (row, &scale) in rows.zip(scales) {
            check_weights(&grid, row, scale)?;
        }
        let norms = vec![1.0; scales.len()];
        Ok(Probes { grid, weights: weights.to_vec(), scales: scales.to_vec(), norms })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none, which never happens.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Their Euclidean norms before normalisation.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// What each was multiplied by. It travels with the scores and tells a little about a probe's
    /// largest coordinate.
    pub fn scales(&self) -> &[u64] {
        &self.scales
    }

    /// The weights of probe `index`.
    ///
    /// # Panics
    /// If there is no such probe.
    pub fn weights(&self, index: usize) -> &[i64] {
        let dimension = self.grid.dimension();
        &self.weights[index * dimension..(index + 1) * dimension]
    }

    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Whether they are rounded for vectors of this description, whatever the layout.
    #[doc(hidden)]
    pub fn fit(&self, spec: &VectorSpec) -> bool {
        self.grid == *spec.grid()
    }

    /// Their description; probes fit every layout.
    pub(super) fn spec(&self) -> VectorSpec {
        VectorSpec::of(self.grid, Layout::Elements)
    }
}

impl core::fmt::Debug for Probes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Probes({} of {} dimensions, redacted)", self.len(), self.grid.dimension())
    }
}

/// Refuses a scale out of range, and weights that no rounded unit vector has.
fn check_weights(grid: &Grid, weights: &[i64], scale: u64) -> Result<()> {
    let scales = grid.probe_scales();
    if !scales.contains(&scale) {
        return Err(Error::Range {
            what: "the scale of a probe",
            expected: format!("{} to {}", scales.start(), scales.end()),
            actual: scale.to_string(),
        });
    }
    let most = grid.largest_weight();
    if let Some(weight) = weights.iter().find(|weight| weight.unsigned_abs() > most) {
        return Err(Error::Range {
            what: "a weight",
            expected: format!("at most {most} in absolute value"),
            actual: weight.to_string(),
        });
    }
    let square = square(weights);
    if square > grid.probe_square() {
        return Err(Error::Range {
            what: "the sum of the squares of a probe's weights",
            expected: format!("at most {}, as of a unit vector", grid.probe_square()),
            actual: square.to_string(),
        });
    }
    Ok(())
}

/// Refuses more probes than a message holds.
fn expect_few(probes: usize) -> Result<()> {
    if probes <= MAX_QUERIES as usize {
        return Ok(());
    }
    Err(Error::Range {
        what: "the number of probes",
        expected: format!("at most {MAX_QUERIES}"),
        actual: probes.to_string(),
    })
}

fn square(values: &[i64]) -> u128 {
    values.iter().map(|value| u128::from(value.unsigned_abs()).pow(2)).sum()
}

/// Whole rows, at least one.
fn split<'a, V>(grid: &Grid, values: &'a [V]) -> Result<core::slice::ChunksExact<'a, V>> {
    let dimension = grid.dimension();
    if values.is_empty() {
        return Err(Error::Range {
            what: "the number of vectors",
            expected: "at least 1".into(),
            actual: "0".into(),
        });
    }
    if !values.len().is_multiple_of(dimension) {
        return Err(Error::Dimension {
            expected: dimension,
            actual: values.len(),
            rows: values.len().div_ceil(dimension),
        });
    }
    Ok(values.chunks_exact(dimension))
}

/// One row divided by its largest coordinate, so that no square overflows or vanishes.
struct Unit {
    relative: Vec<f64>,
    /// Norm of `relative`: 1 … √d, or 0 for a zero vector.
    length: f64,
    norm: f64,
}

impl Unit {
    fn new<F: Copy + Into<f64>>(grid: &Grid, row: usize, values: &[F]) -> Result<Self> {
        let coordinate = |expected, good: fn(f64) -> bool| {
            let found = values.iter().position(|&x| !good(x.into()));
            found.map_or(Ok(()), |coordinate| {
                let actual = values[coordinate].into() as f32;
                Err(Error::Coordinate { row, coordinate, expected, actual })
            })
        };
        coordinate("a finite number", f64::is_finite)?;
        if grid.signs() {
            coordinate("+1 or -1 under hamming", |x| x.abs() == 1.0)?;
        }
        let largest = values.iter().fold(0.0f64, |most, &x| most.max(x.into().abs()));
        if largest == 0.0 && grid.metric().needs_direction() {
            return Err(Error::ZeroVector { row, metric: grid.metric().as_str() });
        }
        let divisor = if largest == 0.0 { 1.0 } else { largest };
        let relative: Vec<f64> = values.iter().map(|&x| x.into() / divisor).collect();
        let length = sum_of_squares(&relative).sqrt();
        let norm = largest * length;
        if !norm.is_finite() {
            return Err(Error::Range {
                what: "the norm of a vector",
                expected: "at most 1.8e308".into(),
                actual: format!("more in row {row}"),
            });
        }
        Ok(Unit { relative, length, norm })
    }

    /// The largest coordinate of the unit vector, 1 for a zero vector.
    fn peak(&self) -> f64 {
        if self.length == 0.0 { 1.0 } else { 1.0 / self.length }
    }

    /// Appends the unit vector times `scale`, rounded to the nearest integers, ties to even.
    fn round(&self, scale: u64, out: &mut Vec<i64>) {
        let factor = scale as f64 * self.peak();
        out.extend(self.relative.iter().map(|&x| (x * factor).round_ties_even() as i64));
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.relative.zeroize();
    }
}

/// Added in pairs of pairs: the error grows with log2 d instead of d, which precision `high` needs.
fn sum_of_squares(values: &[f64]) -> f64 {
    if values.len() <= 16 {
        return values.iter().map(|x| x * x).sum();
    }
    let (left, right) = values.split_at(values.len() / 2);
    sum_of_squares(left) + sum_of_squares(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use crate::similarity::additive::GridPrecision;
    use proptest::prelude::*;

    fn spec(dimension: u32, metric: Metric, precision: GridPrecision) -> VectorSpec {
        VectorSpec::new(dimension, metric, precision, Layout::Elements).unwrap()
    }

    #[test]
    fn one_direction_whatever_the_length() {
        let spec = spec(3, Metric::L2, GridPrecision::High);
        let row = [3.0f64, -4.0, 12.0];
        let expected = Vectors::quantize(&spec, &row).unwrap();
        assert_eq!(expected.norms(), [13.0]);
        for power in [-1060, -500, -3, 70, 1000] {
            let factor = f64::exp2(f64::from(power));
            let scaled = row.map(|x| x * factor);
            let vectors = Vectors::quantize(&spec, &scaled).unwrap();
            assert_eq!(vectors.row(0), expected.row(0), "2^{power}");
            assert_eq!(vectors.norms(), [13.0 * factor]);
        }
        assert!(matches!(
            Vectors::quantize(&spec, &[f64::MAX; 3]),
            Err(Error::Range { what: "the norm of a vector", .. })
        ));
        let zero = Vectors::quantize(&spec, &[0.0f32; 3]).unwrap();
        assert_eq!((zero.row(0), zero.norms()), (&[0i64; 3][..], &[0.0][..]));
        assert_eq!(format!("{zero:?}"), "Vectors(1 of 3 dimensions, redacted)");
    }

    #[test]
    fn bad_rows_are_named() {
        let cosine = spec(3, Metric::Cosine, GridPrecision::Standard);
        assert!(matches!(Vectors::quantize(&cosine, &[1.0; 4]), Err(Error::Dimension { .. })));
        assert!(matches!(Probes::quantize::<f32>(&cosine, &[]), Err(Error::Range { .. })));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                Probes::quantize(&cosine, &[1.0, 2.0, 3.0, 0.0, bad, 1.0]),
                Err(Error::Coordinate { row: 1, coordinate: 1, .. })
            ));
        }
        assert!(matches!(
            Vectors::quantize(&cosine, &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            Err(Error::ZeroVector { row: 1, .. })
        ));
        let hamming = spec(2, Metric::Hamming, GridPrecision::Standard);
        assert!(matches!(
            Vectors::quantize(&hamming, &[1.0, 0.5]),
            Err(Error::Coordinate { coordinate: 1, .. })
        ));
        let signs = Probes::quantize(&hamming, &[1.0f32, -1.0]).unwrap();
        assert_eq!((signs.weights(0), signs.scales()), (&[2, -2][..], &[2][..]));
    }

    proptest! {
        /// What Cauchy–Schwarz needs: norms on the grid stay below the bound, for vectors and for
        /// probes, and probes pass the check that weights from outside have to pass.
        #[test]
        fn rounded_rows_obey_their_bounds(
            seeds in proptest::collection::vec(any::<i32>(), 1..600),
            precision in 0u8..3,
            shape in 0u32..3,
        ) {
            let precision = GridPrecision::from_byte(precision).unwrap();
            let spec = spec(seeds.len() as u32, Metric::L2, precision);
            let row: Vec<f64> = seeds.iter().enumerate().map(|(at, &seed)| match shape {
                0 => f64::from(seed),
                1 => f64::from(seed.signum()),
                _ => f64::from(seed) * (-(at as f64)).exp(),
            }).collect();
            let vectors = Vectors::quantize(&spec, &row).unwrap();
            prop_assert!(square(vectors.row(0)) <= spec.grid().vector_square());
            let probes = Probes::quantize(&spec, &row).unwrap();
            prop_assert!(square(probes.weights(0)) <= spec.grid().probe_square());
            prop_assert!(Probes::from_weights(&spec, probes.weights(0), probes.scales()).is_ok());
            // Nothing is lost: every coordinate is within half a unit of where it belongs.
            let norm = probes.norms()[0];
            for (&weight, &x) in probes.weights(0).iter().zip(&row) {
                let exact = if norm == 0.0 { 0.0 } else { x / norm * probes.scales()[0] as f64 };
                prop_assert!((weight as f64 - exact).abs() <= 0.5 + 0.1);
            }
        }
    }

    #[test]
    fn weights_from_outside_are_bounded_on_both_sides() {
        let spec = spec(4, Metric::Cosine, GridPrecision::Standard);
        let check = |weights: &[i64], scale| Probes::from_weights(&spec, weights, &[scale]);
        assert!(check(&[16_384, 1, 0, 0], 16_384).is_ok());
        assert!(check(&[-16_384, 0, 0, 0], 13_312).is_ok());
        for weight in [16_385, -16_385, i64::MAX, i64::MIN] {
            let error = check(&[0, weight, 0, 0], 16_384).unwrap_err();
            assert!(matches!(error, Error::Range { what: "a weight", .. }), "{error}");
        }
        // Each weight alone would pass.
        assert!(check(&[16_000; 4], 16_384).unwrap_err().to_string().contains("squares"));
        for scale in [0, 1, 13_311, 16_385, u64::MAX] {
            assert!(check(&[0; 4], scale).unwrap_err().to_string().contains("scale"));
        }
        assert!(matches!(check(&[0; 3], 16_384), Err(Error::Dimension { .. })));
        assert!(Probes::from_weights(&spec, &[0; 8], &[16_384]).is_err());
    }
}
