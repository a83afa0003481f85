//! Keys: the owner's secret, the public key that encrypts, and the evaluation keys that a server computes with.

mod evaluation;
mod plan;
mod public;
#[cfg(feature = "client")]
mod secret;
mod switch;

pub use evaluation::EvaluationKeys;
pub use plan::KeyPlan;
pub use public::PublicKey;
#[cfg(feature = "client")]
pub use secret::SecretKey;
pub(super) use switch::SwitchKey;
