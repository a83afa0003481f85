//! Paillier: adds encrypted messages modulo `n`; ciphertexts are numbers modulo `n^2`.
//!
//! With the noise of schemes 1 and 3 and with short exponents.
//!
//! `c = (1 + n)^m * u` for an `n`-th residue `u` (Paillier 1999, sections 4 and 6, for
//! `g = 1 + n`). The keys are those of [`crate::damgard_jurik`] with `s = 1`.

mod scheme;

pub use crate::damgard_jurik::{
    Ciphertexts, DEFAULT_BITS, FactoringKey, MAX_BITS, MIN_BITS, Noise, NoisePool, NoiseSource,
    PublicKey,
};
pub use scheme::Paillier;
