//! Precisions of scores by name, and the scales that vectors are rounded at.

use core::ops::RangeInclusive;
use core::str::FromStr;

/// How exact scores are, and what they cost: wider weights take more multiplications, wider slots
/// hold fewer lanes.
///
/// | precision | error of a cosine | weights | slot | lanes in 2,047 bits |
/// |---|---|---|---:|---:|
/// | small | 10⁻³ | 9 bits | 26 bits | 78 |
/// | standard | 10⁻⁴ | 11 bits | 32 bits | 63 |
/// | high | 10⁻¹² | 44 bits | 96 bits | 21 |
///
/// Weights are those of a vector of 512 coordinates of about one size, without their sign. The
/// error of `high` is never exceeded; those of `small` and `standard` are 7.2 and 4.5 standard
/// deviations away for the least favourable probe ([`super::VectorSpec::error_bound`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum GridPrecision {
    /// Within 10⁻⁴, to 4.4 standard deviations: the default.
    #[default]
    Standard = 0,
    /// Within 10⁻³, to 7 standard deviations, for schemes that decrypt small numbers only.
    Small = 1,
    /// Within 10⁻¹², always.
    High = 2,
}

/// What unit vectors are multiplied by before they are rounded to integers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GridScales {
    /// X, of the encrypted vectors.
    pub vector: u64,
    /// The least and the largest Q of a probe.
    pub probe: (u64, u64),
    /// Weights up to here save a digit in the exponents, so that a probe gets the largest Q that
    /// keeps them so.
    pub weight: u64,
    /// What cosines are rounded to after decryption.
    pub step: f64,
}

impl GridPrecision {
    const ALL: [GridPrecision; 3] =
        [GridPrecision::Standard, GridPrecision::Small, GridPrecision::High];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            GridPrecision::Standard => "standard",
            GridPrecision::Small => "small",
            GridPrecision::High => "high",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|precision| *precision as u8 == byte)
    }

    /// The scales, just under what keeps (X + √d/2)(Q + √d/2) below 2^24, 2^30 and 2^94 at every
    /// dimension.
    #[doc(hidden)]
    pub fn scales(self) -> GridScales {
        match self {
            GridPrecision::Small => GridScales {
                vector: 4_000,
                probe: (2_560, 4_050),
                weight: 511,
                step: f64::exp2(-14.0),
            },
            GridPrecision::Standard => GridScales {
                vector: 65_000,
                probe: (13_312, 16_384),
                weight: 2_047,
                step: f64::exp2(-18.0),
            },
            GridPrecision::High => {
                let scale = (1 << 47) - 128;
                GridScales {
                    vector: scale,
                    probe: (scale, scale),
                    weight: scale,
                    step: f64::exp2(-44.0),
                }
            }
        }
    }
}

impl GridScales {
    /// Q for a unit probe whose largest coordinate is `peak` in absolute value.
    pub fn probe_scale(&self, peak: f64) -> u64 {
        let (least, most) = self.probe;
        let narrow = (self.weight as f64 / peak) as u64;
        if narrow >= least { narrow.min(most) } else { most }
    }

    /// Every Q that a probe may have.
    pub fn probe_scales(&self) -> RangeInclusive<u64> {
        self.probe.0..=self.probe.1
    }
}

impl FromStr for GridPrecision {
    type Err = crate::error::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|precision| precision.as_str() == name).ok_or_else(|| {
            crate::error::Error::choice("precision", "small, standard or high", name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_get_the_largest_scale_that_saves_a_digit() {
        let scales = GridPrecision::Standard.scales();
        assert_eq!(scales.probe_scale(0.01), 16_384);
        assert_eq!(scales.probe_scale(0.14), 14_621);
        assert_eq!(scales.probe_scale(0.15), 13_646);
        // No scale in range keeps these weights narrow: precision comes first then.
        assert_eq!(scales.probe_scale(0.16), 16_384);
        assert_eq!(scales.probe_scale(1.0), 16_384);
        let scales = GridPrecision::High.scales();
        assert_eq!(scales.probe_scale(1.0), (1 << 47) - 128);
        assert_eq!(scales.probe_scale(0.1), (1 << 47) - 128);
    }

    #[test]
    fn names_and_bytes_go_there_and_back() {
        for precision in GridPrecision::ALL {
            assert_eq!(precision.as_str().parse::<GridPrecision>().unwrap(), precision);
            assert_eq!(GridPrecision::from_byte(precision as u8), Some(precision));
        }
        assert!("exact".parse::<GridPrecision>().is_err() && GridPrecision::from_byte(3).is_none());
    }
}
