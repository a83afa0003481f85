//! Who may see what. A name enters, a trust mode or a precision leaves. Both sides.

use ciphervec_he::lattice::compact::Width;
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
    type Err = crate::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| {
            crate::Error::choice("mode", "sealed, sealed-index, sealed-query or open", name)
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
    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Precision::Standard => "standard",
            Precision::Small => "small",
            Precision::Wide => "wide",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Precision::Standard, Precision::Small, Precision::Wide]
            .into_iter()
            .find(|p| *p as u8 == byte)
    }

    /// The compact form of this precision.
    pub fn form(self) -> Width {
        match self {
            Precision::Standard => Width::Standard,
            Precision::Small => Width::Small,
            Precision::Wide => Width::Wide,
        }
    }
}

impl FromStr for Precision {
    type Err = crate::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Precision::Standard, Precision::Small, Precision::Wide]
            .into_iter()
            .find(|precision| precision.as_str() == name)
            .ok_or_else(|| crate::Error::choice("precision", "standard, small or wide", name))
    }
}
