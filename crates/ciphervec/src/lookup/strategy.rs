//! The strategies of lookup, by name and by byte.

use crate::error::{Error, Result};
use core::str::FromStr;

/// How an index is written by the client, and what the server makes of it (`docs/lookup.md`,
/// section "Strategies").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Strategy {
    /// The client sends the one-hot vector of the index: one ciphertext for every row.
    OneHot = 0,
    /// The one-hot vectors of both digits of the index; the server multiplies them.
    OneHotDigits = 1,
    /// One number; the server compares it with every index (Kim et al., ICML 2024).
    Indicator = 2,
    /// One complex number; the server makes its powers (IVE-PEL, arXiv 2606.03191).
    Ive = 3,
    /// One real number for each of two digits, or of three for one or two columns; the server makes
    /// Chebyshev polynomials of them and multiplies these.
    IveDigits = 4,
    /// How often each row occurs in a document: for sums and means only.
    Histogram = 5,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 6] = [
        Strategy::OneHot,
        Strategy::OneHotDigits,
        Strategy::Indicator,
        Strategy::Ive,
        Strategy::IveDigits,
        Strategy::Histogram,
    ];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::OneHot => "one_hot",
            Strategy::OneHotDigits => "one_hot_digits",
            Strategy::Indicator => "indicator",
            Strategy::Ive => "ive",
            Strategy::IveDigits => "ive_digits",
            Strategy::Histogram => "histogram",
        }
    }

    /// The strategy of a byte in a header.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| *strategy as u8 == byte)
    }
}

impl core::fmt::Display for Strategy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == name).ok_or_else(|| {
            Error::choice(
                "strategy",
                "one_hot, one_hot_digits, indicator, ive, ive_digits or histogram",
                name,
            )
        })
    }
}
