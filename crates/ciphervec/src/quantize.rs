//! From float rows to integers. Rows and scales enter; checked norms and quantised coordinates leave. Owner side.

use crate::error::{Error, Result};
use crate::search::HEADROOM;
use crate::{IndexSpec, Metric, Mode};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::ring::Ring;
use ciphervec_he::lattice::{Plaintext, Scales};
use core::ops::Range;

/// log2 of Δx in the ring form: noise of the vectors and of the query weigh about the same at the bulk level.
const SEALED_VECTOR_LOG_SCALE: f64 = 18.7;
/// Plain vectors carry no noise, so that more of the modulus can go to the query.
const PLAIN_VECTOR_LOG_SCALE: f64 = 16.0;

/// The scale of unit vectors, fixed when they are sealed.
///
/// Under `hamming` the scale makes every coordinate ±c for an integer c, so that inner products stay exact.
pub(crate) fn vector_scale(spec: &IndexSpec) -> f64 {
    let root = (spec.dimension() as f64).sqrt();
    let signs = spec.metric() == Metric::Hamming;
    match spec.mode() {
        Mode::Open => 1.0,
        Mode::SealedIndex if signs => {
            spec.precision().form().sign_scales(spec.dimension()).vector * root
        }
        Mode::SealedIndex => spec.precision().form().unit_scales().vector,
        mode => {
            let log_scale =
                if mode == Mode::Sealed { SEALED_VECTOR_LOG_SCALE } else { PLAIN_VECTOR_LOG_SCALE };
            if !signs {
                return f64::exp2(log_scale);
            }
            // Whole bits at d dimensions need an error below 1/d: the vectors' noise must shrink with d.
            let scale = f64::exp2(log_scale) * (spec.dimension() as f64 / 2048.0).max(1.0);
            (scale / root).round().max(1.0) * root
        }
    }
}

/// What unit vectors are multiplied by when they are sealed: [`vector_scale`], in the compact form in finer units.
pub(crate) fn plaintext_scale(spec: &IndexSpec) -> f64 {
    let vector = vector_scale(spec);
    match spec.mode() {
        Mode::SealedIndex => spec.precision().form().plaintext_scale(Scales { vector, query: 1.0 }),
        _ => vector,
    }
}

/// Both scales of a query; `top_level` is the deepest level it serves (ring form only).
pub(crate) fn scales(spec: &IndexSpec, ring: Option<&Ring>, top_level: u8) -> Scales {
    let vector = vector_scale(spec);
    let signs = spec.metric() == Metric::Hamming;
    let root = (spec.dimension() as f64).sqrt();
    let query = match (spec.mode(), ring) {
        (Mode::SealedIndex, _) if signs => root,
        (Mode::SealedIndex, _) => spec.precision().form().unit_scales().query,
        (Mode::SealedQuery | Mode::Sealed, Some(ring)) => {
            let query = ring.scales(vector, top_level).query;
            if signs { (query / root).floor() * root } else { query }
        }
        _ => 1.0,
    };
    Scales { vector, query }
}

/// Rows that passed the checks, with their norms.
pub(crate) struct Checked<'a> {
    rows: &'a [f32],
    dimension: usize,
    /// Euclidean norm of each row.
    pub norms: Vec<f64>,
}

/// Checks shape, finiteness and, per metric, direction or signs.
///
/// # Errors
/// [`Error::Dimension`], [`Error::Coordinate`], [`Error::ZeroVector`].
pub(crate) fn check<'a>(spec: &IndexSpec, rows: &'a [f32]) -> Result<Checked<'a>> {
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
        if spec.metric() == Metric::Hamming && values.iter().any(|x| x.abs() != 1.0) {
            return Err(coordinate(row, values, "+1 or -1 under hamming", |x| x.abs() == 1.0));
        }
        let norm = squared.sqrt();
        if norm == 0.0 && spec.metric() == Metric::Cosine {
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
    pub fn quantise(&self, scale: f64) -> Quantised<'a> {
        let factors = self.norms.iter().map(|&norm| inverse_norm(norm) * scale).collect();
        Quantised { rows: self.rows, dimension: self.dimension, factors }
    }
}

/// A zero vector (allowed where norms carry the value) stays zero.
fn inverse_norm(norm: f64) -> f64 {
    if norm == 0.0 { 0.0 } else { 1.0 / norm }
}

/// Rows that are scaled and rounded when they are read: |value| ≤ Δ + ½ for a unit vector times Δ.
pub(crate) struct Quantised<'a> {
    rows: &'a [f32],
    dimension: usize,
    factors: Vec<f64>,
}

/// 1.5 · 2^52: adding it rounds a double of magnitude below 2^51 to the nearest integer, ties to even, without a branch.
const ROUND: f64 = 6_755_399_441_055_744.0;

impl Quantised<'_> {
    /// Every coordinate of every row.
    pub fn values(&self) -> Vec<i64> {
        let mut values = vec![0; self.rows.len()];
        for (row, out) in values.chunks_exact_mut(self.dimension).enumerate() {
            self.fill(row, 0..self.dimension, out);
        }
        values
    }
}

impl Plaintext for Quantised<'_> {
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
        let values = &self.rows[row * self.dimension..][dims];
        for (out, &x) in out.iter_mut().zip(values) {
            *out = (f64::from(x) * factor + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    fn spec(metric: Metric, mode: Mode, dimension: u32) -> IndexSpec {
        IndexSpec::new("test", dimension, metric, mode, Precision::Standard).unwrap()
    }

    #[test]
    fn rounding_agrees_with_round_ties_even() {
        let spec = spec(Metric::L2, Mode::Sealed, 1);
        for x in [0.0f32, 0.49, 0.5, 1.5, 2.5, -0.5, -1.5, 123_456.79, -99_999.5] {
            let rows = [x];
            let checked = check(&spec, &rows).unwrap();
            let quantised = Quantised { rows: &rows, dimension: 1, factors: vec![1.0] };
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

    #[test]
    fn sign_vectors_quantise_to_one_integer() {
        for mode in [Mode::SealedIndex, Mode::Sealed, Mode::SealedQuery] {
            for dimension in [1, 7, 512, 16384] {
                let spec = spec(Metric::Hamming, mode, dimension);
                let rows: Vec<f32> =
                    (0..dimension).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
                let values = check(&spec, &rows).unwrap().quantise(plaintext_scale(&spec)).values();
                let unit = values[0];
                assert!(
                    unit >= 1 && values.iter().all(|value| value.abs() == unit),
                    "{mode:?} {dimension}"
                );
            }
        }
    }
}
