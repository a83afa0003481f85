//! Trust modes (who can read rows and queries) and the precisions of mode `sealed-index`.

use crate::error::Error;
use core::str::FromStr;

/// A trust mode: what the machine that searches can read (SECURITY.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Mode {
    /// Plain index, plain query: a test oracle and a baseline, never a default.
    Open = 0,
    /// Encrypted index, plain query.
    SealedIndex = 1,
    /// Plain index, encrypted query.
    SealedQuery = 2,
    /// Both encrypted: the default.
    Sealed = 3,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 4] = [Mode::Open, Mode::SealedIndex, Mode::SealedQuery, Mode::Sealed];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Open => "open",
            Mode::SealedIndex => "sealed-index",
            Mode::SealedQuery => "sealed-query",
            Mode::Sealed => "sealed",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| *mode as u8 == byte)
    }

    /// Whether queries travel encrypted, and the server therefore needs evaluation keys.
    pub fn encrypts_queries(self) -> bool {
        matches!(self, Mode::SealedQuery | Mode::Sealed)
    }

    /// Whether the server holds vectors encrypted.
    pub fn encrypts_index(self) -> bool {
        matches!(self, Mode::SealedIndex | Mode::Sealed)
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| {
            Error::choice("mode", "sealed, sealed-index, sealed-query or open", name)
        })
    }
}

/// The size of a stored word in mode `sealed-index`; every other mode has one size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Precision {
    /// 4 bytes a dimension.
    Standard = 0,
    /// 3 bytes a dimension.
    Small = 1,
    /// 8 bytes a dimension.
    Wide = 2,
}

impl Precision {
    /// Every precision.
    pub const ALL: [Precision; 3] = [Precision::Standard, Precision::Small, Precision::Wide];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Precision::Standard => "standard",
            Precision::Small => "small",
            Precision::Wide => "wide",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|precision| *precision as u8 == byte)
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|precision| precision.as_str() == name)
            .ok_or_else(|| Error::choice("precision", "standard, small or wide", name))
    }
}
