//! What the public keys of Paillier, Damgård–Jurik and Okamoto–Uchiyama share: a modulus, and ways to
//! draw noise. The owner's half, by Chinese remainders, is in `ciphervec-he-secret`.
//!
//! A ciphertext is an element of `Z/n^k`, held and stored as `k` digits in base `n`. It is a
//! message's power of a generator times noise; the schemes differ in the generator, in `k`, and in
//! how the noise is drawn.

mod ciphertexts;
mod evaluate;
mod group;
pub(crate) mod noise;
mod noise_pool;
pub(crate) mod strength;

/// What secret keys are made of in `ciphervec-he-secret`, and what they encrypt and decrypt with: no part of the
/// interface. Nothing here knows a secret.
#[doc(hidden)]
pub mod inner {
    pub use super::evaluate::residue;
    pub use super::group::product_of_all;
    pub use super::noise::uniform;
    pub use super::strength::{check_bits, order_bits};
}

pub use ciphertexts::Ciphertexts;
pub(crate) use evaluate::residue;
pub use evaluate::{FactoringKey, NoiseSource};
pub use group::Group;
pub use noise_pool::{NoisePool, Pooled, Precompute};
pub use strength::{DEFAULT_BITS, MAX_BITS, MIN_BITS};
