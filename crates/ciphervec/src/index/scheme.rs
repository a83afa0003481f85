//! The encryption schemes of an index by name, and the types in `ciphervec-he` that they stand for.

use crate::error::{Error, Result, alternatives};
use ciphervec_he::additive::SecurityStatement;
use ciphervec_he::scheme::AdditiveScheme;
use ciphervec_he::{damgard_jurik, elgamal, okamoto_uchiyama, paillier, wire};
use core::str::FromStr;
use std::sync::LazyLock;

/// What is done with an additively homomorphic scheme, whichever it is.
pub trait SchemeVisitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<S: AdditiveScheme>(self) -> Self::Output;
}

/// What the rest of the crate has to know of a scheme.
struct Row {
    scheme: Scheme,
    name: &'static str,
    /// Set for additively homomorphic schemes.
    additive: Option<AdditiveRow>,
}

/// What it has to know of an additively homomorphic scheme beside its keys.
struct AdditiveRow {
    wire: wire::Scheme,
    field_bits: Option<u32>,
    security: fn(u32) -> SecurityStatement,
}

impl AdditiveRow {
    const fn of<S: AdditiveScheme>() -> Self {
        AdditiveRow { wire: S::WIRE, field_bits: S::FIELD_BITS, security: S::security }
    }
}

/// The additively homomorphic schemes: for each its byte, its name, and its type in `ciphervec-he`, where all else about it
/// stands.
macro_rules! schemes {
    ($($(#[$doc:meta])* $scheme:ident = $byte:literal, $name:literal, $type:ty;)+) => {
        /// The scheme of an index. [`Scheme::Lattice`] does every mode; the others compare encrypted vectors with plain
        /// queries, mode `sealed-index`, under a key pair that belongs to the index.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[repr(u8)]
        pub enum Scheme {
            /// The linear lattice scheme of `docs/sealed.md`: the default.
            #[default]
            Lattice = 0,
            $($(#[$doc])* $scheme = $byte,)+
        }

        /// One row a scheme, in the order of their bytes.
        const ROWS: &[Row] = &[
            Row { scheme: Scheme::Lattice, name: "lattice", additive: None },
            $(Row {
                scheme: Scheme::$scheme,
                name: $name,
                additive: Some(AdditiveRow::of::<$type>()),
            },)+
        ];

        impl Scheme {
            /// What `visitor` does with the scheme, if it is an additively homomorphic one that this build has.
            #[doc(hidden)]
            pub fn visit<V: SchemeVisitor>(self, visitor: V) -> Option<V::Output> {
                match self {
                    _ if cfg!(not(feature = "additive")) => None,
                    Scheme::Lattice => None,
                    $(Scheme::$scheme => Some(visitor.visit::<$type>()),)+
                }
            }
        }
    };
}

schemes! {
    /// Paillier.
    Paillier = 1, "paillier", paillier::Paillier;
    /// Damgård–Jurik with s = 2.
    DamgardJurik = 2, "damgard-jurik", damgard_jurik::DamgardJurik;
    /// Okamoto–Uchiyama.
    OkamotoUchiyama = 3, "okamoto-uchiyama", okamoto_uchiyama::OkamotoUchiyama;
    /// Exponential ElGamal on ristretto255.
    ElGamal = 4, "elgamal", elgamal::ElGamal;
}

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
        self.row().additive.is_some()
    }

    /// Whether its keys have a modulus whose length is chosen.
    pub fn has_modulus(self) -> bool {
        self.row().additive.as_ref().is_some_and(|row| row.field_bits.is_none())
    }

    /// Length of the field that all keys of the scheme have, if it is such a scheme.
    pub(crate) fn field_bits(self) -> Option<u32> {
        self.row().additive.as_ref().and_then(|row| row.field_bits)
    }

    /// What the key of an index with a modulus of `bits` bits rests on, under an additively homomorphic scheme.
    pub(crate) fn key_security(self, bits: u32) -> Option<SecurityStatement> {
        self.row().additive.as_ref().map(|row| (row.security)(bits))
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// What frames of an additively homomorphic scheme say.
    pub fn wire(self) -> Option<wire::Scheme> {
        self.row().additive.as_ref().map(|row| row.wire)
    }
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let name = if name == FORMER_LATTICE { Scheme::Lattice.as_str() } else { name };
        Self::ALL.into_iter().find(|scheme| scheme.as_str() == name).ok_or_else(|| {
            static KNOWN: LazyLock<String> =
                LazyLock::new(|| alternatives(ROWS.iter().map(|row| row.name)));
            Error::choice("scheme", &KNOWN, name)
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
        let error = "rsa".parse::<Scheme>().unwrap_err().to_string();
        assert!(error.contains("lattice, paillier, damgard-jurik, okamoto-uchiyama or elgamal"));
        assert!(Scheme::from_byte(5).is_none());
    }
}
