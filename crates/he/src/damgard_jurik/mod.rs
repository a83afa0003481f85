//! Damgård–Jurik: adds encrypted messages modulo `n^s`; ciphertexts are numbers modulo `n^(s+1)`.
//!
//! `s` is 1 to 3; Paillier is `s = 1`.
//!
//! `c = (1 + n)^m * u` for an `n^s`-th residue `u` (Damgård, Jurik 2001, section 3; Damgård, Jurik,
//! Nielsen 2010, section 4.2 for short exponents). [`PublicKey`] serves
//! [`crate::paillier`] too.

mod message;
mod public;
mod scheme;

/// What `ciphervec-he-secret` makes keys with: no part of the interface.
#[doc(hidden)]
pub mod inner {
    pub use super::public::check_lengths;
}

pub(crate) use public::security;
pub use public::{MAX_POWER, Noise, PublicKey};
pub use scheme::DamgardJurik;

pub use crate::factoring::{
    Ciphertexts, DEFAULT_BITS, FactoringKey, MAX_BITS, MIN_BITS, NoisePool, NoiseSource,
};
