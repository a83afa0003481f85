//! Metrics, and their values from a cosine and two norms, for the owner.

use crate::error::{Error, alternatives};
use core::str::FromStr;
use std::sync::LazyLock;

/// A metric. Vectors are always sealed at unit length; the norms in the sidecar turn a cosine into the other values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Metric {
    /// Cosine similarity, −1 … 1: higher is closer.
    Cosine = 0,
    /// Inner product |x||q|·cos: higher is closer.
    InnerProduct = 1,
    /// Squared Euclidean distance |x|² + |q|² − 2|x||q|·cos: lower is closer.
    L2 = 2,
    /// Number of differing bits of ±1 vectors, exact: lower is closer.
    Hamming = 3,
}

/// What the rest of the crate has to know of a metric.
struct Row {
    metric: Metric,
    name: &'static str,
    higher_is_closer: bool,
    vectors: Vectors,
}

/// Which vectors a metric compares, and what it needs of them beside their direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vectors {
    /// Any but zero vectors, and nothing but their direction.
    Directions,
    /// Any, with their norms.
    WithNorms,
    /// Coordinates +1 and −1 only: all norms are √d, and values are whole numbers.
    Signs,
}

/// One row a metric, in the order of their bytes; its value is an arm of [`Metric::value`], which must be inlined where
/// every row of an index is ranked.
const ROWS: [Row; 4] = {
    const fn row(
        metric: Metric,
        name: &'static str,
        higher_is_closer: bool,
        vectors: Vectors,
    ) -> Row {
        Row { metric, name, higher_is_closer, vectors }
    }
    [
        row(Metric::Cosine, "cosine", true, Vectors::Directions),
        row(Metric::InnerProduct, "ip", true, Vectors::WithNorms),
        row(Metric::L2, "l2", false, Vectors::WithNorms),
        row(Metric::Hamming, "hamming", false, Vectors::Signs),
    ]
};

impl Metric {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        ROWS.get(usize::from(byte)).map(|row| row.metric)
    }

    /// Whether a higher value is a closer match.
    pub fn higher_is_closer(self) -> bool {
        self.row().higher_is_closer
    }

    /// Whether vectors are of +1 and −1 only, and values are whole numbers.
    #[doc(hidden)]
    pub fn compares_signs(self) -> bool {
        self.row().vectors == Vectors::Signs
    }

    /// Whether values depend on the vectors' norms: sidecars then keep them.
    #[doc(hidden)]
    pub fn needs_norms(self) -> bool {
        self.row().vectors == Vectors::WithNorms
    }

    /// Whether a zero vector cannot be compared.
    #[doc(hidden)]
    pub fn needs_direction(self) -> bool {
        self.row().vectors == Vectors::Directions
    }

    /// The metric's value from a cosine and both norms; where [`Self::compares_signs`] both are √d.
    #[inline]
    #[doc(hidden)]
    pub fn value(self, cosine: f64, row_norm: f64, query_norm: f64) -> f64 {
        match self {
            Metric::Cosine => cosine,
            Metric::InnerProduct => row_norm * query_norm * cosine,
            Metric::L2 => {
                let squared = row_norm * row_norm + query_norm * query_norm
                    - 2.0 * row_norm * query_norm * cosine;
                squared.max(0.0)
            }
            // d − x·q is twice the number of differing bits; both norms are √d.
            Metric::Hamming => ((row_norm * query_norm) * (1.0 - cosine) / 2.0).round(),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.metric).ok_or_else(|| {
            static KNOWN: LazyLock<String> =
                LazyLock::new(|| alternatives(ROWS.iter().map(|row| row.name)));
            Error::choice("metric", &KNOWN, name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_go_there_and_back() {
        for (byte, row) in ROWS.iter().enumerate() {
            assert_eq!(row.metric as usize, byte);
            assert_eq!(Metric::from_byte(row.metric as u8), Some(row.metric));
            assert_eq!(row.name.parse::<Metric>().unwrap(), row.metric);
        }
        assert!(Metric::from_byte(4).is_none());
        let error = "manhattan".parse::<Metric>().unwrap_err().to_string();
        assert!(error.contains("cosine, ip, l2 or hamming"));
    }
}
