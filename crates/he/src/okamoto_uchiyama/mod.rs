//! Okamoto–Uchiyama: adds encrypted messages modulo a secret `p`; ciphertexts are numbers modulo
//! `p^2 q`.
//!
//! `c = g^m * h^r` with `h = g^n` (Okamoto, Uchiyama 1998). Lengths are those of `n`: both primes
//! have a third of them, so ciphertexts are as long as `n` and messages a third of that. Whoever
//! learns the decryption of a number of `p` or more learns `p`; hence [`PublicKey`] takes messages
//! 66 bits shorter than `p`, and decryption refuses longer ones.

mod public;
mod scheme;

/// What `ciphervec-he-secret` makes keys with: no part of the interface.
#[doc(hidden)]
pub mod inner {
    pub use super::public::prime_bits;
}

pub(crate) use public::security;
pub use public::{Noise, PublicKey};
pub use scheme::OkamotoUchiyama;

pub use crate::factoring::{
    Ciphertexts, DEFAULT_BITS, FactoringKey, MAX_BITS, MIN_BITS, NoisePool, NoiseSource,
};
