//! Security of additive keys: a scheme and a length enter, what they rest on leaves. Both sides.

use crate::params::SecurityStatement;
use crate::wire::Scheme;
use crate::{damgard_jurik, elgamal, okamoto_uchiyama};

/// What a key of `scheme` with a modulus of `bits` bits rests on, if it is made by the scheme's
/// plain `generate`. `None` for schemes that are not additively homomorphic.
pub fn statement(scheme: Scheme, bits: u32) -> Option<SecurityStatement> {
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
