//! Exponential ElGamal: secret keys, and what they encrypt and decrypt.

mod base_point;
mod discrete_log;
mod keys;
mod scheme;
pub mod shared_noise;

pub use ciphervec_he::elgamal::*;
pub use discrete_log::DiscreteLog;
pub use keys::SecretKey;
