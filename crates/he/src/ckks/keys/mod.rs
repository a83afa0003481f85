//! Keys: a seed enters; secret, public and evaluation keys leave. Both sides.

mod evaluation;
mod key_switch_key;
mod plan;
mod public;

pub use evaluation::EvaluationKeys;
pub use key_switch_key::KeySwitchKey;
pub use plan::KeyPlan;
pub use public::PublicKey;
