//! Which scheme an index is encrypted under. A name enters, a scheme leaves. Both sides.

use crate::error::{Error, Result};
use ciphervec_he::wire;
use core::str::FromStr;

/// The scheme of an index. [`Scheme::Sealed`] does every mode; the others compare encrypted vectors with plain queries,
/// mode `sealed-index`, under a key pair that belongs to the index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Scheme {
    /// The linear lattice scheme of `docs/sealed.md`: the default.
    #[default]
    Sealed = 0,
    /// Paillier.
    Paillier = 1,
    /// Damgård–Jurik with s = 2.
    DamgardJurik = 2,
    /// Okamoto–Uchiyama.
    OkamotoUchiyama = 3,
    /// Exponential ElGamal on ristretto255.
    ElGamal = 4,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Scheme; 5] = [
        Scheme::Sealed,
        Scheme::Paillier,
        Scheme::DamgardJurik,
        Scheme::OkamotoUchiyama,
        Scheme::ElGamal,
    ];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Sealed => "sealed",
            Scheme::Paillier => "paillier",
            Scheme::DamgardJurik => "damgard-jurik",
            Scheme::OkamotoUchiyama => "okamoto-uchiyama",
            Scheme::ElGamal => "elgamal",
        }
    }

    /// Whether it is one of the additively homomorphic schemes.
    pub fn is_additive(self) -> bool {
        self != Scheme::Sealed
    }

    /// Whether its keys have a modulus whose length is chosen.
    pub(crate) fn has_modulus(self) -> bool {
        self.is_additive() && self != Scheme::ElGamal
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| *scheme as u8 == byte)
    }

    /// What frames of an additively homomorphic scheme say.
    pub(crate) fn wire(self) -> Option<wire::Scheme> {
        match self {
            Scheme::Sealed => None,
            Scheme::Paillier => Some(wire::Scheme::Paillier),
            Scheme::DamgardJurik => Some(wire::Scheme::DamgardJurik),
            Scheme::OkamotoUchiyama => Some(wire::Scheme::OkamotoUchiyama),
            Scheme::ElGamal => Some(wire::Scheme::ElGamal),
        }
    }
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.as_str() == name).ok_or_else(|| {
            let known = "sealed, paillier, damgard-jurik, okamoto-uchiyama or elgamal";
            Error::choice("scheme", known, name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_go_there_and_back() {
        for scheme in Scheme::ALL {
            assert_eq!(scheme.as_str().parse::<Scheme>().unwrap(), scheme);
            assert_eq!(Scheme::from_byte(scheme as u8), Some(scheme));
            assert_eq!(scheme.wire().is_some(), scheme.is_additive());
        }
        assert!("rsa".parse::<Scheme>().is_err() && Scheme::from_byte(5).is_none());
    }
}
