//! Exponential ElGamal on ristretto255: short integers enter, pairs of points leave. Both sides.
//!
//! With `G` the base point, `x` the secret and `H = x G`, an encryption of `m` is
//! `(r G, m G + r H)` for a fresh `r`: sums of ciphertexts are encryptions of sums. Decryption
//! leaves `m G`, whose logarithm [`DiscreteLog`] finds as long as `m` is short, so messages and
//! results are bounded by [`MESSAGE_BITS`].
//!
//! Secure under the decisional Diffie–Hellman assumption in a group of order 2^252 + …, 126 bits of
//! classical security; not against quantum computers. Ciphertexts are small (64 bytes), keys
//! smaller (32 bytes), and everything that depends on a secret takes the same time for all of its
//! values, the search for logarithms aside: see there.

mod addition_chain;
mod base_point;
mod ciphertexts;
#[cfg(feature = "client")]
mod discrete_log;
mod evaluate;
mod keys;
mod scheme;
#[cfg(feature = "client")]
pub mod shared_noise;

pub use ciphertexts::Ciphertexts;
#[cfg(feature = "client")]
pub use discrete_log::DiscreteLog;
pub use keys::PublicKey;
pub(crate) use keys::SECURITY;
#[cfg(feature = "client")]
pub use keys::SecretKey;
pub use scheme::ElGamal;

/// Messages `m` and results have `|m| < 2^(MESSAGE_BITS - 1)`: what a logarithm is found for in a
/// tenth of a second.
pub const MESSAGE_BITS: u32 = 36;

/// What every frame of the scheme names as its parameters.
fn param_id() -> crate::params::ParamId {
    crate::params::ParamId::of("elgamal ristretto255")
}
