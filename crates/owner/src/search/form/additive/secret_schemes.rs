//! Key pairs of an index, whichever its scheme.

use super::key_pair::{KeyPair, Pair};
use crate::error::Result;
use crate::index::form::Additive;
use crate::index::scheme::Scheme;
use ciphervec::search::form::additive::schemes::none;
use ciphervec_he_secret::damgard_jurik::DamgardJurik;
use ciphervec_he_secret::elgamal::ElGamal;
use ciphervec_he_secret::okamoto_uchiyama::OkamotoUchiyama;
use ciphervec_he_secret::paillier::Paillier;
use ciphervec_he_secret::scheme::{SchemeSecretKey, SecretScheme};

/// A fresh key pair for an index.
///
/// # Errors
/// A length that the scheme does not have; no randomness.
pub fn generate(chosen: &Additive) -> Result<Box<dyn KeyPair>> {
    (row(chosen)?.generate)(chosen.bits().unwrap_or(0))
}

/// Reads the secret key of an index.
///
/// # Errors
/// A key that fails its checks.
pub fn read_secret_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn KeyPair>> {
    (row(chosen)?.read)(bytes)
}

/// How key pairs of one scheme are made and read.
struct Row {
    generate: fn(u32) -> Result<Box<dyn KeyPair>>,
    read: fn(&[u8]) -> Result<Box<dyn KeyPair>>,
}

impl Row {
    fn of<S: SecretScheme>() -> Self {
        Row {
            generate: |bits| Ok(Box::new(Pair::new(S::generate(bits)?, S::PACKS))),
            read: |bytes| Ok(Box::new(Pair::new(S::SecretKey::read(bytes, false)?, S::PACKS))),
        }
    }
}

fn row(chosen: &Additive) -> Result<Row> {
    match chosen.scheme() {
        _ if cfg!(not(feature = "additive")) => Err(none(chosen)),
        Scheme::Lattice => Err(none(chosen)),
        Scheme::Paillier => Ok(Row::of::<Paillier>()),
        Scheme::DamgardJurik => Ok(Row::of::<DamgardJurik>()),
        Scheme::OkamotoUchiyama => Ok(Row::of::<OkamotoUchiyama>()),
        Scheme::ElGamal => Ok(Row::of::<ElGamal>()),
    }
}
