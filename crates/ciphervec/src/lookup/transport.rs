//! The ways to send encrypted indices, by name and by byte.

use crate::error::{Error, Result};
use core::str::FromStr;

/// How an encrypted index travels, in strategies that write it as one number (`docs/lookup.md`,
/// section "Compact transport").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Transport {
    /// Ciphertexts with all primes that the server's work needs.
    #[default]
    Standard = 0,
    /// Half the degree and one prime, rounded: the server bootstraps what it gets into roots of unity.
    /// The fewest bytes, and the most work.
    Compact = 1,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Transport; 2] = [Transport::Standard, Transport::Compact];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Standard => "standard",
            Transport::Compact => "compact",
        }
    }

    /// The transport of a byte in a description.
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| *transport as u8 == byte)
    }
}

impl core::fmt::Display for Transport {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Transport {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|transport| transport.as_str() == name);
        found.ok_or_else(|| Error::choice("transport", "standard or compact", name))
    }
}
