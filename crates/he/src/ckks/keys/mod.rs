//! Keys: a seed enters; secret, public and evaluation keys leave. Both sides.

#[cfg(feature = "client")]
mod budget;
mod evaluation;
mod key_switch_key;
mod plan;
mod public;
#[cfg(feature = "client")]
mod secret;

#[cfg(feature = "client")]
pub use budget::{Budget, PublishPolicy};
pub use evaluation::EvaluationKeys;
pub(super) use key_switch_key::KeySwitchKey;
pub use plan::KeyPlan;
pub use public::PublicKey;
#[cfg(feature = "client")]
pub use secret::SecretKey;
