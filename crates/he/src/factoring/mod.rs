//! Factoring schemes: a modulus and a way to draw noise enter, what a public key does leaves.
//!
//! Paillier, Damgård–Jurik and Okamoto–Uchiyama share it, and the owner's half by Chinese
//! remainders.
//!
//! A ciphertext is an element of `Z/n^k`, held and stored as `k` digits in base `n`. It is a
//! message's power of a generator times noise; the schemes differ in the generator, in `k`, and in
//! how the noise is drawn.

mod ciphertexts;
#[cfg(feature = "client")]
pub(crate) mod crt;
mod evaluate;
mod group;
#[cfg(feature = "client")]
pub(crate) mod multiplier;
pub(crate) mod noise;
mod noise_pool;
#[cfg(feature = "client")]
pub(crate) mod secret_primes;
pub(crate) mod strength;

pub use ciphertexts::Ciphertexts;
pub(crate) use evaluate::residue;
pub use evaluate::{FactoringKey, NoiseSource};
pub use group::Group;
pub use noise_pool::{NoisePool, Pooled, Precompute};
#[cfg(feature = "client")]
pub(crate) use secret_primes::signed;
pub use strength::{DEFAULT_BITS, MAX_BITS, MIN_BITS};
