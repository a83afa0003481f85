//! What an additively homomorphic key rests on, in words and bits. A scheme enters, or a key; the statement leaves. Both
//! sides.

use crate::wire::Scheme;
use crate::{damgard_jurik, elgamal, okamoto_uchiyama};

/// What `security()` says of a key. Nobody's opinion: a row of a published table and a named assumption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecurityStatement {
    /// Bits against classical attacks; 0 where the table has no row as short.
    pub bits: u32,
    /// The source of `bits`.
    pub table: &'static str,
    /// The assumption that semantic security rests on.
    pub assumption: &'static str,
    /// Whether the assumption is believed to hold against quantum computers, and the parameters are within the table's column
    /// for them where it has one.
    pub post_quantum: bool,
    /// Whether the key is for tests and reproductions of papers only.
    pub insecure: bool,
}

impl SecurityStatement {
    /// What a key of `scheme` with a modulus of `bits` bits rests on, if it is made by the scheme's plain `generate`.
    /// `None` for schemes that are not additively homomorphic.
    pub fn of(scheme: Scheme, bits: u32) -> Option<Self> {
        match scheme {
            Scheme::Paillier | Scheme::DamgardJurik => {
                Some(damgard_jurik::security(bits, damgard_jurik::Noise::ShortExponent))
            }
            Scheme::OkamotoUchiyama => {
                Some(okamoto_uchiyama::security(bits, okamoto_uchiyama::Noise::Full))
            }
            Scheme::ElGamal => Some(elgamal::SECURITY),
            _ => None,
        }
    }
}
