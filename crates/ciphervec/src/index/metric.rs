//! How two vectors are compared. A cosine and two norms enter, the metric's value leaves. Owner side.

use core::str::FromStr;

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

impl Metric {
    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Metric::Cosine => "cosine",
            Metric::InnerProduct => "ip",
            Metric::L2 => "l2",
            Metric::Hamming => "hamming",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming]
            .into_iter()
            .find(|m| *m as u8 == byte)
    }

    /// Whether a higher value is a closer match.
    pub fn higher_is_closer(self) -> bool {
        matches!(self, Metric::Cosine | Metric::InnerProduct)
    }

    /// The metric's value from a cosine and both norms; under `Hamming` both norms are √d.
    #[cfg(feature = "client")]
    #[inline]
    pub(crate) fn value(self, cosine: f64, row_norm: f64, query_norm: f64) -> f64 {
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
    type Err = crate::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming]
            .into_iter()
            .find(|metric| metric.as_str() == name)
            .ok_or_else(|| crate::Error::choice("metric", "cosine, ip, l2 or hamming", name))
    }
}
