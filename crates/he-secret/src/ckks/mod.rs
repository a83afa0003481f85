//! Leveled RNS-CKKS: secret keys, and what only they can do.

mod base_switch;
mod bootstrap;
mod half_ring;
mod keys;
mod noise_flooding;

pub use ciphervec_he::ckks::*;
pub use half_ring::HalfRingKey;
pub use keys::{Budget, PublishPolicy, SecretKey};
pub use noise_flooding::Published;
