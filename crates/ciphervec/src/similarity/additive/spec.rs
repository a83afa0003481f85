//! The public description of vectors, checked: dimension, metric, precision and layout.

use super::grid::Grid;
use super::layout::{Layout, Packing};
use super::precision::GridPrecision;
use crate::error::{Error, Result};
use crate::index::metric::Metric;
use crate::index::spec::MAX_DIMENSION;
use ciphervec_he::lattice::ErrorBound;
use ciphervec_he::wire::Reader;

/// What both sides know about vectors under an additively homomorphic scheme.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VectorSpec {
    grid: Grid,
    layout: Layout,
}

impl VectorSpec {
    /// A checked description.
    ///
    /// # Errors
    /// A dimension outside 1 … [`MAX_DIMENSION`].
    pub fn new(
        dimension: u32,
        metric: Metric,
        precision: GridPrecision,
        layout: Layout,
    ) -> Result<Self> {
        if dimension == 0 || dimension > MAX_DIMENSION {
            return Err(Error::Range {
                what: "dimension",
                expected: format!("1 to {MAX_DIMENSION}"),
                actual: dimension.to_string(),
            });
        }
        Ok(VectorSpec { grid: Grid::new(dimension, metric, precision), layout })
    }

    /// Coordinates a vector.
    pub fn dimension(&self) -> usize {
        self.grid.dimension()
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.grid.metric()
    }

    /// The precision.
    pub fn precision(&self) -> GridPrecision {
        self.grid.precision()
    }

    /// The layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// How far a decrypted cosine may be from the exact one, whatever the probe. Exactly zero
    /// under `hamming`.
    ///
    /// Layout `horizontal` may add one unit of the integer grid, 1/XQ < 1.2 · 10⁻⁹ at precision
    /// `standard`; under `hamming` that is rounded away.
    pub fn error_bound(&self) -> ErrorBound {
        self.grid.error_bound()
    }

    /// No score of honest vectors exceeds this integer: (X + √d/2)(Q + √d/2), rounded up.
    pub fn score_bound(&self) -> u128 {
        self.grid.score_bound()
    }

    /// The layout under a key whose messages have `message_bits` bits.
    ///
    /// # Errors
    /// [`Error::Range`] when the messages are too short.
    pub fn packing(&self, message_bits: u32) -> Result<Packing> {
        Packing::new(self.layout, &self.grid, message_bits)
    }

    pub(super) fn of(grid: Grid, layout: Layout) -> Self {
        VectorSpec { grid, layout }
    }

    #[doc(hidden)]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Refuses what was rounded for other vectors.
    pub(super) fn expect_grid(&self, what: &'static str, found: &Grid) -> Result<()> {
        if *found == self.grid {
            return Ok(());
        }
        let name = |grid: &Grid| {
            format!(
                "{} dimensions, {}, precision {}",
                grid.dimension(),
                grid.metric().as_str(),
                grid.precision().as_str()
            )
        };
        Err(Error::Range { what, expected: name(&self.grid), actual: name(found) })
    }

    /// Dimension u32, metric, precision, layout.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.dimension() as u32).to_le_bytes());
        out.extend([self.metric() as u8, self.precision() as u8, self.layout as u8]);
    }

    /// Reads what [`Self::write`] wrote.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let dimension = reader.u32()?;
        let (metric, precision, layout) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let unknown = |what: &str, value: u8| reader.error(format!("unknown {what} {value}"));
        VectorSpec::new(
            dimension,
            Metric::from_byte(metric).ok_or_else(|| unknown("metric", metric))?,
            GridPrecision::from_byte(precision).ok_or_else(|| unknown("precision", precision))?,
            Layout::from_byte(layout).ok_or_else(|| unknown("layout", layout))?,
        )
    }
}
