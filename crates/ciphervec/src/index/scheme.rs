//! Scheme: a name enters, what an index is encrypted under leaves. Both sides.

use crate::error::{Error, Result};
use ciphervec_he::wire;
use core::str::FromStr;

/// The scheme of an index. [`Scheme::Lattice`] does every mode; the others compare encrypted vectors with plain queries,
/// mode `sealed-index`, under a key pair that belongs to the index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Scheme {
    /// The linear lattice scheme of `docs/sealed.md`: the default.
    #[default]
    Lattice = 0,
    /// Paillier.
    Paillier = 1,
    /// Damgård–Jurik with s = 2.
    DamgardJurik = 2,
    /// Okamoto–Uchiyama.
    OkamotoUchiyama = 3,
    /// Exponential ElGamal on ristretto255.
    ElGamal = 4,
}

/// What the rest of the crate has to know of a scheme.
struct Row {
    scheme: Scheme,
    name: &'static str,
    /// What frames of an additively homomorphic scheme say.
    wire: Option<wire::Scheme>,
    /// Whether its keys have a modulus whose length is chosen.
    has_modulus: bool,
}

/// One row a scheme, in the order of their bytes.
const ROWS: [Row; 5] = {
    const fn row(
        scheme: Scheme,
        name: &'static str,
        wire: Option<wire::Scheme>,
        has_modulus: bool,
    ) -> Row {
        Row { scheme, name, wire, has_modulus }
    }
    use wire::Scheme as Wire;
    [
        row(Scheme::Lattice, "lattice", None, false),
        row(Scheme::Paillier, "paillier", Some(Wire::Paillier), true),
        row(Scheme::DamgardJurik, "damgard-jurik", Some(Wire::DamgardJurik), true),
        row(Scheme::OkamotoUchiyama, "okamoto-uchiyama", Some(Wire::OkamotoUchiyama), true),
        row(Scheme::ElGamal, "elgamal", Some(Wire::ElGamal), false),
    ]
};

/// What release 0.1 called the lattice scheme.
const FORMER_LATTICE: &str = "sealed";

impl Scheme {
    /// Every scheme.
    pub const ALL: [Scheme; ROWS.len()] = {
        let mut all = [Scheme::Lattice; ROWS.len()];
        let mut index = 0;
        while index < ROWS.len() {
            all[index] = ROWS[index].scheme;
            index += 1;
        }
        all
    };

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The name in descriptions on disk and on the wire, which is that of release 0.1 for good.
    pub fn stored_name(self) -> &'static str {
        if self == Scheme::Lattice { FORMER_LATTICE } else { self.as_str() }
    }

    /// Whether it is one of the additively homomorphic schemes.
    pub fn is_additive(self) -> bool {
        self.row().wire.is_some()
    }

    /// Whether its keys have a modulus whose length is chosen.
    pub(crate) fn has_modulus(self) -> bool {
        self.row().has_modulus
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// What frames of an additively homomorphic scheme say.
    pub(crate) fn wire(self) -> Option<wire::Scheme> {
        self.row().wire
    }
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let name = if name == FORMER_LATTICE { Scheme::Lattice.as_str() } else { name };
        Self::ALL.into_iter().find(|scheme| scheme.as_str() == name).ok_or_else(|| {
            let known = "lattice, paillier, damgard-jurik, okamoto-uchiyama or elgamal";
            Error::choice("scheme", known, name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_go_there_and_back() {
        for (byte, scheme) in Scheme::ALL.into_iter().enumerate() {
            assert_eq!(scheme as usize, byte);
            assert_eq!(scheme.as_str().parse::<Scheme>().unwrap(), scheme);
            assert_eq!(Scheme::from_byte(scheme as u8), Some(scheme));
            assert_eq!(scheme.wire().is_some(), scheme.is_additive());
        }
        assert_eq!("sealed".parse::<Scheme>().unwrap(), Scheme::Lattice);
        assert!("rsa".parse::<Scheme>().is_err() && Scheme::from_byte(5).is_none());
    }
}
